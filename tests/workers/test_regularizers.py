"""Every regularizer that exists conforms; each is zero, or least, where its paper says so."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.workers import naive_pairs
from tests.workers.inputs import (
    WIDTH,
    block_labels,
    degenerate_batches,
    part,
    part_names,
    random_batch,
    value_and_gradient,
)
from tests.workers.recipes import DIGITS, begun, recipe, retrieval
from workers import catalog, geometry
from workers.geometry import masks
from workers.regularizers.sec import Sec
from workers.regularizers.sec_ema import SecEma
from workers.regularizers.spread_out import SpreadOut
from workers.regularizers.svmax import SVMax
from workers.training.loop import ProgressLog, iteration

REGULARIZERS = part_names("regularizer")
WEIGHTED = [name for name in REGULARIZERS if name != "none"]


def _lengths(embeddings: Tensor) -> list[float]:
    return [math.sqrt(sum(x * x for x in row)) for row in embeddings.tolist()]


def _naive_sec(embeddings: Tensor) -> float:
    lengths = _lengths(embeddings)
    mean = sum(lengths) / len(lengths)
    return sum((length - mean) ** 2 for length in lengths) / len(lengths)


def _s_mu(embeddings: Tensor) -> float:
    """From the eigenvalues of the Gram matrix: another way than the code's."""
    gram = embeddings @ embeddings.T if len(embeddings) < embeddings.shape[1] else embeddings.T @ embeddings
    return sum(math.sqrt(max(0.0, value)) for value in torch.linalg.eigvalsh(gram).tolist()) / len(gram)


def _naive_svmax(embeddings: Tensor) -> float:
    b, d = embeddings.shape
    m = min(b, d)
    lower, upper = math.sqrt(b) / m, math.sqrt(m) * math.sqrt(b) / m
    f = torch.tensor([[x / math.hypot(*row) for x in row] for row in embeddings.tolist()], dtype=torch.float64)
    return math.exp((upper - _s_mu(f)) / (upper - lower))


NAIVE: dict[str, Callable[[Tensor], float]] = {
    "none": lambda _: 0.0,
    "l2": lambda embeddings: sum(length**2 for length in _lengths(embeddings)) / len(embeddings),
    "sec": _naive_sec,
    "sec_ema": _naive_sec,  # on its first batch
    "svmax": _naive_svmax,
    "svmax_unbounded": lambda embeddings: -_s_mu(embeddings),
    **naive_pairs.REGULARIZERS,
}


def test_every_regularizer_equals_its_naive_loop() -> None:
    assert set(REGULARIZERS) <= set(NAIVE), "write these regularizers as naive loops and add them to NAIVE"
    for name in REGULARIZERS:
        for rows in (12, 8, 5):
            embeddings = random_batch()[0][:rows]
            expected = pytest.approx(NAIVE[name](embeddings), rel=1e-9)
            assert part("regularizer", name)(embeddings).item() == expected, (name, rows)


@pytest.mark.parametrize("name", WEIGHTED)
def test_every_regularizer_conforms(name: str) -> None:
    regularizer, (embeddings, _) = part("regularizer", name), random_batch()
    assert isinstance(regularizer, torch.nn.Module)
    assert regularizer.label
    assert (regularizer.eta, part("regularizer", name, eta=0.25).eta) == (1.0, 0.25)
    expected, slope = value_and_gradient(regularizer, embeddings)
    assert expected.shape == ()
    along = (slope * embeddings).sum(dim=1).abs().max()
    assert along > 1e-3 if getattr(regularizer, "norms", False) else name != "svmax" or along < 1e-9
    for dtype, tolerance in {torch.float32: 1e-5, torch.bfloat16: 0.05, torch.float16: 0.01}.items():
        value, gradient = value_and_gradient(part("regularizer", name).float(), embeddings.to(dtype))
        assert value.dtype == torch.float32
        assert gradient.isfinite().all()
        assert value.item() == pytest.approx(expected.item(), rel=tolerance)
        if dtype == torch.float32:
            torch.testing.assert_close(gradient.double(), slope, rtol=1e-3, atol=1e-5)
    still = part("regularizer", name).eval()
    assert torch.autograd.gradcheck(still, random_batch()[0].requires_grad_(), fast_mode=True)
    for case, (rows, _) in degenerate_batches().items():
        value, gradient = value_and_gradient(part("regularizer", name).float(), rows)
        assert value.isfinite(), case
        assert gradient.isfinite().all(), case
    for bad in (math.nan, math.inf):
        embeddings[2, 3] = bad
        assert not part("regularizer", name)(embeddings).isfinite()


