"""Softmax loss: cross-entropy of a linear classifier."""

import torch
from torch import Tensor, nn

from workers.geometry import precise


class Softmax(nn.Module):
    """Mean cross-entropy of W f + b, on the RAW embedding: this loss alone does not normalize it."""

    label = "Softmax"
    paper = "SEC table 4"
    formula = r"-\frac{1}{b}\sum_{i}\log\frac{e^{w_{y_i}^{\top}f_i+b_{y_i}}}{\sum_{c}e^{w_c^{\top}f_i+b_c}}"
    order = "free"

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(dim, classes)

    def class_vectors(self) -> Tensor:
        return self.classifier.weight[:, None]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = torch.nn.functional.cross_entropy(self.classifier(precise(embeddings)), labels)
        return loss
