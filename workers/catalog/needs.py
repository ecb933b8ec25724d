"""What a training reads of its machine's data root: the files of a data set, a file of weights."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from pydantic import Field

from workers.catalog.inner_parts import inner
from workers.catalog.inventory import Catalog
from workers.catalog.signature import Entry
from workers.contract import Frozen, Part, Pins, Recipe, canonical_json, fingerprint_of

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
