"""The losses over pairs of a batch and the spread-out regularizer as naive loops over plain numbers."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tests.workers.inputs import part

Rows = list[list[float]]


def directions(embeddings: Tensor | Rows) -> Rows:
    rows = embeddings.tolist() if isinstance(embeddings, Tensor) else embeddings
    return [[x / math.hypot(*row) for x in row] for row in rows]


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def euclid(a: list[float], b: list[float]) -> float:
    return math.dist(a, b)


def ordered_pairs(y: list[int]) -> Iterator[tuple[int, int]]:
    """All (a, p) of one class."""
    return ((a, p) for a in range(len(y)) for p in range(len(y)) if a != p and y[a] == y[p])


def others(y: list[int], a: int) -> list[int]:
    """The negatives of a."""
    return [n for n in range(len(y)) if y[n] != y[a]]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def tuplet(embeddings: Tensor, labels: Tensor, scale: float = 25.0) -> float:
    f, y = directions(embeddings), labels.tolist()
    return mean(
        [
            math.log(1 + sum(math.exp(scale * (dot(f[a], f[n]) - dot(f[a], f[p]))) for n in others(y, a)))
            for a, p in ordered_pairs(y)
        ]
    )


def tuplet_margin(embeddings: Tensor, labels: Tensor) -> float:
    scale, margin, intra, epsilon = 64.0, 0.1, 0.5, 0.01
    f, y = directions(embeddings), labels.tolist()
    terms, near, far = [], [], []
    for a, p in ordered_pairs(y):
        own = math.cos(math.acos(dot(f[a], f[p])) - margin)
        terms.append(math.log(1 + sum(math.exp(scale * (dot(f[a], f[n]) - own)) for n in others(y, a))))
        near.append(dot(f[a], f[p]))
    far = [dot(f[a], f[n]) for a in range(len(y)) for n in others(y, a)]
    low = [max(0.0, (1 - epsilon) * mean(near) - s) ** 2 for s in near]
    high = [max(0.0, s - (1 + epsilon) * mean(far)) ** 2 for s in far]
    return mean(terms) + intra * (mean(low) + mean(high))


def batch_hard(embeddings: Tensor, labels: Tensor, margin: float = 0.2) -> float:
    f, y = directions(embeddings), labels.tolist()
    terms = []
    for a in range(len(y)):
        farthest = max(euclid(f[a], f[p]) for b, p in ordered_pairs(y) if b == a)
        nearest = min(euclid(f[a], f[n]) for n in others(y, a))
        terms.append(max(0.0, margin + farthest - nearest))
    return mean(terms)


def npair(embeddings: Tensor, labels: Tensor, unit: bool = True, l2: float = 0.002, anchors: bool = False) -> float:
    f, y = directions(embeddings) if unit else embeddings.tolist(), labels.tolist()
    firsts = [y.index(c) for c in sorted(set(y))]
    terms = []
    for a in firsts:
        own = dot(f[a], f[a + 1])
        negatives = [f[n + seat] for n in firsts if n != a for seat in ((0, 1) if anchors else (1,))]
        terms.append(math.log(1 + sum(math.exp(dot(f[a], n) - own) for n in negatives)))
    return mean(terms) + 2 * l2 / 4 * mean([dot(row, row) for row in f])


def angular(embeddings: Tensor, labels: Tensor, alpha: float = 45.0, anchors: bool = False) -> float:
    f, y = directions(embeddings), labels.tolist()
    t = math.tan(math.radians(alpha)) ** 2
    firsts = [y.index(c) for c in sorted(set(y))]
    terms = []
    for a in firsts:
        both = [u + v for u, v in zip(f[a], f[a + 1], strict=True)]
        own = 2 * (1 + t) * dot(f[a], f[a + 1])
        negatives = [f[n + seat] for n in firsts if n != a for seat in ((0, 1) if anchors else (1,))]
        terms.append(math.log(1 + sum(math.exp(4 * t * dot(both, n) - own) for n in negatives)))
    return mean(terms)


def angular_of_all_pairs(embeddings: Tensor, labels: Tensor, alpha: float = 45.0) -> float:
    f, y = directions(embeddings), labels.tolist()
    t = math.tan(math.radians(alpha)) ** 2
    terms = []
    for a, p in ordered_pairs(y):
        both = [u + v for u, v in zip(f[a], f[p], strict=True)]
        own = 2 * (1 + t) * dot(f[a], f[p])
        terms.append(math.log(1 + sum(math.exp(4 * t * dot(both, f[n]) - own) for n in others(y, a))))
    return mean(terms)


def contrastive(embeddings: Tensor, labels: Tensor, squared: bool = True) -> float:
    """Of two classes A and B: A0 A1 and B2 B3 are alike, B0 A3 and A2 B1 are not; those that exist."""
    f, y = directions(embeddings), labels.tolist()
    classes = [[i for i in range(len(y)) if y[i] == c] for c in dict.fromkeys(y)]
    terms = []
    for one, two in zip(classes[::2], classes[1::2], strict=True):
        for start in range(0, len(one), 4):
            a, b = one[start : start + 4], two[start : start + 4]
            pairs = [(a, 0, a, 1), (b, 2, b, 3), (b, 0, a, 3), (a, 2, b, 1)]
            for left, i, right, j in pairs:
                if i < len(left) and j < len(right):
                    d = euclid(f[left[i]], f[right[j]])
                    d = math.sqrt(d * d + 1e-5) if squared else d
                    term = d if left is right else max(0.0, 1.0 - d)
                    terms.append(term * term if squared else term)
    return mean(terms)


def lifted_structure(embeddings: Tensor, labels: Tensor) -> float:
    f, y = directions(embeddings), labels.tolist()
    terms = []
    for i, j in ordered_pairs(y):
        crowd = sum(math.exp(1 - euclid(f[i], f[k])) + math.exp(1 - euclid(f[j], f[k])) for k in others(y, i))
        terms.append(max(0.0, math.log(crowd) + euclid(f[i], f[j])) ** 2)
    return mean(terms) / 2


def margin(embeddings: Tensor, labels: Tensor) -> float:
    cutoff, reach = 0.5, 1.4
    f, y = directions(embeddings), labels.tolist()
    d = len(f[0])
    close = {a: [n for n in others(y, a) if euclid(f[a], f[n]) < reach] for a in range(len(y))}
    pairs = [(a, p) for a, p in ordered_pairs(y) if close[a]]
    noise = part("loss", "margin").draws.uniform(len(pairs), len(y), like=embeddings).tolist()
    triplets = []
    for (a, p), row in zip(pairs, noise, strict=True):
        chances = {}
        for n in close[a]:
            apart = max(cutoff, euclid(f[a], f[n]))
            density = apart ** (d - 2) * (1 - apart * apart / 4) ** ((d - 3) / 2)
            chances[n] = math.log(1 / density) - math.log(-math.log(row[n]))
        triplets.append((a, p, max(chances, key=chances.__getitem__)))
    return margin_over(f, triplets)


def margin_over(f: Rows, triplets: list[tuple[int, int, int]], margin: float = 0.2, beta: float = 1.2) -> float:
    beta = torch.tensor(beta).item()  # a parameter in float32, whatever the embeddings are in
    terms = [max(0.0, euclid(f[a], f[p]) - beta + margin) for a, p, _ in triplets]
    terms += [max(0.0, beta - euclid(f[a], f[n]) + margin) for a, _, n in triplets]
    return sum(terms) / sum(term > 0 for term in terms)


def spread_out(embeddings: Tensor) -> float:
    """With a random partner, and every image a class of its own."""
    f = directions(embeddings)
    noise = part("regularizer", "spread_out").draws.uniform(len(f), len(f), like=embeddings)
    partners = noise.fill_diagonal_(-math.inf).argmax(dim=1).tolist()
    products = [dot(f[i], f[j]) for i, j in enumerate(partners)]
    return mean(products) ** 2 + max(0.0, mean([x * x for x in products]) - 1 / len(f[0]))


def sec_fixed(embeddings: Tensor) -> float:
    return mean([(math.hypot(*row) - 8.7) ** 2 for row in embeddings.tolist()])


def rep_cnt(embeddings: Tensor, labels: Tensor, margin: float = 10.0) -> float:
    """The first of a label is N of an image, the second what its tiles sum up to."""
    f, y = embeddings.tolist(), labels.tolist()
    images = [[row for row, other in zip(f, y, strict=True) if other == label][:2] for label in sorted(set(y))]
    near = mean([euclid(whole, tiles) ** 2 for whole, tiles in images])
    pairs = [(other, own) for i, (_, own) in enumerate(images) for j, (other, _) in enumerate(images) if i != j]
    return near + mean([max(0.0, margin - euclid(whole, tiles) ** 2) for whole, tiles in pairs])


def sup_con(embeddings: Tensor, labels: Tensor, temperature: float = 0.07) -> float:
    f, y = directions(embeddings), labels.tolist()
    terms = []
    for a in range(len(f)):
        positives = [p for p in range(len(f)) if p != a and y[p] == y[a]]
        total = sum(math.exp(dot(f[a], f[i]) / temperature) for i in range(len(f)) if i != a)
        logs = [math.log(math.exp(dot(f[a], f[p]) / temperature) / total) for p in positives]
        terms.append(-mean(logs) if logs else 0.0)
    return mean(terms)


def recall_at_k(
    embeddings: Tensor,
    labels: Tensor,
    cuts: tuple[int, ...] = (1, 2, 4, 8, 16),
    tau: tuple[float, float] = (1.0, 0.01),
    included: bool = False,
) -> float:
    def step(x: float, temperature: float) -> float:
        return 1 / (1 + math.exp(min(700.0, -x / temperature)))

    f, y = directions(embeddings), labels.tolist()
    losses = []
    for q in range(len(f)):
        positives = [p for p in range(len(f)) if p != q and y[p] == y[q]]
        for k in cuts if positives else ():
            found = 0.0
            for p in positives:
                ahead = [i for i in range(len(f)) if i != p and (included or i != q)]
                rank = 1 + sum(step(dot(f[q], f[i]) - dot(f[q], f[p]), tau[1]) for i in ahead)
                found += step(k - rank, tau[0])
            losses.append(1 - min(k, found) / min(k, len(positives)))
    return mean(losses) if losses else 0.0


LOSSES: dict[str, Callable[[Tensor, Tensor], float]] = {
    "tuplet": tuplet,
    "tuplet_margin": tuplet_margin,
    "nt_xent": lambda embeddings, labels: tuplet(embeddings, labels, 2.0),
    "batch_hard": batch_hard,
    "npair": npair,
    "angular": angular,
    "contrastive": contrastive,
    "lifted_structure": lifted_structure,
    "margin": margin,
    "rep_cnt": rep_cnt,
    "sup_con": sup_con,
    "recall_at_k": recall_at_k,
}

REGULARIZERS: dict[str, Callable[[Tensor], float]] = {"spread_out": spread_out, "sec_fixed": sec_fixed}
