"""Batches of embeddings for the tests of losses, regularizers and metrics."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import workers
from workers.catalog import load
from workers.contract import FOLDERS, Part
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.measures import Measures
from workers.registry import build

CLASSES, PER_CLASS, WIDTH = 4, 3, 8


def part_names(kind: str) -> list[str]:
    """The names of all built-in parts of a kind: whatever files its folder has."""
    folder = Path(workers.__file__).parent / FOLDERS[kind]
    return sorted(path.stem for path in folder.glob("*.py") if not path.name.startswith("_"))


EMBEDDED = [entry.name for entry in load().of("metric") if "reads" not in entry.facts]
"""The metrics that read embeddings."""


_REQUIRED: dict[str, dict[str, Any]] = {"pml": {"of": "TripletMarginLoss"}}


def part(kind: str, name: str, *, classes: int = CLASSES, dim: int = WIDTH, **options: Any) -> Any:
    """A loss or a regularizer with its defaults, but for `options`, in float64; a loss whose state stands still."""
    torch.manual_seed(0)  # for a loss that owns parameters
    options = {**_REQUIRED.get(name, {}), **options}
    built = build(kind, Part(name=name, **options), classes=classes, dim=dim, images=CLASSES * PER_CLASS).double()
    return built.eval() if kind == "loss" else built


def value_and_gradient(built: Any, embeddings: Tensor, *labels: Tensor) -> tuple[Tensor, Tensor]:
    """What a loss or a regularizer gives, and its gradient by the embeddings."""
    embeddings = embeddings.clone().requires_grad_()
    value = built(embeddings, *labels)
    (gradient,) = torch.autograd.grad(value, embeddings)
    return value.detach(), gradient


def golden_embeddings(n: int, d: int) -> Tensor:
    """E(n, d) of the golden values, which needs no random numbers."""
    values = [
        [math.sin(1 + 0.7 * i * j + 0.3 * j + 0.11 * i * i) * (1 + 0.25 * (i % 3)) for j in range(d)] for i in range(n)
    ]
    return torch.tensor(values, dtype=torch.float64)


def block_labels(classes: int = CLASSES, per_class: int = PER_CLASS) -> Tensor:
    """0 0 0 1 1 1 ...: the layout class_blocks."""
    return torch.arange(classes).repeat_interleave(per_class)


def random_batch(
    seed: int = 0,
    classes: int = CLASSES,
    per_class: int = PER_CLASS,
    width: int = WIDTH,
    separation: float = 0.7,
) -> tuple[Tensor, Tensor]:
    """Embeddings in float64 and labels in blocks; class means are `separation` times as far apart as images scatter."""
    generator = torch.Generator().manual_seed(seed)
    labels = block_labels(classes, per_class)
    means = torch.randn(classes, width, generator=generator, dtype=torch.float64)
    scatter = torch.randn(len(labels), width, generator=generator, dtype=torch.float64)
    return scatter + separation * means[labels], labels


def evaluate(embeddings: Tensor, labels: Tensor, names: Sequence[str], **how: Any) -> dict[str, float]:
    """The metrics `names` of raw embeddings [n, d] with labels [n]; `how` are options of `Evaluation`."""
    return Measures(names).of(Evaluation(embeddings, labels, **how), names)


def degenerate_batches() -> dict[str, tuple[Tensor, Tensor]]:
    """Batches that are legal and yet have something of size zero, in float32."""
    embeddings, labels = (random_batch()[0].float(), random_batch()[1])
    one_zero, all_ones = embeddings.clone(), torch.ones_like(embeddings)
    one_zero[4] = 0
    copies = embeddings.clone()
    copies[1] = copies[0]
    across = embeddings.clone()
    across[PER_CLASS] = across[0]
    return {
        "a zero row": (one_zero, labels),
        "all rows zero": (torch.zeros_like(embeddings), labels),
        "all rows equal": (all_ones, labels),
        "two equal images of a class": (copies, labels),
        "two equal images of two classes": (across, labels),
        "one class": (embeddings, torch.zeros_like(labels)),
        "all images of different classes": (embeddings[:CLASSES], torch.arange(CLASSES)),
        "one image": (embeddings[:1], labels[:1]),
        "fewer images than dimensions": (embeddings[: WIDTH - 2], labels[: WIDTH - 2]),
        "large": (embeddings * 1e6, labels),
        "small": (embeddings * 1e-6, labels),
    }
