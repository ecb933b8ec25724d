"""What a training reads of its machine's data root: the files of a data set, a file of weights."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from workers.catalog.inventory import Catalog
from workers.catalog.signature import Entry
from workers.contract import Frozen, Part, canonical_json, fingerprint_of

_DECODING: Final = frozenset({"side", "resize"})
"""Hyper-parameters that say how images are decoded, not which files they come from."""


class Need(Frozen):
    """What one training reads; a machine's data root may hold it or not."""

    dataset: Part | None = None
    """With the hyper-parameters that are not at their default."""
    weights: str | None = None
    """A path below the data root."""

    @cached_property
    def key(self) -> str:
        """Short, and equal for equal needs."""
        return fingerprint_of(self.model_dump(mode="json"))[:16]

    def __str__(self) -> str:
        """What a message calls it: `packed file=birds.npz with weights resnet50.pth`."""
        weights = f"weights {self.weights}" if self.weights else ""
        if self.dataset is None:
            return weights
        options = [f"{name}={_plain(value)}" for name, value in self.dataset.options.items()]
        return " ".join([self.dataset.name, *options]) + (f" with {weights}" if weights else "")


class Finding(Frozen):
    """What a machine's data root has of a need."""

    state: Literal["ok", "missing", "wrong", "unknown"] = "ok"
    """`wrong`: files are there, but not with the counts or content that they must have. `unknown`: not to be seen."""
    said: str = ""
    """Where was looked, what was found, what would be right and how to get it."""


class Inspect(Protocol):
    """The shape of `workers.data.inspection:inspect` and of any function that a setting or a test puts in its place."""

    def __call__(self, needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
        """What the data root `root` has of each need; raises what it likes where it cannot be seen."""
        ...


def need_of(dataset: Part | None, backbone: Part | None, catalog: Catalog) -> Need | None:
    """What a training with these parts reads; none: nothing of the data root.

    A part of the researcher's own is not looked into: nobody knows how long its constructor takes.
    """
    entry = catalog.get("dataset", dataset.name) if dataset else None
    part = None
    if dataset is not None and entry is not None and _reads(entry):
        usual = {one.name: one.default for one in entry.parameters}
        given = entry.filled(dataset.options).items()
        changed = {name: value for name, value in given if name not in _DECODING and value != usual[name]}
        part = Part.model_validate({"name": dataset.name, **changed})
    entry = catalog.get("backbone", backbone.name) if backbone else None
    path = backbone.options.get("weights") if backbone else None
    weights = path if isinstance(path, str) and entry is not None and _reads(entry) else None
    return Need(dataset=part, weights=weights) if part or weights else None


def usual_needs(catalog: Catalog) -> list[Need]:
    """The data sets that may lie in a data root, as a recipe has them that says no more than their names."""
    entries = [one for one in catalog.of("dataset") if not any(parameter.required for parameter in one.parameters)]
    return [Need(dataset=Part(name=one.name)) for one in entries if _reads(one)]


def _reads(entry: Entry) -> bool:
    return "root" in entry.asks and not entry.own


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
