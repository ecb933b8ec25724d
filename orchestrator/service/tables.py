"""Tables, figures, bundles, table diffs and reproduction reports."""

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal, TypeVar, cast

from orchestrator.host.cache import Cache
from orchestrator.plan.figures import read_figure
from orchestrator.publish import formats, papers, reproduction, reproduction_files
from orchestrator.publish.aggregate import direction, optimism, selection
from orchestrator.publish.bundle import contents, making, rebuilding
from orchestrator.publish.bundle.making import Material
from orchestrator.publish.bundle.rebuilding import RebuildReport
from orchestrator.publish.figures import drawing, rendering
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.macros import PREFIX, macros_of, written
from orchestrator.publish.reproduction import WITHIN, ReproductionFinding, findings, published_tables
from orchestrator.publish.table_diff import TableSource, diff, render
from orchestrator.publish.tables import build, compare
from orchestrator.publish.tables.cells import counts_by_cell, shaded
from orchestrator.publish.tables.evidence import JudgedTable, judged
from orchestrator.publish.tables.table_data import Numbers, Table
from orchestrator.publish.verdicts import judge
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.progress import LARGE
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.spec.layouts import Covers
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import ConflictError, NotFoundError, timely
from orchestrator.views.evidence import (
    MacroFormat,
    OptimismView,
    ReproductionSummary,
    ReproductionView,
    RunFacts,
    VerdictsView,
)
from orchestrator.views.pages import FigureView, Rendered
from orchestrator.views.runs import QuerySource, SweepResults, nowhere
from orchestrator.views.sweeps import Heat, SweepHead
from workers.catalog import OWN_CODE, Catalog, PartSourceError, unknown


class FigureQueries:
    """Draws the figures of sweeps."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources) -> None:
        self._store, self._catalog, self._sources = store, catalog, sources

    def listed(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        view = self._store.sweeps.get(sweep)
        return drawing.listed(sweep, view.name, view.spec)

    def render(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure of the current results of a sweep in a format, with or without its title and caption."""
        return self._drawn(self._store.trial_results.of(sweep), name, file_format, heading)

    def draw(self, sweep: int, described: bytes, file_format: str, heading: bool = True) -> Rendered:
        """A figure that is not in the sweep's spec, from its description; raises InvalidSpecError."""
        results = self._store.trial_results.of(sweep)
        figure = read_figure(described, Spec.model_validate(results.spec), self._catalog)
        spec = {**results.spec, "figures": {"figure": figure.model_dump(mode="json")}}
        return self._drawn(replace(results, spec=spec), "figure", file_format, heading)

    def _drawn(self, results: SweepResults, name: str, file_format: str, heading: bool) -> Rendered:
        figure = drawing.draw(results, name, self._catalog, self._sources, heading=heading)
        return rendering.render(figure, file_format)


Made = TypeVar("Made")
_PLACE: Final = re.compile(r"([1-9][0-9]{0,8})(?:@(.+))?")
View = Literal["merge", "difference"]
MOST_KEPT: Final = 64
"""Rendered tables in the cache."""


