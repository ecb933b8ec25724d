"""What the catalog adds to a recipe: defaults, versions, needed data and weights, and metrics added later."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from pydantic import Field, JsonValue

from workers.catalog.inventory import (
    Catalog,
    Entry,
    entry_at,
    inner,
    named,
    named_in,
    parse_metric,
    selected,
    with_facts_of_inner,
)
from workers.contract import (
    BEST_TEST,
    DEFAULT_TASK,
    PART_FIELDS,
    Frozen,
    Part,
    Pins,
    Recipe,
    Select,
    canonical_json,
    fingerprint_of,
)
from workers.figures.options import MODELS, OF_WEIGHTS

_DECODING: Final = frozenset({"side", "resize"})
"""Hyper-parameters that decide how images are decoded, not which files are read."""
UNKNOWN: Final = "unknown"
"""The prefix of `pins.content` where the content is not known; sweeps do not share such a training."""

PATHS: Final = ("file", "folder", "weights")
"""Hyper-parameters of built-in parts that are paths below the data root."""


def below_root(path: str) -> bool:
    """Whether a relative path in a recipe stays below the data root."""
    parts = Path(path).parts
    return bool(path) and not Path(path).is_absolute() and ".." not in parts and path[0] != "~" and "\0" not in path


class Need(Frozen):
    """The data set and weights files that a training reads from the data root of its machine."""

    dataset: Part | None = None  # with the hyper-parameters that are not at their default
    weights: str | None = None  # a path below the data root
    pretrained: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    """A backbone whose published weights are loaded, from this machine or from their publishers."""
    stored: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    """A backbone whose published weights must be on this machine."""
    files: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Files and folders below the data root that own parts read."""
    content: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The hashes that these must have, as in `Finding.content`; empty means any content."""

    @cached_property
    def key(self) -> str:
        """A short hash that identifies the needed files and options."""
        return fingerprint_of(self.model_dump(mode="json"))[:16]

    @property
    def reads_data(self) -> bool:
        """Whether the need includes files of the data root."""
        return bool(self.dataset or self.files or self.weights)

    def holding(self, pins: Pins) -> "Need":
        """The need with the content, as hashes of data and weights, that a recipe with these pins requires."""
        data = pins.content if self.dataset or self.files else None
        content = {} if data is None or data.startswith(UNKNOWN) else {"data": data}
        content |= {"weights": pins.weights} if self.weights and pins.weights else {}
        return self.model_copy(update={"content": content}) if content else self

    def __str__(self) -> str:
        """The need in a message, such as `packed file=birds.npz with weights resnet50.pth`."""
        read = [f"weights {self.weights}"] if self.weights else []
        read += [f"pretrained {_named(self.pretrained)}"] if self.pretrained else []
        read += [f"weights of {_named(self.stored)}"] if self.stored else []
        return " with ".join([*([_named(self.dataset)] if self.dataset else []), *self.files, *read])


class Finding(Frozen):
    """The result of checking whether a machine's data root satisfies a need."""

    state: Literal["ok", "missing", "wrong", "unknown"] = "ok"
    """`wrong`: the files have other counts or content than they must have. `unknown`: nothing could be looked at."""
    message: str = ""
    """Which place was searched, what was found, what would be right and how to get it; if `ok`, which files were
    skipped and why."""
    content: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Hashes of the bytes that are read: `data`, of all files of the data set and of `files`; `weights`."""
    counts: dict[str, dict[str, int]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The numbers of classes and images of the splits `train` and `test`."""


