"""The cost of an iteration compared with the bare computation of its batch, and how often it waits for a GPU.

    python -m benchmarks.step [--device cuda] [--only resnet50 SimCLR] [--iterations 30] [--repeats 5] [--out step.csv]

For each recipe, on random images that lie in memory as those of a data set do:

- `iteration`: the product's own, with drawn and augmented batches, the finite check and the optimizer;
- `bare`: forward, loss, regularizer and backward of the same parts, and the same optimizer, on one batch that lies on
  the device already: a bound, and no other program, since a part that is slow is so in both. Both take turns and train
  the same weights; milliseconds each, the median of the repeats; `ratio` is of the two;
- `waits`: how often an iteration waits for the GPU (torch's synchronization debug mode); none is counted on a CPU;
- `busy`: the milliseconds that the GPU computes in an iteration (torch's profiler), and `peak` its memory in GiB.

Without a GPU only the recipes with small images are run.
"""

import argparse
import csv
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks import turns
from workers import catalog
from workers.contract import Place, Recipe
from workers.tasks import At
from workers.training import determinism
from workers.training.loop import ProgressLog, iteration
from workers.training.session import Session

IMAGES = '''"""Random images."""
import torch
from workers.data.images import Images


class RandomImages:
    """Random images of 100 classes, the same ones to train and to test."""

    label = "Random"
    version = 1
    same_classes = True
    channels = 3
    side = 256
    manifest = None

    def __init__(self, *, side: int = 256, content: str | None = None) -> None:
        drawn = torch.Generator().manual_seed(0)
        pixels = torch.randint(256, (2000, 3, side, side), dtype=torch.uint8, generator=drawn)
        self.expected, self.content = content, f"random {side}"
        self.train, self.test = Images(pixels, torch.arange(2000) % 100), Images(pixels[:200], torch.arange(200) % 100)
'''
SMALL: dict[str, Any] = {
    "dataset": {"name": "random_images", "side": 32}, "backbone": "small_cnn", "embedding": 64, "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 10, "per_class": 4}, "augment": "crop_flip", "crop": 28,
}  # fmt: skip
SIMCLR: dict[str, Any] = {
    "task": "self_supervised", "dataset": {"name": "random_images", "side": 32}, "augment": "simclr",
    "head": "projection", "embedding": 128, "loss": "nt_xent", "optimizer": {"name": "sgd", "lr": 0.5},
    "sampler": {"name": "shuffle", "batch": 256}, "precision": "bf16", "channels_last": True, "metrics": ["knn@200"],
    "select": {"split": "last", "metric": "knn@200"}, "backbone": {"name": "resnet18", "stem": "cifar"},
}  # fmt: skip
LARGE: dict[str, Any] = {
    "dataset": "random_images", "backbone": {"name": "resnet50", "pretrained": False}, "embedding": 512,
    "augment": "crop_flip", "crop": 224, "loss": "triplet", "precision": "bf16", "channels_last": True,
    "sampler": {"name": "balanced", "classes": 40, "per_class": 3},
}  # fmt: skip
RECIPES: dict[str, dict[str, Any]] = {
    "small_cnn, 40 of 28 px": SMALL,
    "small_cnn, SEC": SMALL | {"regularizer": "sec"},
    "small_cnn, multi-similarity": SMALL | {"loss": "multi_similarity"},
    "resnet18, SimCLR, 2 x 256 of 32 px": SIMCLR,
    "resnet50, 120 of 224 px": LARGE,
    "resnet50, float32": LARGE | {"precision": "none", "channels_last": False},
    "resnet50, SEC": LARGE | {"regularizer": "sec"},
    "resnet50, SVMax": LARGE | {"regularizer": "svmax"},
    "resnet50, multi-similarity": LARGE | {"loss": "multi_similarity"},
    "resnet50, compiled": LARGE | {"compile": True},
    "mobilenet_v2, 120 of 224 px": LARGE | {"backbone": {"name": "mobilenet_v2", "pretrained": False}},
}
"""The measured recipes. The large batches are SEC's: 40 classes of 3 images, embedded in 512 dimensions."""
COLUMNS = ("recipe", "iteration", "bare", "ratio", "waits", "busy", "peak")


