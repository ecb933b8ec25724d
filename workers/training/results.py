"""What a training leaves: final metrics, figures, scores of queries, and provenance."""

import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import JsonValue

from workers.contract import BEST_TEST
from workers.data.images import Images
from workers.evaluation.measures import CLASS, QUERY, QueryScores
from workers.figures.arrays import Arrays, RetrievalRow, contact_sheet, feature_map_sheet, packed
from workers.figures.options import FeatureMaps, Panels
from workers.tasks import At
from workers.training import determinism
from workers.training.loop import LastCheckpoint, ProgressLog, evaluated, judge, measured
from workers.training.session import Session


def drawn(session: Session) -> dict[str, bytes]:
    """The content of each file by its name, of the present weights and of what was followed on the way."""
    drawn = session.task.draw(session.recipe.figures)
    files: dict[str, bytes] = {}
    for figure in session.recipe.figures:
        files[f"{figure.file}.npz"] = packed(drawn[figure.file])
        if isinstance(figure, Panels | FeatureMaps) and session.batches:
            images = session.batches.pictures.named(figure.split)
            made = sheet if isinstance(figure, Panels) else _maps
            files[f"{figure.file}.png"] = made(images, drawn[figure.file], figure.side)
    return files


def write(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files into `folder`, each aside and renamed; gives their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        aside = folder / f".{name}.{os.getpid()}"
        try:
            aside.write_bytes(content)
            aside.replace(folder / name)
        finally:
            aside.unlink(missing_ok=True)
    return [*files]


def sheet(images: Images, arrays: Arrays, side: int) -> bytes:
    """The picture of a split's `panels`, as the data set has its images and with the names of classes that it has."""

    def pixels(index: int) -> NDArray[np.uint8]:
        batch, sizes = images.take(torch.tensor([index]))
        height, width = sizes[0].tolist()
        found: NDArray[np.uint8] = batch[0, :, :height, :width].permute(1, 2, 0).cpu().numpy()
        return found[:, :, 0] if found.shape[2] == 1 else found

    columns = (arrays[key].tolist() for key in RetrievalRow._fields)
    return contact_sheet([RetrievalRow(*row) for row in zip(*columns, strict=True)], pixels, _names(images), side)


def _maps(images: Images, arrays: Arrays, side: int) -> bytes:
    return feature_map_sheet(arrays, _names(images), side)


def _names(images: Images) -> Callable[[int], str]:
    """The name of the class of an image by its index."""

    def name(index: int) -> str:
        label = int(images.labels[index])
        return f"class {label}" if images.names is None else images.names[label]

    return name


PACKAGES: Final = ("metricsweep", "torch", "numpy", "scikit-learn", "faiss-cpu", "pytorch-metric-learning")
"""The packages whose version may change a number."""


def facts(device: torch.device, threads: int) -> dict[str, JsonValue]:
    """Versions, host, device and git commit, as JSON."""
    return {
        "versions": {**_versions(), "python": platform.python_version()},
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "threads": threads,
        "host": platform.node(),
        "platform": platform.platform(),
        "git_commit": _git_commit(),
    }


@lru_cache(maxsize=1)
def _versions() -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


@lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _git_commit() -> str | None:
    """The commit of the checkout that this code runs from, `-dirty` where it was changed; none for a wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        described = subprocess.run(  # noqa: S603 - no input of a user in it
            ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],  # noqa: S607
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None


Scores = Mapping[str, QueryScores]
"""What each query of a split scored, by the split."""


def scored(session: Session, step: int) -> Scores:
    """What each test query scored by the present weights, those of `step`."""
    known = session.ending.queries.get(step)
    if known is None:  # gone on from a checkpoint of a release that noted metrics alone
        names = [name for name in session.among(session.metrics) if session.measures.over_queries(name)]
        known = {split: {} for split in session.tests}
        for split, scores in known.items():
            with session.measures.noting(scores):
                _ = session.task.evaluate(split, names) if names else {}
    return known


def files(scores: Scores, checkpoint: str, data: str | None) -> dict[str, bytes]:
    """The content of each file by its name; `checkpoint` is `best` or `last`, `data` the hash of the data set."""
    found = {}
    for split, arrays in scores.items():
        if arrays:
            metrics = sorted(arrays.keys() - {QUERY, CLASS})
            held: Arrays = {name: arrays[name].numpy() for name in (QUERY, CLASS, *metrics)}
            found[named(split)] = packed({**held, "checkpoint": np.array(checkpoint), "data": np.array(data or "")})
    return found


def query_facts(scores: Scores, checkpoint: str) -> dict[str, JsonValue]:
    """What the provenance says of them."""
    return {
        split: {
            "file": named(split),
            "checkpoint": checkpoint,
            "queries": len(arrays[QUERY]),
            "classes": len(arrays[CLASS].unique()),  # type: ignore[no-untyped-call]
            "metrics": [*sorted(arrays.keys() - {QUERY, CLASS})],
        }
        for split, arrays in scores.items()
        if arrays
    }


def named(split: str) -> str:
    """The file of a split: `queries.npz` of `test`, `queries-test_lfw.npz` of another."""
    return "queries.npz" if split == "test" else f"queries-{split}.npz"


def finish(session: Session, last: LastCheckpoint, journal: ProgressLog, dear: bool = True) -> dict[str, float]:
    """Every metric of the last weights and of the best ones, keyed `best/test/map@r`; those of test images also of the
    weights that are best on these, keyed `best_test/test/map@r`, where the recipe asks for it.

    What is dear of test images is computed of the weights that were chosen, and only if `dear`. Leaves the weights that
    are kept in the model: the best, or the last where the recipe selects these. A metric without a value is NaN. Raises
    Diverged, and Stopped when asked to stop while the task measures at the end; a checkpoint that was written there is
    gone on from there.
    """
    names, evaluations = session.among(session.metrics), session.ending.found
    if session.step not in evaluations:
        evaluations[session.step] = _every(session, session.step, names)
        if session.step == session.total:  # else patience ended it at an evaluation, which is noted already
            cheap, splits = session.among(session.cheap), session.recipe.select.watched
            watched = [f"{split}/{name}" for split in splits for name in cheap]
            judge(session, journal, {key: evaluations[session.step][key] for key in watched})
    _end(session, session.step, journal, last)
    kept = session.best.step if session.best else session.step
    if session.best is not None and kept not in evaluations:
        session.load(session.best.modules)
        evaluations[kept] = _every(session, kept, names)
    _end(session, kept, journal, last)
    late = {split: [*session.task.late(split)] for split in session.tests} if dear else {}
    if names_late := dict.fromkeys(name for every in late.values() for name in every):
        journal.tell(session.step, {}, f"computing {', '.join(names_late)} of step {kept}: dear of so many images")
    for split, every in late.items():
        evaluations[kept] |= measured(session, split, every)
    metrics = {f"last/{key}": value for key, value in evaluations[session.step].items()}
    if session.best is not None:
        metrics |= {f"best/{key}": value for key, value in evaluations[kept].items()}
    metrics |= {
        f"{BEST_TEST}/{key}": value for key, value in _beside(session, names, late.get("test", []), journal).items()
    }
    return metrics


def _every(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights, those of `step`, and aside what each test query scored."""
    found: dict[str, float] = {}
    for split in session.splits:
        scores: QueryScores = {}
        with session.measures.noting(scores):
            found |= evaluated(session, [split], names)
        if split in session.tests:
            session.ending.queries.setdefault(step, {})[split] = scores
    return found


def _end(session: Session, step: int, journal: ProgressLog, last: LastCheckpoint | None) -> None:
    """Add what the task measures at the end of the present weights, which are those of `step`; once of any weights.

    Between two of its values it may stop, and a checkpoint may be written, where there is a `last` one to write.
    """
    ending = session.ending
    if step in ending.over:
        return
    if ending.now != step:  # else it goes on where a checkpoint was written
        ending.now = step
        _seed(session)
        if session.ended:
            journal.tell(session.step, {}, f"measuring {', '.join(session.ended)} of step {step}")
    for values in session.task.end(At(step, 0.0)):
        ending.found[step] |= session.asked(values)
        journal.passing(session.step, values)
        if last:
            last.stop(session)
            last.keep(session)
    ending.over.append(step)
    ending.now = None


def ended(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` that the task measures at the end of the present weights, those of `step`; as `finish`."""
    found: dict[str, float] = {}
    _seed(session)
    with torch.enable_grad():
        for values in session.task.end(At(step, 0.0)):
            found |= {key: value for key, value in values.items() if key.partition("/")[2] in names}
    return found


def _seed(session: Session) -> None:
    determinism.seed_everything(determinism.derived(session.recipe.seed, "end"))


def _beside(session: Session, names: Sequence[str], late: Sequence[str], journal: ProgressLog) -> dict[str, float]:
    """The test metrics where the test split itself chooses."""
    if session.beside is None:
        return {}
    step, evaluations = session.beside.step, session.ending.found
    if step not in evaluations or any(f"test/{name}" not in evaluations[step] for name in late):
        kept = session.weights()
        session.load(session.beside.modules)
        looked = evaluated(session, ["test"], names) | measured(session, "test", late)
        evaluations[step] = evaluations.get(step, {}) | looked
        if session.ended:
            _end(session, step, journal, None)
        session.load(kept)
    return {key: value for key, value in evaluations[step].items() if key.startswith("test/")}
