"""What each test query scored: its mean is the metric, and it says whose it is."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.workers.recipes import place, recipe, run
from workers.evaluation import measures as evaluation_measures
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.measures import Measures, QueryScores, note
from workers.evaluation.probe import Features
from workers.training import results
from workers.training.session import Session

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


def test_votes_on_features_are_scores_too() -> None:
    embeddings, labels = images()
    values, scores = noted(Features(embeddings, labels, *images(90)), ["knn@5"])
    assert len(scores["query"]) == 60
    assert float(scores["knn@5"].double().mean()) == pytest.approx(values["knn@5"], abs=1e-7)


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_measures, "MOST_VALUES", 120)
    scores = noted(Evaluation(*images()), ["recall@1", "recall@2", "map@r"])[1]
    assert list(scores) == ["query", "class", "recall@1", "recall@2"]


def test_a_metric_of_another_length_or_name_is_passed_over() -> None:
    class Own:
        def each(self, evaluation: Evaluation) -> torch.Tensor:
            return torch.zeros(3)

    scores = QueryScores()
    note(scores, "own", Own(), Evaluation(*images()))
    assert scores == {}


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


def test_a_checkpoint_of_an_older_release_has_them_computed_anew(tmp_path: Path) -> None:
    session = Session(recipe(), place(tmp_path), torch.device("cpu"))
    found = results.scored(session, step=0)
    assert {"query", "class", "recall@1", "map@r"} <= found["test"].keys()
