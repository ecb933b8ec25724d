"""Losses over pairs in their other forms, and Proxy-ISA, which goes through its states as a naive machine does."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss
from torch import Tensor

from tests.workers import naive_pairs
from tests.workers.inputs import block_labels, degenerate_batches, evaluate, part, random_batch, value_and_gradient
from tests.workers.naive_pairs import directions, dot, mean
from tests.workers.naive_proxies import cosines
from workers.geometry import over_negatives
from workers.losses.angular import Angular
from workers.losses.contrastive import Contrastive
from workers.losses.lifted_structure import LiftedStructure
from workers.losses.margin import Margin
from workers.losses.npair import NPair
from workers.losses.proxy_isa import ProxyISA

FORMS: list[tuple[str, dict[str, Any]]] = [
    ("triplet", {"over": "violating"}),
    ("multi_similarity", {"mined": False}),
    ("multi_similarity", {"copies": True}),
    ("multi_similarity", {"mined": False, "copies": True}),
    ("angular", {"pairs": "all"}),
    ("angular", {"pairs": "paper"}),
    ("npair", {"unit": False}),
    ("npair", {"pairs": "paper"}),
    ("npair", {"unit": False, "pairs": "paper"}),
    ("contrastive", {"squared": False}),
    ("contrastive", {"pairs": "paper"}),
    ("contrastive", {"pairs": "paper", "squared": False}),
    ("margin", {"mining": "all"}),
    ("margin", {"per_class": True, "nu": 0.1}),
    ("margin", {"learned": False}),
    ("lifted_structure", {"unit": False}),
    ("recall_at_k", {"query": "included"}),
]
"""The forms that are not a loss's default."""


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_every_form_conforms(name: str, options: dict[str, Any]) -> None:
    """It has the gradient of finite differences, and is finite on degenerate batches."""
    embeddings, labels = random_batch(per_class=4, classes=4)
    loss = part("loss", name, **options).eval()
    assert torch.autograd.gradcheck(lambda f: loss(f, labels), embeddings.requires_grad_(), fast_mode=True)
    for case, batch in degenerate_batches().items():
        if case != "large":
            value, gradient = value_and_gradient(part("loss", name, **options).float(), *batch)
            assert value.shape == (), case
            assert value.isfinite(), case
            assert gradient.isfinite().all(), case


def test_npair_pays_for_the_length_of_embeddings() -> None:
    f, y = random_batch(per_class=2)
    assert NPair(unit=False)(f, y).item() == pytest.approx(naive_pairs.npair(f, y, unit=False), rel=1e-12)
    assert NPair(unit=False, l2=0.5)(f, y).item() == pytest.approx(naive_pairs.npair(f, y, False, 0.5), rel=1e-12)
    # of a unit one the term is constant
    assert (NPair(l2=0.002)(f, y) - NPair(l2=0.0)(f, y)).item() == pytest.approx(0.001)


def test_angular_has_a_form_over_all_pairs() -> None:
    f, y = random_batch()
    assert Angular(pairs="all")(f, y).item() == pytest.approx(naive_pairs.angular_of_all_pairs(f, y), rel=1e-9)
    f, y = random_batch(per_class=5, classes=3)
    assert Angular(alpha=30.0)(f, y).item() == pytest.approx(naive_pairs.angular(f, y, 30.0), rel=1e-9)


@pytest.mark.parametrize("per_class", [2, 4])
def test_the_negatives_of_the_papers_text_are_anchors_too(per_class: int) -> None:
    f, y = random_batch(classes=5, per_class=per_class)
    for unit in (True, False):
        expected = naive_pairs.npair(f, y, unit, anchors=True)
        assert NPair(unit=unit, pairs="paper")(f, y).item() == pytest.approx(expected, rel=1e-12)
    expected = naive_pairs.angular(f, y, anchors=True)
    assert Angular(pairs="paper")(f, y).item() == pytest.approx(expected, rel=1e-12)
    assert NPair(pairs="paper")(f, y) > NPair()(f, y)
    assert Angular(pairs="paper")(f, y) > Angular()(f, y)


