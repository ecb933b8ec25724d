"""The mean singular value of embeddings."""

import math

import torch

from workers.evaluation.evaluate import Evaluation


class MeanSingularValue:
    """s_mu: the mean of the min(n, d) singular values of all unit embeddings; it grows as more directions are used."""

    label = "s_μ"
    paper = "SVMax figures 3 and 15"
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        if not evaluation.finite:
            return math.nan
        # Their squares are the eigenvalues of the Gram matrix; float64 makes up for the squaring.
        return float(torch.linalg.eigvalsh(evaluation.gram).clamp(min=0).sqrt().mean())
