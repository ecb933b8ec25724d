"""How the losses over proxies and class vectors give the golden values, on the inputs of their README."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.workers.inputs import block_labels, golden_embeddings, part
from workers.losses.proxy_isa import ProxyISA

EMBEDDINGS, LABELS = golden_embeddings(12, 8), block_labels(4, 3)


def golden_vectors(n: int, d: int) -> Tensor:
    """W(n, d) of the golden values."""
    values = [[math.cos(2 + 0.5 * i * j + 0.2 * j) for j in range(d)] for i in range(n)]
    return torch.tensor(values, dtype=torch.float64)


def golden_loss(name: str, vectors: int = 5, **options: Any) -> Any:
    """A loss of 5 classes whose one matrix of parameters, or its transpose, is W(vectors, 8)."""
    loss = part("loss", name, classes=5, dim=8, **options)
    (parameter,) = loss.parameters()
    values = golden_vectors(vectors, 8)
    if parameter.shape != values.shape:
        values = values.T.contiguous()
    assert parameter.shape == values.shape
    parameter.data = values
    return loss


def value(name: str, vectors: int = 5, **options: Any) -> Callable[[], Tensor]:
    def computed() -> Tensor:
        found: Tensor = golden_loss(name, vectors, **options)(EMBEDDINGS, LABELS)
        return found

    return computed


def golden_isa() -> ProxyISA:
    """Proxy-ISA in the state of `proxy_isa_*`: in its fourth epoch, the filter on."""
    loss: ProxyISA = golden_loss("proxy_isa")
    loss.seen.fill_(36)
    loss.clean.copy_(torch.tensor([10, 50, 0, 200, 460]))
    loss.learned.copy_(torch.tensor([0.05, 0.1, 1.0, 0.08, 0.02], dtype=torch.float64))
    return loss


def omega(positive: bool) -> Callable[[], Tensor]:
    """The sum of the weights of the positive, or of the negative pairs."""

    def computed() -> Tensor:
        own = nn.functional.one_hot(LABELS, 5).bool()
        return golden_isa().weights(EMBEDDINGS, LABELS)[own if positive else ~own].sum()

    return computed


GOLDEN_PROXIES: dict[str, Callable[[], Tensor]] = {
    "proxy_anchor_a32_d01": value("proxy_anchor"),
    "proxy_nca_paper_scale1_positive_excluded": value("proxy_nca", scale=1.0),
    "proxy_nca_softmax_scale1_positive_included": value("proxy_nca", scale=1.0, positive="included"),
    "proxy_nca_isa_repo_cos12_positive_excluded": value("proxy_nca", scale=6.0),
    "normface_s64": value("normface"),
    "cosface_s64_m035": value("cosface"),
    "arcface_s64_m045": value("arcface"),
    "sphereface_s64_m3_normalized_features": value("sphereface"),
    "soft_triple_ce_only": value("soft_triple", 10, centers=2, tau=0.0),
    "soft_triple_total_reg02": value("soft_triple", 10, centers=2),
    "proxy_gml_cls_N2_r05": value("proxy_gml", 10, proxies=2, r=0.5, lam=0.0),
    "proxy_gml_total_lambda03": value("proxy_gml", 10, proxies=2, r=0.5),
    "proxy_isa_fixed_state": lambda: golden_isa()(EMBEDDINGS, LABELS),
    "proxy_isa_omega_pos_sum": omega(positive=True),
    "proxy_isa_omega_neg_sum": omega(positive=False),
}