# Contrastive pairs


def test_contrastive_takes_as_many_pairs_as_svmax_says() -> None:
    labels = block_labels(36, 4)
    pairs: Any
    for pairs, count in (("code", 36), ("paper", 72)):
        one, other = Contrastive(pairs=pairs)._pairs(labels)
        same = labels[one] == labels[other]
        assert (int(same.sum()), int((~same).sum())) == (count, count)
        met = torch.cat([one, other]).bincount(minlength=144)
        assert met.tolist() == [1 if pairs == "code" else 2] * 144
    one, other = Contrastive()._pairs(block_labels(2, 4))  # the seats of the code
    assert set(zip(one.tolist(), other.tolist(), strict=True)) == {(0, 1), (4, 3), (2, 5), (6, 7)}
    # Eight consecutive images may be of one class: their pairs alone would pull everything to a point.
    labels = block_labels(4, 8)
    one, other = Contrastive()._pairs(labels)
    assert int((labels[one] != labels[other]).sum()) == len(one) / 2


def test_contrastive_takes_classes_four_by_four() -> None:
    for classes, per_class in ((4, 8), (2, 4), (4, 3), (6, 5)):
        f, y = random_batch(classes=classes, per_class=per_class)
        for squared in (True, False):
            expected = naive_pairs.contrastive(f, y, squared)
            assert Contrastive(squared=squared)(f, y).item() == pytest.approx(expected, rel=1e-12)


# Softmax over negatives


def test_over_negatives_keeps_what_float32_can_hold() -> None:
    # A hard pair with scale 64: e^-128 is 0 in float32, where the library's NT-Xent stops at 87.
    f = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    logits = 64 * f @ f.T
    value = over_negatives(logits, logits, labels)
    assert value.item() == pytest.approx((128 + math.log(2)) / 2, rel=1e-6)


def test_lifted_structure_takes_raw_embeddings_too() -> None:
    f, y = random_batch()
    raw = LiftedStructure(unit=False)
    theirs = LiftedStructureLoss(neg_margin=1, pos_margin=0, distance=LpDistance(normalize_embeddings=False))
    torch.testing.assert_close(raw(f, y), theirs(f, y))
    assert raw(f, y) != LiftedStructure()(f, y)


# Margin


def test_margin_over_all_triplets() -> None:
    f, y = random_batch()
    labels = y.tolist()
    triplets = [(a, p, n) for a, p in naive_pairs.ordered_pairs(labels) for n in naive_pairs.others(labels, a)]
    expected = naive_pairs.margin_over(naive_pairs.directions(f), triplets)
    assert part("loss", "margin", mining="all")(f, y).item() == pytest.approx(expected, rel=1e-9)


def test_margin_learns_one_boundary_or_one_of_each_class() -> None:
    assert [parameter.shape for parameter in Margin(5).parameters()] == [(1,)]
    assert [parameter.shape for parameter in Margin(5, per_class=True).parameters()] == [(5,)]
    assert not list(Margin(5, learned=False).parameters())
    f, y = random_batch()
    loss = Margin(5, per_class=True, nu=0.1)
    loss(f, y).backward()
    (beta,) = loss.parameters()
    assert beta.grad is not None
    assert (beta.grad != 0).tolist() == [True, True, True, True, False]  # the fifth class has no image here


def test_margin_draws_the_same_from_the_same_seed_and_leaves_the_trainers_numbers_alone() -> None:
    f, y = random_batch()
    values = []
    for _ in range(2):
        torch.manual_seed(3)
        loss = Margin(4)
        before = torch.get_rng_state()
        values.append([loss(f, y).item() for _ in range(3)])
        assert torch.equal(before, torch.get_rng_state())
    assert values[0] == values[1]
    assert len(set(values[0])) > 1
    torch.manual_seed(5)
    second = Margin(4)
    second.load_state_dict(loss.state_dict())
    assert [loss(f, y).item() for _ in range(3)] == [second(f, y).item() for _ in range(3)], "a checkpoint goes on"


