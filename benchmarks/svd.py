"""What SVMax costs (its figure 4): the mean singular value of a batch, and a training step with and without it.

    python -m benchmarks.svd [--sizes 32 64 128 256 512] [--backbone mobilenet_v2] [--side 64] [--device cuda]
                             [--threads N] [--repeats 9] [--out svd.csv]

For each size b = d: `svd` is the regularizer as it trains, forward and backward, from the singular values of the
embeddings; `gram` the same from the eigenvalues of their Gram matrix, whose error in float32 is printed next to it. A
step is forward, N-pair loss, backward and SGD: `step` without a regularizer, and with each of the two. Milliseconds,
the median of the repeats, in which all five take turns. A second table has the errors of a batch that collapses.
The figure's network is MobileNet, as the paper calls MobileNetV2 in figure 12 too. On a GPU, with images of the paper's
size: `--side 224 --device cuda`.
"""

import argparse
import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks import turns
from workers import registry
from workers.contract import Part
from workers.geometry import mean_singular_value, singular_bounds, unit
from workers.tasks._shared import Embedder

COLUMNS = ("svd", "gram", "step", "step + svd", "step + gram")
ERROR = "gram error"
_LEAST = 1e-12  # of an eigenvalue: the root of a rounded zero has no gradient

Mean = Callable[[Tensor], Tensor]


def by_gram(embeddings: Tensor) -> Tensor:
    """The mean singular value of embeddings [b, d] from the eigenvalues of the smaller Gram matrix."""
    rows = embeddings if embeddings.shape[0] >= embeddings.shape[1] else embeddings.T
    mean: Tensor = torch.linalg.eigvalsh(rows.T @ rows).clamp(min=_LEAST).sqrt().mean()
    return mean


def regularizer(embeddings: Tensor, mean: Mean) -> Tensor:
    """SVMax's bounded form (eq. 4) of embeddings [b, d]."""
    lower, upper = singular_bounds(*embeddings.shape)
    return ((upper - mean(unit(embeddings))) / (upper - lower)).exp()


class Training:
    """One network with batches of `size` random images, embedded in as many dimensions."""

    def __init__(self, size: int, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        offers = {"channels": 3, "side": options.side, "dim": size, "root": Path(), "batch": size}
        backbone = registry.build("backbone", Part(name=options.backbone), None, **offers)
        head = registry.build("head", Part(name="unit_fc"), None, **offers, features=backbone.features)
        self.model = Embedder(backbone, head).to(options.device)
        self.loss: nn.Module = registry.build("loss", Part(name="npair"), None).to(options.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9)
        shape = (size, 3, options.side, options.side)
        self.images = torch.randint(256, shape, dtype=torch.uint8).to(options.device)
        self.labels = (torch.arange(size) // 2).to(options.device)
        self.embeddings = torch.randn(size, size).to(options.device).requires_grad_()

    def alone(self, mean: Mean) -> None:
        """The regularizer's value and gradient."""
        self.embeddings.grad = None
        regularizer(self.embeddings, mean).backward()  # type: ignore[no-untyped-call]

    def step(self, mean: Mean | None) -> None:
        """One step of a training, with a regularizer where there is a `mean`."""
        embeddings = self.model(self.images)
        total = self.loss(embeddings, self.labels)
        if mean is not None:
            total = total + regularizer(embeddings, mean)
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()

    def error(self) -> float:
        """By how much, relatively, the Gram matrix in float32 misses the mean singular value."""
        rows = unit(self.embeddings.detach())
        right = float(mean_singular_value(rows.double()))
        return abs(float(by_gram(rows)) - right) / right


def measured(size: int, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of each column, and the error."""
    training = Training(size, options)
    tasks: dict[str, Callable[[], None]] = {
        "svd": lambda: training.alone(mean_singular_value),
        "gram": lambda: training.alone(by_gram),
        "step": lambda: training.step(None),
        "step + svd": lambda: training.step(mean_singular_value),
        "step + gram": lambda: training.step(by_gram),
    }
    return {**turns.milliseconds(tasks, options.device, options.repeats), ERROR: training.error()}


def facts(options: argparse.Namespace) -> dict[str, str | int]:
    """Where the figures are from."""
    shape = {"backbone": options.backbone, "side": options.side}
    return {**turns.facts(options.device, options.threads, options.repeats), **shape}


def show(rows: Sequence[tuple[int, dict[str, float]]], about: dict[str, str | int]) -> None:
    """Print the table."""
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print("b = d  " + "  ".join(f"{name:>11}" for name in (*COLUMNS, ERROR)))
    for size, values in rows:
        times = "  ".join(f"{values[name]:11.2f}" for name in COLUMNS)
        print(f"{size:5}  {times}  {values[ERROR]:11.1e}")


def write(path: Path, rows: Sequence[tuple[int, dict[str, float]]], about: dict[str, str | int]) -> None:
    """Write one line a size, with the facts in each."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", *(f"{name} ms" for name in COLUMNS), ERROR, *about])
        for size, values in rows:
            times = [round(values[name], 4) for name in COLUMNS]
            writer.writerow([size, *times, f"{values[ERROR]:.3e}", *about.values()])


def show_collapse(rows: int = 144, columns: int = 128) -> None:
    """The relative errors of s_mu in float32, both ways, while a batch collapses to one point."""
    generator = torch.Generator().manual_seed(0)
    print(f"\na batch of {rows} x {columns} that collapses: relative error of s_mu in float32 against float64")
    print("scatter      s_mu          svd         gram")
    for scatter in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        point = torch.randn(1, columns, dtype=torch.float64, generator=generator)
        batch = unit(point + scatter * torch.randn(rows, columns, dtype=torch.float64, generator=generator))
        true = float(torch.linalg.svdvals(batch).mean())
        errors = [abs(float(mean(batch.float())) - true) / true for mean in (mean_singular_value, by_gram)]
        print(f"{scatter:7.0e}  {true:8.5f}  {errors[0]:11.1e}  {errors[1]:11.1e}")


def main() -> None:
    """Print both tables, and write the table of times on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128, 256, 512])
    parser.add_argument("--backbone", default="mobilenet_v2")
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [(size, measured(size, options)) for size in options.sizes]
    about = facts(options)
    show(rows, about)
    show_collapse()
    if options.out:
        write(options.out, rows, about)


if __name__ == "__main__":
    main()
