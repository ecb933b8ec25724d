"""The catalog: every part that a recipe may name, from the sources of `workers` and of a folder of own parts."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import JsonValue, PrivateAttr

from workers.catalog import own_code
from workers.catalog.source import NAME, Entry, Parameter, PartSourceError, read
from workers.catalog.wording import listed, near, shown, unknown
from workers.contract import DEFAULT_TASK, FOLDERS, KINDS, PART_FIELDS, Frozen, Part, Recipe

BUILT_IN: Final = Path(__file__).parents[1]
"""The folder that holds the folders of the built-in parts."""

_USUAL_NAMES: Final = {"r": "recall", "rec": "recall", "acc": "accuracy"}
"""Abbreviations of metrics in the literature, such as R@1."""
EMBEDDINGS: Final = "embeddings"
"""What a metric reads that says nothing of it."""


Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""By the key of the need of a data set alone: classes and images of its splits, as nodes found them."""


class Catalog(Frozen):
    """The parts that exist, in the order of their kinds and names."""

    entries: list[Entry]
    _counts: Counts = PrivateAttr(default_factory=dict)

    def counting(self, counts: Counts) -> "Catalog":
        """The same parts, where data sets that state no counts have those that were found in the data."""
        made = Catalog(entries=self.entries)
        made._counts = counts
        return made

    @property
    def counts(self) -> Counts:
        """What is known of the data."""
        return self._counts

    def refresh(self) -> None:
        """Nothing: these are the parts of one moment."""

    @property
    def changes(self) -> int:
        """How often it has changed: never."""
        return 0

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return {(entry.kind, entry.name): entry for entry in self.entries}

    def get(self, kind: str, name: str) -> Entry | None:
        """The part of that kind and name."""
        return self._by_name.get((kind, name))

    @cached_property
    def _by_kind(self) -> dict[str, list[Entry]]:
        return {kind: [entry for entry in self.entries if entry.kind == kind] for kind in KINDS}

    @cached_property
    def _declared(self) -> dict[tuple[str, str], list[str]]:
        """What `metrics` has said, by the names of a data set and a task that exist: every recipe of a plan asks."""
        return {}

    def names(self, kind: str) -> list[str]:
        """The names of the parts of a kind."""
        return [entry.name for entry in self.of(kind)]

    def of(self, kind: str) -> list[Entry]:
        """The parts of a kind."""
        return [*self._by_kind.get(kind, [])]

    def metrics(self, dataset: Part | str | None, task: Part | str = DEFAULT_TASK) -> list[str]:
        """The metrics that every training of a task computes: the task's, or those of its data set.

        A data set says its own where they differ; of these it computes what the task can, and the task's where that is
        nothing. Empty where the task or the data set is unknown.
        """
        known = self.get("task", task if isinstance(task, str) else task.name)
        usual = _names(known)
        if dataset is None or known is None:
            return usual
        entry = self.get("dataset", dataset if isinstance(dataset, str) else dataset.name)
        if entry is None:
            return []
        if (declared := self._declared.get((entry.name, known.name))) is not None:
            return [*declared]
        declared = [name for name in _names(entry) if self.read_by(name, known)] or usual
        self._declared[entry.name, known.name] = declared
        return [*declared]

    def read_by(self, metric: str, task: Entry) -> bool:
        """Whether a metric reads what a task evaluates; a metric that does not exist reads everything."""
        entry = self.get("metric", parse_metric(metric)[0])
        return entry is None or entry.facts.get("reads", EMBEDDINGS) in given(task)

    def at_the_end(self, metric: str, task: Entry) -> bool:
        """Whether a task measures a metric at the end of a training only, whatever its k, by name or by its `needs`."""
        file = parse_metric(metric)[0]
        entry, ended = self.get("metric", file), {parse_metric(name)[0] for name in task.stated("ended")}
        return file in ended or (entry is not None and entry.facts.get("needs") in ended)


