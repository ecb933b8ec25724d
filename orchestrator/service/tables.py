"""Tables, figures, macros, table diffs and bundles of sweeps."""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal, cast

from orchestrator.host.cache import Cache
from orchestrator.publish import figures, formats, macros
from orchestrator.publish.aggregate import direction, optimism, selection
from orchestrator.publish.bundle import contents, making, rebuilding
from orchestrator.publish.bundle.contents import Head
from orchestrator.publish.bundle.making import Material
from orchestrator.publish.bundle.rebuilding import RebuildReport
from orchestrator.publish.drift import TableSource, drift, render
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.macros import PREFIX, macros_of
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
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import DriftView, MacroFormat, MacrosView, OptimismView, RunFacts, VerdictsView
from orchestrator.views.pages import FigureView, Rendered
from orchestrator.views.runs import QuerySource, SweepOutcomes, TrialProvenance, nowhere
from orchestrator.views.sweeps import Heat
from workers.catalog import OWN_CODE, Catalog, PartSourceError, unknown


class FigureQueries:
    """Draws figures."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources) -> None:
        self._store, self._catalog, self._sources = store, catalog, sources

    def listed(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        found = self._store.sweeps.get(sweep)
        return figures.drawing.listed(sweep, found.name, found.spec)

    def render(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure of a sweep in one of the formats, drawn from what is known now; `heading`: with its words."""
        outcomes = self._store.outcomes.of(sweep)
        return figures.rendering.render(
            figures.drawing.draw(outcomes, name, self._catalog, self._sources, heading=heading), file_format
        )


