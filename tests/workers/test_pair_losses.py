"""What the losses over pairs do beyond the conformance tests: their other forms, their pairing and their draws."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss

from tests.workers import naive_pairs
from tests.workers.inputs import block_labels, degenerate_batches, part, random_batch
from workers.geometry import over_negatives
from workers.losses.angular import Angular
from workers.losses.contrastive import Contrastive
from workers.losses.lifted_structure import LiftedStructure
from workers.losses.margin import Margin
from workers.losses.npair import NPair

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
]
"""The forms that are not a loss's default."""


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_every_form_conforms(name: str, options: dict[str, Any]) -> None:
    """It has the gradient of finite differences, and is finite on degenerate batches."""
    embeddings, labels = random_batch(per_class=4, classes=4)
    loss = part("loss", name, **options).eval()
    assert torch.autograd.gradcheck(lambda f: loss(f, labels), embeddings.requires_grad_(), fast_mode=True)
    for case, (rows, classes) in degenerate_batches().items():
        if case != "large":
            value = part("loss", name, **options).float()(rows.requires_grad_(), classes)
            value.backward()
            assert value.shape == (), case
            assert value.isfinite(), case
            assert rows.grad is not None
            assert rows.grad.isfinite().all(), case


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
