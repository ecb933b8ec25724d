"""Whether this machine has what a recipe's fingerprint stands for: its parts, its metrics, its data set's content."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from workers import registry
from workers.catalog import own_code
from workers.catalog.defaults import PRECISION_VERSIONS, code_of
from workers.catalog.inner_parts import entry_at, inner_of, named
from workers.catalog.inventory import Catalog, load, parse_metric
from workers.catalog.needs import UNKNOWN, need_of
from workers.contract import FOLDERS, CodeChangedError, DataMissingError, Place, Recipe
from workers.data.file_content import below, content
from workers.data.images import files

_EDITED: Final = "it was edited since the sweep was planned, or this machine has another copy of it"


def check(recipe: Recipe, parts: Path | None) -> None:
    """Raise ValueError where this machine's parts or data are not the ones that the recipe's fingerprint stands for.

    Raises CodeChangedError where that is the source of an own part.
    """
    versions = recipe.pins.versions
    wanted = [(kind, recipe.part(kind).name, versions.get(kind)) for kind in recipe.kinds]
    wanted += [(one.entry.kind, one.entry.name, versions.get(one.path)) for one in inner_of(recipe, load(parts))]
    computed = (*load(parts).metrics(recipe.dataset, recipe.task), *recipe.metrics, recipe.select.metric)
    metrics = {parse_metric(name)[0] for name in computed}
    # A metric in its first version is not pinned; a recipe without any pins was never completed.
    wanted += [("metric", name, versions.get(f"metric.{name}", 1 if versions else None)) for name in sorted(metrics)]
    for kind, name, pinned in wanted:
        here = getattr(registry.find(kind, name, parts), "version", 1)
        if pinned is not None and pinned != here:
            raise ValueError(f"pins: the recipe is for version {pinned} of {kind} {name!r}; this machine has {here}")
    _check_code(recipe, computed, load(parts))
    pinned, here = versions.get("precision", 1), PRECISION_VERSIONS.get(recipe.precision, 1)
    if versions and pinned != here:
        value = f"`precision: {recipe.precision}`"
        raise ValueError(f"pins: the recipe is for version {pinned} of {value}; this machine has {here}")
    if recipe.dataset is None:
        return
    dataset = registry.find("dataset", recipe.dataset.name, parts)
    for name, pinned_content in recipe.pins.manifests.items():
        if (content := getattr(dataset, "manifests", {}).get(name)) != pinned_content:
            wanted_set = f"content {pinned_content} of test set {name!r} of dataset {recipe.dataset.name!r}"
            raise ValueError(f"pins: the recipe is for {wanted_set}; this machine has {content}")
    manifest = getattr(dataset, "manifest", None)
    if recipe.pins.manifest is not None and recipe.pins.manifest != manifest:
        raise ValueError(
            f"pins: the recipe is for content {recipe.pins.manifest} of dataset {recipe.dataset.name!r}; "
            f"this machine has {manifest}"
        )


def own_sources(recipe: Recipe, parts: Path | None) -> dict[str, bytes]:
    """The sources of the own parts of a recipe by their paths below the own folder; empty where it has none."""
    found: dict[str, bytes] = {}
    names = named(recipe, load(parts)) if recipe.pins.code else {}
    for key in recipe.pins.code:
        kind, _, option = key.partition(".")
        entry = entry_at(key, names, load(parts)) if kind != "metric" else load(parts).get("metric", option)
        if entry is not None and entry.own and parts is not None:
            found |= own_code.sources(parts / FOLDERS[entry.kind] / f"{entry.name}.py", parts)
    return found


def check_content(recipe: Recipe, place: Place) -> str | None:
    """The content of the files that the recipe reads of the data root, where it is pinned.

    Raises DataMissingError where these are other files than the recipe's fingerprint stands for.
    """
    pinned = recipe.pins.content
    if pinned is None or pinned.startswith(UNKNOWN):
        return None
    need = need_of(recipe.dataset, recipe.backbone, load(place.parts))
    read = set() if need is None else below(place.data_root, need.files).files
    if need is not None and need.dataset is not None and recipe.dataset is not None:
        read |= files(recipe.dataset, place.data_root, place.scratch, place.parts)
    here = content(read, place.scratch)
    if here != pinned:
        raise DataMissingError(
            f"{need} in {place.data_root.absolute()}: other files than when the sweep was planned (content "
            f"{here[:15]}, expected {pinned[:15]}); put these back, or submit the sweep again"
        )
    return here


def _check_code(recipe: Recipe, metrics: Sequence[str], catalog: Catalog) -> None:
    """Raise CodeChangedError where an own part has another source here than the recipe's fingerprint stands for."""
    if not recipe.pins.versions:
        return  # a recipe that was never completed stands for whatever code there is
    parts = named(recipe, catalog)
    pinned, here = recipe.pins.code, code_of(parts, metrics, catalog)
    for key in {**pinned, **here}:
        if pinned.get(key) != here.get(key):
            kind, _, option = key.partition(".")
            part = f"{kind} {(option if kind == 'metric' else parts.get(key, option))!r}"
            found = f"the code of own {part} is {here.get(key)}, and the recipe is for {pinned.get(key)}"
            raise CodeChangedError(f"pins: {found}: {_EDITED}; submit the sweep again")