class PaperQueries:
    """Gives papers their numbers."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def macros(self, sweep: int, table: str, prefix: str = PREFIX) -> MacrosView:
        """A table as macros. Raises NotFoundError for an unknown table, ConflictError for a prefix TeX cannot read."""
        uid = self._store.sweeps.get(sweep).uid
        return macros_of(self._store.outcomes.of(sweep), uid, table, self._catalog, prefix)

    def render(self, sweep: int, table: str, file_format: MacroFormat, prefix: str = PREFIX) -> Rendered:
        """The same as a file of LaTeX or JSON."""
        view = self.macros(sweep, table, prefix)
        stem = f"sweep-{sweep}-macros"
        if file_format == "latex":
            text = macros.written(view)
            return Rendered(content=text.encode(), media_type="application/x-tex", filename=f"{stem}.tex")
        text = view.model_dump_json(indent=2) + "\n"
        return Rendered(content=text.encode(), media_type="application/json", filename=f"{stem}.json")


View = Literal["merge", "difference"]
_WORDY: Final = ("html", "json")
MOST_KEPT: Final = 64
"""Tables, in a page or as a file, that are cached."""


class TableQueries:
    """Makes tables."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog, queries: QuerySource = nowhere) -> None:
        self._settings, self._store, self._catalog, self._queries = settings, store, catalog, queries
        self._cache: Cache[Hashable, Any] = Cache(MOST_KEPT)

    def render(
        self,
        sweep: int,
        name: str,
        file_format: str,
        show_tuned: bool | None = None,
        numbers: Numbers = "own",
    ) -> Rendered:
        """A table of a sweep in one of the formats, computed from what is known now; see `_cached`.

        Of own numbers HTML and JSON say in words whether cells are better than their baselines; other formats have
        marks for it where the table's `verdicts` ask for them.
        """
        key = (sweep, name, file_format, show_tuned, numbers)
        rendered: Rendered = self._cached(
            key, sweep, lambda: self._rendered(sweep, name, file_format, show_tuned, numbers)
        )
        return rendered

    def _rendered(self, sweep: int, name: str, file_format: str, show_tuned: bool | None, numbers: Numbers) -> Rendered:
        outcomes = self._outcomes(sweep, name)
        built = build.build(outcomes, name, self._catalog, show_tuned=show_tuned, numbers=numbers)
        wordy = file_format in _WORDY
        if numbers == "own" and (wordy or _marks(outcomes, name)):
            built = self._judged(built, outcomes).shown(marks=not wordy)
        return formats.render(self._addressed(built, here=False), file_format)

    def verdicts(self, sweep: int, name: str | None = None, covers: Covers | None = None) -> VerdictsView:
        """Whether the cells of a table (its sweep's first one by default) are better than their baselines.

        They cover what the table's spec says, unless `covers` is given. NotFoundError where the sweep or the table is
        not there.
        """
        outcomes = self._of(sweep)
        chosen = name if name is not None else next(iter(outcomes.spec.get("tables") or {}), "")
        built = build.build(self._named(outcomes, chosen), chosen, self._catalog)
        return self._judged(built, outcomes, covers).view({cell.index: cell.labels for cell in outcomes.cells})

    def optimism(self, sweep: int) -> OptimismView:
        """By how much the best candidate of each cell looks better than it is; NotFoundError."""
        outcomes = self._store.outcomes.of(sweep)
        return optimism(outcomes, direction(selection(outcomes.spec).metric, self._catalog))

    def html(self, sweep: int, name: str, heat: Heat = "none") -> str:
        """A table as a fragment of HTML for our own pages: linked, coloured, and marked where bold may rest on noise.

        It is computed anew only when a trial of the sweep has begun or ended since: pages ask every few seconds.
        """
        page: str = self._cached((sweep, name, heat), sweep, lambda: self._page(sweep, name, heat))
        return page

    def _cached(self, key: Hashable, sweep: int, compute: Callable[[], Any]) -> Any:
        """Compute a table again once a trial has begun or ended; refresh that of a large sweep in the background."""

        def current() -> Any:
            return self._cache.stamped(key, self._stamp(sweep), compute)

        if self._store.sweeps.trials_of_going(sweep) < LARGE:  # raises where the caller may not see it
            return current()
        return self._cache.get(("large", key), current, current)

    def _stamp(self, sweep: int) -> str:
        with suppress(PartSourceError):
            self._catalog.refresh()  # a cell says where own code has changed since
        state = self._store.sweeps.change(sweep), self._store.requests.looks(sweep), self._catalog.changes
        return " ".join(map(str, state))

    def _page(self, sweep: int, name: str, heat: Heat) -> str:
        outcomes = self._outcomes(sweep, name)
        built = build.build(outcomes, name, self._catalog, doubts=True)
        built = self._judged(built, outcomes).shown(marks=False)
        built = shaded(built, heat, counts_by_cell(outcomes))
        return formats.render(self._addressed(built, here=True), "html").content.decode()

    def compare(self, sweeps: Sequence[int], name: str | None, view: View, file_format: str) -> Rendered:
        """A table of the first sweep's spec (its first one by default) over the cells of all of them.

        NotFoundError where a sweep or the table is not there, ConflictError where they do not compare.
        """
        if not 2 <= len(sweeps) <= (2 if view == "difference" else compare.MOST):
            most = "two" if view == "difference" else f"2 to {compare.MOST}"
            raise ConflictError(f"the view {view} compares {most} sweeps, not {len(sweeps)}")
        several = [self._of(sweep) for sweep in sweeps]
        tables = several[0].spec.get("tables") or {}
        chosen = name if name is not None else next(iter(tables), "")
        if chosen not in tables:
            raise NotFoundError(f"in sweep {sweeps[0]}: {unknown('table', chosen, tables)}")
        if view == "difference":
            built = compare.contrasted(several[0], several[1], chosen, self._catalog)
        else:
            built = compare.merged(several, chosen, self._catalog)
        rendered = formats.render(self._addressed(built, here=False), file_format)
        suffix = rendered.filename.rpartition(".")[2]
        stem = "-".join(("compare", *map(str, sweeps), chosen, view))
        return rendered.model_copy(update={"filename": f"{stem}.{suffix}"})

    def _judged(self, built: Table, outcomes: SweepOutcomes, covers: Covers | None = None) -> JudgedTable:
        return judged(built, outcomes, self._store.requests.looks(outcomes.sweep), covers)

    def _outcomes(self, sweep: int, name: str) -> SweepOutcomes:
        return self._named(self._of(sweep), name)

    def _of(self, sweep: int) -> SweepOutcomes:
        return replace(self._store.outcomes.of(sweep), queries=self._queries)

    def _named(self, outcomes: SweepOutcomes, name: str) -> SweepOutcomes:
        tables = outcomes.spec.get("tables", {})
        if name not in tables:
            raise NotFoundError(f"in sweep {outcomes.sweep}: {unknown('table', name, tables)}")
        return outcomes

    def _addressed(self, table: Table, *, here: bool) -> Table:
        """The table with links from its cells: within our own pages, or, where this server's address is set, to it."""
        known = self._settings.address if self._settings.url else None
        return replace(table, address="" if here else known)


def _marks(outcomes: SweepOutcomes, name: str) -> bool:
    return bool(((outcomes.spec["tables"][name].get("verdicts")) or {}).get("marks"))