class Measured:
    """One recipe at work on a device."""

    def __init__(self, raw: dict[str, Any], folder: Path, device: str) -> None:
        known, endless = catalog.load(folder), {"iterations": 10**6, "evaluate_every": 10**6}
        select = {"metrics": ["recall@1"], "select": {"split": "last", "metric": "recall@1"}}
        recipe = catalog.complete(Recipe.model_validate(endless | select | raw), known)
        self.device = torch.device(device)
        place = Place(folder, folder, folder, device, parts=folder, checkpoint_seconds=1e9)
        self.session = Session(recipe, place, self.device)
        self.journal = ProgressLog(10**9, 10**9, self.session.curves, lambda _: None)
        assert self.session.batches is not None
        self.batch = self.session.batches.next()
        self.player = next(iter(self.session.players.values()))

    def iterate(self, count: int) -> None:
        """Iterations of the product."""
        for _ in range(count):
            iteration(self.session, self.journal)

    def bare(self, count: int) -> None:
        """Iterations on one batch, without anything around them."""
        for step in range(count):
            terms = next(iter(self.session.task.step(self.batch, At(step, 0.0))))
            self.player.optimizer.zero_grad(set_to_none=True)
            terms.total.backward()  # type: ignore[no-untyped-call]
            self.player.optimizer.step()

    def waits(self, count: int) -> float:
        """How often an iteration waits for the GPU."""
        if self.device.type != "cuda":
            return 0.0
        with _counted() as messages:
            self.iterate(count)
        return len(messages) / count

    def busy(self, count: int) -> float:
        """The milliseconds that the GPU computes in an iteration."""
        if self.device.type != "cuda":
            return 0.0
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.iterate(count)
            torch.cuda.synchronize()
        return float(sum(event.self_device_time_total for event in profile.key_averages())) / 1000 / count


@contextmanager
def _counted() -> Iterator[list[str]]:
    messages: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: messages.append(str(message))
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield messages
        finally:
            torch.cuda.set_sync_debug_mode("default")
            messages[:] = [message for message in messages if "called a synchronizing" in message]


def measured(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a recipe."""
    if options.device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    one, count = Measured(RECIPES[name], folder, options.device), options.iterations
    one.iterate(8)
    tasks: dict[str, Callable[[], None]] = {"iteration": lambda: one.iterate(count), "bare": lambda: one.bare(count)}
    took = turns.milliseconds(tasks, options.device, options.repeats)
    found = {key: value / count for key, value in took.items()}
    peak = torch.cuda.max_memory_allocated() / 2**30 if options.device.startswith("cuda") else 0.0
    ratio = found["iteration"] / found["bare"]
    return {"recipe": name, **found, "ratio": ratio, "waits": one.waits(count), "busy": one.busy(8), "peak": peak}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line for each recipe, and write a CSV on request."""
    parser = argparse.ArgumentParser("python -m benchmarks.step", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", nargs="+", default=[""], help="recipes with one of these in their name")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    names = [name for name in RECIPES if any(one in name for one in options.only)]
    if not options.device.startswith("cuda"):
        names = [name for name in names if RECIPES[name]["dataset"] != "random_images"]
    print(
        "; ".join(
            f"{key} {value}" for key, value in turns.facts(options.device, options.threads, options.repeats).items()
        )
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder, determinism.applied(torch.device(options.device), options.threads):
        (Path(folder) / "datasets").mkdir()
        (Path(folder) / "datasets" / "random_images.py").write_text(IMAGES)
        print(f"{COLUMNS[0]:<36}" + "".join(f"{column:>11}" for column in COLUMNS[1:]))
        for name in names:
            rows.append(measured(name, Path(folder), options))
            print(f"{name:<36}" + "".join(f"{rows[-1][column]:>11.2f}" for column in COLUMNS[1:]), flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