CLASSES, DIM, BATCH, IMAGES = 4, 6, 12, 30  # 2 batches an epoch, the last 6 images dropped
ALPHA, DELTA, K, LAM, V, H, TAU = 32.0, 0.1, 0.9, 0.1, 12, 0.9, 1.5
OPTIONS: dict[str, Any] = {"v": V, "h": H, "memory": 20}


class _Machine:
    """domain.md 1.2 word by word, over lists."""

    def __init__(self, memory: int, positive: str = "sigma", negative: str = "inverse") -> None:
        self.capacity, self.positive, self.negative = memory, positive, negative
        self.batches = 0
        self.n = [0] * CLASSES
        self.learned = [1.0] * CLASSES
        self.memory: list[tuple[list[float], int]] = []
        self.filtered = self.informative = 0

    def effective(self, c: int) -> float:
        beta = (V - 1) / V
        return (1 - beta ** self.n[c]) / (1 - beta)

    def penalty(self, c: int) -> float:
        effective = self.effective(c)
        nu = 1 / (1 + math.log(1 + effective))
        sigma = 1 + (1 + math.exp(-TAU)) * (nu - 1) / (1 + math.exp(V - effective - TAU))
        return {"sigma": sigma, "nu": nu, "inverse": 1 / max(1.0, effective), "none": 1.0}[self.positive]

    def outlier(self, c: int) -> float:
        nu = 1 / (1 + math.log(1 + self.effective(c)))
        return self.learned[c] - ((1 + K * (1 - self.learned[c])) * nu + LAM)

    def omega(self, s: float, c: int, own: bool) -> float:
        if not own:
            easy = s < self.outlier(c) and self.negative == "inverse"
            return 1 / max(1.0, self.effective(c)) if easy else 1.0
        if not self.filters or self.positive == "none":
            return 1.0
        informative = self.outlier(c) <= s <= self.learned[c]
        self.informative += informative
        return self.penalty(c) + informative

    @property
    def filters(self) -> bool:
        return self.batches // 2 >= 3

    def loss(self, s: list[list[float]], y: list[int]) -> float:
        pulled, pulled_weight, pushed, pushed_weight = 0.0, 0.0, 0.0, 0.0
        for c in range(CLASSES):
            near = [(row[c], self.omega(row[c], c, True)) for row, of in zip(s, y, strict=True) if of == c]
            far = [(row[c], self.omega(row[c], c, False)) for row, of in zip(s, y, strict=True) if of != c]
            if near:
                pulled += math.log(1 + sum(math.exp(w * ALPHA * (DELTA - x)) for x, w in near))
                pulled_weight += mean([w for _, w in near])
            if far:
                pushed += math.log(1 + sum(math.exp(w * ALPHA * (DELTA + x)) for x, w in far))
                pushed_weight += mean([w for _, w in far])
        return pulled / pulled_weight + pushed / pushed_weight

    def nca(self, s: list[list[float]], y: list[int], scale: float = 12.0) -> float:
        pulled, pulled_weight, pushed, pushed_weight = 0.0, 0.0, 0.0, 0.0
        for row, of in zip(s, y, strict=True):
            own = self.omega(row[of], of, True)
            far = [(row[c], self.omega(row[c], c, False)) for c in range(CLASSES) if c != of]
            pulled, pulled_weight = pulled - scale * own * row[of], pulled_weight + own
            pushed += math.log(sum(math.exp(scale * w * x) for x, w in far))
            pushed_weight += mean([w for _, w in far])
        return pulled / pulled_weight + pushed / pushed_weight

    def advance(self, f: list[list[float]], s: list[list[float]], y: list[int], proxies: list[list[float]]) -> None:
        clean = [not self.filters or row[of] >= self.outlier(of) for row, of in zip(s, y, strict=True)]
        self.filtered += clean.count(False)
        if self.batches // 2 >= 2:
            self.memory += [(x, of) for x, of, kept in zip(f, y, clean, strict=True) if kept]
            self.memory = self.memory[-self.capacity :]
        for of, kept in zip(y, clean, strict=True):
            self.n[of] += kept
        if self.batches // 2 >= 2:
            for c in set(y):
                if found := [dot(x, proxies[c]) for x, of in self.memory if of == c]:
                    self.learned[c] = H * mean(found)
        self.batches += 1


