"""What a training leaves behind: final metrics, figures, scores of queries, and provenance."""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from operator import methodcaller
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import JsonValue

from workers.contract import BEST_TEST, NO_METRICS
from workers.data.images import Images
from workers.evaluation.measures import CLASS, QUERY, NotedScores, QueryScores
from workers.figures.arrays import Arrays, contact_sheet, feature_map_sheet, packed
from workers.figures.options import FeatureMaps, Figure, Panels
from workers.tasks import At
from workers.training import determinism
from workers.training.checkpoint import write_file
from workers.training.loop import LastCheckpoint, ProgressLog, evaluated, judge, measured
from workers.training.session import Session


def drawn(session: Session, figures: Sequence[Figure] | None = None) -> dict[str, bytes]:
    """The data files of the figures by name, from the current weights and the recordings of the training."""
    figures = session.recipe.figures if figures is None else figures
    drawn = session.task.draw(figures)
    files: dict[str, bytes] = {}
    for figure in figures:
        files[f"{figure.file}.npz"] = packed(drawn[figure.file])
        if isinstance(figure, Panels | FeatureMaps) and session.batches:
            images, arrays = session.batches.pictures.named(figure.split), drawn[figure.file]
            sheet = partial(contact_sheet, arrays, partial(_pixels, images))
            if isinstance(figure, FeatureMaps):
                sheet = partial(feature_map_sheet, arrays)
            files[f"{figure.file}.png"] = sheet(partial(_class_name, images), figure.side)
    return files


