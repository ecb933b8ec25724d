"""Norms, directions, cosines, class vectors and diagnostics of embeddings, at their edges."""

import math

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import degenerate_batches, random_batch
from workers import geometry, registry
from workers.contract import Part
from workers.evaluation.evaluate import evaluate
from workers.geometry import Directions, batch_statistics, direction_variation, unit


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_floats_are_raised_to_float32(dtype: torch.dtype) -> None:
    f = torch.full((3, 64), 200.0, dtype=dtype)  # the sum of squares is beyond float16
    assert geometry.norms(f).tolist() == [1600.0] * 3
    assert geometry.unit(f).dtype == torch.float32
    assert geometry.singular_values(f).dtype == torch.float32


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


NAMES = ["cos_ap", "cos_ap@std", "cos_an", "cos_an@std"]


def _pairs(embeddings: Tensor, labels: Tensor, gallery: tuple[Tensor, Tensor] | None) -> dict[str, float]:
    others, classes = gallery or (embeddings, labels)
    cosines = torch.nn.functional.cosine_similarity(embeddings[:, None], others[None], dim=2)
    same = labels[:, None] == classes[None]
    kept = torch.ones_like(same) if gallery is not None else ~torch.eye(len(labels), dtype=torch.bool)
    positive, negative = cosines[same & kept], cosines[~same & kept]
    return {
        "cos_ap": positive.mean().item(),
        "cos_ap@std": positive.std(correction=0).item(),
        "cos_an": negative.mean().item(),
        "cos_an@std": negative.std(correction=0).item(),
    }


# Wide embeddings are summed pair by pair, narrow ones by their Gram matrices.
@pytest.mark.parametrize(("width", "with_gallery"), [(2, False), (40, False), (2, True), (40, True)])
def test_moments_are_those_of_the_pairs(width: int, with_gallery: bool) -> None:
    embeddings, labels = random_batch(0, classes=4, per_class=9, width=width)
    other, classes = random_batch(1, classes=5, per_class=7, width=width)
    gallery = (other, 1 + classes) if with_gallery else None
    found = evaluate(embeddings, 3 + labels if not with_gallery else labels, NAMES, gallery=gallery)
    assert found == pytest.approx(_pairs(embeddings, labels, gallery), abs=1e-12)


def test_without_a_pair_there_is_no_moment() -> None:
    embeddings, labels = random_batch(classes=6, per_class=1)
    found = evaluate(embeddings, labels, NAMES)
    assert [math.isnan(found[name]) for name in NAMES] == [True, True, False, False]
    found = evaluate(embeddings, torch.zeros_like(labels), NAMES)
    assert [math.isnan(found[name]) for name in NAMES] == [False, False, True, True]
    found = evaluate(torch.full((30, 7), 0.3), torch.arange(30) % 3, NAMES)
    assert found == pytest.approx({"cos_ap": 1, "cos_ap@std": 0, "cos_an": 1, "cos_an@std": 0}, abs=1e-3)


def test_statistics_of_degenerate_batches_are_numbers_where_they_exist() -> None:
    for name, (embeddings, labels) in degenerate_batches().items():
        found = batch_statistics(embeddings.requires_grad_(), labels)
        assert all(math.isfinite(found[key]) for key in ("norm_mean", "norm_var", "s_mu")), name
        assert math.isnan(found["cos_an"]) == (labels.unique().numel() == 1), name
    embeddings, labels = random_batch()
    embeddings[0, 0] = math.inf
    assert all(math.isnan(value) for value in batch_statistics(embeddings, labels).values())


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


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.7, math.pi / 2, 3.0, math.pi])
def test_directions_vary_by_the_angle_they_turn(angle: float) -> None:
    before = torch.tensor([[2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double()
    turn[0, 1], turn[1, 0] = math.sin(angle), -math.sin(angle)
    turn[0, 0] = turn[1, 1] = math.cos(angle)
    found = direction_variation(before, 3 * before @ turn)
    assert found.angle.tolist() == pytest.approx([angle] * 2, rel=1e-7, abs=1e-15)
    assert found.one_minus_cos.tolist() == pytest.approx([1 - math.cos(angle)] * 2, abs=1e-12)


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


CLASSES, DIM = 6, 8
LOSSES = {
    "arcface": 1, "cosface": 1, "normface": 1, "proxy_anchor": 1, "proxy_gml": 12, "proxy_isa": 1, "proxy_nca": 1,
    "soft_triple": 10, "softmax": 1, "sphereface": 1,
}  # fmt: skip
"""Vectors a class."""
RAW = {"softmax"}  # judges by inner products, with a bias


def loss_of(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    offers = {"dim": DIM, "classes": CLASSES, "images": 60, "epoch": 3, "batch": 20}
    made: torch.nn.Module = registry.build("loss", Part(name=name), **offers)
    return made


def test_an_image_at_a_classs_vector_is_of_that_class() -> None:
    labels = torch.arange(CLASSES)
    for name, count in LOSSES.items():
        loss = loss_of(name).eval()
        vectors = loss.class_vectors()
        assert vectors.shape == (CLASSES, count, DIM), name
        rows = unit(vectors.detach()[:, 0]) * (100.0 if name in RAW else 1.0)
        right, wrong = (float(loss(rows, one).detach()) for one in (labels, labels.roll(1)))
        assert right < wrong, name


def test_every_loss_with_a_vector_a_class_shows_them() -> None:
    """A loss of ours that holds as many numbers as classes times dimensions without saying so is missed by figures."""
    from workers.catalog import load

    for entry in load().of("loss"):
        one = loss_of(entry.name)
        holds = any(parameter.numel() % (CLASSES * DIM) == 0 for parameter in one.parameters())
        assert hasattr(one, "class_vectors") is holds is (entry.name in LOSSES), entry.name
