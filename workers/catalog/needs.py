"""What a training reads of its machine's data root: the files of a data set, a file of weights."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from workers.catalog.inner_parts import inner
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
    pretrained: Part | None = None
    """A backbone whose published weights are loaded: they lie here, or those who publish them answer."""
    stored: Part | None = None
    """A backbone whose published weights lie here, so that nobody elsewhere has to be asked."""

    @cached_property
    def key(self) -> str:
        """Short, and equal for equal needs."""
        said = self.model_dump(mode="json")
        later = {name for name in ("pretrained", "stored") if said[name] is None}  # so that older keys stay as they are
        return fingerprint_of({name: value for name, value in said.items() if name not in later})[:16]

    def __str__(self) -> str:
        """What a message calls it: `packed file=birds.npz with weights resnet50.pth`."""
        read = [f"weights {self.weights}"] if self.weights else []
        read += [f"pretrained {_named(self.pretrained)}"] if self.pretrained else []
        read += [f"weights of {_named(self.stored)}"] if self.stored else []
        return " with ".join([*([_named(self.dataset)] if self.dataset else []), *read])


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
    weights = pretrained = None
    entry = catalog.get("backbone", backbone.name) if backbone else None
    for within in inner(entry, backbone.options, catalog) if backbone and entry else ():
        entry, backbone = within.entry, within.part  # whose weights they are
    if backbone is not None and entry is not None and _reads(entry):
        path = backbone.options.get("weights")
        weights = path if isinstance(path, str) else None
        pretrained = _published(entry, backbone) if backbone.options.get("pretrained") is True else None
    return Need(dataset=part, weights=weights, pretrained=pretrained) if part or weights or pretrained else None


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
