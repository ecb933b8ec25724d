"""How unevenly a generator's samples are distributed over the Gaussians."""

import math

import torch

from workers.evaluation.probe import Samples


class ReverseKL:
    """KL(q || p) in nats, with q the shares of samples that are nearest to each Gaussian, and p equal shares.

    0 if all have equally many, log k if all samples are nearest to one of k. All samples count, at any distance.
    """

    label = "Reverse KL"
    better = "lower"
    unit = "number"
    reads = "samples"

    def __call__(self, evaluation: Samples) -> float:
        shares = evaluation.shares
        return max(0.0, math.log(len(shares)) + float(torch.special.xlogy(shares, shares).sum()))
