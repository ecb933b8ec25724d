"""Whether the numbers of a manuscript still agree with the records: those of a server, or of bundles."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.publish.bundle import rebuilding
from orchestrator.publish.macros.macros import macros
from orchestrator.publish.macros.manuscript import Disagreement, manuscript
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.macros import MacroAddress, MacrosView

Records = Callable[[MacroAddress], MacrosView]
"""What the table behind some macros says today; NotFoundError where it is not there."""


@dataclass(frozen=True, slots=True)
class ManuscriptReport:
    """What became of the numbers of a manuscript."""

    files: int
    numbers: int
    used: int
    disagreements: tuple[Disagreement, ...]

    @property
    def agrees(self) -> bool:
        """Whether every number that the paper prints is what the records say."""
        return not any(one.used for one in self.disagreements)


def check(paper: Path, records: Records) -> ManuscriptReport:
    """Every macro of a paper beside the records; NotFoundError, ConflictError and DamagedError for what is no paper."""
    read = manuscript(paper)
    disagreements = [*read.strange()]
    for file in read.files:
        try:
            today = records(file.address)
        except NotFoundError as error:
            uses = [use for name in file.numbers for use in read.uses.get(name, ())]
            disagreements.append(Disagreement(f"{file.path}:1", "", f"its numbers are not there: {error}", uses))
            continue
        disagreements += read.compare(file, today)
    names = {name for file in read.files for name in file.numbers}
    return ManuscriptReport(len(read.files), len(names), len(names & read.uses.keys()), tuple(disagreements))


def bundled(bundles: Iterable[Path]) -> Records:
    """The records of some bundles, told apart by the id of their sweeps; raises DamagedError."""
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
        return macros(packed.outcomes, of.uid, of.table, packed.catalog, of.prefix).view

    return today
