"""Metrics and diagnostics equal brute force; each test query has a score whose mean is the metric."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix
from torch import Tensor

from tests.workers.inputs import degenerate_batches, evaluate, random_batch
from tests.workers.recipes import recipe, run
from workers import geometry, registry
from workers.contract import Distance, Part
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.measures import Measures, QueryScores
from workers.evaluation.neighbours import CHUNK
from workers.geometry import batch_statistics, direction_variation, unit
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


MEANS = ["recall@1", "recall@2", "recall_sec@1", "map@r", "r_precision", "violations"]


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
    assert list(scores) == ["query", "class", "predicted", *MEANS]
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
    cosines = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(gallery[0]).T
    assert torch.equal(scores["predicted"].long(), gallery[1][cosines.argmax(dim=1)][labels < 5])
    assert float(scores["recall@1"].double().mean()) == pytest.approx(values["recall@1"], abs=1e-7)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_the_class_of_the_nearest_image_is_predicted(distance: Distance) -> None:
    embeddings, labels = images()
    distances = torch.cdist(*2 * (embeddings if distance == "euclidean" else geometry.unit(embeddings),))
    expected = labels[distances.fill_diagonal_(torch.inf).argmin(dim=1)]
    for chunk in (1, CHUNK):
        found = Evaluation(embeddings, labels, distance=distance, chunk=chunk)
        assert torch.equal(found.predicted, expected)
        hits = (found.predicted == labels).double()
        assert torch.equal(hits, found.neighbours.hit_rate(1))
    same = Evaluation(torch.ones(6, 2), torch.tensor([0, 0, 1, 1, 2, 2]))
    assert same.predicted.tolist() == [0] * 6  # of equally near images, the first


def test_what_is_no_mean_or_has_no_value_leaves_nothing() -> None:
    embeddings, labels = images()
    assert noted(Evaluation(embeddings, labels), ["nmi", "f1", "norm_var"])[1] == {}
    assert noted(Evaluation(embeddings, torch.arange(60)), ["recall@1"])[1] == {}
    assert noted(Evaluation(embeddings * torch.nan, labels), ["recall@1"])[1] == {}


def test_a_training_keeps_them_and_reports_it(tmp_path: Path) -> None:
    result, _ = run(recipe(), tmp_path)
    with np.load(tmp_path / "queries.npz", allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    said = result.provenance["queries"]["test"]  # type: ignore[index,call-overload]
    assert said["file"] == "queries.npz"  # type: ignore[index,call-overload]
    assert said["queries"] == len(arrays["query"])  # type: ignore[index,call-overload]
    assert said["classes"] == len(set(arrays["class"].tolist()))  # type: ignore[index,call-overload]
    for name in said["metrics"]:  # type: ignore[index,call-overload]
        assert arrays[name].astype(float).mean() == pytest.approx(result.metrics[f"best/test/{name}"], abs=1e-7)
    assert {"recall@1", "map@r", "r_precision", "predicted", "names"} <= arrays.keys()
    assert "nmi" not in arrays
    assert (str(arrays["checkpoint"]), str(arrays["data"])) == ("best", result.provenance["manifest"] or "")
    assert (tmp_path / "queries.npz").stat().st_size < 40_000


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


MOMENTS = ["cos_ap", "cos_ap@std", "cos_an", "cos_an@std"]


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


# Wide embeddings are summed pair by pair, narrow embeddings by their Gram matrices.
@pytest.mark.parametrize(("width", "with_gallery"), [(2, False), (40, False), (2, True), (40, True)])
def test_moments_are_those_of_the_pairs(width: int, with_gallery: bool) -> None:
    embeddings, labels = random_batch(0, classes=4, per_class=9, width=width)
    other, classes = random_batch(1, classes=5, per_class=7, width=width)
    gallery = (other, 1 + classes) if with_gallery else None
    found = evaluate(embeddings, 3 + labels if not with_gallery else labels, MOMENTS, gallery=gallery)
    assert found == pytest.approx(_pairs(embeddings, labels, gallery), abs=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("with_gallery", [False, True])
def test_violating_triplets_are_counted_as_a_naive_loop_does(distance: Distance, with_gallery: bool) -> None:
    embeddings, labels = _split()
    embeddings[3] = embeddings[0]  # a tie, in rows of several classes
    gallery = (_split(1)[0], _split(1)[1]) if with_gallery else None
    others, classes = gallery or (embeddings, labels)
    apart = torch.cdist(embeddings, others) if distance == "euclidean" else -unit(embeddings) @ unit(others).T
    if distance == "euclidean" or not with_gallery:
        apart = apart.round(decimals=12)
    shares = []
    for query in range(len(labels)):
        own = [i for i in range(len(classes)) if classes[i] == labels[query] and (with_gallery or i != query)]
        rest = [i for i in range(len(classes)) if classes[i] != labels[query]]
        found = [0.5 * (apart[query, n] == apart[query, p]) + 1.0 * (apart[query, n] < apart[query, p])
                 for p in own for n in rest]  # fmt: skip
        shares.append(sum(map(float, found)) / len(found))
    for chunk in (7, CHUNK):
        evaluation = Evaluation(embeddings, labels, gallery=gallery, distance=distance, chunk=chunk)
        assert evaluation.violated.tolist() == pytest.approx(shares, abs=1e-6)


def test_random_embeddings_violate_half_of_their_triplets() -> None:
    same, labels = torch.ones(12, 4), torch.arange(12) % 3
    assert evaluate(same, labels, ["violations"]) == {"violations": 0.5}
    assert evaluate(torch.eye(3)[labels], labels, ["violations"]) == {"violations": 0.0}
    assert math.isnan(evaluate(same, torch.zeros_like(labels), ["violations"])["violations"])


def test_without_a_pair_there_is_no_moment() -> None:
    embeddings, labels = random_batch(classes=6, per_class=1)
    found = evaluate(embeddings, labels, MOMENTS)
    assert [math.isnan(found[name]) for name in MOMENTS] == [True, True, False, False]
    found = evaluate(embeddings, torch.zeros_like(labels), MOMENTS)
    assert [math.isnan(found[name]) for name in MOMENTS] == [False, False, True, True]
    found = evaluate(torch.full((30, 7), 0.3), torch.arange(30) % 3, MOMENTS)
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
    sine, cosine = math.sin(angle), math.cos(angle)
    turn = torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)
    found = direction_variation(before, 3 * before @ turn)
    assert found.angle.tolist() == pytest.approx([angle] * 2, rel=1e-7, abs=1e-15)
    assert found.one_minus_cos.tolist() == pytest.approx([1 - math.cos(angle)] * 2, abs=1e-12)


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
        if entry.name == "pml":  # the vectors of its losses are the library's
            continue
        one = loss_of(entry.name)
        holds = any(parameter.numel() % (CLASSES * DIM) == 0 for parameter in one.parameters())
        assert hasattr(one, "class_vectors") is holds is (entry.name in LOSSES), entry.name