def _isa(**options: Any) -> ProxyISA:
    torch.manual_seed(0)
    return ProxyISA(DIM, CLASSES, IMAGES, **(OPTIONS | options)).double()


def _batch(step: int) -> tuple[Tensor, Tensor]:
    """A batch of classes with outliers and of uneven numbers; now and then a class is absent."""
    generator = torch.Generator().manual_seed(step)
    labels = torch.randint(CLASSES if step % 3 else CLASSES - 1, (BATCH,), generator=generator)
    means = torch.randn(CLASSES, DIM, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    return means[labels] + torch.randn(BATCH, DIM, generator=generator, dtype=torch.float64), labels


def _descend(loss: ProxyISA, step: int) -> Tensor:
    value: Tensor = loss(*_batch(step))
    (slope,) = torch.autograd.grad(value, loss.proxies)
    loss.proxies.data -= 0.5 * slope
    return value


@pytest.mark.parametrize(
    ("positive", "negative", "base", "memory"),
    [
        ("sigma", "inverse", "proxy_anchor", 20),
        ("sigma", "inverse", "proxy_nca", 7),
        ("inverse", "inverse", "proxy_anchor", 1000),
        ("nu", "none", "proxy_anchor", 7),
    ],
)
def test_goes_through_the_states_of_a_naive_machine(positive: str, negative: str, base: str, memory: int) -> None:
    loss = _isa(positive_penalty=positive, negative_penalty=negative, base=base, memory=memory)
    machine = _Machine(memory, positive, negative)
    for step in range(14):
        embeddings, labels = _batch(step)
        proxies, y = loss.proxies.tolist(), labels.tolist()
        similarities = cosines(embeddings, proxies)
        expected = (machine.loss if base == "proxy_anchor" else machine.nca)(similarities, y)
        machine.advance(directions(embeddings), similarities, y, directions(proxies))
        assert _descend(loss, step).item() == pytest.approx(expected, rel=1e-9)
        assert loss.clean.tolist() == machine.n
        assert loss.learned.tolist() == pytest.approx(machine.learned, rel=1e-9)
    assert machine.filtered > 0
    assert machine.informative > 0
    assert min(machine.learned) < 1


def test_without_penalties_it_is_proxy_anchor() -> None:
    loss = _isa(positive_penalty="none", negative_penalty="none")
    anchor = part("loss", "proxy_anchor", classes=CLASSES, dim=DIM)
    for step in range(12):
        anchor.loss.proxies.data = loss.proxies.data.clone()
        torch.testing.assert_close(_descend(loss, step), anchor(*_batch(step)))


def test_a_checkpoint_has_every_state() -> None:
    stop = 9
    whole = _isa()
    expected = [_descend(whole, step).item() for step in range(12)]
    first = _isa()
    for step in range(stop):
        _descend(first, step)
    second = _isa()
    second.load_state_dict(first.state_dict())
    assert [_descend(second, step).item() for step in range(stop, 12)] == expected[stop:]
    for name, value in whole.state_dict().items():
        assert torch.equal(second.state_dict()[name], value)


def test_stands_still_in_evaluation() -> None:
    loss = _isa()
    for step in range(8):
        _descend(loss, step)
    loss.eval()
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    assert loss(*_batch(0)) == loss(*_batch(0))
    assert all(torch.equal(before[name], value) for name, value in loss.state_dict().items())


def test_memory_and_filter_begin_with_their_epochs() -> None:
    loss = _isa()
    for step in range(7):
        _, omega = _descend(loss, step), loss.weights(*_batch(step))
        own = torch.nn.functional.one_hot(_batch(step)[1], CLASSES).bool()
        assert (int(loss.stored) > 0) == (step >= 4)
        assert bool((omega[own] != 1).any()) == (step >= 5)  # the weights are those of the next batch
    early = _isa(memory_epoch=0, filter_epoch=1)
    _descend(early, 0)
    assert int(early.stored) == BATCH


def test_weights_stay_finite_far_into_a_training() -> None:
    loss = ProxyISA(8, 4, 12, memory=50)
    loss.clean.fill_(10**7)
    for step in range(6):
        embeddings, labels = random_batch(step)
        assert loss(embeddings.float(), labels).isfinite()


def test_the_recall_surrogate_equals_its_naive_loop_where_classes_are_unequal() -> None:
    embeddings, labels = random_batch(per_class=4)
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4])  # with more positives than k, and none
    for query in ("excluded", "included"):
        found = part("loss", "recall_at_k", k=(1, 3), tau1=0.5, tau2=0.1, query=query)(embeddings, labels).item()
        expected = naive_pairs.recall_at_k(embeddings, labels, (1, 3), (0.5, 0.1), query == "included")
        assert found == pytest.approx(expected, rel=1e-12), query


