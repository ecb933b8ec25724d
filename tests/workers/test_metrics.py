"""Metrics equal brute force and the peers' implementations, in any chunks; they are silent and repeatable."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix
from torch import Tensor

from tests.workers.inputs import EMBEDDED, golden_embeddings, random_batch
from workers.catalog import load
from workers.evaluation.evaluate import Evaluation, evaluate
from workers.metrics.ami import AdjustedMutualInformation
from workers.metrics.f1 import PairF1
from workers.metrics.map import MeanAveragePrecision
from workers.metrics.nmi import NormalizedMutualInformation
from workers.metrics.r_precision import RPrecision
from workers.registry import UnknownPart

NAMES = ["recall@1", "recall@2", "recall@4", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var", "s_mu"]
EVERY = [*NAMES, "ami", "nmi@geometric", "cos_ap", "cos_ap@std", "cos_an", "cos_an@std"]


def _split(seed: int = 0, separation: float = 0.6) -> tuple[Tensor, Tensor]:
    """Five classes of 3 to 19 images, shuffled, with labels that are not contiguous."""
    embeddings, labels = random_batch(seed, classes=5, per_class=19, separation=separation)
    keep = torch.cat([torch.arange(19 * c, 19 * c + 3 + 4 * c) for c in range(5)])
    order = keep[torch.randperm(len(keep), generator=torch.Generator().manual_seed(seed))]
    return embeddings[order], 10 + 7 * labels[order]


def _brute_force(embeddings: Tensor, labels: Tensor, ks: tuple[int, ...]) -> dict[str, float]:
    rows, y = embeddings.tolist(), labels.tolist()
    f = [[x / math.hypot(*row) for x in row] for row in rows]
    sums: Counter[str] = Counter()
    queries = 0
    for q in range(len(f)):
        others = [i for i in range(len(f)) if i != q]
        relevant = sum(y[i] == y[q] for i in others)
        if relevant == 0:
            continue
        queries += 1
        others.sort(key=lambda i: -sum(a * b for a, b in zip(f[q], f[i], strict=True)))
        hits = [y[i] == y[q] for i in others]
        for k in ks:
            sums[f"recall@{k}"] += any(hits[:k])
        sums["r_precision"] += sum(hits[:relevant]) / relevant
        sums["map@r"] += sum(sum(hits[: j + 1]) / (j + 1) for j in range(relevant) if hits[j]) / relevant
    return {name: total / queries for name, total in sums.items()}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_neighbours_equal_brute_force(seed: int) -> None:
    embeddings, labels = _split(seed)
    expected = _brute_force(embeddings, labels, (1, 2, 4, 8))
    assert evaluate(embeddings, labels, list(expected)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("separation", [0.0, 0.6, 3.0])
def test_neighbours_equal_the_peer(separation: float) -> None:
    embeddings, labels = _split(separation=separation)
    names = {"precision_at_1": "recall@1", "mean_average_precision_at_r": "map@r", "r_precision": "r_precision"}
    calculator = AccuracyCalculator(include=tuple(names), k="max_bin_count", device=torch.device("cpu"))
    expected = calculator.get_accuracy(torch.nn.functional.normalize(embeddings).float(), labels)
    found = evaluate(embeddings.float(), labels, list(names.values()))
    assert found == pytest.approx({ours: expected[theirs] for theirs, ours in names.items()}, abs=1e-9)


@pytest.mark.parametrize("chunk", [1, 100, 1000])
def test_neighbours_do_not_depend_on_the_chunks(chunk: int) -> None:
    embeddings, labels = _split()
    whole, chunked = Evaluation(embeddings, labels).neighbours, Evaluation(embeddings, labels, chunk=chunk).neighbours
    for expected, found in zip(whole, chunked, strict=True):
        torch.testing.assert_close(found, expected)


def test_an_image_without_another_of_its_class_is_no_query_but_a_neighbour() -> None:
    embeddings, labels = _split()
    labels[:3] = torch.tensor([1, 2, 3])
    expected = _brute_force(embeddings, labels, (1, 2))
    assert evaluate(embeddings, labels, list(expected)) == pytest.approx(expected, abs=1e-12)


def test_the_query_is_left_out_by_its_index_not_by_its_rank() -> None:
    # Each image has a copy in another class and nothing near in its own.
    rows = torch.eye(4)[[0, 1, 0, 1]] + 0.1 * torch.eye(4)[[2, 2, 2, 2]]
    assert evaluate(rows, torch.tensor([0, 0, 1, 1]), ["recall@1", "recall@3"]) == {"recall@1": 0.0, "recall@3": 1.0}


def test_one_class_is_recalled() -> None:
    assert evaluate(torch.ones(2, 3), torch.zeros(2).long(), ["recall@1", "map@r"]) == {"recall@1": 1.0, "map@r": 1.0}


def test_clusters_that_are_the_classes() -> None:
    embeddings, labels = random_batch(classes=4, per_class=30, separation=50.0)
    assert evaluate(embeddings, labels, ["nmi", "f1"]) == {"nmi": pytest.approx(1), "f1": 1.0}


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


def test_each_image_is_in_the_cluster_of_its_nearest_centre() -> None:
    evaluation = Evaluation(*_split())
    centres = torch.stack([evaluation.unit[evaluation.clusters == c].mean(dim=0) for c in range(5)])
    nearest = torch.cdist(evaluation.unit, centres).argmin(dim=1)
    assert (nearest == evaluation.clusters).double().mean() > 0.95  # 20 iterations may stop short of the end


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


def test_nmi_is_arithmetic_unless_its_name_says_geometric() -> None:
    evaluation, names = Evaluation(*_split()), ["nmi", "nmi@arithmetic", "nmi@geometric"]
    found = evaluate(*_split(), names)
    expected = [NormalizedMutualInformation(k=k)(evaluation) for k in ("arithmetic", "arithmetic", "geometric")]
    assert list(found.values()) == expected
    assert expected[0] != expected[2]


def test_ami_is_what_nmi_has_beyond_chance() -> None:
    evaluation = Evaluation(*_split())
    classes, clusters = evaluation.classes.numpy(), evaluation.clusters.numpy()
    generator = np.random.default_rng(0)
    chance = float(np.mean([mutual_info_score(classes, generator.permutation(clusters)) for _ in range(600)]))
    entropy = (mutual_info_score(classes, classes) + mutual_info_score(clusters, clusters)) / 2
    expected = (mutual_info_score(classes, clusters) - chance) / (entropy - chance)
    assert AdjustedMutualInformation()(evaluation) == pytest.approx(expected, abs=5e-3)


def test_moments_of_norms_are_of_the_raw_embeddings() -> None:
    rows, labels = torch.tensor([[3.0, 4.0], [0.0, 1.0], [6.0, 8.0]]), torch.tensor([0, 0, 1])
    found = evaluate(rows, labels, ["norm_mean", "norm_var"])
    assert found == {"norm_mean": pytest.approx(16 / 3), "norm_var": pytest.approx(122 / 9)}


@pytest.mark.parametrize(("rows", "width"), [(40, 8), (6, 30)])
def test_s_mu_is_of_the_unit_embeddings(rows: int, width: int) -> None:
    embeddings, labels = random_batch(classes=rows, per_class=1, width=width)
    expected = torch.linalg.svdvals(torch.nn.functional.normalize(embeddings)).mean().item()
    assert evaluate(embeddings.float(), labels, ["s_mu"])["s_mu"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", ["b12_d8", "b8_d12"])
def test_s_mu_and_its_bounds_equal_the_golden_values(shape: str) -> None:
    golden = json.loads((Path(__file__).parent / "golden_values.json").read_text())
    rows, width = {"b12_d8": (12, 8), "b8_d12": (8, 12)}[shape]
    found = evaluate(golden_embeddings(rows, width), torch.zeros(rows), ["s_mu", "s_mu_lower", "s_mu_upper"])
    expected = {"s_mu": f"s_mu_{shape}", "s_mu_lower": f"svmax_L_{shape}", "s_mu_upper": f"svmax_U_{shape}"}
    assert found == pytest.approx({ours: golden[name] for ours, name in expected.items()}, rel=1e-9)


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


def test_a_split_without_pairs_has_no_neighbours() -> None:
    embeddings, labels = random_batch(classes=6, per_class=1)
    found = evaluate(embeddings, labels, ["recall@1", "map@r", "r_precision", "f1"])
    assert all(math.isnan(value) for value in found.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_float_is_evaluated(dtype: torch.dtype) -> None:
    embeddings, labels = _split(separation=3.0)
    expected = evaluate(embeddings, labels, NAMES)
    assert evaluate(embeddings.to(dtype), labels, NAMES) == pytest.approx(expected, rel=0.05)


def test_evaluation_does_not_touch_the_gradient() -> None:
    embeddings, labels = _split()
    assert evaluate(embeddings.requires_grad_(), labels, NAMES).keys() == set(NAMES)


def test_keys_are_the_names_as_given() -> None:
    assert list(evaluate(*_split(), ["map", "recall@16", "recall"])) == ["map", "recall@16", "recall"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_every_metric_states_its_facts_and_gives_a_number(name: str) -> None:
    entry = load().get("metric", name)
    assert entry is not None
    assert entry.label
    assert entry.facts["better"] in {"higher", "lower", "none"}
    assert entry.facts["needs"] in {"neighbours", "clusters", "clusters_sec", "embeddings"}
    found = evaluate(*_split(), [name])[name]
    assert isinstance(found, float)
    assert math.isfinite(found)


@pytest.mark.parametrize(
    "name", ["recall", "recall_sec", "map", "r_precision", "nmi", "ami", "f1", "nmi_sec", "f1_sec"]
)
def test_scores_rise_when_classes_separate(name: str) -> None:
    values = [evaluate(*_split(separation=s), [name])[name] for s in (0.0, 1.0, 5.0)]
    assert values[0] < values[1] <= values[2] <= 1


def test_unknown_metrics_are_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownPart, match="recall"):
        evaluate(*_split(), ["recal@1"])


@pytest.mark.parametrize(
    ("embeddings", "labels"),
    [(torch.ones(3), torch.ones(3)), (torch.ones(3, 2), torch.ones(2)), (torch.ones(0, 2), torch.ones(0))],
)
def test_shapes_that_do_not_fit_are_refused(embeddings: Tensor, labels: Tensor) -> None:
    with pytest.raises(ValueError, match="expected embeddings"):
        Evaluation(embeddings, labels)


def test_hyper_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="map: k must be"):
        MeanAveragePrecision(k="5")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nmi: k must be"):
        NormalizedMutualInformation(k="max")  # type: ignore[arg-type]


def test_neighbours_and_clusters_are_computed_once() -> None:
    evaluation = Evaluation(*_split())
    assert evaluation.neighbours is evaluation.neighbours
    assert evaluation.clusters is evaluation.clusters
    assert 0 < RPrecision()(evaluation) < 1
