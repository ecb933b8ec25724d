"""The catalog of all parts that a recipe may name: those of `workers` and those in a folder of own parts."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import Field, PrivateAttr

from workers.catalog import own_code
from workers.catalog.source import NAME, Entry, Parameter, PartSourceError, read
from workers.catalog.wording import listed, near, shown, unknown
from workers.contract import DEFAULT_TASK, FOLDERS, KINDS, PART_FIELDS, PML, Frozen, Part, Recipe

_BUILT_IN: Final = Path(__file__).parents[1]
_PML: Final = Path(__file__).with_name("pml.json")  # which .ci/pml_catalog.py writes
_USUAL_NAMES: Final = {"r": "recall", "rec": "recall", "acc": "accuracy"}  # abbreviations in papers, such as R@1
PRINTED: Final = (".toml", ".csv")
"""The endings of the files of printed tables."""
EMBEDDINGS: Final = "embeddings"
"""The default of a metric's fact `reads`."""

Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""The numbers of classes and images of each split that nodes found, by the key of the data set's need."""


class Catalog(Frozen):
    """The parts that recipes may name, ordered by kind and name."""

    entries: list[Entry]
    published: dict[str, str] = Field(default_factory=dict)
    """The files of the folder `published` of own parts by name: a paper's printed tables (docs/your-paper.md)."""
    counts: Counts = Field(default_factory=dict, exclude=True)

    def counting(self, counts: Counts) -> "Catalog":
        """A copy of the catalog with numbers of classes and images for data sets that declare none."""
        return Catalog(entries=self.entries, published=self.published, counts=counts)

    def refresh(self) -> None:
        """Does nothing, since this catalog never changes; a LiveCatalog reads own parts again."""

    @property
    def changes(self) -> int:
        return 0

    @property
    def folder(self) -> Path | None:
        """The folder of own parts, known to a LiveCatalog only."""
        return None

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return {(entry.kind, entry.name): entry for entry in self.entries}

    def get(self, kind: str, name: str) -> Entry | None:
        return self._by_name.get((kind, name))

    def names(self, kind: str) -> list[str]:
        return [entry.name for entry in self.of(kind)]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]

    def metrics(self, dataset: Part | str | None, task: Part | str = DEFAULT_TASK) -> list[str]:
        """The metrics that every training of a task computes.

        These are the metrics that the data set declares and the task can compute, or else those of the task. The list
        is empty if the task or the data set is unknown.
        """
        known = self.get("task", task if isinstance(task, str) else task.name)
        usual = _names(known)
        if dataset is None or known is None:
            return usual
        entry = self.get("dataset", dataset if isinstance(dataset, str) else dataset.name)
        return [name for name in _names(entry) if self.read_by(name, known)] or usual if entry else []

    def read_by(self, metric: str, task: Entry) -> bool:
        """Whether a task evaluates what the metric reads; true for a metric that does not exist."""
        entry = self.get("metric", parse_metric(metric)[0])
        return entry is None or entry.facts.get("reads", EMBEDDINGS) in given(task)

    def at_the_end(self, metric: str, task: Entry) -> bool:
        """Whether a task measures a metric, with any k, only at the end of a training."""
        file = parse_metric(metric)[0]
        entry, ended = self.get("metric", file), {parse_metric(name)[0] for name in task.fact_names("ended")}
        return file in ended or (entry is not None and entry.facts.get("needs") in ended)


class LiveCatalog(Catalog):
    """The catalog of a long-running process: after `refresh`, every holder sees the changed own parts."""

    _parts: Path | None = PrivateAttr()
    _now: Catalog = PrivateAttr()
    _check: Callable[[Catalog], object] = PrivateAttr()
    _changes: int = PrivateAttr(default=0)

    @classmethod
    def at(cls, parts: Path | None, check: Callable[[Catalog], object] = lambda _: None) -> "LiveCatalog":
        """Makes a live catalog of the built-in parts and the own parts in the folder `parts`.

        `check` may refuse what was read. Both raise PartSourceError.
        """
        check(now := load(parts))
        made = cls(entries=now.entries, published=now.published)
        made._parts, made._now, made._check = parts, now, check
        return made

    def refresh(self) -> None:
        """Read again own parts that were added, edited or removed.

        Raises PartSourceError if a part cannot be read; then nothing changes.
        """
        if self._parts is not None and (now := load(self._parts)) is not self._now:
            self._check(now)
            self.__dict__ |= {"entries": now.entries, "published": now.published}
            self._now = now
            self._changes += 1

    @property
    def changes(self) -> int:
        """The number of changes of the catalog so far, so that its holders know when to recompute."""
        return self._changes

    @property
    def folder(self) -> Path | None:
        return self._parts

    @property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return self._now._by_name


