"""Trainings on the features of a frozen network: the same numbers as of the network itself, computed once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers.frozen_recipes import frozen, plain, weights_file
from tests.workers.recipes import numbers, place, run, same, weights
from tests.workers.test_checkpoint import stopping_after
from workers import train as training
from workers.contract import CheckpointError, Recipe, Stopped
from workers.data import features
from workers.data.features import Network
from workers.data.weights import WeightsError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    weights_file(tmp_path)
    return tmp_path


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each computation had, of all splits."""
    counted: list[int] = []
    compute = Network.compute

    def counting(self: Network, images: Any, *rest: Any) -> None:
        counted.append(len(images))
        compute(self, images, *rest)

    monkeypatch.setattr(Network, "compute", counting)
    return counted


@pytest.mark.parametrize("changes", [{}, {"crop": 6, "regularizer": {"name": "sec", "eta": 0.5}, "head": "bn_fc"}])
def test_the_numbers_are_those_of_the_network_itself(home: Path, changes: dict[str, Any]) -> None:
    ours, theirs = (run(make(**changes), home)[0] for make in (frozen, plain))
    # Two images that are equally near within rounding may change places: 1 of 1,428 queries.
    assert ours.metrics == pytest.approx(theirs.metrics, abs=1e-3)
    assert ours.curves.keys() == theirs.curves.keys()
    for key, points in ours.curves.items():
        assert points == [(step, pytest.approx(value, rel=1e-3, abs=1e-4)) for step, value in theirs.curves[key]]
    assert ours.provenance["weights"] == theirs.provenance["weights"]
    assert ours.provenance["manifest"] == theirs.provenance["manifest"]


def test_features_are_computed_once_for_all_trainings(home: Path, computed: list[int]) -> None:
    first, said = run(frozen(), home)
    assert computed == [1083, 714]
    assert any("computing features of mobilenet_v1: 1,797 images" in one.log for one in said)
    folds = {"name": "cross_validation", "folds": 2}
    again, _ = run(
        frozen(loss="contrastive", seed=3, validation=folds, sampler={"name": "balanced", "classes": 2, "per_class": 4},
               figures=[{"name": "panels", "queries": 2}], iterations=2, evaluate_every=2), home,
    )  # fmt: skip
    assert computed == [1083, 714]
    assert again.provenance["weights"] == first.provenance["weights"]
    assert {"panels-fold0.npz", "panels-fold0.png"} <= {*again.artifacts}, "panels show images, not features"


def test_what_changes_features_has_them_computed_anew(home: Path, computed: list[int]) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"crop": 6}, {"of_pool": "max"}, {"precision": "bf16"}, {"of_resize": 12},
        {"channels_last": True, "head": "bn_fc"},
    ]  # fmt: skip
    for other in changes:
        run(frozen(iterations=1, **other), home)
    assert len(computed) == 12
    weights_file(home, seed=1)
    run(frozen(iterations=1), home)
    assert len(computed) == 14
    assert len([*(home / "scratch" / "features").glob("mobilenet*/about.json")]) == 7


def test_numbers_do_not_depend_on_how_many_processors_there_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for count in (1, 3):
        monkeypatch.setattr(features, "processors", lambda count=count: count)
        (home / str(count)).mkdir()
        weights_file(home / str(count))
        run(frozen(iterations=1), home / str(count))
        found += [np.fromfile(path, "<f4") for path in (home / str(count) / "scratch").glob("features/*/features")]
    assert len(found) == 2
    assert np.array_equal(*found)
    assert np.isfinite(found[0]).all()
    assert found[0].std() > 0
    assert torch.get_num_threads() >= 1


def test_a_training_resumes_to_the_same_bits(home: Path) -> None:
    what = frozen(regularizer={"name": "sec_ema", "eta": 0.5})
    whole, _ = run(what, home)
    kept = weights(home / "best.pt")
    with pytest.raises(Stopped):
        run(what, home, stop=stopping_after(5))
    resumed, _ = run(what, home, resume=home / "last.pt")
    assert numbers(resumed) == numbers(whole)
    assert same(weights(home / "best.pt"), kept)
    further = what.model_copy(update={"metrics": ["recall@3"]})
    found = training.evaluate(further, place(home), lambda _: None, home / "best.pt", ["recall@3"])
    assert 0 < found.metrics["best/test/recall@3"] <= 1, "kept weights give further metrics"


def test_what_was_trained_on_other_features_is_not_gone_on_with(home: Path) -> None:
    with pytest.raises(Stopped):
        run(frozen(), home, stop=lambda: any((home / "scratch" / "features").glob("mobilenet*/about.json")))
    weights_file(home, seed=1)
    with pytest.raises(CheckpointError, match="trained on features of mobilenet_v1 with other weights than are here"):
        run(frozen(), home, resume=home / "last.pt")
    run(frozen(), home)
    weights_file(home, seed=2)
    with pytest.raises(CheckpointError, match="the weights do not fit their recipe: it was trained on features of"):
        training.evaluate(frozen(metrics=["recall@3"]), place(home), lambda _: None, home / "best.pt", ["recall@3"])


def test_weights_outside_of_the_data_folder_are_refused(home: Path) -> None:
    (home / "data" / "tiny.pt").rename(home / "tiny.pt")
    (home / "data" / "link.pt").symlink_to(home / "tiny.pt")
    for path in ("../tiny.pt", "/etc/passwd", "link.pt"):
        with pytest.raises(WeightsError, match="give a path relative to the data folder, and within it"):
            run(frozen(of_weights=path), home)


def test_features_that_are_not_finite_are_told(home: Path) -> None:
    state = torch.load(home / "data" / "tiny.pt", weights_only=True)
    state[next(iter(state))].fill_(torch.nan)
    torch.save(state, home / "data" / "tiny.pt")
    with pytest.raises(ValueError, match=r"backbone\.of: features of mobilenet_v1 are not finite"):
        run(frozen(), home)
    assert [*(home / "scratch" / "features").glob("*/*")] == []


def test_the_recipe_of_another_version_of_the_network_is_refused(home: Path) -> None:
    what = frozen()
    versions = {**what.pins.versions, "backbone.of": 7}
    other: Recipe = what.model_copy(update={"pins": what.pins.model_copy(update={"versions": versions})})
    with pytest.raises(ValueError, match="for version 7 of backbone 'mobilenet_v1'; this machine has 1"):
        run(other, home)
