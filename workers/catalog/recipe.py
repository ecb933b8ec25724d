"""What the catalog adds to a recipe: defaults, versions, what it needs of a machine, and metrics added later."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field, JsonValue

from workers.catalog.inventory import Catalog, Inner, entry_at, inner, named, named_in, parse_metric
from workers.catalog.source import Entry
from workers.catalog.wording import Problem, listed
from workers.contract import (
    BEST_TEST,
    DEFAULT_TASK,
    GOES_WITH,
    PART_FIELDS,
    Frozen,
    Part,
    Pins,
    Recipe,
    Select,
    canonical_json,
    fingerprint_of,
)

_DECODING: Final = frozenset({"side", "resize"})
"""Hyper-parameters that say how images are decoded, not which files they come from."""
UNKNOWN: Final = "unknown"
"""How `pins.content` begins where nobody could tell the content: such a training is of one sweep alone."""


PATHS: Final = ("file", "folder", "weights")
"""Hyper-parameters of built-in parts that name something below the data root."""


def below_root(path: str) -> bool:
    """Whether a path stays below the folder that it is relative to, as far as its text says."""
    parts = Path(path).parts
    return bool(path) and not Path(path).is_absolute() and ".." not in parts and path[0] != "~" and "\0" not in path


class Need(Frozen):
    """What one training reads; a machine's data root may hold it or not."""

    dataset: Part | None = None
    """With the hyper-parameters that are not at their default."""
    weights: str | None = None
    """A path below the data root."""
    pretrained: Part | None = None
    """A backbone whose published weights are loaded: they lie here, or those who publish them answer."""
    stored: Part | None = None
    """A backbone whose published weights lie here, so that nobody elsewhere has to be asked."""
    files: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Files and folders below the data root that own parts read."""
    content: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """What these must hold, as `Finding.content` has it; empty: whatever is there."""

    @cached_property
    def key(self) -> str:
        """Short, and equal for equal needs."""
        said = self.model_dump(mode="json")
        later = {name for name in ("pretrained", "stored") if said[name] is None}  # so that older keys stay as they are
        return fingerprint_of({name: value for name, value in said.items() if name not in later})[:16]

    @property
    def held(self) -> bool:
        """Whether it names files of the data root."""
        return bool(self.dataset or self.files or self.weights)

    def holding(self, pins: Pins) -> "Need":
        """The same with the content that a recipe with these pins is for."""
        data = pins.content if self.dataset or self.files else None
        content = {} if data is None or data.startswith(UNKNOWN) else {"data": data}
        content |= {"weights": pins.weights} if self.weights and pins.weights else {}
        return self.model_copy(update={"content": content}) if content else self

    def __str__(self) -> str:
        """What a message calls it: `packed file=birds.npz with weights resnet50.pth`."""
        read = [f"weights {self.weights}"] if self.weights else []
        read += [f"pretrained {_named(self.pretrained)}"] if self.pretrained else []
        read += [f"weights of {_named(self.stored)}"] if self.stored else []
        return " with ".join([*([_named(self.dataset)] if self.dataset else []), *self.files, *read])


class Finding(Frozen):
    """What a machine's data root has of a need."""

    state: Literal["ok", "missing", "wrong", "unknown"] = "ok"
    """`wrong`: files are there, but not with the counts or content that they must have. `unknown`: not to be seen."""
    said: str = ""
    """Where was looked, what was found, what would be right and how to get it.

    Where it is `ok`: what was passed over and why.
    """
    content: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Hashes of the bytes that are read: `data`, of all files of the data set and of `files`; `weights`."""
    counts: dict[str, dict[str, int]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Of the splits `train` and `test` of the data set: classes and images."""


