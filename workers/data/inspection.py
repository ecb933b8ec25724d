"""The inspection of a data root: what it has of the needs of trainings, in the words that a training would use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from workers import registry
from workers.catalog.recipe import Finding, Need
from workers.contract import DataDamagedError, DataMissingError, DataOptionError, Part
from workers.data import file_content, weights
from workers.data.download import BY_HAND, SOURCES
from workers.data.images import faults, looking, notes

_LONGEST: Final = 1000  # characters of an error that nobody expected


def inspect(needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
    """What the data root has of each need, by the very code that a training reads it with; nothing is decoded."""
    return [_finding(need, root, scratch, parts) for need in needs]


def _finding(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    """All that is not as it must be: whoever mounts a folder wants to know of the weights, too."""
    looked = [_judged(look, need.dataset) for look in _looks(need, root, scratch, parts)]
    if said := [one for one in looked if one.state != "ok"]:
        state = "wrong" if any(one.state == "wrong" for one in said) else "missing"
        return Finding(state=state, said="; and ".join(one.said for one in said))
    found = {name: digest for one in looked for name, digest in one.content.items()}
    counts = {split: numbers for one in looked for split, numbers in one.counts.items()}
    if wrong := [_differing(need, name, root, found) for name in need.content if need.content[name] != found.get(name)]:
        return Finding(state="wrong", said="; and ".join(wrong), content=found, counts=counts)
    return Finding(said="; ".join(one.said for one in looked if one.said), content=found, counts=counts)


def _differing(need: Need, name: str, root: Path, found: Mapping[str, str]) -> str:
    """That the files are not those that a sweep was planned with."""
    here = f"content {found[name][:15]}, expected {need.content[name][:15]}" if name in found else "they cannot be read"
    advice = "put these back, or submit the sweep again to train on what is there now"
    return f"{need} in {root.absolute()}: other files than when the sweep was planned ({here}); {advice}"


def _looks(need: Need, root: Path, scratch: Path, parts: Path | None) -> Iterator[Callable[[], Finding]]:
    path, loaded, stored = need.weights, need.pretrained, need.stored
    if need.dataset is not None or need.files:
        yield lambda: _look(need, root, scratch, parts)
    if path is not None:
        yield lambda: Finding(content={"weights": weights.look(root, path, scratch)})
    if loaded is not None:
        yield lambda: _silent(lambda: weights.look_at_pretrained(root, loaded, reach=True))
    if stored is not None:
        yield lambda: _silent(lambda: weights.look_at_pretrained(root, stored, reach=False))


def _silent(look: Callable[[], None]) -> Finding:
    look()
    return Finding()


def _judged(look: Callable[[], Finding], dataset: Part | None) -> Finding:
    try:
        return look()
    except weights.WeightsMissingError as error:
        return Finding(state="missing", said=str(error))
    except DataMissingError as error:
        return Finding(state="missing", said=f"{error}{_advice(dataset)}")
    except DataDamagedError as error:
        return Finding(state="wrong", said=str(error))
    except (DataOptionError, weights.WeightsError, registry.UnknownPart):
        return Finding()  # the recipe is at fault, and the training says it better
    except Exception as error:  # nothing that a training would meet too may count as "ok"
        return Finding(state="wrong", said=f"{_named(dataset)}{type(error).__name__}: {error}"[:_LONGEST])


def _named(dataset: Part | None) -> str:
    return f"{dataset.name}: " if dataset else ""


def _look(need: Need, root: Path, scratch: Path, parts: Path | None) -> Finding:
    """Raise DataMissingError or DataDamagedError where a training would; else what the files hold."""
    reading, counts = file_content.below(root, need.files), dict[str, dict[str, int]]()
    said: tuple[str, ...] = ()
    if (part := need.dataset) is not None:
        with looking() as look, file_content.noting() as read:
            dataset = registry.build("dataset", part, parts, root=root, scratch=scratch)
            if wrong := faults(dataset, pixels=not look.undecoded):
                raise DataDamagedError(f"{part.name} in {root.absolute()}: {'; '.join(wrong)}")
        reading.files |= read.files
        said = notes(dataset)
        splits = {"train": dataset.train, "test": dataset.test}
        counts = {name: {"classes": split.classes, "images": len(split)} for name, split in splits.items()}
    content = {"data": file_content.content(reading.files, scratch)} if reading.files else {}
    return Finding(said="; ".join(said), content=content, counts=counts)


def _advice(part: Part | None) -> str:
    """How a data set is come by."""
    if part is None:
        return ""
    if part.name in SOURCES:
        return f"; `python -m workers data fetch {part.name}` fetches it"
    return f"; {BY_HAND[part.name]}" if part.name in BY_HAND else ""
