"""Diagnostics equal their definitions, also where an embedding is zero, collapsed or not finite."""

import math

import pytest
import torch

from tests.workers.inputs import degenerate_batches, random_batch
from workers.embeddings.diagnostics import Directions, batch_statistics, direction_variation

BATCHES = degenerate_batches()


def test_statistics_of_a_batch_are_those_of_the_definitions() -> None:
    embeddings, labels = random_batch()
    length, unit = embeddings.norm(dim=1), torch.nn.functional.normalize(embeddings)
    cosines, same = unit @ unit.T, labels[:, None] == labels[None]
    other = ~torch.eye(len(labels), dtype=torch.bool)
    assert batch_statistics(embeddings, labels) == pytest.approx(
        {
            "norm_mean": length.mean().item(),
            "norm_var": length.var(correction=0).item(),
            "s_mu": torch.linalg.svdvals(unit).mean().item(),
            "cos_ap": cosines[same & other].mean().item(),
            "cos_an": cosines[~same].mean().item(),
        }
    )


@pytest.mark.parametrize("name", BATCHES)
def test_statistics_of_a_degenerate_batch_are_numbers_where_they_exist(name: str) -> None:
    embeddings, labels = BATCHES[name]
    found = batch_statistics(embeddings.requires_grad_(), labels)
    assert all(math.isfinite(found[key]) for key in ("norm_mean", "norm_var", "s_mu"))
    assert math.isnan(found["cos_an"]) == (labels.unique().numel() == 1)


def test_statistics_of_what_is_not_finite_are_nan() -> None:
    embeddings, labels = random_batch()
    embeddings[0, 0] = math.inf
    assert all(math.isnan(value) for value in batch_statistics(embeddings, labels).values())


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.7, math.pi / 2, 3.0, math.pi])
def test_directions_vary_by_the_angle_they_turn(angle: float) -> None:
    before = torch.tensor([[2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double()
    turn[0, 1], turn[1, 0] = math.sin(angle), -math.sin(angle)
    turn[0, 0] = turn[1, 1] = math.cos(angle)
    found = direction_variation(before, 3 * before @ turn)
    assert found.angle.tolist() == pytest.approx([angle] * 2, rel=1e-7, abs=1e-15)
    assert found.one_minus_cos.tolist() == pytest.approx([1 - math.cos(angle)] * 2, abs=1e-12)


def test_the_summary_is_of_all_images() -> None:
    (before, _), (after, _) = random_batch(0), random_batch(1)
    cosine = torch.nn.functional.cosine_similarity(before, after)
    assert direction_variation(before, after).summary() == pytest.approx(
        {
            "direction_variation_angle_mean": cosine.acos().mean().item(),
            "direction_variation_angle_var": cosine.acos().var(correction=0).item(),
            "direction_variation_one_minus_cos_mean": (1 - cosine).mean().item(),
            "direction_variation_one_minus_cos_var": cosine.var(correction=0).item(),
        }
    )


def test_directions_of_other_images_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        direction_variation(torch.ones(3, 2), torch.ones(4, 2))


def test_directions_are_compared_with_the_last_look_also_after_a_checkpoint() -> None:
    rows = [random_batch(seed)[0] for seed in range(3)]
    directions = Directions()
    assert directions.look(rows[0]) is None
    first = directions.look(rows[1])
    assert first is not None
    torch.testing.assert_close(first.angle, direction_variation(rows[0], rows[1]).angle)
    resumed = Directions()
    resumed.load_state_dict(directions.state_dict())
    second, again = directions.look(rows[2]), resumed.look(rows[2])
    assert second is not None
    assert again is not None
    assert torch.equal(second.angle, again.angle)