class LiveCatalog(Catalog):
    """The catalog of a process that goes on: what holds it sees the files of own parts as `refresh` found them last."""

    _parts: Path | None = PrivateAttr()
    _now: Catalog = PrivateAttr()
    _changes: int = PrivateAttr(default=0)

    @classmethod
    def at(cls, parts: Path | None) -> "LiveCatalog":
        """That of the built-in parts and those in the folder `parts`; raises PartSourceError."""
        now = load(parts)
        made = cls(entries=now.entries)
        made._parts, made._now = parts, now
        return made

    def refresh(self) -> None:
        """Read the own parts that were added, edited or removed since.

        Raises PartSourceError where one cannot be read; the parts stay as they were then.
        """
        if self._parts is not None and (now := load(self._parts)) is not self._now:
            self.__dict__["entries"] = now.entries
            self._now = now
            self._changes += 1

    @property
    def changes(self) -> int:
        """How often it has changed, so that what was made of it can be made anew."""
        return self._changes

    @property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return self._now._by_name

    @property
    def _by_kind(self) -> dict[str, list[Entry]]:
        return self._now._by_kind

    @property
    def _declared(self) -> dict[tuple[str, str], list[str]]:
        return self._now._declared


def given(task: Entry) -> list[str]:
    """What a task gives its metrics to read: one thing, or several."""
    reads = task.facts.get("reads", EMBEDDINGS)
    return task.stated("reads") if isinstance(reads, list) else [str(reads)]


def _names(entry: Entry | None) -> list[str]:
    """The metrics that a task or a data set declares."""
    return entry.stated("metrics") if entry else []


def load(parts: Path | None = None) -> Catalog:
    """The catalog of the built-in parts and those in the folder `parts`; raises PartSourceError."""
    if parts is not None:
        _check_folders(parts)
    files = [(kind, *file) for kind in KINDS for file in part_files(kind, parts).values()]
    stamped = tuple((kind, path, own, path.stat().st_mtime_ns) for kind, path, own in files)
    return _catalog(stamped, parts, own_code.stamp(parts) if parts else ())


@lru_cache(maxsize=8)
def _catalog(files: tuple[tuple[str, Path, bool, int], ...], parts: Path | None, _stamp: own_code.Stamp) -> Catalog:
    """A catalog is read once for as long as no file changes, of an own part also no module that it uses."""
    return Catalog(entries=[_read(kind, path, parts if own else None) for kind, path, own, _ in files])


def _read(kind: str, path: Path, parts: Path | None) -> Entry:
    """The entry of a part, with the hash of its source where it is an own one of the folder `parts`."""
    entry = read(kind, path, parts is not None)
    if parts is None:
        return entry
    try:
        code = own_code.digest(own_code.sources(path, parts))
    except SyntaxError as error:
        raise PartSourceError(f"{error.filename}: line {error.lineno}: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise PartSourceError(f"{path}: {error}") from error
    return entry.model_copy(update={"code": code})


def part_files(kind: str, parts: Path | None = None) -> Mapping[str, tuple[Path, bool]]:
    """The file of each part of a kind by name, and whether it is the researcher's own."""
    found = {path.stem: (path, False) for path in _sources(BUILT_IN / FOLDERS[kind])}
    if parts is None:
        return found
    if not parts.is_dir():
        raise PartSourceError(f"{parts}: the folder of own parts does not exist")
    for path in _sources(parts / FOLDERS[kind]):
        if path.stem in found:
            raise PartSourceError(f"{path}: a built-in {kind} is named {path.stem!r} already; rename this file")
        found[path.stem] = (path, True)
    return dict(sorted(found.items()))


def _check_folders(parts: Path) -> None:
    """Raise PartSourceError for a folder that holds parts, and that is not named as the folder of any kind is."""
    if (
        parts.name in FOLDERS.values()
        and _sources(parts)
        and not any((parts / one).is_dir() for one in FOLDERS.values())
    ):
        raise PartSourceError(
            f"{parts}: the folder of own parts holds folders such as {parts.name}/; name the one above, {parts.parent}"
        )
    for folder in sorted(parts.iterdir()) if parts.is_dir() else ():
        if folder.name in FOLDERS.values() or not folder.is_dir() or not NAME.fullmatch(folder.name.casefold()):
            continue
        right = FOLDERS.get(folder.name.casefold()) or near(folder.name, FOLDERS.values())
        kind = next((kind for kind, one in FOLDERS.items() if one == right), None)
        if right and kind and any(_is_part(kind, path) for path in _sources(folder)):
            raise PartSourceError(
                f"{folder}: no kind of part has a folder of this name; did you mean {right!r}? Rename it; a folder "
                "without parts may have any name that begins with _"
            )


def _is_part(kind: str, path: Path) -> bool:
    """Whether a file has the form of a part, other than a module that parts share."""
    try:
        return not path.stem.startswith(("test_", "conftest")) and bool(read(kind, path, own=True))
    except PartSourceError as error:
        return "before the `*`" in str(error)


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))


