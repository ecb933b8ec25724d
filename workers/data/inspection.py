"""The inspection of a data root: what it has of the needs of trainings, in the words that a training would use."""

from collections.abc import Sequence
from pathlib import Path

from workers import registry
from workers.catalog.needs import Finding, Need
from workers.contract import DataDamagedError, DataMissingError, Part
from workers.data import weights
from workers.data.fetch import BY_HAND, SOURCES
from workers.data.images import faults
from workers.data.looking import looking


def inspect(needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
    """What the data root has of each need, by the very code that a training reads it with; nothing is decoded."""
    return [_finding(need, root, scratch, parts) for need in needs]


def _finding(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    try:
        if need.dataset is not None:
            _look(need.dataset, root, scratch, parts)
        if need.weights is not None:
            weights.look(root, need.weights)
    except weights.WeightsMissingError as error:
        return Finding(state="missing", said=str(error))
    except DataMissingError as error:
        return Finding(state="missing", said=f"{error}{_advice(need.dataset)}")
    except DataDamagedError as error:
        return Finding(state="wrong", said=str(error))
    except Exception:  # whatever else is wrong is the recipe's, and the training says it better
        return Finding()
    return Finding()


def _look(part: Part, root: Path, scratch: Path, parts: Path | None) -> None:
    """Raise DataMissingError or DataDamagedError where a training would."""
    with looking() as look:
        dataset = registry.build("dataset", part, parts, root=root, scratch=scratch)
        if wrong := faults(dataset, pixels=not look.undecoded):
            raise DataDamagedError(f"{part.name} in {root.absolute()}: {'; '.join(wrong)}")


def _advice(part: Part | None) -> str:
    """How a data set is come by."""
    if part is None:
        return ""
    if part.name in SOURCES:
        return f"; `python -m workers data fetch {part.name}` fetches it"
    return f"; {BY_HAND[part.name]}" if part.name in BY_HAND else ""
