"""Recall@k surrogate: recall of a batch with sigmoids in place of the two steps, the rank and the cut at k."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn

from workers.geometry import masks, unit


class RecallAtK(nn.Module):
    """1 - mean over queries q and k of min(k, sum_p sigmoid((k - r_qp) / tau1)) / min(k, |P_q|).

    r_qp = 1 + sum_i sigmoid((S_qi - S_qp) / tau2) is the smooth rank of q's positive p, S the cosine. Every image with
    a positive is a query, and the others are its database. `query: included` is the authors' code, in which the query
    itself is in front of each positive, so that all ranks are one higher. It needs pairs x batch numbers: a training
    with large batches sets `chunk`, which keeps the network out of the memory, too.
    """

    label = "Recall@k surrogate"
    paper = "Patel et al., CVPR 2022"
    formula = (
        r"1-\frac{1}{|Q||K|}\sum_{q,k}\frac{\min\bigl(k,\sum_{p\in P_q}\sigma_{\tau_1}(k-r_{qp})\bigr)}"
        r"{\min(k,|P_q|)},"
        r"\quad r_{qp}=1+\sum_{i\neq q,p}\sigma_{\tau_2}(S_{qi}-S_{qp}),\quad\sigma_\tau(x)=\frac{1}{1+e^{-x/\tau}}"
    )
    order = "free"

    def __init__(
        self,
        *,
        k: tuple[Annotated[int, Ge(1)], ...] = (1, 2, 4, 8, 16),
        tau1: Annotated[float, Gt(0)] = 1.0,
        tau2: Annotated[float, Gt(0)] = 0.01,
        query: Literal["excluded", "included"] = "excluded",
    ) -> None:
        super().__init__()
        self.k, self.tau1, self.tau2, self.query = k, tau1, tau2, query

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions, positive = unit(embeddings), masks(labels).positive
        similarity, cuts = directions @ directions.T, directions.new_tensor(self.k)
        query, own = positive.nonzero(as_tuple=True)
        ahead = ((similarity[query] - similarity[query, own][:, None]) / self.tau2).sigmoid()
        counted = torch.ones_like(ahead, dtype=torch.bool).scatter(1, own[:, None], False)
        if self.query == "excluded":
            counted = counted.scatter(1, query[:, None], False)
        rank = 1 + (ahead * counted).sum(dim=1, keepdim=True)
        found = directions.new_zeros(len(labels), len(cuts)).index_add(0, query, ((cuts - rank) / self.tau1).sigmoid())
        number = positive.sum(dim=1, keepdim=True)
        recall = torch.minimum(found, cuts) / torch.minimum(number, cuts).clamp(min=1)
        return ((1 - recall) * (number > 0)).sum() / ((number > 0).sum() * len(cuts)).clamp(min=1)
