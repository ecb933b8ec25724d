"""Whether the numbers of a manuscript still agree with the records: those of a server, or of bundles."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.publish import formats
from orchestrator.publish.macros import macros_of
from orchestrator.publish.manuscript import Disagreement, WholeTable, read_manuscript, read_table
from orchestrator.publish.tables import build
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import MacroAddress, MacrosView

Whole = Callable[[int, str], str]
"""The LaTeX of a sweep's table today; NotFoundError where it is not there."""
Records = Callable[[MacroAddress], MacrosView]
"""What the table behind some macros says today; NotFoundError where it is not there."""


@dataclass(frozen=True, slots=True)
class ManuscriptReport:
    """What became of the numbers of a manuscript."""

    files: int
    numbers: int
    used: int
    disagreements: tuple[Disagreement, ...]
    tables: int = 0
    """Taken in whole."""
    outside: tuple[str, ...] = ()
    """Files of other folders, which were not read."""

    @property
    def agrees(self) -> bool:
        """Whether every number that the paper prints is what the records say."""
        return not any(one.used for one in self.disagreements)


def check(paper: Path, records: Records, whole: Whole | None = None) -> ManuscriptReport:
    """Every macro of a paper, and every table that it takes in, beside the records.

    NotFoundError, ConflictError and DamagedError for what is no paper.
    """
    read = read_manuscript(paper)
    disagreements = [*read.strange()]
    for file in read.files:
        try:
            today = records(file.address)
        except NotFoundError as error:
            uses = [use for name in file.numbers for use in read.uses.get(name, ())]
            disagreements.append(Disagreement(f"{file.path}:1", "", f"its numbers are not there: {error}", uses))
            continue
        disagreements += read.compare(file, today)
    disagreements += [one for table in read.tables for one in _of_table(table, whole)]
    names = {name for file in read.files for name in file.numbers}
    return ManuscriptReport(
        len(read.files), len(names), len(names & read.uses.keys()), tuple(disagreements), len(read.tables),
        tuple(read.outside),
    )  # fmt: skip


def _of_table(table: WholeTable, whole: Whole | None) -> Iterator[Disagreement]:
    """Where a table that was taken in whole is not what the records say."""
    try:
        today = read_table(table.path, whole(table.sweep, table.table)) if whole else None
    except NotFoundError as error:
        yield Disagreement(f"{table.path}:1", "", f"its table is not there: {error}", [str(table.path)])
        return
    for line, said in table.differences(today) if today else ():
        yield Disagreement(f"{table.path}:{line}", "", said, [str(table.path)])


def bundled(bundles: Iterable[Path]) -> tuple[Records, Whole]:
    """The records of some bundles, told apart by the id of their sweeps; raises DamagedError."""
    from orchestrator.publish.bundle import rebuilding  # pyarrow, which a client of a server lacks

    known = {}
    for path in bundles:
        with path.open("rb") as source:
            packed = rebuilding.unpacked(source)
        if packed.head.uid in known:
            raise ConflictError(
                f"{path}: two bundles of the same sweep {packed.head.id} ({packed.head.name}); name one"
            )
        known[packed.head.uid] = packed

    def today(of: MacroAddress) -> MacrosView:
        packed = known.get(of.uid)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {of.sweep} with the id {of.uid}")
        return macros_of(packed.outcomes, of.uid, of.table, packed.catalog, of.prefix)

    def whole(sweep: int, table: str) -> str:
        packed = next((one for one in known.values() if one.head.id == sweep), None)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {sweep}")
        return formats.render(build.build(packed.outcomes, table, packed.catalog), "latex").content.decode()

    return today, whole
