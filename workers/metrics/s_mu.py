"""The mean singular value of embeddings."""

import math

import torch

from workers.evaluate import Evaluation

_ROWS = 2**14  # rows turned into float64 at a time


class MeanSingularValue:
    """s_mu: the mean of the min(n, d) singular values of all unit embeddings; it grows as more directions are used."""

    label = "s_mu"
    paper = "SVMax figures 3 and 15"
    version = 1
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        """The mean singular value."""
        if not evaluation.finite:
            return math.nan
        rows = evaluation.unit if len(evaluation.unit) >= evaluation.unit.shape[1] else evaluation.unit.T
        # Their squares are the eigenvalues of the smaller Gram matrix; float64 makes up for the squaring.
        gram = torch.stack([chunk.double().T @ chunk.double() for chunk in torch.split(rows, _ROWS)]).sum(dim=0)
        return float(torch.linalg.eigvalsh(gram).clamp(min=0).sqrt().mean())
