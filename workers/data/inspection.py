"""Inspects a data root: whether it satisfies the needs of trainings, with the messages that a training would give."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from workers import registry
from workers.catalog.recipe import Finding, Need
from workers.contract import DataDamagedError, DataMissingError, DataOptionError, Part
from workers.data import file_content, weights
from workers.data.download import BY_HAND, SOURCES
from workers.data.images import faults, notes

_LONGEST: Final = 1000  # characters of an unexpected error


def inspect(needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
    """Whether the data root satisfies each need, checked by the code that trainings use; decodes nothing."""
    return [_finding(need, root, scratch, parts) for need in needs]


def _finding(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    """Everything that is wrong, of data set and weights."""
    findings = [_judged(check, need.dataset) for check in _checks(need, root, scratch, parts)]
    if faults := [finding for finding in findings if finding.state != "ok"]:
        state = "wrong" if any(fault.state == "wrong" for fault in faults) else "missing"
        return Finding(state=state, message="; and ".join(fault.message for fault in faults))
    content = {name: digest for finding in findings for name, digest in finding.content.items()}
    counts = {split: numbers for finding in findings for split, numbers in finding.counts.items()}
    if wrong := [
        _differing(need, name, root, content) for name in need.content if need.content[name] != content.get(name)
    ]:
        return Finding(state="wrong", message="; and ".join(wrong), content=content, counts=counts)
    return Finding(
        message="; ".join(finding.message for finding in findings if finding.message), content=content, counts=counts
    )


def _differing(need: Need, name: str, root: Path, found: Mapping[str, str]) -> str:
    """The message for files that are not those of the planned sweep."""
    here = f"content {found[name][:15]}, expected {need.content[name][:15]}" if name in found else "they cannot be read"
    advice = "put these back, or submit the sweep again to train on what is there now"
    return f"{need} in {root.absolute()}: other files than when the sweep was planned ({here}); {advice}"


def _checks(need: Need, root: Path, scratch: Path, parts: Path | None) -> Iterator[Callable[[], Finding | None]]:
    if need.dataset is not None or need.files:
        yield partial(_check_files, need, root, scratch, parts)
    if (path := need.weights) is not None:
        yield lambda: Finding(content={"weights": weights.content_hash(root, path, scratch)})
    for part, reach in ((need.pretrained, True), (need.stored, False)):
        if part is not None:
            yield partial(weights.check_pretrained, root, part, reach=reach)


def _judged(check: Callable[[], Finding | None], dataset: Part | None) -> Finding:
    try:
        return check() or Finding()
    except weights.WeightsMissingError as error:
        return Finding(state="missing", message=str(error))
    except DataMissingError as error:
        return Finding(state="missing", message=f"{error}{_advice(dataset)}")
    except DataDamagedError as error:
        return Finding(state="wrong", message=str(error))
    except (DataOptionError, weights.WeightsError, registry.UnknownPart):
        return Finding()  # the recipe is wrong, and the training has a better message
    except Exception as error:  # a training would fail, too
        named = f"{dataset.name}: " if dataset else ""
        return Finding(state="wrong", message=f"{named}{type(error).__name__}: {error}"[:_LONGEST])


def _check_files(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    """What the files contain; raises DataMissingError or DataDamagedError if a training would."""
    reading, counts = file_content.below(root, need.files), dict[str, dict[str, int]]()
    remarks: tuple[str, ...] = ()
    if (part := need.dataset) is not None:
        with file_content.noting(inspecting=True) as read:
            dataset = registry.build("dataset", part, parts, root=root, scratch=scratch)
            if wrong := faults(dataset, pixels=not read.undecoded):
                raise DataDamagedError(f"{part.name} in {root.absolute()}: {'; '.join(wrong)}")
        reading.files |= read.files
        remarks = notes(dataset)
        splits = {"train": dataset.train, "test": dataset.test}
        counts = {name: {"classes": split.classes, "images": len(split)} for name, split in splits.items()}
    content = {"data": file_content.content(reading.files, scratch)} if reading.files else {}
    return Finding(message="; ".join(remarks), content=content, counts=counts)


def _advice(part: Part | None) -> str:
    """How to get a data set."""
    if part is None:
        return ""
    if part.name in SOURCES:
        return f"; `python -m workers data fetch {part.name}` fetches it"
    return f"; {BY_HAND[part.name]}" if part.name in BY_HAND else ""
