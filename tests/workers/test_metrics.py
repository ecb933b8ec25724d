"""Metrics equal brute force and other implementations; each test query has a score whose mean is the metric."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix
from torch import Tensor

from tests.workers.inputs import random_batch
from tests.workers.recipes import recipe, run
from workers.evaluation.evaluate import Evaluation, evaluate
from workers.evaluation.measures import Measures, QueryScores
from workers.metrics.ami import AdjustedMutualInformation
from workers.metrics.f1 import PairF1
from workers.metrics.nmi import NormalizedMutualInformation

NAMES = ["recall@1", "recall@2", "recall@4", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var", "s_mu"]
EVERY = [*NAMES, "ami", "nmi@geometric", "cos_ap", "cos_ap@std", "cos_an", "cos_an@std"]


def _split(seed: int = 0, separation: float = 0.6) -> tuple[Tensor, Tensor]:
    """Five classes of 3 to 19 images, shuffled, with labels that are not contiguous."""
    embeddings, labels = random_batch(seed, classes=5, per_class=19, separation=separation)
    keep = torch.cat([torch.arange(19 * c, 19 * c + 3 + 4 * c) for c in range(5)])
    order = keep[torch.randperm(len(keep), generator=torch.Generator().manual_seed(seed))]
    return embeddings[order], 10 + 7 * labels[order]


def test_the_query_is_left_out_by_its_index_not_by_its_rank() -> None:
    # Each image has a copy in another class and nothing near in its own.
    rows = torch.eye(4)[[0, 1, 0, 1]] + 0.1 * torch.eye(4)[[2, 2, 2, 2]]
    assert evaluate(rows, torch.tensor([0, 0, 1, 1]), ["recall@1", "recall@3"]) == {"recall@1": 0.0, "recall@3": 1.0}


def test_f1_equals_the_pairs_of_the_peer() -> None:
    evaluation = Evaluation(*_split())
    (_, found_only), (missed, both) = pair_confusion_matrix(evaluation.classes.numpy(), evaluation.clusters.numpy())
    assert PairF1()(evaluation) == pytest.approx(2 * both / (2 * both + found_only + missed))


@pytest.mark.parametrize("average", ["arithmetic", "geometric"])
def test_nmi_equals_its_formula(average: str) -> None:
    evaluation = Evaluation(*_split())
    counts = Counter(zip(evaluation.classes.tolist(), evaluation.clusters.tolist(), strict=True))
    joint = torch.zeros(5, 5, dtype=torch.float64)
    for (row, column), count in counts.items():
        joint[row, column] = count / len(evaluation.labels)
    rows, columns = joint.sum(dim=1), joint.sum(dim=0)
    shared = torch.special.xlogy(joint, joint / (rows[:, None] * columns[None, :]).clamp(min=1e-30)).sum()
    first, second = torch.special.entr(rows).sum(), torch.special.entr(columns).sum()
    mean = (first + second) / 2 if average == "arithmetic" else (first * second).sqrt()
    assert NormalizedMutualInformation(k=average)(evaluation) == pytest.approx((shared / mean).item())


def test_clusters_are_the_same_whatever_the_threads_and_the_random_state() -> None:
    embeddings, labels = random_batch(classes=6, per_class=80, width=32)
    expected = Evaluation(embeddings, labels).clusters
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            torch.manual_seed(threads)
            assert torch.equal(Evaluation(embeddings, labels).clusters, expected)
            assert (embeddings @ embeddings.T).isfinite().all()  # torch's own threads still work
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("classes", "per_class"), [(2, 2), (4, 3), (30, 1), (1, 5)])
def test_small_splits_are_silent(classes: int, per_class: int, capfd: pytest.CaptureFixture[str]) -> None:
    embeddings, labels = random_batch(classes=classes, per_class=per_class)
    evaluate(embeddings, labels, EVERY)
    assert capfd.readouterr() == ("", "")


def test_ami_is_what_nmi_has_beyond_chance() -> None:
    evaluation = Evaluation(*_split())
    classes, clusters = evaluation.classes.numpy(), evaluation.clusters.numpy()
    generator = np.random.default_rng(0)
    chance = float(np.mean([mutual_info_score(classes, generator.permutation(clusters)) for _ in range(600)]))
    entropy = (mutual_info_score(classes, classes) + mutual_info_score(clusters, clusters)) / 2
    expected = (mutual_info_score(classes, clusters) - chance) / (entropy - chance)
    assert AdjustedMutualInformation()(evaluation) == pytest.approx(expected, abs=5e-3)


def test_the_upper_bound_of_s_mu_is_that_of_the_paper() -> None:
    # SVMax figure 15: U of CUB's test split at d = 128.
    assert evaluate(torch.ones(5924, 128), torch.zeros(5924), ["s_mu_upper"])["s_mu_upper"] == pytest.approx(
        6.80, abs=5e-3
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("everywhere", [True, False])
def test_metrics_of_what_is_not_finite_are_nan(bad: float, everywhere: bool) -> None:
    embeddings, labels = _split()
    embeddings[slice(None) if everywhere else 3] = bad
    assert all(math.isnan(value) for value in evaluate(embeddings, labels, EVERY).values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_float_is_evaluated(dtype: torch.dtype) -> None:
    embeddings, labels = _split(separation=3.0)
    expected = evaluate(embeddings, labels, NAMES)
    assert evaluate(embeddings.to(dtype), labels, NAMES) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("embeddings", "labels"),
    [(torch.ones(3), torch.ones(3)), (torch.ones(3, 2), torch.ones(2)), (torch.ones(0, 2), torch.ones(0))],
)
def test_shapes_that_do_not_fit_are_refused(embeddings: Tensor, labels: Tensor) -> None:
    with pytest.raises(ValueError, match="expected embeddings"):
        Evaluation(embeddings, labels)


MEANS = ["recall@1", "recall@2", "recall_sec@1", "map@r", "r_precision"]


def images(count: int = 60, classes: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(1)
    return torch.randn(count, 8, generator=drawn), torch.randint(0, classes, (count,), generator=drawn)


def noted(evaluation: object, names: list[str]) -> tuple[dict[str, float], QueryScores]:
    measures, scores = Measures(names), QueryScores()
    with measures.noting(scores):
        values = measures.of(evaluation, names)
    assert measures.of(evaluation, names) == values  # noting changes no value, and ends
    return values, scores


def test_a_metric_is_the_mean_of_its_queries() -> None:
    embeddings, labels = images()
    labels[3] = 99  # alone in its class: no query
    values, scores = noted(Evaluation(embeddings, labels), [*MEANS, "norm_mean"])
    assert list(scores) == ["query", "class", *MEANS]
    assert 3 not in scores["query"]
    assert torch.equal(scores["class"], labels[scores["query"].long()].int())
    for name in MEANS:
        assert float(scores[name].double().mean()) == pytest.approx(values[name], abs=1e-7)


def test_queries_among_a_gallery_are_those_that_have_one_of_their_class_there() -> None:
    embeddings, labels = images()
    gallery = (torch.randn(20, 8), torch.arange(20) % 5)
    evaluation = Evaluation(embeddings, labels, gallery=gallery)
    values, scores = noted(evaluation, ["recall@1"])
    assert torch.equal(scores["query"].long(), (labels < 5).nonzero()[:, 0])
    assert float(scores["recall@1"].double().mean()) == pytest.approx(values["recall@1"], abs=1e-7)


def test_what_is_no_mean_or_has_no_value_leaves_nothing() -> None:
    embeddings, labels = images()
    assert noted(Evaluation(embeddings, labels), ["nmi", "f1", "norm_var"])[1] == {}
    assert noted(Evaluation(embeddings, torch.arange(60)), ["recall@1"])[1] == {}
    assert noted(Evaluation(embeddings * torch.nan, labels), ["recall@1"])[1] == {}


def test_a_training_keeps_them_and_says_so(tmp_path: Path) -> None:
    result, _ = run(recipe(), tmp_path)
    with np.load(tmp_path / "queries.npz", allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    said = result.provenance["queries"]["test"]  # type: ignore[index,call-overload]
    assert said["file"] == "queries.npz"  # type: ignore[index,call-overload]
    assert said["queries"] == len(arrays["query"])  # type: ignore[index,call-overload]
    assert said["classes"] == len(set(arrays["class"].tolist()))  # type: ignore[index,call-overload]
    for name in said["metrics"]:  # type: ignore[index,call-overload]
        assert arrays[name].astype(float).mean() == pytest.approx(result.metrics[f"best/test/{name}"], abs=1e-7)
    assert {"recall@1", "map@r", "r_precision"} <= arrays.keys()
    assert "nmi" not in arrays
    assert (str(arrays["checkpoint"]), str(arrays["data"])) == ("best", result.provenance["manifest"] or "")
    assert (tmp_path / "queries.npz").stat().st_size < 40_000


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.evaluation.measures.MOST_VALUES", 120)
    assert list(noted(Evaluation(*images()), ["recall@1", "recall@2", "map@r"])[1]) == [
        "query", "class", "recall@1", "recall@2",
    ]  # fmt: skip
