"""Differences of two tables: of two sweeps, of one at two times, or of bundles."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from orchestrator.publish.bundle import contents, rebuilding
from orchestrator.publish.drift import TableSource, drift, render
from orchestrator.record.store import Store
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import DriftView, RunFacts
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import TrialProvenance
from workers.catalog import Catalog, unknown

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
