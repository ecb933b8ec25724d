"""A recipe with everything said that its training depends on, so that equal meanings have equal fingerprints."""

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from workers.catalog.holdings import selected
from workers.catalog.inner_parts import Inner, entry_at, inner, named
from workers.catalog.inventory import Catalog, parse_metric
from workers.catalog.signature import Entry
from workers.contract import DEFAULT_TASK, Part, Pins, Recipe

PRECISION_VERSIONS: Final[Mapping[str, int]] = {"fp16": 2}
"""The version of what a precision does, where it is above 1.

fp16, 2: a loss that is not finite is left out (workers/training/loss_scale.py), where it ended the training."""


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