def write(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write result files into `folder` atomically; returns their names. Raises OSError with the file's name."""
    for name, content in files.items():
        write_file(folder / name, methodcaller("write", content))
    return [*files]


def _pixels(images: Images, index: int) -> NDArray[np.uint8]:
    """The picture of an image, [h, w] or [h, w, 3]."""
    batch, sizes = images.take(torch.tensor([index]))
    height, width = sizes[0].tolist()
    found: NDArray[np.uint8] = batch[0, :, :height, :width].permute(1, 2, 0).cpu().numpy()
    return found[:, :, 0] if found.shape[2] == 1 else found


def _class_name(images: Images, index: int) -> str:
    """The name of an image's class."""
    label = int(images.labels[index])
    return f"class {label}" if images.names is None else images.names[label]


PACKAGES: Final = ("metricsweep", "torch", "numpy", "scikit-learn", "faiss-cpu", "pytorch-metric-learning")
"""The packages whose version may change a number."""


def facts(device: torch.device, threads: int) -> dict[str, JsonValue]:
    """The provenance of a training: versions, host, device and git commit, as JSON."""
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
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _git_commit() -> str | None:
    """The commit of the checkout of this code, with `-dirty` if it is changed; None for an installed wheel."""
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


def files(scored: NotedScores, checkpoint: str) -> dict[str, bytes]:
    """The files of per-query scores by name; `checkpoint` is `best` or `last`, `data` the hash of the data set."""
    found = {}
    for split, arrays in scored.scores.items():
        if arrays:
            held: Arrays = {name: values.numpy() for name, values in sorted(arrays.items())}
            known = {"checkpoint": checkpoint, "data": scored.data or "", "names": [*scored.names.get(split, ())]}
            found[_named(split)] = packed({**held, **{name: np.array(value, str) for name, value in known.items()}})
    return found


def query_facts(scores: Mapping[str, QueryScores], checkpoint: str) -> dict[str, JsonValue]:
    """The provenance `queries` of per-query scores, by split; an empty mapping without scores."""
    found: dict[str, JsonValue] = {
        split: {
            "file": _named(split),
            "checkpoint": checkpoint,
            "queries": len(arrays[QUERY]),
            "classes": len(arrays[CLASS].unique()),  # type: ignore[no-untyped-call]
            "metrics": [*sorted(arrays.keys() - NO_METRICS)],
        }
        for split, arrays in scores.items()
        if arrays
    }
    return {"queries": found} if found else {}


def _named(split: str) -> str:
    return "queries.npz" if split == "test" else f"queries-{split}.npz"


def finish(session: Session, last: LastCheckpoint, journal: ProgressLog, late: bool = True) -> dict[str, float]:
    """Evaluates the last and the best weights at the end of a training, keyed `best/test/map@r`.

    If the recipe asks for it, also test metrics of the weights that are best on the test split, keyed
    `best_test/test/map@r`. Expensive metrics are computed of the chosen weights only, and only if `late`. A metric
    without a value is NaN. The kept weights are in the model afterwards: the best, or the last if the recipe selects
    these.

    Raises Diverged, and Stopped if asked to stop while the task measures at the end; from a checkpoint that was written
    there, this goes on.
    """
    names, evaluations = session.among(session.metrics), session.ending.found
    if session.step not in evaluations:
        evaluations[session.step] = _every(session, session.step, names)
        if session.step == session.total:  # otherwise patience ended it at an evaluation, which is recorded already
            cheap, splits = session.among(session.cheap), session.recipe.select.watched
            watched = [f"{split}/{name}" for split in splits for name in cheap]
            judge(session, journal, {key: evaluations[session.step][key] for key in watched})
    _end(session, session.step, journal, last)
    kept = session.best.step if session.best else session.step
    if session.best is not None and kept not in evaluations:
        session.load(session.best.modules)
        evaluations[kept] = _every(session, kept, names)
    _end(session, kept, journal, last)
    by_split = {split: [*session.task.late(split)] for split in session.tests} if late else {}
    if every := ", ".join(dict.fromkeys(name for expensive in by_split.values() for name in expensive)):
        journal.report(session.step, {}, f"computing {every} of step {kept}: expensive for so many images")
    for split, expensive in by_split.items():
        evaluations[kept] |= measured(session, split, expensive)
    best = evaluations[kept] if session.best else {}
    best_test = _best_test_metrics(session, names, by_split.get("test", []), journal)
    return {
        f"{prefix}/{key}": value
        for prefix, values in (("last", evaluations[session.step]), ("best", best), (BEST_TEST, best_test))
        for key, value in values.items()
    }


def _every(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the current weights, those of `step`; also stores the scores of the test queries."""
    found: dict[str, float] = {}
    for split in session.splits:
        scores: QueryScores = {}
        with session.measures.noting(scores):
            found |= evaluated(session, [split], names)
        if split in session.tests:
            session.ending.queries.setdefault(step, {})[split] = scores
    return found


def _end(session: Session, step: int, journal: ProgressLog, last: LastCheckpoint | None) -> None:
    """Add what the task measures at the end of the current weights, those of `step`; once for any weights.

    Between two values it may stop, and write a checkpoint if `last` is given.
    """
    ending = session.ending
    if step in ending.over:
        return
    if ending.now != step:  # otherwise it goes on from a checkpoint
        ending.now = step
        _seed(session)
        if session.ended:
            journal.report(session.step, {}, f"measuring {', '.join(session.ended)} of step {step}")
    for values in session.task.end(At(step, 0.0)):
        ending.found[step] |= session.asked(values)
        journal.passing(session.step, values)
        if last:
            last.stop(session)
            last.keep(session)
    ending.over.append(step)
    ending.now = None


def ended(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` that the task measures at the end of the current weights, those of `step`."""
    found: dict[str, float] = {}
    _seed(session)
    with torch.enable_grad():
        for values in session.task.end(At(step, 0.0)):
            found |= {key: value for key, value in values.items() if key.partition("/")[2] in names}
    return found


def _seed(session: Session) -> None:
    determinism.seed_everything(determinism.derived(session.recipe.seed, "end"))


def _best_test_metrics(
    session: Session, names: Sequence[str], late: Sequence[str], journal: ProgressLog
) -> dict[str, float]:
    """The test metrics of the weights that are best on the test split."""
    if session.best_test is None:
        return {}
    step, evaluations = session.best_test.step, session.ending.found
    if step not in evaluations or any(f"test/{name}" not in evaluations[step] for name in late):
        kept = session.weights()
        session.load(session.best_test.modules)
        looked = evaluated(session, ["test"], names) | measured(session, "test", late)
        evaluations[step] = evaluations.get(step, {}) | looked
        if session.ended:
            _end(session, step, journal, None)
        session.load(kept)
    return {key: value for key, value in evaluations[step].items() if key.startswith("test/")}
