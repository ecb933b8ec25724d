"""Figure 5 of Proxy-ISA: the decay functions of its weights over the images that a class has seen, from the loss.

    python -m benchmarks.decay [--v 100] [--tau 1.5] [--images 1000] [--out isa_f5.csv]

The paper's figure has no numbers. A line of the CSV is a number of images n: the effective number E (equation 9), the
weight 1 / max(1, E) of easy negative pairs, the lower bound nu (equation 14), and sigma (equation 17).
"""

import argparse
import csv
import sys
from pathlib import Path

import torch

from workers import registry
from workers.contract import Part
from workers.losses.proxy_isa import ProxyISA


def curves(v: int, tau: float, images: int) -> dict[str, torch.Tensor]:
    """The decay functions for 0 to `images` images, in float64."""
    loss = registry.build("loss", Part.model_validate({"name": "proxy_isa", "v": v, "tau": tau, "memory": 1}), None,
                          dim=1, classes=2, images=2)  # fmt: skip
    assert isinstance(loss, ProxyISA)
    return loss.decay(torch.arange(images + 1, dtype=torch.float64))


def main() -> None:
    """Write the curves to a file, or to the standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--v", type=int, default=100, help="the limit of E")
    parser.add_argument("--tau", type=float, default=1.5, help="when sigma decays")
    parser.add_argument("--images", type=int, default=1_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = curves(options.v, options.tau, options.images)
    lines = [["n", *found], *([n, *line] for n, line in enumerate(torch.stack([*found.values()], dim=1).tolist()))]
    if options.out is None:
        csv.writer(sys.stdout).writerows(lines)
        return
    with options.out.open("w", newline="") as file:
        csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