def test_sec_ema_follows_a_loop_over_batches() -> None:
    regularizer, mu = SecEma(rho=0.1), math.nan
    for step in range(6):
        f = (1 + step) * random_batch(step)[0]
        lengths = _lengths(f)
        mean = sum(lengths) / len(lengths)
        mu = mean if step == 0 else 0.9 * mu + 0.1 * mean
        expected = sum((length - mu) ** 2 for length in lengths) / len(lengths)
        assert regularizer(f).item() == pytest.approx(expected, rel=1e-5)
        assert regularizer.mu.item() == pytest.approx(mu, rel=1e-6)


def test_sec_ema_holds_mu_constant_in_the_gradient() -> None:
    regularizer, f = SecEma(rho=0.5).double(), random_batch(1)[0]
    regularizer(random_batch(0)[0] * 3)
    _, gradient = value_and_gradient(regularizer, f)
    lengths = f.norm(dim=1, keepdim=True)
    torch.testing.assert_close(gradient, 2 / len(f) * (lengths - regularizer.mu) * f / lengths)


def test_sec_ema_does_not_move_mu_in_evaluation() -> None:
    regularizer = SecEma(rho=0.5)
    regularizer(random_batch(0)[0])
    before = regularizer.mu.clone()
    regularizer.eval()(random_batch(1)[0] * 9)
    assert regularizer.mu == before


def test_unbounded_svmax_takes_unit_rows_on_request() -> None:
    rows = 12
    embeddings = random_batch()[0][:rows] * torch.arange(1, rows + 1)[:, None]
    directions = torch.nn.functional.normalize(embeddings)
    assert part("regularizer", "svmax_unbounded", unit=True)(embeddings).item() == pytest.approx(-_s_mu(directions))
    assert part("regularizer", "svmax_unbounded")(embeddings).item() == pytest.approx(-_s_mu(embeddings))


@pytest.mark.parametrize("rows", [WIDTH // 2, WIDTH, 3 * WIDTH])
def test_svmax_lies_between_1_and_e(rows: int) -> None:
    regularizer = SVMax()
    spread = torch.eye(WIDTH, dtype=torch.float64).repeat(max(1, rows // WIDTH), 1)[:rows]
    assert regularizer(spread).item() == pytest.approx(1)
    assert regularizer(torch.ones(rows, WIDTH).double()).item() == pytest.approx(math.e)
    assert 1 < regularizer(random_batch(classes=rows, per_class=1)[0]).item() < math.e


def test_spread_out_pairs_only_images_of_two_classes() -> None:
    # Each class on an axis of its own: pairs of two classes have an inner product of 0, of one class of 1.
    embeddings, labels = torch.eye(4).repeat_interleave(3, dim=0), block_labels()
    for pairs in ("random", "negatives"):
        regularizer = SpreadOut(pairs=pairs, beta=0.0)  # type: ignore[arg-type]
        assert [regularizer(embeddings, labels).item() for _ in range(20)] == [0.0] * 20


def test_spread_out_of_one_class_is_nothing() -> None:
    f, _ = random_batch()
    for pairs in ("random", "negatives"):
        value = part("regularizer", "spread_out", pairs=pairs)(f.requires_grad_(), torch.zeros(len(f)).long())
        (gradient,) = torch.autograd.grad(value, f)
        assert value == 0
        assert gradient.isfinite().all()


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


def test_the_plan_refuses_a_number_with_another_source() -> None:
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


def test_the_norm_of_all_features_is_measured_again_as_they_move(tmp_path: Path) -> None:
    what = recipe(regularizer={"name": "sec_fixed", "source": "training_set", "every": 2}, iterations=5)
    session = begun(what, tmp_path)
    task, journal = retrieval(session), ProgressLog(5, 5, {}, lambda _: None)
    regularizer: Any = task.regularizer
    known = math.nan
    for step in range(1, 6):
        iteration(session, journal)
        now = float(geometry.norms(task.look()).double().mean())
        known = known if step % 2 else now
        if step > 1:
            assert regularizer.measured.item() == pytest.approx(known, rel=1e-6), step
        assert now != pytest.approx(known, rel=1e-6) or step % 2 == 0, "the norms move"
