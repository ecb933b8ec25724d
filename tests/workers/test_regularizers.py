"""Every regularizer that exists conforms; each is zero, or least, where its paper says so."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.workers import naive_pairs
from tests.workers.inputs import WIDTH, degenerate_batches, part, part_names, random_batch
from workers.regularizers.none import NoRegularizer
from workers.regularizers.sec import Sec
from workers.regularizers.sec_ema import SecEma
from workers.regularizers.svmax import SVMax

REGULARIZERS = part_names("regularizer")
WEIGHTED = [name for name in REGULARIZERS if name != "none"]
DEGENERATE = degenerate_batches()


def _lengths(embeddings: Tensor) -> list[float]:
    return [math.sqrt(sum(x * x for x in row)) for row in embeddings.tolist()]


def _naive_l2(embeddings: Tensor) -> float:
    return sum(length**2 for length in _lengths(embeddings)) / len(embeddings)


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
    "l2": _naive_l2,
    "sec": _naive_sec,
    "sec_ema": _naive_sec,  # on its first batch
    "svmax": _naive_svmax,
    "svmax_unbounded": lambda embeddings: -_s_mu(embeddings),
    **naive_pairs.REGULARIZERS,
}


def _value_and_gradient(regularizer: Any, embeddings: Tensor) -> tuple[Tensor, Tensor]:
    embeddings = embeddings.clone().requires_grad_()
    value = regularizer(embeddings)
    (gradient,) = torch.autograd.grad(value, embeddings)
    return value.detach(), gradient


@pytest.mark.parametrize("name", REGULARIZERS)
def test_states_its_facts(name: str) -> None:
    regularizer = part("regularizer", name)
    assert isinstance(regularizer, torch.nn.Module)
    assert regularizer.label
    assert regularizer.version >= 1
    if name != "none":
        assert regularizer.eta == 1.0
        assert part("regularizer", name, eta=0.25).eta == 0.25


@pytest.mark.parametrize("name", WEIGHTED)
def test_knows_whether_it_acts_on_norms(name: str) -> None:
    regularizer, (embeddings, _) = part("regularizer", name), random_batch()
    _, gradient = _value_and_gradient(regularizer, embeddings)
    along = (gradient * embeddings).sum(dim=1).abs().max()
    if getattr(regularizer, "norms", False):
        assert along > 1e-3
    elif name == "svmax":
        assert along < 1e-9  # it knows directions only


@pytest.mark.parametrize("rows", [12, 8, 5])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_equals_the_naive_loop(name: str, rows: int) -> None:
    assert name in NAIVE, f"write the regularizer {name!r} as a naive loop and add it to NAIVE"
    embeddings = random_batch()[0][:rows]
    assert part("regularizer", name)(embeddings).item() == pytest.approx(NAIVE[name](embeddings), rel=1e-9)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_is_invariant_to_the_order_of_rows(name: str) -> None:
    embeddings, _ = random_batch()
    if getattr(part("regularizer", name), "random", False):
        pytest.skip("what it draws for a row depends on where the row stands")
    order = torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(1))
    expected = part("regularizer", name)(embeddings)
    torch.testing.assert_close(part("regularizer", name)(embeddings[order]), expected)


@pytest.mark.parametrize("name", WEIGHTED)
def test_has_the_gradient_of_finite_differences(name: str) -> None:
    regularizer = part("regularizer", name).eval()
    assert torch.autograd.gradcheck(regularizer, random_batch()[0].requires_grad_())


@pytest.mark.parametrize("name", WEIGHTED)
def test_is_a_scalar_with_a_gradient_in_every_float(name: str) -> None:
    embeddings, _ = random_batch()
    expected, slope = _value_and_gradient(part("regularizer", name), embeddings)
    assert expected.shape == ()
    for dtype, tolerance in {torch.float32: 1e-5, torch.bfloat16: 0.05, torch.float16: 0.01}.items():
        value, gradient = _value_and_gradient(part("regularizer", name).float(), embeddings.to(dtype))
        assert value.dtype == torch.float32
        assert gradient.isfinite().all()
        assert value.item() == pytest.approx(expected.item(), rel=tolerance)
    _, gradient = _value_and_gradient(part("regularizer", name).float(), embeddings.float())
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("name", WEIGHTED)
def test_is_finite_on_degenerate_batches(name: str, case: str) -> None:
    value, gradient = _value_and_gradient(part("regularizer", name).float(), DEGENERATE[case][0])
    assert value.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_is_not_finite_where_an_embedding_is_not(name: str, bad: float) -> None:
    embeddings, _ = random_batch()
    embeddings[2, 3] = bad
    assert not part("regularizer", name)(embeddings).isfinite()


def test_none_is_zero_and_has_no_weight() -> None:
    assert NoRegularizer()(random_batch()[0]) == 0
    assert not hasattr(NoRegularizer(), "eta")


def test_l2_is_zero_at_zero() -> None:
    assert part("regularizer", "l2")(torch.zeros(6, 4)) == 0


@pytest.mark.parametrize("name", ["sec", "sec_ema"])
def test_sec_is_zero_where_norms_are_equal(name: str) -> None:
    f = random_batch()[0]
    value, gradient = _value_and_gradient(part("regularizer", name), 8.7 * f / f.norm(dim=1, keepdim=True))
    assert value < 1e-25
    assert gradient.abs().max() < 1e-12


def test_sec_has_the_gradient_of_the_paper() -> None:
    f = random_batch()[0]
    lengths = f.norm(dim=1, keepdim=True)
    _, gradient = _value_and_gradient(Sec(), f)
    torch.testing.assert_close(gradient, 2 / len(f) * (lengths - lengths.mean()) * f / lengths)  # SEC eq. 18


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
    _, gradient = _value_and_gradient(regularizer, f)
    lengths = f.norm(dim=1, keepdim=True)
    torch.testing.assert_close(gradient, 2 / len(f) * (lengths - regularizer.mu) * f / lengths)


def test_sec_ema_with_rho_1_is_sec() -> None:
    regularizer = SecEma(rho=1.0)
    for seed in range(3):
        f = random_batch(seed)[0]
        value, gradient = _value_and_gradient(regularizer, f)
        expected, slope = _value_and_gradient(Sec(), f)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, slope)


def test_sec_ema_keeps_mu_in_its_checkpoint() -> None:
    first, second = SecEma(rho=0.1), SecEma(rho=0.1)
    first(random_batch(0)[0] * 5)
    second.load_state_dict(first.state_dict())
    f = random_batch(1)[0]
    assert second(f) == first(f)
    assert second.mu == first.mu


def test_sec_ema_does_not_move_mu_in_evaluation() -> None:
    regularizer = SecEma(rho=0.5)
    regularizer(random_batch(0)[0])
    before = regularizer.mu.clone()
    regularizer.eval()(random_batch(1)[0] * 9)
    assert regularizer.mu == before


@pytest.mark.parametrize("rows", [3, 12])
def test_unbounded_svmax_takes_unit_rows_where_it_is_asked_to(rows: int) -> None:
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


def test_svmax_has_no_preference_where_there_is_no_room() -> None:
    for f in (random_batch()[0][:1], random_batch()[0][:, :1]):
        value, gradient = _value_and_gradient(SVMax(), f)
        assert value == 1
        assert gradient.abs().max() == 0