class TableQueries:
    """Makes the tables of sweeps."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog, queries: QuerySource = nowhere) -> None:
        self._settings, self._store, self._catalog, self._queries = settings, store, catalog, queries
        self._cache: Cache[Hashable, Any] = Cache(MOST_KEPT)

    def render(
        self, sweep: int, name: str, file_format: str, show_tuned: bool | None = None, numbers: Numbers = "own"
    ) -> Rendered:
        """A table of the current results of a sweep in a format; see `_cached`.

        With own numbers, JSON says whether cells are better than their baselines; other formats have marks if the
        table's `verdicts` ask for them.
        """

        def compute() -> Rendered:
            results = self._results(sweep, name)
            built = build.build(results, name, self._catalog, show_tuned=show_tuned, numbers=numbers)
            wordy = file_format == "json"
            if numbers == "own" and (wordy or (results.spec["tables"][name].get("verdicts") or {}).get("marks")):
                built = self._judged(built, results).shown(marks=not wordy)
            return formats.render(self._addressed(built), file_format)

        return self._cached((sweep, name, file_format, show_tuned, numbers), sweep, compute)

    def macros(self, sweep: int, table: str, file_format: MacroFormat, prefix: str = PREFIX) -> Rendered:
        """The macros of a table as a LaTeX or JSON file.

        Raises NotFoundError for an unknown table, ConflictError for a prefix that TeX cannot read.
        """
        uid = self._store.sweeps.get(sweep).uid
        view = macros_of(self._store.trial_results.of(sweep), uid, table, self._catalog, prefix)
        if file_format == "latex":
            text, media_type, suffix = written(view), "application/x-tex", "tex"
        else:
            text, media_type, suffix = view.model_dump_json(indent=2) + "\n", "application/json", "json"
        return Rendered(content=text.encode(), media_type=media_type, filename=f"sweep-{sweep}-macros.{suffix}")

    def verdicts(self, sweep: int, name: str | None = None, covers: Covers | None = None) -> VerdictsView:
        """Whether the cells of a table (by default the sweep's first) are better than their baselines.

        `covers` overrides the table's spec. Raises NotFoundError if there is no such sweep or table; see `_cached`.
        """

        def compute() -> VerdictsView:
            results = self._results(sweep, name)
            chosen = name if name is not None else next(iter(results.spec["tables"]))
            built = build.build(results, chosen, self._catalog)
            return self._judged(built, results, covers).view({cell.index: cell.labels for cell in results.cells})

        return self._cached(("verdicts", sweep, name, covers), sweep, compute)

    def answer(self, sweep: int) -> str:
        """The best cell of the first table and its lead over its baseline, in a sentence; empty if it has none."""

        def compute() -> str:
            results = self._of(sweep)
            for name in list(results.spec.get("tables") or {})[:1]:
                labels = {cell.index: cell.labels for cell in results.cells}
                return self._judged(build.build(results, name, self._catalog), results).answer(labels)
            return ""

        return self._cached(("answer", sweep), sweep, compute)

    def optimism(self, sweep: int) -> OptimismView:
        """By how much selection inflates the score of the best candidate of each cell; NotFoundError."""
        results = self._store.trial_results.of(sweep)
        return optimism(results, direction(selection(results.spec).metric, self._catalog))

    def html(self, sweep: int, name: str, heat: Heat = "none", compared: bool = False) -> str:
        """A table as an HTML fragment for our own pages, with links and colours; cached.

        If `compared`, cells say whether they are better than their baselines, and bold is marked where its lead is
        doubtful.
        """

        def compute() -> str:
            results = self._results(sweep, name)
            built = build.build(results, name, self._catalog, doubts=compared)
            if compared:
                built = self._judged(built, results).shown(marks=False)
            built = shaded(built, heat, counts_by_cell(results))
            return formats.render(replace(built, address=""), "html").content.decode()

        return self._cached((sweep, name, heat, compared), sweep, compute)

    def _cached(self, key: Hashable, sweep: int, compute: Callable[[], Made]) -> Made:
        """Compute a table again once a trial has begun or ended; refresh tables of large sweeps in the background."""

        def current() -> Made:
            with suppress(PartSourceError):
                self._catalog.refresh()  # a cell says if own code has changed since
            state = self._store.sweeps.change(sweep), self._store.requests.looks(sweep), self._catalog.changes
            return cast(Made, self._cache.stamped(key, " ".join(map(str, state)), compute))

        if self._store.sweeps.trials_of_going(sweep) < LARGE:  # raises if the caller may not see the sweep
            return current()
        return cast(Made, self._cache.get(("large", key), current, current))

    def compare(self, sweeps: Sequence[int], name: str | None, view: View, file_format: str) -> Rendered:
        """A table of the first sweep's spec (by default the first) over the cells of all sweeps.

        Raises NotFoundError if there is no such sweep or table, ConflictError if the sweeps cannot be compared.
        """
        if not 2 <= len(sweeps) <= (2 if view == "difference" else compare.MOST):
            most = "two" if view == "difference" else f"2 to {compare.MOST}"
            raise ConflictError(f"the view {view} compares {most} sweeps, not {len(sweeps)}")
        first = self._results(sweeps[0], name)
        several = [first, *(self._of(sweep) for sweep in sweeps[1:])]
        chosen = name if name is not None else next(iter(first.spec["tables"]))
        if view == "difference":
            built = compare.contrasted(first, several[1], chosen, self._catalog)
        else:
            built = compare.merged(several, chosen, self._catalog)
        rendered = formats.render(self._addressed(built), file_format)
        suffix = rendered.filename.rpartition(".")[2]
        stem = "-".join(("compare", *map(str, sweeps), chosen, view))
        return rendered.model_copy(update={"filename": f"{stem}.{suffix}"})

    def diff(self, before: str, after: str, table: str | None, file_format: str) -> Rendered:
        """The changes from one table to the other as a file.

        Each is the number of a sweep, `7`, or a sweep at a time, `7@2026-11-20T12:00`. Raises NotFoundError if there is
        no such sweep or table, ConflictError for a text that names no sweep or time.
        """
        return _diff(self._source(before), self._source(after), table, file_format)

    def _source(self, place: str) -> TableSource:
        found = _PLACE.fullmatch(place.strip())
        if found is None:
            raise ConflictError(
                f"{place!r} names no table; say a sweep, such as 7, or 7@2026-11-20T12:00 for that time"
            )
        sweep, moment = int(found[1]), None if found[2] is None else _moment(found[2])
        results = self._store.trial_results.of(sweep) if moment is None else self._store.trial_results.at(sweep, moment)
        title = f"sweep {sweep} ({results.name})"
        if moment is not None:
            title += f" at {moment:%Y-%m-%d %H:%M} UTC"
            if moment > datetime.now(UTC):
                title += " (still to come: as it is now)"
            elif moment < self._store.sweeps.get(sweep).created:
                title += " (before it was submitted)"
        return TableSource(title, results, self._catalog, lambda trials: self._facts(sweep, trials))

    def _facts(self, sweep: int, trials: Collection[int]) -> Mapping[int, RunFacts]:
        return {
            trial.result.trial: RunFacts(trial.recipe, trial.commit, trial.data_hash, trial.versions)
            for trial in (self._store.trial_results.provenance(sweep) if trials else ())
            if trial.result.trial in trials
        }

    def _judged(self, built: Table, results: SweepResults, covers: Covers | None = None) -> JudgedTable:
        return judged(built, results, self._store.requests.looks(results.sweep), covers)

    def _results(self, sweep: int, name: str | None) -> SweepResults:
        """The results of a sweep; raises NotFoundError if it has no table `name` (`None` means any)."""
        results = self._of(sweep)
        tables = results.spec.get("tables") or {}
        if name not in tables and (name is not None or not tables):
            raise NotFoundError(f"in sweep {results.sweep}: {unknown('table', name or '', tables)}")
        return results

    def _of(self, sweep: int) -> SweepResults:
        return replace(self._store.trial_results.of(sweep), queries=self._queries)

    def _addressed(self, table: Table) -> Table:
        """The table with links from its cells to this server, if its address is set."""
        return replace(table, address=self._settings.address if self._settings.url else None)


class BundleQueries:
    """Packs sweeps into bundles, ZIP files from which their tables can be rebuilt."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources, files: FigureFiles) -> None:
        self._store, self._catalog, self._sources, self._files = store, catalog, sources, files

    def make(self, sweep: int) -> IO[bytes]:
        """The bundle of a sweep as an open temporary file at its beginning; raises NotFoundError."""
        view = self._store.sweeps.get(sweep)
        material = Material(
            head=SweepHead.model_validate(view.model_dump(include=set(SweepHead.model_fields))),
            text=view.text,
            results=replace(
                self._store.trial_results.of(sweep, trials=False), queries=judge.source(self._sources.arrays)
            ),
            evidence=self._store.trial_results.provenance(sweep),
            catalog=self._catalog,
            sources=self._sources,
            own_code=lambda trial: self._files.read(trial, OWN_CODE).content,
            looks=self._store.requests.looks(sweep),
        )
        file = cast(IO[bytes], TemporaryFile())  # noqa: SIM115 - the caller reads and closes it
        try:
            making.make(material, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file


def rebuild(file: Path, table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """Make the tables of a bundle again without a server or a database, and compare them.

    Raises DamagedError with every changed file, and NotFoundError if the bundle has no such table.
    """
    with file.open("rb") as source:
        return rebuilding.rebuild(source, table, file_format)


def between_bundles(before: Path, after: Path, table: str | None, file_format: str) -> Rendered:
    """The changes between the tables of two bundles as a file, without a server; raises DamagedError, NotFoundError."""
    return _diff(_packed(before), _packed(after), table, file_format)


def _packed(file: Path) -> TableSource:
    packed = rebuilding.unpacked(file)

    def facts(trials: Collection[int]) -> Mapping[int, RunFacts]:
        return {trial: fact for trial, fact in contents.read_facts(packed.trials) if trial in trials}

    title = f"the bundle {file.name} of sweep {packed.head.id} ({packed.head.name})"
    return TableSource(title, packed.results, packed.catalog, facts)


def _diff(before: TableSource, after: TableSource, name: str | None, file_format: str) -> Rendered:
    """The changes of the table `name`, by default the first table of the later source that both have."""
    old, new = ([*map(str, source.results.spec.get("tables") or ())] for source in (before, after))
    both = [table for table in new if table in old]
    selected = name if name is not None else next(iter(both or new), "")
    for source, known in ((before, old), (after, new)):
        if selected not in known:
            raise NotFoundError(f"in {source.title}: {unknown('table', selected, known)}")
    return render(diff(before, after, selected), file_format)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # an offset may lead beyond the years of datetime
        raise ConflictError(f"{text!r} is no time; write it as 2026-11-20 or 2026-11-20T12:00") from error


MOST_SWEEPS: Final = 10_000
"""The number of newest sweeps that reports use."""
MOST_REPRODUCTIONS_KEPT: Final = 256
"""Sweeps whose findings are cached."""


class ReproductionQueries:
    """Makes reproduction reports; caches the findings of a sweep until one of its trials begins or ends."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog
        self._kept: Cache[tuple[int, float], list[ReproductionFinding]] = Cache(MOST_REPRODUCTIONS_KEPT)

    def summaries(self) -> list[ReproductionSummary]:
        """Every paper with the counts of its numbers by status."""
        own = self._own()
        found = list(self._findings(WITHIN))
        views = (reproduction.reproduction(paper, found, WITHIN, own) for paper in reproduction.papers(own))
        return [ReproductionSummary(paper=view.paper, citation=view.citation, counts=view.counts) for view in views]

    def of(self, paper: str, within: float = WITHIN) -> ReproductionView:
        """The report of a paper; NotFoundError suggests a similar name."""
        return reproduction.reproduction(paper, self._findings(within), within, self._own())

    def render(self, paper: str, file_format: str, within: float = WITHIN) -> Rendered:
        """The report of a paper as a file; NotFoundError for an unknown paper or format."""
        return reproduction_files.render(self.of(paper, within), file_format)

    def _own(self) -> papers.Own:
        """The current own printed tables."""
        with suppress(PartSourceError):
            self._catalog.refresh()
        return self._catalog.published

    def _findings(self, within: float) -> Iterator[ReproductionFinding]:
        for use, spec in timely(self._store.sweeps.specs(MOST_SWEEPS)):
            if published_tables(spec, self._catalog.published):
                with suppress(NotFoundError):  # the sweep was deleted meanwhile
                    yield from self._of_sweep(use.id, within)

    def _of_sweep(self, sweep: int, within: float) -> list[ReproductionFinding]:
        stamp = f"{self._store.sweeps.change(sweep)} {self._catalog.changes}"
        return self._kept.stamped(
            (sweep, within), stamp, lambda: findings(self._store.trial_results.of(sweep), self._catalog, within)
        )


def from_bundles(bundles: Sequence[Path], paper: str, file_format: str, within: float = WITHIN) -> Rendered:
    """The report of a paper from bundles alone, without a server; raises DamagedError and NotFoundError."""
    found: list[ReproductionFinding] = []
    own: dict[str, str] = {}
    for packed in map(rebuilding.unpacked, bundles):
        found += findings(packed.results, packed.catalog, within)
        own |= packed.catalog.published
    return reproduction_files.render(reproduction.reproduction(paper, found, within, own), file_format)