class Inspect(Protocol):
    """The signature of `workers.data.inspection:inspect`, and of a function that a setting puts in its place."""

    def __call__(self, needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
        """Checks whether the data root `root` satisfies each need; may raise any exception if it cannot be read."""


def need_of(dataset: Part | None, backbone: Part | None, catalog: Catalog, pins: Pins | None = None) -> Need | None:
    """The files that a training with these parts reads, with the content that `pins` state; None if it reads none.

    An own part is not built, since that may take long; only the files that it declares count.
    """
    entry = catalog.get("dataset", dataset.name) if dataset else None
    part = None
    if dataset is not None and entry is not None and _reads(entry):
        defaults = {parameter.name: parameter.default for parameter in entry.parameters}
        given = entry.filled(dataset.options).items()
        changed = {name: value for name, value in given if name not in _DECODING and value != defaults[name]}
        part = Part.model_validate({"name": dataset.name, **changed})
    weights = pretrained = None
    entry = catalog.get("backbone", backbone.name) if backbone else None
    for within in inner(entry, backbone.options, catalog) if backbone and entry else ():
        entry, backbone = within.entry, within.part  # which loads the weights
    if backbone is not None and entry is not None and _reads(entry):
        path = backbone.options.get("weights")
        weights = path if isinstance(path, str) else None
        pretrained = _published(entry, backbone) if backbone.options.get("pretrained") is True else None
    own = _own_files([("dataset", dataset), ("backbone", backbone)], catalog)
    files = tuple(sorted({name for _, names in own for name in names}))
    if not (part or weights or pretrained or files):
        return None
    found = Need(dataset=part, weights=weights, pretrained=pretrained, files=files)
    return found.holding(pins) if pins else found


def decisive(recipe: Recipe, catalog: Catalog) -> frozenset[str]:
    """The keys of `Finding.content`, `data` and `weights`, whose hashes affect the numbers of a completed recipe.

    Content whose hash the catalog already has does not count: data sets with a `manifest`, known weights.
    """
    need = need_of(recipe.dataset, recipe.backbone, catalog)
    entry = catalog.get("dataset", recipe.dataset.name) if recipe.dataset else None
    fixed = recipe.dataset is not None and recipe.dataset.options.get("official", True) and recipe.pins.manifest
    found = {"data"} if undeclared(recipe, catalog) or (need is not None and need.files) else set()
    found |= {"data"} if entry is not None and _reads(entry) and not fixed else set()
    found |= {"weights"} if need is not None and need.weights and recipe.pins.weights is None else set()
    return frozenset(found)


def undeclared(recipe: Recipe, catalog: Catalog) -> list[str]:
    """The own parts of a recipe, such as `dataset 'birds'`, that use the data root but declare no files."""
    parts = [(kind, recipe.part(kind)) for kind in recipe.kinds]
    return [f"{entry.kind} {entry.name!r}" for entry, files in _own_files(parts, catalog) if not files]


def declared(entry: Entry, options: Mapping[str, Any]) -> list[str]:
    """The files and folders below the data root that an own part declares to read.

    These are the values of its hyper-parameters `file` and `folder`, and what its attribute `reads` lists.
    """
    values = [entry.filled(options).get(name) for name in ("file", "folder")]
    return [*(value for value in values if isinstance(value, str) and value), *entry.fact_names("reads")]


def _own_files(parts: Sequence[tuple[str, Part | None]], catalog: Catalog) -> Iterator[tuple[Entry, list[str]]]:
    """The own parts that ask for the data root, with the files that each declares."""
    for kind, part in parts:
        entry = catalog.get(kind, part.name) if part else None
        if part and entry and entry.own and "root" in entry.inputs:
            yield entry, declared(entry, part.options)


def usual_needs(catalog: Catalog) -> list[Need]:
    """The needs of parts without required hyper-parameters: data sets, and published weights of backbones."""
    datasets, backbones = (
        [entry for entry in catalog.of(kind) if _reads(entry) and not _required(entry)]
        for kind in ("dataset", "backbone")
    )
    stored = [entry for entry in backbones if entry.parameter("pretrained")]
    return [
        *(Need(dataset=Part(name=entry.name)) for entry in datasets),
        *(Need(stored=Part(name=entry.name)) for entry in stored),
    ]


def _reads(entry: Entry) -> bool:
    return "root" in entry.inputs and not entry.own


def _required(entry: Entry) -> list[str]:
    return [parameter.name for parameter in entry.parameters if parameter.required]


def _published(entry: Entry, backbone: Part) -> Part:
    """The backbone with only the options that identify its published weights, such as timm's `architecture`."""
    options = {name: backbone.options[name] for name in _required(entry) if name in backbone.options}
    return Part.model_validate({"name": backbone.name, **options})


def _named(part: Part) -> str:
    options = part.options.items()
    return " ".join(
        [
            part.name,
            *(f"{name}={value if isinstance(value, str) else canonical_json(value)}" for name, value in options),
        ]
    )


_PRECISION_VERSIONS: Final[Mapping[str, int]] = {"fp16": 2}
"""The versions above 1 of what a precision does. fp16, 2: an iteration whose loss is not finite is left out
(workers/training/optimization.py)."""


def complete(recipe: Recipe, catalog: Catalog) -> Recipe:
    """Completes a valid recipe with defaults, the catalog's types, and pinned versions and hashes. Idempotent."""
    parts: dict[str, Part] = {}
    manifest, manifests = None, dict[str, str]()
    loss_rate, weights = recipe.loss_rate, recipe.pins.weights
    for kind in recipe.kinds:
        part = recipe.part(kind)
        entry = catalog.get(kind, part.name)
        if entry is None:
            raise LookupError(f"no {kind} named {part.name!r}; check a recipe for problems before completing it")
        parts[kind] = Part.model_validate({"name": part.name, **_filled(entry, part.options, catalog)})
        if kind == "dataset":
            listed = entry.facts.get("manifest")
            manifest = listed if isinstance(listed, str) else None
            manifests = _manifests(entry, parts[kind].options)
        if kind == "backbone":
            weights = _known_weights(entry, parts[kind].options, catalog) or weights
        if kind == "loss" and loss_rate is None:
            loss_rate = _loss_rate(with_facts_of_inner(entry, inner(entry, part.options, catalog)))
    task = catalog.get("task", recipe.task.name)
    select = recipe.select if task is None else selected(recipe.select, task)
    declared = catalog.metrics(recipe.dataset, recipe.task)
    computed = [*recipe.metrics, select.metric]
    versions = versions_of(named(recipe, catalog), computed, recipe.precision, catalog)
    pins = Pins(
        versions=versions,
        manifest=manifest,
        weights=weights,
        manifests=manifests,
        code=code_of(named(recipe, catalog), computed, catalog),
        content=recipe.pins.content,
    )
    return recipe.model_copy(
        update={
            **parts,
            "evaluate_every": recipe.evaluates_every,
            "loss_rate": loss_rate,
            "select": select,
            "metrics": sorted({*recipe.metrics} - {*declared}),
            "pins": pins,
        }
    )


def _loss_rate(loss: Entry) -> float:
    scale = loss.facts.get("lr_scale")
    return float(scale) if isinstance(scale, int | float) else 1.0


def _manifests(dataset: Entry, options: Mapping[str, JsonValue]) -> dict[str, str]:
    """The content of the test sets that a recipe asks for, as the data set's fact `manifests` states it."""
    digests, asked = dataset.facts.get("manifests"), options.get("tests")
    if not (isinstance(digests, dict) and isinstance(asked, list)):
        return {}
    return {name: str(digests[name]) for name in map(str, asked) if name in digests}


def _filled(entry: Entry, options: Mapping[str, JsonValue], catalog: Catalog) -> dict[str, JsonValue]:
    """The hyper-parameters of a part and of parts within it, with their defaults.

    Those in `added`, and `content` and `on_error` of data sets, are left out at their default. So a new option of a
    part does not change the fingerprints of recipes that do not use it.
    """
    added = {*entry.added, "content", "on_error"} if entry.kind == "dataset" else set(entry.added)
    values = {
        name: value
        for name, value in entry.filled(options).items()
        if name not in added or value != getattr(entry.parameter(name), "default", None)
    }
    for within in inner(entry, values, catalog):
        values[within.option] = {"name": within.part.name, **_filled(within.entry, within.part.options, catalog)}
    return values


def versions_of(parts: Mapping[str, str], metrics: Iterable[str], precision: str, catalog: Catalog) -> dict[str, int]:
    """The `pins.versions` of a recipe: the version of each part, and versions above 1 of metrics and of `precision`.

    The metrics are `metrics` and those that the task and the data set declare. Their version 1 is left out, so that a
    new metric of a data set does not change known fingerprints.
    """
    versions = {path: entry.version for path in parts if (entry := entry_at(path, parts, catalog)) is not None}
    entries = [entry for entry in _computed(parts, metrics, catalog) if entry.version > 1]
    own = {"precision": _PRECISION_VERSIONS[precision]} if precision in _PRECISION_VERSIONS else {}
    return versions | {f"metric.{entry.name}": entry.version for entry in entries} | own


def code_of(parts: Mapping[str, str], metrics: Iterable[str], catalog: Catalog) -> dict[str, str]:
    """The `pins.code` of a recipe: the source hash of each own part, under the keys of `pins.versions`."""
    entries = {path: entry for path in parts if (entry := entry_at(path, parts, catalog)) is not None}
    entries |= {f"metric.{entry.name}": entry for entry in _computed(parts, metrics, catalog)}
    return {key: entry.code for key, entry in entries.items() if entry.code is not None}


def _computed(parts: Mapping[str, str], metrics: Iterable[str], catalog: Catalog) -> list[Entry]:
    declared = catalog.metrics(parts.get("dataset"), parts.get("task", DEFAULT_TASK))
    computed = {parse_metric(name)[0] for name in [*declared, *metrics]}
    return [entry for entry in catalog.of("metric") if entry.name in computed]


def _known_weights(entry: Entry, options: Mapping[str, JsonValue], catalog: Catalog) -> str | None:
    """The hash of the weights that a backbone or the one within it loads, if its fact `known_weights` has the file."""
    for within in inner(entry, options, catalog):
        return _known_weights(within.entry, within.part.options, catalog)
    known, path = entry.facts.get("known_weights"), options.get("weights")
    if not (isinstance(known, dict) and isinstance(path, str)):
        return None
    digest = known.get(path.rpartition("/")[2])
    return f"sha256:{digest}" if isinstance(digest, str) else None


_DEFAULTS: Final = {name: field.default for name, field in Recipe.model_fields.items()}


def defaults_for(recipe: Recipe, catalog: Catalog) -> dict[str, Any]:
    """The default of each setting of a completed recipe as JSON, without settings that have none.

    The options of a part have the defaults of the part that the recipe names. Raises LookupError for an unknown part.
    """
    values: dict[str, Any] = {
        name: value.model_dump(mode="json") if isinstance(value, Frozen) else value for name, value in _DEFAULTS.items()
    }
    values["validation"] |= type(recipe.validation)().model_dump(mode="json", exclude={"name"})
    values["evaluate_every"] = recipe.model_copy(update={"evaluate_every": None}).evaluates_every
    for kind in recipe.kinds:
        part = recipe.part(kind)
        entry = catalog.get(kind, part.name)
        if entry is None:
            raise LookupError(f"no {kind} named {part.name!r}")
        values[kind] = (values[kind] or {}) | _option_defaults(entry, part.options, catalog)
        if kind == "task":
            values["select"] = selected(Select(), entry).model_dump(mode="json")
        if kind == "loss":
            values["loss_rate"] = _loss_rate(with_facts_of_inner(entry, inner(entry, part.options, catalog)))
    return values


def _option_defaults(entry: Entry, options: Mapping[str, JsonValue], catalog: Catalog) -> dict[str, Any]:
    values: dict[str, Any] = {one.name: one.default for one in entry.parameters if not one.required}
    for within in inner(entry, options, catalog):
        values[within.option] = _option_defaults(within.entry, within.part.options, catalog)
    return values


class FurtherMetrics(Frozen):
    """The metrics and figures of a recipe that kept weights of an equal training can give, and the exceptions."""

    base: str  # the fingerprint of the recipe without these; trainings with equal ones do the same steps
    names: list[str] = Field(default_factory=list)
    """As `further_of_recipe` lists them."""
    out_of_reach: dict[str, list[str]] = Field(default_factory=dict)
    """By metric, the keys of results and curves that cannot be computed from kept weights."""


def further_metrics(recipe: Recipe, fingerprint: str, catalog: Catalog) -> FurtherMetrics:
    """The metrics and figures of a completed recipe that do not affect its training, and which kept weights give."""
    names = [*recipe.metrics, *(figure.key for figure in recipe.figures if figure.name in OF_WEIGHTS)]
    base = without_further(recipe, catalog).fingerprint if names else fingerprint
    return FurtherMetrics(base=base, names=names, out_of_reach=out_of_reach(recipe, catalog))


def without_further(recipe: Recipe, catalog: Catalog) -> Recipe:
    """A completed recipe without the metrics and figures that do not affect its training."""
    bare = recipe.model_copy(update={"figures": [one for one in recipe.figures if one.name not in OF_WEIGHTS]})
    return complete(bare.model_copy(update={"metrics": []}), catalog) if recipe.metrics else bare


def out_of_reach(recipe: Recipe, catalog: Catalog) -> dict[str, list[str]]:
    """The result keys that tables or figures show but that kept weights cannot give, by added metric.

    `last/...` is not among them: no table shows it where the best weights are kept.
    """
    if not recipe.metrics:
        return {}
    task = catalog.get("task", recipe.task.name)
    watched = set(task.fact_names("watched")) if task else set()
    select, unreached = recipe.select, dict[str, list[str]]()
    for metric in recipe.metrics:
        keys = [f"{BEST_TEST}/test/{metric}"] if select.beside else []
        if metric in watched:
            keys += [f"the curve of {split}/{metric}" for split in select.watched]
        if keys:
            unreached[metric] = keys
    return unreached


def further_of_recipe(recipe: Mapping[str, Any]) -> list[str]:
    """The further metrics of a recipe as JSON, and the keys of the figures that kept weights give."""
    figures = [figure for figure in recipe.get("figures") or () if figure["name"] in OF_WEIGHTS]
    keys = [MODELS[figure["name"]].model_validate(figure).key for figure in figures]
    return [*(str(name) for name in recipe.get("metrics") or ()), *keys]


def computed_alike(names: list[str], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two completed recipes in JSON agree in the versions and code of the metrics `names`."""
    first, second = (recipe.get("pins") or {} for recipe in (one, other))
    return all(
        (first.get(pinned) or {}).get(key, default) == (second.get(pinned) or {}).get(key, default)
        for key in (f"metric.{name.partition('@')[0]}" for name in names)
        for pinned, default in (("versions", 1), ("code", None))
    )


class Change(Frozen):
    """A part, metric or data set whose version or content has changed since a training was planned."""

    what: str  # such as `loss 'normface'`, `metric 'map'`, `content of dataset 'omniglot'`
    then: str  # the version that the training was planned with
    now: str
    own_code: bool = False  # whether it is the source of an own part

    def __str__(self) -> str:
        return f"{self.what} ({self.then}, now {self.now})"


def stamp(recipe: Mapping[str, Any]) -> str:
    """The versions of the parts of a completed recipe, as JSON: trainings with equal stamps become outdated together.

    Empty for a recipe that was not completed; it is never outdated.
    """
    pins = recipe.get("pins") or {}
    if not pins.get("versions"):
        return ""
    parts = named_in(recipe, pins["versions"])
    metric = (recipe.get("select") or {}).get("metric")
    stamped = {"parts": parts, "metric": metric, "precision": recipe.get("precision")}
    stamped |= {"metrics": recipe["metrics"]} if recipe.get("metrics") else {}
    stamped |= {pinned: pins[pinned] for pinned in ("manifests", "code") if pins.get(pinned)}
    return canonical_json(stamped | {"versions": pins["versions"], "manifest": pins.get("manifest")})


def changes(stamped: str, catalog: Catalog) -> tuple[Change, ...]:
    """The parts that have changed since a training's stamp was made; none if a part no longer exists."""
    if not stamped:
        return ()
    past = json.loads(stamped)
    parts = {kind: name for kind, name in past["parts"].items() if name is not None}
    if any(entry_at(path, parts, catalog) is None for path in parts):
        return ()
    computed = [*past.get("metrics", ()), past["metric"]]
    today = versions_of(parts, computed, past["precision"], catalog)
    then, named = past["versions"], {**parts, "precision": past["precision"]}
    changed = [
        Change(what=_named_parts(key, named), then=f"version {then.get(key, 1)}", now=str(today.get(key, 1)))
        for key in {**then, **today}
        # A kind that is not pinned did not exist then; a metric is pinned from its second version on.
        if (key in then or key not in PART_FIELDS) and then.get(key, 1) != today.get(key, 1)
    ]
    code, source = code_of(parts, computed, catalog), past.get("code", {})
    changed += [
        Change(what=f"code of {_named_parts(key, named)}", then=source[key][7:15], now=code[key][7:15], own_code=True)
        for key in source
        if key in code and code[key] != source[key]
    ]
    dataset = catalog.get("dataset", parts.get("dataset", ""))
    manifest = dataset.facts.get("manifest") if dataset else None
    if past["manifest"] is not None and manifest != past["manifest"]:
        what = f"content of dataset {parts['dataset']!r}"
        changed.append(Change(what=what, then=past["manifest"][:19], now=str(manifest)[:19]))
    here = dataset.facts.get("manifests") if dataset else None
    for name, content in past.get("manifests", {}).items():
        if isinstance(here, dict) and (now := str(here.get(name))) != content:
            what = f"content of test set {name!r} of dataset {parts['dataset']!r}"
            changed.append(Change(what=what, then=content[:19], now=now[:19]))
    return tuple(changed)


def edition(catalog: Catalog) -> str:
    """A short hash of the versions of all parts in the catalog."""
    return fingerprint_of({f"{entry.kind}.{entry.name}": entry.version for entry in catalog.entries})[:16]


def _named_parts(key: str, parts: Mapping[str, str]) -> str:
    kind, _, name = key.partition(".")
    return f"{kind} {(parts.get(key) or name or parts.get(kind, ''))!r}"