def given(task: Entry) -> list[str]:
    """What a task evaluates for its metrics, such as embeddings or pairs."""
    reads = task.facts.get("reads", EMBEDDINGS)
    return task.fact_names("reads") if isinstance(reads, list) else [str(reads)]


def _names(entry: Entry | None) -> list[str]:
    return entry.fact_names("metrics") if entry else []


def load(parts: Path | None = None) -> Catalog:
    """Loads the catalog of the built-in parts and the own parts in the folder `parts`; raises PartSourceError."""
    if parts is not None:
        _check_folders(parts)
    files = [(kind, *file) for kind in KINDS for file in part_files(kind, parts).values()]
    stamped = tuple((kind, path, own, path.stat().st_mtime_ns) for kind, path, own in files)
    stamp = own_code.stamp(parts) + own_code.stamp(parts / "published", PRINTED) if parts else ()
    return _catalog(stamped, parts, stamp)


@lru_cache(maxsize=8)
def _catalog(files: tuple[tuple[str, Path, bool, int], ...], parts: Path | None, _stamp: own_code.Stamp) -> Catalog:
    """Cached until a file changes: a part's file, or any module or printed table in the folder of own parts."""
    entries = [_read(kind, path, parts if own else None) for kind, path, own, _ in files]
    return Catalog(entries=[*entries, *pml_entries()], published=_printed(parts / "published") if parts else {})


def _printed(folder: Path) -> dict[str, str]:
    """The text of each file of printed tables; raises PartSourceError for text that is not UTF-8."""
    texts = {}
    for path in sorted(path for ending in PRINTED for path in folder.glob(f"*{ending}")):
        try:
            texts[path.name] = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise PartSourceError(f"{path}: expected text in UTF-8: {error}") from error
    return texts


@lru_cache
def pml_entries() -> tuple[Entry, ...]:
    """The classes of pytorch-metric-learning that recipes may name, of the release that this version is made for."""
    return tuple(map(Entry.model_validate, json.loads(_PML.read_bytes())["entries"]))


def _read(kind: str, path: Path, parts: Path | None) -> Entry:
    """The entry of a part; for an own part, in the folder `parts`, it has the hash of its source."""
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
    """The source file of each part of a kind by name, and whether it is one of the user's own parts."""
    found = {path.stem: (path, False) for path in _sources(_BUILT_IN / FOLDERS[kind])}
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
    """Raise PartSourceError for a folder of parts whose name is not that of any kind's folder."""
    if (
        parts.name in FOLDERS.values()
        and _sources(parts)
        and not any((parts / folder).is_dir() for folder in FOLDERS.values())
    ):
        raise PartSourceError(
            f"{parts}: the folder of own parts holds folders such as {parts.name}/; name the one above, {parts.parent}"
        )
    for folder in sorted(parts.iterdir()) if parts.is_dir() else ():
        if folder.name in FOLDERS.values() or not folder.is_dir() or not NAME.fullmatch(folder.name.casefold()):
            continue
        right = FOLDERS.get(folder.name.casefold()) or near(folder.name, FOLDERS.values())
        kind = next((kind for kind, name in FOLDERS.items() if name == right), None)
        if right and kind and any(_is_part(kind, path) for path in _sources(folder)):
            raise PartSourceError(
                f"{folder}: no kind of part has a folder of this name; did you mean {right!r}? Rename it; a folder "
                "without parts may have any name that begins with _"
            )


def _is_part(kind: str, path: Path) -> bool:
    """Whether a file defines a part, and is not just a module that parts import."""
    try:
        return not path.stem.startswith(("test_", "conftest")) and bool(read(kind, path, own=True))
    except PartSourceError as error:
        return "before the `*`" in str(error)


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))


def parse_metric(name: str) -> tuple[str, str | None]:
    """Splits the name of a metric into its file name and `k`: `recall@1` is ("recall", "1"), `nmi` is ("nmi", None)."""
    file, at, k = name.partition("@")
    return file, k if at else None


def metric_entry(name: str, catalog: Catalog) -> Entry | None:
    """The catalog entry of the part that computes the metric `name`; None if there is no such metric."""
    return None if metric_problem(name, catalog) else catalog.get("metric", parse_metric(name)[0])