class Inspect(Protocol):
    """The shape of `workers.data.inspection:inspect` and of any function that a setting or a test puts in its place."""

    def __call__(self, needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
        """What the data root `root` has of each need; raises what it likes where it cannot be seen."""
        ...


def need_of(dataset: Part | None, backbone: Part | None, catalog: Catalog, pins: Pins | None = None) -> Need | None:
    """What a training with these parts reads; none: nothing of the data root. With `pins`, the content that they state.

    An own part is not built, since nobody knows how long that takes: only the files that it declares are looked at.
    """
    entry = catalog.get("dataset", dataset.name) if dataset else None
    part = None
    if dataset is not None and entry is not None and _reads(entry):
        usual = {one.name: one.default for one in entry.parameters}
        given = entry.filled(dataset.options).items()
        changed = {name: value for name, value in given if name not in _DECODING and value != usual[name]}
        part = Part.model_validate({"name": dataset.name, **changed})
    weights = pretrained = None
    entry = catalog.get("backbone", backbone.name) if backbone else None
    for within in inner(entry, backbone.options, catalog) if backbone and entry else ():
        entry, backbone = within.entry, within.part  # whose weights they are
    if backbone is not None and entry is not None and _reads(entry):
        path = backbone.options.get("weights")
        weights = path if isinstance(path, str) else None
        pretrained = _published(entry, backbone) if backbone.options.get("pretrained") is True else None
    files = _own_files([("dataset", dataset), ("backbone", backbone)], catalog)
    if not (part or weights or pretrained or files):
        return None
    found = Need(dataset=part, weights=weights, pretrained=pretrained, files=files)
    return found.holding(pins) if pins else found


def decisive(recipe: Recipe, catalog: Catalog) -> frozenset[str]:
    """What of `Finding.content` decides the numbers of a completed recipe: `data`, `weights`, both or nothing.

    Nothing where the catalog has the hash: of a data set with a `manifest`, of weights that its backbone knows.
    """
    need = need_of(recipe.dataset, recipe.backbone, catalog)
    entry = catalog.get("dataset", recipe.dataset.name) if recipe.dataset else None
    fixed = recipe.dataset is not None and recipe.dataset.options.get("official", True) and recipe.pins.manifest
    found = {"data"} if undeclared(recipe, catalog) or (need is not None and need.files) else set()
    found |= {"data"} if entry is not None and _reads(entry) and not fixed else set()
    found |= {"weights"} if need is not None and need.weights and recipe.pins.weights is None else set()
    return frozenset(found)


def undeclared(recipe: Recipe, catalog: Catalog) -> list[str]:
    """The own parts of a recipe, such as `dataset 'birds'`, that ask for the data root and declare no files."""
    entries = [(catalog.get(kind, recipe.part(kind).name), recipe.part(kind)) for kind in recipe.kinds]
    return [
        f"{entry.kind} {entry.name!r}"
        for entry, part in entries
        if entry is not None and entry.own and "root" in entry.asks and not declared(entry, part.options)
    ]


def declared(entry: Entry, options: Mapping[str, Any]) -> list[str]:
    """The files and folders below the data root that an own part reads, as it declares them.

    These are the values of its hyper-parameters `file` and `folder`, and what its attribute `reads` lists.
    """
    values = [entry.filled(options).get(name) for name in ("file", "folder")]
    return [*(value for value in values if isinstance(value, str) and value), *entry.stated("reads")]


def _own_files(parts: Sequence[tuple[str, Part | None]], catalog: Catalog) -> tuple[str, ...]:
    """What own parts declare that they read of the data root."""
    held = [(catalog.get(kind, part.name), part) for kind, part in parts if part is not None]
    own = [(entry, part) for entry, part in held if entry is not None and entry.own and "root" in entry.asks]
    return tuple(sorted({name for entry, part in own for name in declared(entry, part.options)}))


def usual_needs(catalog: Catalog) -> list[Need]:
    """What may lie in a data root and says no more than a name: data sets, and published weights of backbones."""
    datasets = [Need(dataset=Part(name=one.name)) for one in _usual(catalog, "dataset")]
    backbones = [one for one in _usual(catalog, "backbone") if one.parameter("pretrained")]
    return datasets + [Need(stored=Part(name=one.name)) for one in backbones]


def _usual(catalog: Catalog, kind: str) -> list[Entry]:
    return [one for one in catalog.of(kind) if _reads(one) and not _required(one)]


def _reads(entry: Entry) -> bool:
    return "root" in entry.asks and not entry.own


def _required(entry: Entry) -> list[str]:
    return [one.name for one in entry.parameters if one.required]


def _published(entry: Entry, backbone: Part) -> Part:
    """The backbone with no more than what tells its published weights from others, such as timm's `architecture`."""
    told = {name: backbone.options[name] for name in _required(entry) if name in backbone.options}
    return Part.model_validate({"name": backbone.name, **told})


def _named(part: Part) -> str:
    return " ".join([part.name, *(f"{name}={_plain(value)}" for name, value in part.options.items())])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


PRECISION_VERSIONS: Final[Mapping[str, int]] = {"fp16": 2}
"""The version of what a precision does, where it is above 1.

fp16, 2: a loss that is not finite is left out (workers/training/optimization.py), where it ended the training."""


def complete(recipe: Recipe, catalog: Catalog) -> Recipe:
    """`recipe` with defaults filled in, values in the catalog's types, and pins.

    The recipe has no problems. Completing it again changes nothing.
    """
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
            stated = entry.facts.get("manifest")
            manifest = stated if isinstance(stated, str) else None
            manifests = _of_test_sets(entry, parts[kind].options)
        if kind == "backbone":
            weights = _known_weights(entry, parts[kind].options, catalog) or weights
        if kind == "loss" and loss_rate is None:
            stated = entry.facts.get("lr_scale")
            loss_rate = float(stated) if isinstance(stated, int | float) else 1.0
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


def _of_test_sets(dataset: Entry, options: Mapping[str, JsonValue]) -> dict[str, str]:
    """What the content of the test sets that a recipe asks for must be, where the data set's `manifests` say it."""
    stated, asked = dataset.facts.get("manifests"), options.get("tests")
    if not (isinstance(stated, dict) and isinstance(asked, list)):
        return {}
    return {name: str(stated[name]) for name in map(str, asked) if name in stated}


def _filled(entry: Entry, options: Mapping[str, JsonValue], catalog: Catalog) -> dict[str, JsonValue]:
    """The hyper-parameters with their defaults, but what was `added` to the part only where it is not at its default.

    Parts within it are filled in likewise.

    So a part that learns an option leaves the fingerprints of recipes that do not use it alone; so does a data set that
    learns to compare its `content`.
    """
    added = {*entry.added, "content"} if entry.kind == "dataset" else set(entry.added)
    said = {
        name: value
        for name, value in entry.filled(options).items()
        if name not in added or value != getattr(entry.parameter(name), "default", None)
    }
    return said | {_option(one): _whole(one, catalog) for one in inner(entry, said, catalog)}


def _option(within: Inner) -> str:
    return within.path.partition(".")[2]


def _whole(within: Inner, catalog: Catalog) -> JsonValue:
    return {"name": within.part.name, **_filled(within.entry, within.part.options, catalog)}


def versions_of(parts: Mapping[str, str], metrics: Iterable[str], precision: str, catalog: Catalog) -> dict[str, int]:
    """What `pins.versions` has for parts by kind or path: their versions, and those above 1 of what is computed.

    These are the metrics that the task and the data set declare, and `metrics` beside them.

    A metric in its first version adds nothing, so that a new metric of a data set leaves known fingerprints alone; so
    does what is pinned for some precisions only.
    """
    versions = {path: entry.version for path in parts if (entry := entry_at(path, parts, catalog)) is not None}
    entries = [entry for entry in _computed(parts, metrics, catalog) if entry.version > 1]
    own = {"precision": PRECISION_VERSIONS[precision]} if precision in PRECISION_VERSIONS else {}
    return versions | {f"metric.{entry.name}": entry.version for entry in entries} | own


def code_of(parts: Mapping[str, str], metrics: Iterable[str], catalog: Catalog) -> dict[str, str]:
    """What `pins.code` has: the hash of the source of each own part, by the keys that its version has."""
    entries = {path: entry for path in parts if (entry := entry_at(path, parts, catalog)) is not None}
    entries |= {f"metric.{entry.name}": entry for entry in _computed(parts, metrics, catalog)}
    return {key: entry.code for key, entry in entries.items() if entry.code is not None}


def _computed(parts: Mapping[str, str], metrics: Iterable[str], catalog: Catalog) -> list[Entry]:
    """The metrics that the task and the data set declare, and `metrics` beside them."""
    declared = catalog.metrics(parts.get("dataset"), parts.get("task", DEFAULT_TASK))
    computed = {parse_metric(name)[0] for name in [*declared, *metrics]}
    return [entry for entry in catalog.of("metric") if entry.name in computed]


def _known_weights(entry: Entry, options: Mapping[str, JsonValue], catalog: Catalog) -> str | None:
    """The hash of the file of weights that a backbone is to load, where its fact `known_weights` has it by name.

    Of a backbone that holds another, that of the other's.
    """
    for one in inner(entry, options, catalog):
        return _known_weights(one.entry, one.part.options, catalog)
    known, path = entry.facts.get("known_weights"), options.get("weights")
    if not (isinstance(known, dict) and isinstance(path, str)):
        return None
    stated = known.get(path.rpartition("/")[2])
    return f"sha256:{stated}" if isinstance(stated, str) else None


ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("backbone", "head"),
    "loss": ("loss",),
    "regularizer": ("regularizer",),
    "eta": ("eta_schedule",),
    "batches": ("dataset", "sampler"),
}
"""The kinds of parts that stand behind what a task asks the trainer for."""
ALWAYS: Final = ("task", "optimizer", "schedule")
"""The kinds that every recipe holds."""

