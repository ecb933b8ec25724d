"""The geometry of a batch of embeddings: norms, directions, distances and singular values, in float32 or better."""

import math

import torch
from torch import Tensor

_TINY = 1e-12  # a row whose norm is below has no direction


def precise(values: Tensor) -> Tensor:
    """`values` in float32, or in float64 where they are so already."""
    return values if values.dtype in {torch.float32, torch.float64} else values.float()


def norms(embeddings: Tensor) -> Tensor:
    """The Euclidean norm of each row, [n]; the gradient of a zero row is zero."""
    lengths: Tensor = torch.linalg.vector_norm(precise(embeddings), dim=1)
    return lengths


def unit(embeddings: Tensor) -> Tensor:
    """f^ = f / ||f|| row by row, [n, d].

    A zero row stays zero and gets no gradient; dividing by a small constant instead would give it a gradient of 1e12.
    """
    length = norms(embeddings)[:, None]
    return precise(embeddings) / length.masked_fill(length < _TINY, math.inf)


def squared_distances(embeddings: Tensor) -> Tensor:
    """||f_i - f_j||^2 for every pair of rows, [n, n]."""
    squares = embeddings.square().sum(dim=1)
    return (squares[:, None] + squares[None, :] - 2 * embeddings @ embeddings.T).clamp(min=0)


def singular_values(embeddings: Tensor) -> Tensor:
    """The min(n, d) singular values, largest first; NaN where a value is NaN or infinite, which LAPACK would refuse."""
    values = precise(embeddings)
    if not bool(values.isfinite().all()):
        return (values.sum() * math.nan).expand(min(values.shape))
    singular: Tensor = torch.linalg.svdvals(values)
    return singular


def mean_singular_value(embeddings: Tensor) -> Tensor:
    """s_mu, the mean of the min(n, d) singular values (SVMax eq. 1)."""
    return singular_values(embeddings).mean()


def singular_bounds(rows: int, columns: int) -> tuple[float, float]:
    """The least and greatest s_mu of `rows` unit rows in `columns` dimensions: L and U of SVMax eq. 4 and appendix B.2.

    Both divide by m = min(rows, columns), the number of singular values; they are equal where m = 1.
    """
    smaller = min(rows, columns)
    return math.sqrt(rows) / smaller, math.sqrt(rows / smaller)
