"""The cost of Proxy-ISA compared with Proxy-Anchor (its appendix A): a batch's loss with its gradient, by classes.

    python -m benchmarks.proxy_isa [--classes 98 3997 11318] [--batch 128] [--dim 512] [--memory 55000]
                                   [--device cuda] [--threads N] [--repeats 9] [--out proxy_isa.csv]

The paper says that training takes longer "to some extent" where classes are many more than images of a batch, and gives
no figure. Memory and filter are on from the first batch and the memory is full, as it is for most of a training.
Milliseconds, the median of the repeats, in which both take turns; the default classes are those of Cars196, In-Shop
and SOP. A step of the network, which is the same for both, comes on top of either: `benchmarks.svd` times such.
"""

import argparse
import csv
from functools import partial
from pathlib import Path

import torch

from benchmarks import turns
from workers import registry
from workers.contract import Part
from workers.losses.proxy_isa import ProxyISA

COLUMNS = ("proxy_anchor", "proxy_isa", "ratio")


class Batches:
    """Either loss on random embeddings of random classes."""

    def __init__(self, classes: int, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        offers = {"dim": options.dim, "classes": classes, "images": 100 * options.batch}
        always = {"memory_epoch": 0, "filter_epoch": 0, "memory": options.memory}
        parts = (Part(name="proxy_anchor"), Part.model_validate({"name": "proxy_isa", **always}))
        self.losses = {part.name: registry.build("loss", part, None, **offers).to(options.device) for part in parts}
        self.embeddings = torch.randn(options.batch, options.dim, device=options.device).requires_grad_()
        self.labels = torch.randint(classes, (options.batch,), device=options.device)
        isa = self.losses["proxy_isa"]
        assert isinstance(isa, ProxyISA)
        isa.memory.normal_()  # full, of random classes
        isa.memory_labels.random_(classes)
        isa.stored.fill_(options.memory)

    def step(self, name: str) -> None:
        """The loss of a batch, and the gradient of embeddings and proxies."""
        loss = self.losses[name]
        loss.zero_grad()
        self.embeddings.grad = None
        loss(self.embeddings, self.labels).backward()


def measured(classes: int, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of each loss, and Proxy-ISA's over Proxy-Anchor's."""
    batches = Batches(classes, options)
    found = turns.milliseconds(
        {name: partial(batches.step, name) for name in batches.losses}, options.device, options.repeats
    )
    return {**found, "ratio": found["proxy_isa"] / found["proxy_anchor"]}


def facts(options: argparse.Namespace) -> dict[str, str | int]:
    """Where the figures are from."""
    shape = {"batch": options.batch, "dim": options.dim, "memory": options.memory}
    return {**turns.facts(options.device, options.threads, options.repeats), **shape}


def main() -> None:
    """Measure, print, and write a file on request."""
    options = _options()
    torch.set_num_threads(options.threads)
    about = facts(options)
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print("classes  " + "  ".join(f"{name:>12}" for name in COLUMNS))
    rows = []
    for classes in options.classes:
        found = measured(classes, options)
        print(f"{classes:7}  " + "  ".join(f"{found[name]:12.2f}" for name in COLUMNS), flush=True)
        rows.append([classes, *(round(found[name], 4) for name in COLUMNS), *about.values()])
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows([["classes", *COLUMNS, *about], *rows])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, nargs="+", default=[98, 3_997, 11_318])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--memory", type=int, default=55_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
