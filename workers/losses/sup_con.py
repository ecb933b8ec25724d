"""Supervised contrastive loss: each positive of an anchor against all other images of the batch."""

import math
from typing import Annotated

import torch
from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import masks, unit


class SupCon(nn.Module):
    """Mean over anchors of -mean_p log(e^{S_ap / T} / sum_{i != a} e^{S_ai / T}), S the cosine: L_out of the paper.

    All images of the anchor's class are its positives p, so that one view of each image is enough; the other positives
    stand in the denominator, too. The paper's sum over anchors is a mean here, as in the authors' code, and an anchor
    without positives counts as zero. That code also multiplies by T / 0.07, which is 1 at the default.
    """

    label = "SupCon"
    paper = "Khosla et al., NeurIPS 2020"
    formula = (
        r"\frac{1}{b}\sum_{a}\frac{-1}{|P(a)|}\sum_{p\in P(a)}\log\frac{e^{S_{ap}/T}}{\sum_{i\neq a}e^{S_{ai}/T}},"
        r"\quad S_{ij}=\langle\hat f_i,\hat f_j\rangle"
    )
    order = "free"

    def __init__(self, *, temperature: Annotated[float, Gt(0)] = 0.07) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions, positive = unit(embeddings), masks(labels).positive
        logits = directions @ directions.T / self.temperature
        others = logits.masked_fill(torch.eye(len(labels), dtype=torch.bool, device=labels.device), -math.inf)
        if len(labels) == 1:
            return logits.sum() * 0
        log_share = torch.where(positive, logits - others.logsumexp(dim=1, keepdim=True), 0)
        return -(log_share.sum(dim=1) / positive.sum(dim=1).clamp(min=1)).mean()
