"""The inspection of a data root: what it has of the needs of trainings, in the words that a training would use."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from workers import registry
from workers.catalog.needs import Finding, Need
from workers.contract import DataDamagedError, DataMissingError, Part
from workers.data import pretrained, weights
from workers.data.fetch import BY_HAND, SOURCES
from workers.data.images import faults
from workers.data.looking import looking


def inspect(needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
    """What the data root has of each need, by the very code that a training reads it with; nothing is decoded."""
    return [_finding(need, root, scratch, parts) for need in needs]


def _finding(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    """All that is not as it must be: whoever mounts a folder wants to know of the weights, too."""
    said = [one for one in (_judged(look, need.dataset) for look in _looks(need, root, scratch, parts)) if one.said]
    state = "wrong" if any(one.state == "wrong" for one in said) else "missing"
    return Finding(state=state, said="; and ".join(one.said for one in said)) if said else Finding()


def _looks(need: Need, root: Path, scratch: Path, parts: Path | None) -> Iterator[Callable[[], None]]:
    dataset, path, loaded, stored = need.dataset, need.weights, need.pretrained, need.stored
    if dataset is not None:
        yield lambda: _look(dataset, root, scratch, parts)
    if path is not None:
        yield lambda: weights.look(root, path)
    if loaded is not None:
        yield lambda: pretrained.look(root, loaded, reach=True)
    if stored is not None:
        yield lambda: pretrained.look(root, stored, reach=False)


def _judged(look: Callable[[], None], dataset: Part | None) -> Finding:
    try:
        look()
    except weights.WeightsMissingError as error:
        return Finding(state="missing", said=str(error))
    except DataMissingError as error:
        return Finding(state="missing", said=f"{error}{_advice(dataset)}")
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