Selecting = TypeVar("Selecting", bound=Select)


@cache
def _default(field: str) -> Any:
    """What a recipe has that says nothing; made when it is asked for, since who only edits a spec asks for none."""
    return getattr(Recipe(iterations=1), field)


class Holdings(NamedTuple):
    """The kinds of parts of a recipe."""

    must: frozenset[str]
    may: frozenset[str]


def holds(task: Entry) -> Holdings:
    """What recipes of a task must hold and may hold; they hold nothing else."""
    must = [kind for ask in task.asks if ask not in task.optional_asks for kind in ASKED.get(ask, ())]
    may = [kind for ask in task.optional_asks for kind in ASKED.get(ask, ())]
    return Holdings(frozenset((*ALWAYS, *must)), frozenset(may))


def selected(select: Selecting, task: Entry) -> Selecting:
    """A selection with the task's metric and split where it does not say them itself."""
    stated = {"metric": task.facts.get("selects"), "split": task.facts.get("split")}
    unsaid = {name: one for name, one in stated.items() if one is not None and name not in select.model_fields_set}
    return select.model_copy(update=unsaid) if unsaid else select


def former(task: Entry) -> str | None:
    """Why a task cannot be trained that has the form which tasks had before they said what they measure."""
    if "metrics" in task.facts and "selects" in task.facts:
        return None
    said = "today a task says itself what it measures, what its modules are, what it optimizes and what a step is"
    return f"task {task.name!r} has the form that tasks had before: {said} (docs/add-a-part.md)"


