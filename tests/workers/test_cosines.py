"""The moments of cosines equal those of the pairs themselves."""

import math

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import random_batch
from workers.embeddings.cosines import gram
from workers.evaluation.evaluate import Evaluation, evaluate

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
@pytest.mark.parametrize("width", [2, 5, 40])
@pytest.mark.parametrize("with_gallery", [False, True])
def test_moments_are_those_of_the_pairs(width: int, with_gallery: bool) -> None:
    embeddings, labels = random_batch(0, classes=4, per_class=9, width=width)
    other, classes = random_batch(1, classes=5, per_class=7, width=width)
    gallery = (other, 1 + classes) if with_gallery else None
    found = evaluate(embeddings, 3 + labels if not with_gallery else labels, NAMES, gallery=gallery)
    assert found == pytest.approx(_pairs(embeddings, labels, gallery), abs=1e-12)


def test_pairs_are_counted_both_ways_round() -> None:
    cosines = Evaluation(*random_batch(classes=4, per_class=3)).cosines
    assert (cosines.positive.pairs, cosines.negative.pairs) == (4 * 3 * 2, 12 * 9)


def test_without_a_pair_there_is_no_moment() -> None:
    embeddings, labels = random_batch(classes=6, per_class=1)
    found = evaluate(embeddings, labels, NAMES)
    assert [math.isnan(found[name]) for name in NAMES] == [True, True, False, False]
    found = evaluate(embeddings, torch.zeros_like(labels), NAMES)
    assert [math.isnan(found[name]) for name in NAMES] == [False, False, True, True]


def test_a_collapsed_split_has_cosines_of_one() -> None:
    found = evaluate(torch.full((30, 7), 0.3), torch.arange(30) % 3, NAMES)
    assert found == pytest.approx({"cos_ap": 1, "cos_ap@std": 0, "cos_an": 1, "cos_an@std": 0}, abs=1e-3)


def test_a_gram_matrix_is_summed_in_double() -> None:
    rows = torch.randn(50_000, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(gram(rows), rows.double().T @ rows.double(), rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize("name", ["cos_ap", "cos_an"])
def test_other_statistics_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}|median"):
        evaluate(*random_batch(), [f"{name}@median"])
