"""What a regularizer takes of a ResNet-50 step on a CPU: `python -m benchmarks.regularizers`.

The paper's batch (40 classes of 3 images of 224 px, embedded in 512 dimensions; 120 images), one thread, milliseconds:
a regularizer's value with its gradient, the median of `--repeats`, beside the network's forward and backward with a
triplet loss. The network sees a part of the batch, `--images`, and its time is scaled to all of it: not every machine
has the memory for 120.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from benchmarks import turns
from workers import registry
from workers.contract import Part
from workers.tasks._network import Embedder

BATCH: Final = 120
WIDTH: Final = 512
NAMES: Final = ("sec", "sec_ema", "l2", "svmax")


def network(images: int) -> Callable[[], None]:
    """A forward and backward pass of ResNet-50 with a triplet loss."""
    offers = {"channels": 3, "side": 224, "dim": WIDTH, "root": Path(), "batch": images}
    backbone = registry.build("backbone", Part(name="resnet50", pretrained=False), None, **offers)
    head = registry.build("head", Part(name="bn_fc"), None, **offers, features=backbone.features)
    model, loss = Embedder(backbone, head), registry.build("loss", Part(name="triplet"), None)
    seen = torch.randint(256, (images, 3, 224, 224), dtype=torch.uint8)
    labels = torch.arange(images) // 3

    def act() -> None:
        model.zero_grad()
        loss(model(seen), labels).backward()

    return act


def regularized(name: str) -> Callable[[], None]:
    """A regularizer's value and gradient of random embeddings."""
    torch.manual_seed(0)
    part: nn.Module = registry.build("regularizer", Part(name=name), None, dim=WIDTH, batch=BATCH)
    embeddings = torch.randn(BATCH, WIDTH).requires_grad_()

    def act() -> None:
        embeddings.grad = None
        part(embeddings).backward()

    return act


def main() -> None:
    """Print milliseconds, and percent of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=50)
    given = parser.parse_args()
    torch.set_num_threads(1)
    step = turns.milliseconds({"step": network(given.images)}, "cpu", 2)["step"] * BATCH / given.images
    found = turns.milliseconds({name: regularized(name) for name in NAMES}, "cpu", given.repeats)
    told: dict[str, Any] = {
        **turns.facts("cpu", 1, given.repeats), "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(), "step, ms": round(step),
        "regularizers, ms": {name: round(value, 3) for name, value in found.items()},
        "of a step, %": {name: round(100 * value / step, 4) for name, value in found.items()},
    }  # fmt: skip
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