def not_held(task: Entry, recipe: Mapping[str, Any], read: Recipe, catalog: Catalog) -> Iterator[Problem]:
    """What a recipe as it was written holds too much or too little for its task; `read` are its sound plain fields.

    A field at its default says nothing, whoever filled it in.
    """
    if message := former(task):
        yield Problem(path="task", message=message)
        return
    held = holds(task)
    for kind in PART_FIELDS:
        if kind in held.must and kind not in recipe and _default(kind) is None:
            yield Problem(path=kind, message=f"is missing; expected one of {listed(catalog.names(kind))}")
        elif kind not in held.must | held.may and _says(kind, recipe.get(kind)):
            yield Problem(path=kind, message=f"task {task.name!r} takes no {kind}; leave it out")
    for field, part in GOES_WITH.items():
        if field in PART_FIELDS or part in held.must or field not in recipe:
            continue
        if (part not in held.may or recipe.get(part) is None) and getattr(read, field) != _default(field):
            why = f"says something of a {part}, and task {task.name!r} takes none"
            yield Problem(path=field, message=f"{why}; leave it out" if part not in held.may else f"needs a {part}")
    if recipe.get("epochs") is not None and "dataset" not in held.must | held.may:
        message = f"counts the images of a data set, and task {task.name!r} takes none; give `iterations`"
        yield Problem(path="epochs", message=message)


def _says(kind: str, value: Any) -> bool:
    """Whether a part as it was written is another than the default, which says nothing."""
    default = _default(kind)
    if value is None or default is None:
        return value is not None
    return value not in (default, default.name, {"name": default.name})


class FurtherMetrics(Frozen):
    """What decides whether the weights that another training kept can stand for a training of this recipe."""

    base: str
    """The fingerprint that the recipe has without its further metrics: such trainings do the same steps."""
    out_of_reach: dict[str, list[str]] = Field(default_factory=dict)
    """By metric, the keys of a training's result or curves that kept weights cannot tell."""


def further_metrics(recipe: Recipe, fingerprint: str, catalog: Catalog) -> FurtherMetrics:
    """Those of a completed recipe."""
    base = without_further(recipe, catalog).fingerprint if recipe.metrics else fingerprint
    return FurtherMetrics(base=base, out_of_reach=out_of_reach(recipe, catalog))


def without_further(recipe: Recipe, catalog: Catalog) -> Recipe:
    """A completed recipe as it is without its further metrics."""
    # Completing it anew without them gives the same, slower: of what is complete only the versions of metrics change.
    parts, computed = named(recipe, catalog), [recipe.select.metric]
    versions, code = versions_of(parts, computed, recipe.precision, catalog), code_of(parts, computed, catalog)
    pins = recipe.pins.model_copy(update={"versions": versions, "code": code})
    return recipe.model_copy(update={"metrics": [], "pins": pins})


def out_of_reach(recipe: Recipe, catalog: Catalog) -> dict[str, list[str]]:
    """By further metric what is measured of other weights than the kept ones, where a table or a figure shows it.

    Of `last/...` where the best are kept no table asks: it is left out of what kept weights give.
    """
    if not recipe.metrics:
        return {}
    task = catalog.get("task", recipe.task.name)
    watched = set(task.stated("watched")) if task else set()
    select, unreached = recipe.select, dict[str, list[str]]()
    for metric in recipe.metrics:
        keys = [f"{BEST_TEST}/test/{metric}"] if select.beside else []
        if metric in watched:
            keys += [f"the curve of {split}/{metric}" for split in select.watched]
        if keys:
            unreached[metric] = keys
    return unreached