def metric_problem(name: str, catalog: Catalog) -> str | None:
    """The message on an invalid name of a metric, such as `recall@0`; None if it is valid."""
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


class MetricFacts(NamedTuple):
    """The catalog's answers on a metric that a recipe names."""

    entry: Entry | None
    """Of the part that computes it; None if there is no such metric."""
    problem: str | None
    """Why the task of the recipe cannot compute it."""
    at_the_end: bool
    """Whether it is measured only at the end of a training."""
    declared: list[str]
    """The metrics that every training of the recipe's task on its data set computes; empty if either is unknown."""


def facts_of_metrics(
    names: Iterable[str], task: Entry | None, dataset: str | None, catalog: Catalog
) -> dict[str, MetricFacts]:
    """What the catalog knows of metrics for a task and a data set, by the name of the metric."""
    declared = catalog.metrics(dataset, task.name) if task else []
    found = {}
    for name in dict.fromkeys(names):
        entry, problem = metric_entry(name, catalog), metric_problem(name, catalog)
        if entry and task and not catalog.read_by(name, task):
            reads = entry.facts.get("reads", EMBEDDINGS)
            problem = f"metric {name!r} reads {reads}, but task {task.name!r} gives {' and '.join(given(task))}"
        ended = entry is not None and task is not None and catalog.at_the_end(name, task)
        found[name] = MetricFacts(entry, problem, ended, declared)
    return found


class Inner(NamedTuple):
    """A part that is a hyper-parameter of another part, such as the backbone within a frozen backbone."""

    path: str  # its place in a recipe: `backbone.of`
    part: Part
    entry: Entry

    @property
    def option(self) -> str:
        return self.path.partition(".")[2]


def holders(entry: Entry) -> list[Parameter]:
    """The hyper-parameters of a part that take a part as their value."""
    return [parameter for parameter in entry.parameters if parameter.type == "part"]


def inner(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> list[Inner]:
    """The existing parts among the hyper-parameter values `options` of a part."""
    found = []
    for holder in holders(entry):
        part = Part.model_validate(options[holder.name]) if options.get(holder.name) is not None else None
        within = catalog.get(holder.kind, part.name) if part else None
        if part and within:
            found.append(Inner(f"{entry.kind}.{holder.name}", part, within))
    return found


def inner_of(recipe: Recipe, catalog: Catalog) -> list[Inner]:
    """The parts that are hyper-parameters of a recipe's parts."""
    parts = [(kind, recipe.part(kind)) for kind in recipe.kinds]
    held = [(catalog.get(kind, part.name), part) for kind, part in parts]
    return [within for entry, part in held if entry for within in inner(entry, part.options, catalog)]


def named(recipe: Recipe, catalog: Catalog) -> dict[str, str]:
    """The name of each part of a recipe by its kind, and of each inner part by its path, such as `backbone.of`."""
    names = {kind: recipe.part(kind).name for kind in recipe.kinds}
    return names | {within.path: within.part.name for within in inner_of(recipe, catalog)}


def named_in(recipe: Mapping[str, Any], versions: Mapping[str, int]) -> dict[str, str | None]:
    """The part names of a completed recipe in JSON, for the paths in its pinned versions; None for a kind that it
    lacks.
    """
    names = {kind: (recipe.get(kind) or {}).get("name") for kind in PART_FIELDS}
    for path in versions:
        kind, _, option = path.partition(".")
        if option and kind in PART_FIELDS:
            names[path] = ((recipe.get(kind) or {}).get(option) or {}).get("name")
    return names


def with_facts_of_inner(entry: Entry, held: Sequence[Inner]) -> Entry:
    """The entry of a part that holds these; a loss of pytorch-metric-learning also has the facts of its class.

    The latter asks for the number of classes only if the class does.
    """
    found = next((within.entry for within in held if within.entry.kind == PML[0]), None)
    if found is None:
        return entry
    fills = found.facts.get("fills")
    inputs = [ask for ask in entry.inputs if ask != "classes" or (isinstance(fills, dict) and ask in fills.values())]
    return entry.model_copy(update={"facts": {**entry.facts, **found.facts}, "inputs": inputs})


def entry_at(path: str, names: Mapping[str, str], catalog: Catalog) -> Entry | None:
    """The catalog entry of the part at a recipe's path, `loss` or `backbone.of`; `names` is from `named`."""
    kind, _, option = path.partition(".")
    entry = catalog.get(kind, names.get(kind, ""))
    if not option:
        return entry
    holder = entry.parameter(option) if entry else None
    return catalog.get(holder.kind, names[path]) if holder else None
