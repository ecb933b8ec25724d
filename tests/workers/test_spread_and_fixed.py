"""The regularizers spread_out and sec_fixed, and svmax on raw embeddings, beyond the conformance tests."""

import math

import pytest
import torch

from tests.workers import naive_pairs
from tests.workers.inputs import block_labels, part, random_batch
from tests.workers.recipes import DIGITS
from workers import catalog
from workers.embeddings import geometry
from workers.embeddings.pairs import masks
from workers.regularizers.sec import Sec
from workers.regularizers.sec_fixed import SecFixed
from workers.regularizers.spread_out import SpreadOut
from workers.regularizers.svmax import SVMax


def test_spread_out_pairs_only_images_of_two_classes() -> None:
    # Each class on an axis of its own: pairs of two classes have an inner product of 0, of one class of 1.
    embeddings, labels = torch.eye(4).repeat_interleave(3, dim=0), block_labels()
    for pairs in ("random", "negatives"):
        regularizer = SpreadOut(pairs=pairs, beta=0.0)  # type: ignore[arg-type]
        assert [regularizer(embeddings, labels).item() for _ in range(20)] == [0.0] * 20


def test_spread_out_takes_the_nearest_negatives() -> None:
    f, y = random_batch()
    rows, labels = naive_pairs.directions(f), y.tolist()
    nearest = [max(naive_pairs.dot(rows[a], rows[n]) for n in naive_pairs.others(labels, a)) for a in range(len(rows))]
    expected = naive_pairs.mean(nearest) ** 2
    expected += max(0.0, naive_pairs.mean([s * s for s in nearest]) - 1 / len(rows[0]))
    assert part("regularizer", "spread_out", pairs="negatives")(f, y).item() == pytest.approx(expected, rel=1e-12)


def test_spread_out_draws_every_negative_alike() -> None:
    regularizer, labels = SpreadOut(), torch.tensor([0, 0, 1, 1, 2])
    met = torch.zeros(5, 5)
    for _ in range(2000):
        met[torch.arange(5), regularizer.partners(torch.eye(5), masks(labels).negative)] += 1
    assert (met[labels[:, None] == labels[None, :]] == 0).all()
    assert met[0, 2:].tolist() == pytest.approx([2000 / 3] * 3, rel=0.1)


def test_spread_out_is_almost_nothing_on_random_directions() -> None:
    f = torch.randn(4000, 128, generator=torch.Generator().manual_seed(0))
    assert 0 <= SpreadOut()(f, torch.arange(4000) % 100).item() < 1e-3


def test_spread_out_of_one_class_is_nothing() -> None:
    f, _ = random_batch()
    for pairs in ("random", "negatives"):
        value = part("regularizer", "spread_out", pairs=pairs)(f.requires_grad_(), torch.zeros(len(f)).long())
        value.backward()
        assert value == 0


def test_spread_out_multiplies_raw_embeddings_on_demand() -> None:
    f, y = random_batch()
    raw = part("regularizer", "spread_out", unit=False, pairs="negatives", beta=0.0)
    once, twice = raw(f, y), raw(2 * f, y)
    assert twice.item() == pytest.approx(16 * once.item())  # M1^2 and M2 both grow by the fourth power


def test_spread_out_goes_on_drawing_where_its_checkpoint_was_taken() -> None:
    f, y = random_batch()
    first = SpreadOut()
    first(f, y)
    torch.manual_seed(9)
    second = SpreadOut()
    second.load_state_dict(first.state_dict())
    values = [first(f, y).item() for _ in range(3)]
    assert values == [second(f, y).item() for _ in range(3)]
    assert len(set(values)) == 3
    assert len({first.eval()(f, y).item() for _ in range(3)}) == 1


def test_sec_fixed_refuses_a_norm_of_two_sources() -> None:
    with pytest.raises(ValueError, match="sec_fixed: mu is only for"):
        SecFixed(mu=2.0, source="training_set")


def test_sec_fixed_is_zero_at_its_norm() -> None:
    f, _ = random_batch()
    assert part("regularizer", "sec_fixed")(8.7 * geometry.unit(f)) < 1e-25
    assert part("regularizer", "sec_fixed", mu=2.0)(2 * geometry.unit(f)) < 1e-25


def test_sec_fixed_measures_the_training_set_once() -> None:
    f, _ = random_batch()
    regularizer = part("regularizer", "sec_fixed", source="training_set")
    assert regularizer(f).isnan()
    regularizer.begin(lambda: 3.0)
    expected = (f.norm(dim=1) - 3).square().mean().item()
    assert regularizer(f).item() == pytest.approx(expected)
    other = part("regularizer", "sec_fixed", source="training_set")
    other.load_state_dict(regularizer.state_dict())
    assert other.eval()(f).item() == pytest.approx(expected)
    part("regularizer", "sec_fixed").begin(lambda: 1 / 0)  # a number needs no look


def test_the_plan_refuses_a_number_beside_another_source() -> None:
    known = catalog.load()
    raw = {**DIGITS, "regularizer": {"name": "sec_fixed", "mu": 5.0, "source": "training_set"}}
    assert [str(problem) for problem in catalog.problems(raw, known)] == [
        "regularizer.mu  is only for `source: constant`, but source is 'training_set'; leave one of them out"
    ]
    for fine in ({"mu": 5.0}, {"source": "training_set"}, {"source": "first_batch", "mu": None}):
        assert catalog.problems({**DIGITS, "regularizer": {"name": "sec_fixed", **fine}}, known) == []


def test_sec_fixed_keeps_the_norm_of_the_first_batch() -> None:
    regularizer = part("regularizer", "sec_fixed", source="first_batch")
    (first, _), (second, _) = random_batch(0), random_batch(1)
    assert regularizer(first).item() == pytest.approx(Sec()(first).item())
    mean = first.norm(dim=1).mean()
    expected = (second.norm(dim=1) * 5 - mean).square().mean()
    assert regularizer(5 * second).item() == pytest.approx(expected.item())
    other = part("regularizer", "sec_fixed", source="first_batch")
    other.load_state_dict(regularizer.state_dict())
    assert other(5 * second).item() == pytest.approx(expected.item())


def test_svmax_takes_raw_embeddings_on_demand() -> None:
    f, _ = random_batch()
    lower, upper = geometry.singular_bounds(*f.shape)
    expected = math.exp((upper - torch.linalg.svdvals(f).mean().item()) / (upper - lower))
    assert SVMax(unit=False)(f).item() == pytest.approx(expected)
    assert SVMax(unit=False)(geometry.unit(f)).item() == pytest.approx(SVMax()(f).item())