def parse_metric(name: str) -> tuple[str, str | None]:
    """The file name and the `k` of a metric: `recall@1` is ("recall", "1"), `nmi` is ("nmi", None)."""
    file, at, k = name.partition("@")
    return file, k if at else None


def metric_entry(name: str, catalog: Catalog) -> Entry | None:
    """The part that computes the metric `name`; None where there is no such metric."""
    return None if metric_problem(name, catalog) else catalog.get("metric", parse_metric(name)[0])


def metric_problem(name: str, catalog: Catalog) -> str | None:
    """What is wrong with the name of a metric, such as `recall@0`; None where nothing is."""
    file, k = parse_metric(name)
    entry = catalog.get("metric", file)
    if entry is None:
        meant = _USUAL_NAMES.get(file.casefold()) or near(file, catalog.names("metric"))
        right = f"no metric named {shown(name)}; did you mean '{meant}@{(k or '').casefold()}'?"
        return right if meant and k else unknown("metric", file, catalog.names("metric"))
    parameter = entry.parameter("k")
    if k is None:
        return f"metric {file!r} needs a k, such as '{file}@1'" if parameter and parameter.required else None
    if parameter is None:
        return f"metric {file!r} takes no k, found {name!r}; write {file!r}"
    if parameter.type == "literal":
        choices = [str(choice) for choice in parameter.choices or []]
        return None if k in choices else f"no metric {name!r}; expected {listed([f'{file}@{c}' for c in choices])}"
    if not (k.isascii() and k.isdecimal() and not k.startswith("0")):
        return f"no metric {name!r}; after the @ stands a whole number of at least 1, such as '{file}@1'"
    return None


class Inner(NamedTuple):
    """A part that another one holds."""

    path: str
    """Where it stands in a recipe: `backbone.of`."""
    part: Part
    entry: Entry


def holders(entry: Entry) -> list[Parameter]:
    """The hyper-parameters of a part that are parts themselves."""
    return [one for one in entry.parameters if one.type == "part"]


def inner(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> list[Inner]:
    """The parts that stand among the options of another, as far as they exist."""
    found = []
    for one in holders(entry):
        part = Part.model_validate(options[one.name]) if options.get(one.name) is not None else None
        within = catalog.get(one.kind, part.name) if part else None
        if part and within:
            found.append(Inner(f"{entry.kind}.{one.name}", part, within))
    return found


def inner_of(recipe: Recipe, catalog: Catalog) -> list[Inner]:
    """All those of a recipe."""
    parts = [(kind, recipe.part(kind)) for kind in recipe.kinds]
    held = [(catalog.get(kind, part.name), part) for kind, part in parts]
    return [one for entry, part in held if entry for one in inner(entry, part.options, catalog)]


def named(recipe: Recipe, catalog: Catalog) -> dict[str, str]:
    """The name of each part of a recipe by its kind, and of each part within one by its path, such as `backbone.of`."""
    names = {kind: recipe.part(kind).name for kind in recipe.kinds}
    return names | {one.path: one.part.name for one in inner_of(recipe, catalog)}


def named_in(recipe: Mapping[str, Any], versions: Mapping[str, int]) -> dict[str, str | None]:
    """The same of a completed recipe that is JSON, by the versions that it is pinned with; none where it holds none."""
    names = {kind: (recipe.get(kind) or {}).get("name") for kind in PART_FIELDS}
    for path in versions:
        kind, _, option = path.partition(".")
        if option and kind in PART_FIELDS:
            names[path] = ((recipe.get(kind) or {}).get(option) or {}).get("name")
    return names


def entry_at(path: str, names: Mapping[str, str], catalog: Catalog) -> Entry | None:
    """The part at a path of a recipe, `loss` or `backbone.of`, by the names that `named` gives."""
    kind, _, option = path.partition(".")
    entry = catalog.get(kind, names.get(kind, ""))
    if not option:
        return entry
    holder = entry.parameter(option) if entry else None
    return catalog.get(holder.kind, names[path]) if holder else None


def filled(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> dict[str, JsonValue]:
    """As `Entry.filled`, and the options of parts within it likewise; raises ValueError."""
    found = entry.filled(options)
    for one in inner(entry, found, catalog):
        found[one.path.partition(".")[2]] = {"name": one.part.name, **one.entry.filled(one.part.options)}
    return found
