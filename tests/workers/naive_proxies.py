"""The losses over proxies and class vectors as naive loops over plain numbers."""

import math
from collections.abc import Callable

from torch import Tensor

from tests.workers.inputs import part
from tests.workers.naive_pairs import Rows, directions, dot, mean

Naive = Callable[[Tensor, Tensor], float]


def cross_entropy(logits: list[float], own: int) -> float:
    return math.log(sum(math.exp(logit - logits[own]) for logit in logits))


def weights(name: str, key: str, transposed: bool = False) -> Rows:
    """The class vectors that the loss `name` of `inputs.part` has."""
    value = part("loss", name).state_dict()[key]
    rows: Rows = (value.T if transposed else value).tolist()
    return rows


def cosines(embeddings: Tensor, vectors: Rows) -> Rows:
    return [[dot(f, w) for w in directions(vectors)] for f in directions(embeddings)]


def softmax(embeddings: Tensor, labels: Tensor) -> float:
    w = weights("softmax", "classifier.weight")
    bias: list[float] = part("loss", "softmax").classifier.bias.tolist()
    rows = zip(embeddings.tolist(), labels.tolist(), strict=True)
    return mean([cross_entropy([dot(f, a) + b for a, b in zip(w, bias, strict=True)], y) for f, y in rows])


def margin_softmax(rows: Rows, labels: Tensor, target: Callable[[float], float], scale: float = 64.0) -> float:
    terms = []
    for row, y in zip(rows, labels.tolist(), strict=True):
        logits = [scale * (target(math.acos(s)) if c == y else s) for c, s in enumerate(row)]
        terms.append(cross_entropy(logits, y))
    return mean(terms)


def psi(theta: float, margin: int = 3) -> float:
    k = math.floor(margin * theta / math.pi)
    return (-1.0) ** k * math.cos(margin * theta) - 2 * k


def shifted(theta: float, margin: float = 0.45) -> float:
    if theta <= math.pi - margin:
        return math.cos(theta + margin)
    return math.cos(theta) - margin * math.sin(margin)


def proxy_nca(rows: Rows, labels: Tensor, scale: float = 9.0, included: bool = False) -> float:
    terms = []
    for row, y in zip(rows, labels.tolist(), strict=True):
        distances = [2 - 2 * s for s in row]
        others = [math.exp(-scale * d) for z, d in enumerate(distances) if included or z != y]
        terms.append(scale * distances[y] + math.log(sum(others)))
    return mean(terms)


def proxy_anchor(rows: Rows, labels: Tensor, alpha: float = 32.0, delta: float = 0.1) -> float:
    y, classes = labels.tolist(), len(rows[0])
    pulled, pushed = [], []
    for c in range(classes):
        positives = [row[c] for row, of in zip(rows, y, strict=True) if of == c]
        negatives = [row[c] for row, of in zip(rows, y, strict=True) if of != c]
        if positives:
            pulled.append(math.log(1 + sum(math.exp(alpha * (delta - s)) for s in positives)))
        pushed.append(math.log(1 + sum(math.exp(alpha * (delta + s)) for s in negatives)))
    return mean(pulled) + mean(pushed)


def soft_triple(embeddings: Tensor, labels: Tensor, centers: int = 10) -> float:
    la, gamma, tau, delta = 20.0, 0.1, 0.2, 0.01
    w = directions(weights("soft_triple", "loss.fc", transposed=True))
    blocks = [w[start : start + centers] for start in range(0, len(w), centers)]
    terms = []
    for f, y in zip(directions(embeddings), labels.tolist(), strict=True):
        logits = []
        for c, block in enumerate(blocks):
            s = [dot(f, center) for center in block]
            parts = [math.exp(x / gamma) for x in s]
            similarity = sum(x * p for x, p in zip(s, parts, strict=True)) / sum(parts)
            logits.append(la * (similarity - delta * (c == y)))
        terms.append(cross_entropy(logits, y))
    spread = 0.0
    for block in blocks:
        for i in range(centers):
            for j in range(i + 1, centers):
                spread += math.sqrt(2 + 1e-5 - 2 * dot(block[i], block[j]))
    return mean(terms) + tau * spread / (len(blocks) * centers * (centers - 1))


def proxy_gml(embeddings: Tensor, labels: Tensor, proxies: int = 12, r: float = 0.05, lam: float = 0.3) -> float:
    w = directions(weights("proxy_gml", "proxies"))
    classes = len(w) // proxies
    kept = max(math.ceil(r * len(w)), proxies + 1)
    terms = []
    for f, y in zip(directions(embeddings), labels.tolist(), strict=True):
        s = [dot(f, p) for p in w]
        own = [j for j in range(len(w)) if j // proxies == y]
        nearest = sorted((j for j in range(len(w)) if j not in own), key=lambda j: -s[j])[: kept - proxies]
        sums = {c: sum(s[j] for j in own + nearest if j // proxies == c) for c in {j // proxies for j in own + nearest}}
        terms.append(math.log(sum(math.exp(z - sums[y]) for z in sums.values())))
    among = []
    for i, p in enumerate(w):
        logits = [sum(dot(p, w[j]) for j in range(c * proxies, (c + 1) * proxies)) for c in range(classes)]
        among.append(cross_entropy(logits, i // proxies))
    return mean(terms) + lam * mean(among)


NAIVE_PROXIES: dict[str, Naive] = {
    "softmax": softmax,
    "normface": lambda f, y: margin_softmax(cosines(f, weights("normface", "loss.W", True)), y, math.cos),
    "sphereface": lambda f, y: margin_softmax(cosines(f, weights("sphereface", "loss.W", True)), y, psi),
    "cosface": lambda f, y: margin_softmax(
        cosines(f, weights("cosface", "loss.W", True)), y, lambda theta: math.cos(theta) - 0.35
    ),
    "arcface": lambda f, y: margin_softmax(cosines(f, weights("arcface", "weight")), y, shifted),
    "proxy_nca": lambda f, y: proxy_nca(cosines(f, weights("proxy_nca", "proxies")), y),
    "proxy_anchor": lambda f, y: proxy_anchor(cosines(f, weights("proxy_anchor", "loss.proxies")), y),
    "soft_triple": soft_triple,
    "proxy_gml": proxy_gml,
    # Before anything is learned all its weights are 1; test_pair_losses.py has its states.
    "proxy_isa": lambda f, y: proxy_anchor(cosines(f, weights("proxy_isa", "proxies")), y),
}
