"""Proxy-ISA: Proxy-Anchor (or Proxy-NCA) whose pairs are weighted by what their class has learned so far."""

import math
from typing import Annotated, Literal, NamedTuple

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn

from workers.geometry import unit


class _Schedule(NamedTuple):
    """The weights of the pairs of each class, [classes] each."""

    positive: Tensor  # the penalty on positive pairs: sigma, or what stands in for it
    negative: Tensor  # the penalty on easy negative pairs
    lower: Tensor  # O, below which a similarity is an outlier
    upper: Tensor  # L, up to which it is informative


class ProxyISA(nn.Module):
    """Proxy-Anchor with weights omega in its exponents, divided by the sums over classes of their mean weights.

    omega+ = sigma_c, and 1 more where O_c <= S <= L_c; omega- = 1 / max(1, E_c) where S < O_c, else 1. With n_c the
    images of class c seen and not filtered out: E_c = v (1 - (1 - 1/v)^{n_c}), nu_c = 1 / (1 + ln(1 + E_c)),
    sigma_c = 1 + (1 + e^-tau)(nu_c - 1) / (1 + e^{v - E_c - tau}), O_c = L_c - (1 + k (1 - L_c)) nu_c - lam.
    L_c is h times the mean similarity of the class's proxy to its images in a first-in-first-out memory of `memory`
    embeddings, and 1 before. Memory and filter begin with the epochs of that index, counted from 0; before the filter
    omega+ = 1. An epoch is images // b batches. All of this moves on in training mode only, and is in the checkpoint.

    `positive_penalty` and `negative_penalty` are ISA's table 3 (inverse: 1 / max(1, E)); with both none it is
    Proxy-Anchor. `base` proxy_nca weights the cosines of Proxy-NCA instead (figure 11b; its form is inferred), with
    factor `scale`. The README takes k 0.9 for CUB and SOP, 0.4 for Cars, 0.1 for In-Shop.
    """

    label = "Proxy-ISA"
    paper = "ISA eq. 8-17"
    formula = (
        r"\frac{1}{\sum_{c\in C^+}\bar\omega_c^+}\sum_{c\in C^+}\log\Bigl(1+\sum_{i:\,y_i=c}e^{\omega_{i,c}^+"
        r"\alpha(\delta-S_{i,c})}\Bigr)"
        r"+\frac{1}{\sum_{c}\bar\omega_c^-}\sum_{c=1}^{C}\log\Bigl(1+\sum_{i:\,y_i\neq c}e^{\omega_{i,c}^-"
        r"\alpha(\delta+S_{i,c})}\Bigr)"
    )
    order = "free"
    lr_scale = 100.0
    seen: Tensor
    clean: Tensor
    learned: Tensor
    stored: Tensor
    memory: Tensor
    memory_labels: Tensor

    def __init__(  # noqa: PLR0913 - the paper has as many
        self,
        dim: int,
        classes: int,
        images: int,
        *,
        alpha: Annotated[float, Gt(0)] = 32.0,
        delta: float = 0.1,
        k: Annotated[float, Ge(0)] = 0.9,
        lam: Annotated[float, Ge(0)] = 0.1,
        v: Annotated[int, Ge(1)] = 100,
        h: Annotated[float, Gt(0)] = 0.15,
        tau: float = 1.5,
        memory: Annotated[int, Ge(1)] = 55_000,
        memory_epoch: Annotated[int, Ge(0)] = 2,
        filter_epoch: Annotated[int, Ge(0)] = 3,
        positive_penalty: Literal["none", "inverse", "nu", "sigma"] = "sigma",
        negative_penalty: Literal["none", "inverse"] = "inverse",
        base: Literal["proxy_anchor", "proxy_nca"] = "proxy_anchor",
        scale: Annotated[float, Gt(0)] = 12.0,
    ) -> None:
        if classes < 2:
            raise ValueError(f"proxy_isa: an image needs a proxy of another class, found {classes} class")
        super().__init__()
        self.images, self.base, self.scale = images, base, scale
        self.alpha, self.delta, self.k, self.lam, self.v, self.h, self.tau = alpha, delta, k, lam, v, h, tau
        self.memory_epoch, self.filter_epoch = memory_epoch, filter_epoch
        self.positive_penalty, self.negative_penalty = positive_penalty, negative_penalty
        self.proxies = nn.Parameter(torch.empty(classes, dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))  # images, in all
        self.register_buffer("clean", torch.zeros(classes, dtype=torch.long))  # n
        self.register_buffer("learned", torch.ones(classes))  # L
        self.register_buffer("stored", torch.zeros((), dtype=torch.long))  # embeddings ever put into the memory
        self.register_buffer("memory", torch.zeros(memory, dim))
        self.register_buffer("memory_labels", torch.zeros(memory, dtype=torch.long))

    def class_vectors(self) -> Tensor:
        return self.proxies[:, None]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions, proxies = unit(embeddings), unit(self.proxies)
        cosines = directions @ proxies.T
        own = labels[:, None] == torch.arange(len(proxies), device=labels.device)
        epoch, schedule = self._epoch(len(labels)), self._schedule()
        omega = self._omega(cosines.detach(), own, schedule, epoch)
        weighted = self._anchor if self.base == "proxy_anchor" else self._nca
        loss = weighted(cosines, own, omega)
        if self.training:
            with torch.no_grad():
                outliers = (own & (cosines < schedule.lower)).any(dim=1) & (epoch >= self.filter_epoch)
                if epoch >= self.memory_epoch:
                    self._remember(directions[~outliers], labels[~outliers])
                    self._learn(proxies, own.any(dim=0).nonzero().flatten())
                self.clean += own[~outliers].sum(dim=0)
                self.seen += len(labels)
        return loss

    def weights(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """omega for each image and class, [b, classes]: omega+ in an image's own class, omega- elsewhere."""
        with torch.no_grad():
            cosines = unit(embeddings) @ unit(self.proxies).T
            own = labels[:, None] == torch.arange(len(self.proxies), device=labels.device)
            return self._omega(cosines, own, self._schedule(), self._epoch(len(labels)))

    def _epoch(self, batch: int) -> int:
        """The index of the epoch of this batch; images that do not fill a batch do not count (authors' code)."""
        return int(self.seen) // (max(1, self.images // batch) * batch)

    def decay(self, clean: Tensor) -> dict[str, Tensor]:
        """The decay functions (ISA figure 5) for `clean`, numbers of images seen and not filtered out, [n] each.

        `effective`, the number E; `inverse`, 1 / max(1, E); `nu`; and `sigma`.
        """
        effective = self.v * (1 - (1 - 1 / self.v) ** clean)
        nu = 1 / (1 + effective.log1p())
        # The sigmoid is 1 / (1 + e^{v - E - tau}), whose power overflows float32.
        sigma = 1 + (1 + math.exp(-self.tau)) * (nu - 1) * torch.sigmoid(effective + self.tau - self.v)
        return {"effective": effective, "inverse": 1 / effective.clamp(min=1), "nu": nu, "sigma": sigma}

    def _schedule(self) -> _Schedule:
        upper = self.learned
        decay = self.decay(self.clean.to(upper.dtype))
        nu, inverse = decay["nu"], decay["inverse"]
        positive = decay.get(self.positive_penalty, torch.ones_like(nu))
        negative = inverse if self.negative_penalty == "inverse" else torch.ones_like(nu)
        return _Schedule(positive, negative, upper - (1 + self.k * (1 - upper)) * nu - self.lam, upper)

    def _omega(self, cosines: Tensor, own: Tensor, schedule: _Schedule, epoch: int) -> Tensor:
        easy = cosines < schedule.lower
        negative = torch.where(easy, schedule.negative, torch.ones_like(cosines))
        if epoch < self.filter_epoch or self.positive_penalty == "none":
            return negative.masked_fill(own, 1)
        informative = ~easy & (cosines <= schedule.upper)
        return torch.where(own, schedule.positive + informative, negative)

    def _anchor(self, cosines: Tensor, own: Tensor, omega: Tensor) -> Tensor:
        pulled = _log_one_plus(omega * self.alpha * (self.delta - cosines), own)
        pushed = _log_one_plus(omega * self.alpha * (self.delta + cosines), ~own)
        return pulled.sum() / _mean_weights(omega, own) + pushed.sum() / _mean_weights(omega, ~own)

    def _nca(self, cosines: Tensor, own: Tensor, omega: Tensor) -> Tensor:
        """-log(e^{scale S_y} / sum_{z != y} e^{scale S_z}) with omega in both exponents, each part over its weights."""
        logits = self.scale * omega * cosines
        pushed = logits.masked_fill(own, -math.inf).logsumexp(dim=1)
        return pushed.sum() / _mean_weights(omega.T, ~own.T) - logits[own].sum() / omega[own].sum()

    def _remember(self, directions: Tensor, labels: Tensor) -> None:
        """Put embeddings into the memory in place of the oldest ones."""
        directions, labels = directions[-len(self.memory) :], labels[-len(self.memory) :]
        slots = (self.stored + torch.arange(len(labels), device=labels.device)) % len(self.memory)
        self.memory[slots] = directions.to(self.memory.dtype)
        self.memory_labels[slots] = labels
        self.stored += len(labels)

    def _learn(self, proxies: Tensor, present: Tensor) -> None:
        """Update L for those of the classes `present` that have embeddings in the memory."""
        filled = min(int(self.stored), len(self.memory))
        match = self.memory_labels[:filled, None] == present
        similarity = self.memory[:filled] @ proxies[present].to(self.memory.dtype).T
        count = match.sum(dim=0)
        mean = (similarity * match).sum(dim=0) / count.clamp(min=1)
        self.learned[present] = torch.where(count > 0, self.h * mean, self.learned[present])


def _log_one_plus(exponents: Tensor, mask: Tensor) -> Tensor:
    """log(1 + sum of e^x over the rows in `mask`), for each column."""
    named = exponents.masked_fill(~mask, -math.inf)
    return torch.cat([torch.zeros_like(named[:1]), named]).logsumexp(dim=0)


def _mean_weights(omega: Tensor, mask: Tensor) -> Tensor:
    """The sum over columns of the mean of `omega` over the rows in `mask`; columns without such rows count 0."""
    return ((omega * mask).sum(dim=0) / mask.sum(dim=0).clamp(min=1)).sum().clamp(min=1e-12)