def asked_of(recipe: Mapping[str, Any]) -> list[str]:
    """The further metrics of a recipe that is JSON."""
    return [str(one) for one in recipe.get("metrics") or ()]


def computed_alike(names: list[str], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two completed recipes that are JSON were planned with the same versions and code of some metrics."""
    pins = [recipe.get("pins") or {} for recipe in (one, other)]
    keys = [f"metric.{name.partition('@')[0]}" for name in names]
    versions, code = ([one.get(held) or {} for one in pins] for held in ("versions", "code"))
    return all(versions[0].get(key, 1) == versions[1].get(key, 1) for key in keys) and all(
        code[0].get(key) == code[1].get(key) for key in keys
    )


class Change(Frozen):
    """One thing whose numbers are others today than when a training was planned."""

    what: str
    """Such as `loss 'normface'`, `metric 'map'`, `content of dataset 'omniglot'`."""
    then: str
    """The version that the training was planned with."""
    now: str
    own_code: bool = False
    """Whether it is the source of an own part, which may change at any time."""

    def __str__(self) -> str:
        return f"{self.what} ({self.then}, now {self.now})"


def stamp(recipe: Mapping[str, Any]) -> str:
    """What of a completed recipe has versions, as JSON: trainings with one stamp are outdated together.

    Empty for a recipe that nobody completed, which stands for whatever versions there are.
    """
    pins = recipe.get("pins") or {}
    if not pins.get("versions"):
        return ""
    parts = named_in(recipe, pins["versions"])
    metric = (recipe.get("select") or {}).get("metric")
    said = {"parts": parts, "metric": metric, "precision": recipe.get("precision")}
    said |= {"metrics": recipe["metrics"]} if recipe.get("metrics") else {}
    said |= {held: pins[held] for held in ("manifests", "code") if pins.get(held)}
    return canonical_json(said | {"versions": pins["versions"], "manifest": pins.get("manifest")})


def changes(stamped: str, catalog: Catalog) -> tuple[Change, ...]:
    """What has other numbers today than by a stamp; a part that is gone has none, and fails where it is trained."""
    if not stamped:
        return ()
    said = json.loads(stamped)
    parts = {kind: name for kind, name in said["parts"].items() if name is not None}
    if any(entry_at(path, parts, catalog) is None for path in parts):
        return ()
    computed = [*said.get("metrics", ()), said["metric"]]
    today = versions_of(parts, computed, said["precision"], catalog)
    then, named = said["versions"], {**parts, "precision": said["precision"]}
    changed = [
        Change(what=_named_parts(key, named), then=f"version {then.get(key, 1)}", now=str(today.get(key, 1)))
        for key in {**then, **today}
        # A kind that is not pinned was unknown then; a metric is pinned from its second version on.
        if (key in then or key not in PART_FIELDS) and then.get(key, 1) != today.get(key, 1)
    ]
    code, source = code_of(parts, computed, catalog), said.get("code", {})
    changed += [
        Change(what=f"code of {_named_parts(key, named)}", then=source[key][7:15], now=code[key][7:15], own_code=True)
        for key in source
        if key in code and code[key] != source[key]
    ]
    dataset = catalog.get("dataset", parts.get("dataset", ""))
    manifest = dataset.facts.get("manifest") if dataset else None
    if said["manifest"] is not None and isinstance(manifest, str) and manifest != said["manifest"]:
        what = f"content of dataset {parts['dataset']!r}"
        changed.append(Change(what=what, then=said["manifest"][:19], now=manifest[:19]))
    here = dataset.facts.get("manifests") if dataset else None
    for name, content in said.get("manifests", {}).items():
        if isinstance(here, dict) and (now := str(here.get(name))) != content:
            what = f"content of test set {name!r} of dataset {parts['dataset']!r}"
            changed.append(Change(what=what, then=content[:19], now=now[:19]))
    return tuple(changed)


def edition(catalog: Catalog) -> str:
    """What tells apart the code of releases of which a part has another version."""
    return fingerprint_of({f"{one.kind}.{one.name}": one.version for one in catalog.entries})[:16]


def _named_parts(key: str, parts: Mapping[str, str]) -> str:
    kind, _, name = key.partition(".")
    return f"{kind} {(parts.get(key) or name or parts.get(kind, ''))!r}"
