"""How unevenly the samples of a generator fall to the Gaussians."""

import math

import torch

from workers.evaluation.probe import Samples


class ReverseKL:
    """KL(q || p) in nats, of the shares q of samples that each Gaussian is nearest to against equal shares p.

    0 where each has as many, log k where all samples fall to one of k. Each sample counts, however far it lies.
    """

    label = "Reverse KL"
    version = 1
    better = "lower"
    unit = "number"
    reads = "samples"

    def __call__(self, evaluation: Samples) -> float:
        """The divergence, 0 to log k."""
        shares = evaluation.shares
        return max(0.0, math.log(len(shares)) + float(torch.special.xlogy(shares, shares).sum()))