class BundleQueries:
    """Packs sweeps."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources, files: FigureFiles) -> None:
        self._store, self._catalog, self._sources, self._files = store, catalog, sources, files

    def make(self, sweep: int) -> IO[bytes]:
        """A sweep's archive as an open file at its beginning, which is gone once it is closed; NotFoundError."""
        view = self._store.sweeps.get(sweep)
        material = Material(
            head=Head.model_validate(view.model_dump(include=set(Head.model_fields))),
            text=view.text,
            outcomes=replace(self._store.outcomes.of(sweep, trials=False), queries=judge.source(self._sources.arrays)),
            evidence=self._store.outcomes.provenance(sweep),
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
    """The tables of a bundle made again, asking no server and no database.

    Raises DamagedError, naming every file that was changed, and NotFoundError where no such table is in it.
    """
    with file.open("rb") as source:
        return rebuilding.rebuild(source, table, file_format)


_PLACE: Final = re.compile(r"([1-9][0-9]{0,8})(?:@(.+))?")


class DriftQueries:
    """Compares tables of sweeps, each as it is now or as it was."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def of(self, before: str, after: str, table: str | None = None) -> DriftView:
        """What changed from one to the other: each a sweep's number, `7`, or it at a time, `7@2026-11-20T12:00`.

        NotFoundError where a sweep or the table is not there, ConflictError for what names no sweep or time.
        """
        sources = self._source(before), self._source(after)
        return drift(*sources, _table(sources, table))

    def render(self, before: str, after: str, table: str | None, file_format: str) -> Rendered:
        """The same as a file."""
        return render(self.of(before, after, table), file_format)

    def _source(self, place: str) -> TableSource:
        found = _PLACE.fullmatch(place.strip())
        if found is None:
            raise ConflictError(
                f"{place!r} names no table; say a sweep, such as 7, or 7@2026-11-20T12:00 for that time"
            )
        sweep, moment = int(found[1]), None if found[2] is None else _moment(found[2])
        outcomes = self._store.outcomes.of(sweep) if moment is None else self._store.outcomes.at(sweep, moment)
        title = f"sweep {sweep} ({outcomes.name})"
        if moment is not None:
            title += f" at {moment:%Y-%m-%d %H:%M} UTC{self._whether_known(sweep, moment)}"
        return TableSource(title, outcomes, self._catalog, lambda trials: self._facts(sweep, trials))

    def _whether_known(self, sweep: int, moment: datetime) -> str:
        """What to say of a time at which there was nothing to see of a sweep, or not yet."""
        if moment > datetime.now(UTC):
            return " (still to come: as it is now)"
        return " (before it was submitted)" if moment < self._store.sweeps.get(sweep).created else ""

    def _facts(self, sweep: int, trials: Collection[int]) -> Mapping[int, RunFacts]:
        wanted = set(trials)
        if not wanted:
            return {}
        return {one.outcome.trial: _fact(one) for one in self._store.outcomes.provenance(sweep)
                if one.outcome.trial in wanted}  # fmt: skip


def between_bundles(before: Path, after: Path, table: str | None, file_format: str) -> Rendered:
    """The difference of the tables of two bundles, asking no server; raises DamagedError and NotFoundError."""
    sources = _packed(before), _packed(after)
    return render(drift(*sources, _table(sources, table)), file_format)


def _packed(file: Path) -> TableSource:
    with file.open("rb") as source:
        packed = rebuilding.unpacked(source)

    def facts(trials: Collection[int]) -> Mapping[int, RunFacts]:
        wanted = set(trials)
        return {trial: fact for trial, fact in contents.read_facts(packed.trials) if trial in wanted}

    title = f"the bundle {file.name} of sweep {packed.head.id} ({packed.head.name})"
    return TableSource(title, packed.outcomes, packed.catalog, facts)


def _table(sources: tuple[TableSource, TableSource], name: str | None) -> str:
    """The table that is asked for, or the later one's first that both have."""
    before, after = ([*map(str, one.outcomes.spec.get("tables") or ())] for one in sources)
    both = [one for one in after if one in before]
    wanted = name if name is not None else next(iter(both or after), "")
    for source, known in zip(sources, (before, after), strict=True):
        if wanted not in known:
            raise NotFoundError(f"in {source.title}: {unknown('table', wanted, known)}")
    return wanted


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # an offset may lead out of the years that there are
        raise ConflictError(f"{text!r} is no time; write it as 2026-11-20 or 2026-11-20T12:00") from error


def _fact(one: TrialProvenance) -> RunFacts:
    return RunFacts(one.recipe, one.commit, one.data_hash, one.versions)
