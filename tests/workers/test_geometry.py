"""Norms, directions, distances and singular values, at their edges."""

import math

import pytest
import torch

from tests.workers.inputs import random_batch
from workers.embeddings import geometry


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_floats_are_raised_to_float32(dtype: torch.dtype) -> None:
    f = torch.full((3, 64), 200.0, dtype=dtype)  # the sum of squares is beyond float16
    assert geometry.norms(f).tolist() == [1600.0] * 3
    assert geometry.unit(f).dtype == torch.float32
    assert geometry.singular_values(f).dtype == torch.float32


def test_float64_stays() -> None:
    assert geometry.unit(random_batch()[0]).dtype == torch.float64


def test_unit_rows_have_norm_1() -> None:
    torch.testing.assert_close(geometry.unit(random_batch()[0]).norm(dim=1), torch.ones(12).double())


def test_a_zero_row_stays_zero_without_a_gradient() -> None:
    f = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    directions = geometry.unit(f)
    assert directions.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    (gradient,) = torch.autograd.grad(directions.square().sum() + directions.sum() + geometry.norms(f).sum(), f)
    assert gradient.isfinite().all()
    assert gradient[1].tolist() == [0.0, 0.0]


def test_squared_distances_equal_a_double_loop() -> None:
    f = random_batch()[0]
    expected = torch.tensor([[(a - b).square().sum().item() for b in f] for a in f], dtype=torch.float64)
    torch.testing.assert_close(geometry.squared_distances(f), expected, rtol=1e-9, atol=1e-12)
    assert geometry.squared_distances(f.float()).min() >= 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_singular_values_of_what_is_not_finite_are_nan(bad: float) -> None:
    f = torch.ones(5, 3, requires_grad=True) * torch.tensor([1.0, bad, 1.0])
    values = geometry.singular_values(f)
    assert values.shape == (3,)
    assert values.isnan().all()
    assert values.requires_grad


@pytest.mark.parametrize(
    ("rows", "columns", "lower", "upper"),
    [
        (144, 128, 0.09375, 1.06066),
        (512, 512, 0.0442, 1.0),
        (5924, 128, 0.6013, 6.803),
        (72, 128, 0.1179, 1.0),
        (256, 512, 0.0625, 1.0),
    ],
)
def test_bounds_are_those_of_the_paper(rows: int, columns: int, lower: float, upper: float) -> None:
    assert geometry.singular_bounds(rows, columns) == (pytest.approx(lower, abs=5e-5), pytest.approx(upper, abs=5e-4))


@pytest.mark.parametrize(("rows", "columns"), [(12, 4), (4, 4), (4, 12)])
def test_bounds_hold_and_are_reached(rows: int, columns: int) -> None:
    lower, upper = geometry.singular_bounds(rows, columns)
    collapsed = geometry.unit(torch.ones(rows, columns).double())
    spread = torch.eye(columns).double().repeat(3, 1)[:rows]
    assert geometry.mean_singular_value(collapsed).item() == pytest.approx(lower)
    assert geometry.mean_singular_value(spread).item() == pytest.approx(upper)
    some = geometry.unit(random_batch(classes=rows, per_class=1, width=columns)[0])
    assert lower < geometry.mean_singular_value(some).item() < upper