def test_the_recall_surrogate_with_steep_sigmoids_is_recall() -> None:
    """With one positive and small temperatures it counts the queries whose positive is not among the first k."""
    embeddings, labels = random_batch(classes=8, per_class=2)
    for k in (1, 2, 4):
        loss = part("loss", "recall_at_k", k=(k,), tau1=1e-3, tau2=1e-6)
        recall = evaluate(embeddings, labels, [f"recall@{k}"])[f"recall@{k}"]
        # at the cut itself, rank = k, the sigmoid is a half
        at_cut = sum(_rank(embeddings, labels, q) == k for q in range(16)) / 16
        assert 1 - loss(embeddings, labels).item() == pytest.approx(recall - at_cut / 2, abs=1e-6)


def _rank(embeddings: Tensor, labels: Tensor, query: int) -> int:
    f, y = directions(embeddings), labels.tolist()
    (own,) = (p for p in range(len(f)) if p != query and y[p] == y[query])
    return 1 + sum(dot(f[query], f[i]) > dot(f[query], f[own]) for i in range(len(f)) if i not in {query, own})


def test_the_decay_functions_of_proxy_isa_are_those_of_figure_5() -> None:
    """sigma falls from 1 to nu's limit 1 / (1 + log(1 + v)) and never below nu."""
    loss = part("loss", "proxy_isa", v=50)
    found = loss.decay(torch.arange(0, 2000, dtype=torch.float64))
    nu, inverse, sigma = found["nu"], found["inverse"], found["sigma"]
    assert sigma[0].item() == nu[0].item() == inverse[0].item() == 1
    assert (sigma >= nu - 1e-12).all()
    assert (sigma.diff() <= 0).all()
    assert sigma[-1].item() == pytest.approx(1 / (1 + math.log(51)), rel=1e-6)
    n = 7
    effective = 50 * (1 - (1 - 1 / 50) ** n)
    low = 1 / (1 + math.log(1 + effective))
    expected = [effective, 1 / max(1, effective), low]
    expected += [1 + (1 + math.exp(-1.5)) * (low - 1) / (1 + math.exp(50 - effective - 1.5))]
    assert [one[n].item() for one in found.values()] == pytest.approx(expected, rel=1e-12)
