"""The figures of real trainings: of which images and weights they are, per fold, and bit for bit when resumed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.workers.recipes import batches, begun, numbers, place, recipe, retrieval, run
from tests.workers.test_checkpoint import cut_and_resumed, stopping_after
from workers import geometry
from workers.contract import Stopped
from workers.training import kept_weights
from workers.training.folds import fold_recipes
from workers.training.session import Session

VARIATION = {"name": "direction_variation", "every": 5, "images": 40}
TRACES = {"name": "norm_traces", "every": 3, "images": 6}
CPU = torch.device("cpu")
STAGES = [
    {"name": "tsne_stages", "at": [0, 5, 12], "points": 30, "perplexity": 5.0},
    {"name": "heat_map_stages", "at": [0, 12], "classes": 3, "per_class": 2},
]


def read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def same_files(first: Path, second: Path) -> None:
    """Both folders hold the same figures, to the bit."""
    names = sorted(path.name for path in first.glob("*.npz"))
    assert names == sorted(path.name for path in second.glob("*.npz")) != []
    for name in names:
        one, other = read(first / name), read(second / name)
        assert one.keys() == other.keys()
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])


def test_figures_are_of_the_split_that_they_name(tmp_path: Path) -> None:
    asked = ["norms", {"name": "norms", "split": "train"}, {"name": "norms", "split": "validation"}, "spectrum"]
    result, _ = run(recipe(figures=asked), tmp_path)
    assert result.artifacts == [
        "best.pt", "norms.npz", "norms-train.npz", "norms-validation.npz", "spectrum.npz", "queries.npz",
    ]  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == set(result.artifacts)
    for file, key in (("norms", "test"), ("norms-train", "train"), ("norms-validation", "validation")):
        held = read(tmp_path / f"{file}.npz")
        assert float(held["mean"]) == pytest.approx(result.metrics[f"best/{key}/norm_mean"], rel=1e-5)
        assert float(held["variance"]) == pytest.approx(result.metrics[f"best/{key}/norm_var"], rel=1e-4)
    assert float(read(tmp_path / "spectrum.npz")["s_mu"]) == pytest.approx(result.metrics["best/test/s_mu"], rel=1e-5)


def test_direction_variation_and_norms_are_of_the_images_that_are_followed(tmp_path: Path) -> None:
    """That the angle is the one between two looks, test_embeddings.py shows."""
    what = recipe(figures=[VARIATION, TRACES])
    plain, _ = run(recipe(), tmp_path / "plain")
    result, _ = run(what, tmp_path)
    assert (result.metrics, result.curves) == (plain.metrics, plain.curves), "looking changes nothing"
    held = read(tmp_path / "direction_variation.npz")
    assert held["step"].tolist() == [5, 10]
    assert len(set(held["index"].tolist())) == held["angle"].shape[1] == 40
    np.testing.assert_allclose(held["one_minus_cos"], 1 - np.cos(held["angle"]), atol=1e-12)
    angles = held["angle"].flatten()
    assert angles.min() > 0
    assert float(held["direction_variation_angle_var"]) == pytest.approx(angles.var())
    assert float(held["direction_variation_angle_mean"]) == pytest.approx(angles.mean())
    np.testing.assert_allclose(held["window_var"], held["angle"].var(axis=1))
    np.testing.assert_array_equal(held["counts"], np.histogram(angles, bins=50)[0])
    traces, task = read(tmp_path / "norm_traces.npz"), retrieval(begun(what, tmp_path))
    assert traces["step"].tolist() == [0, 3, 6, 9, 12]
    index = torch.from_numpy(traces["index"])
    np.testing.assert_array_equal(traces["norm"][0], geometry.norms(task.look(index)).numpy())
    task.loaded(kept_weights.read(tmp_path / "best.pt").models[0])
    if result.best_step in traces["step"]:
        seen = traces["norm"][traces["step"].tolist().index(result.best_step)]
        np.testing.assert_allclose(seen, geometry.norms(task.look(index)).numpy(), rtol=1e-5)
    assert traces["label"].tolist() == batches(begun(what, tmp_path)).splits.train.labels[index].tolist()


def test_followed_images_are_those_of_the_seed_whatever_the_loss(tmp_path: Path) -> None:
    def drawn(**changes: Any) -> list[int]:
        seed = changes.pop("draw", 0)
        one = Session(recipe(figures=[{**VARIATION, "seed": seed}], **changes), place(tmp_path), CPU)
        return retrieval(one).traces["direction_variation"].index.tolist()

    assert drawn() == drawn(loss="multi_similarity", seed=7) == sorted(set(drawn()))
    assert drawn() != drawn(draw=1)
    assert len(drawn()) == 40


def test_a_training_without_a_whole_window_has_no_angles(tmp_path: Path) -> None:
    what = recipe(figures=[{**VARIATION, "every": 12}], iterations=50, evaluate_every=1, patience=1,
                  optimizer={"name": "sgd", "lr": 0.0}, backbone="mlp")  # fmt: skip
    result, _ = run(what, tmp_path)
    assert result.steps < 12
    held = read(tmp_path / "direction_variation.npz")
    assert held["angle"].shape == (0, 40)
    assert held["counts"].sum() == 0


def test_figures_of_a_resumed_training_are_the_same(tmp_path: Path) -> None:
    measured = {"name": "sec_fixed", "source": "training_set"}
    asked = [VARIATION, TRACES, "norms", *STAGES]
    what = recipe(figures=asked, precision="bf16", regularizer=measured, loss="proxy_anchor")
    whole, _ = run(what, tmp_path / "whole")
    for cuts in ([5], [7, 3, 1]):
        folder = tmp_path / "-".join(map(str, cuts))
        assert numbers(cut_and_resumed(what, folder, cuts)) == numbers(whole)
        same_files(folder / "end", tmp_path / "whole")


FOLDS: dict[str, Any] = {
    "validation": {"name": "cross_validation", "folds": 3},
    "figures": ["norms", {"name": "norms", "split": "validation"}, {"name": "panels", "depth": 2}, VARIATION],
}


def test_cross_validation_has_the_figures_of_every_fold(tmp_path: Path) -> None:
    what = recipe(**FOLDS)
    result, _ = run(what, tmp_path / "whole")
    kinds = ["norms.npz", "norms-validation.npz", "panels.npz", "panels.png", "direction_variation.npz"]
    expected = [f"{Path(kind).stem}-fold{fold}{Path(kind).suffix}" for fold in range(3) for kind in kinds]
    assert result.artifacts == ["best.pt", *expected, "queries.npz"]
    for fold, one in enumerate(fold_recipes(what)):
        run(one, tmp_path / str(fold))
        for kind in kinds:
            ours = tmp_path / "whole" / f"{Path(kind).stem}-fold{fold}{Path(kind).suffix}"
            assert ours.read_bytes() == (tmp_path / str(fold) / kind).read_bytes()
    assert numbers(cut_and_resumed(what, tmp_path / "cut", [17])) == numbers(result)
    same_files(tmp_path / "cut/end", tmp_path / "whole")


def test_sec_fixed_takes_the_mean_norm_of_the_training_set(tmp_path: Path) -> None:
    what = recipe(regularizer={"name": "sec_fixed", "source": "training_set"}, augment="crop_flip", crop=7)
    session = Session(what, place(tmp_path), CPU)
    expected = float(geometry.norms(retrieval(session).look()).double().mean())
    assert batches(session).splits.train.images.shape[-1] == 8
    assert math.isnan(float(retrieval(session).regularizer.measured))  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        run(what, tmp_path, stop=stopping_after(4))
    kept = torch.load(tmp_path / "last.pt", weights_only=True)["modules"]["regularizer"]
    assert float(kept["measured"]) == pytest.approx(expected, rel=1e-6)
    number = {"name": "sec_fixed", "mu": float(kept["measured"])}
    first, _ = run(what, tmp_path / "a")
    second, _ = run(recipe(regularizer=number, augment="crop_flip", crop=7), tmp_path / "b")
    assert first.metrics == second.metrics


def test_stages_show_images_beside_the_class_vectors_of_that_moment(tmp_path: Path) -> None:
    what = recipe(loss="proxy_anchor", figures=STAGES)
    plain, _ = run(recipe(loss="proxy_anchor"), tmp_path / "plain")
    result, _ = run(what, tmp_path)
    assert (result.metrics, result.curves) == (plain.metrics, plain.curves), "looking changes nothing"
    plane, heat = read(tmp_path / "tsne_stages.npz"), read(tmp_path / "heat_map_stages.npz")
    assert plane["step"].tolist() == plane["at"].tolist() == [0, 5, 12]
    classes = batches(Session(what, place(tmp_path), CPU)).splits.train.classes
    assert (plane["xy"].shape, plane["proxy_xy"].shape) == ((3, 30, 2), (3, classes, 2))
    assert plane["proxy_label"].tolist() == [*range(classes)]
    session = Session(what, place(tmp_path), CPU)
    task = retrieval(session)
    index, vectors = torch.from_numpy(heat["index"]), task.loss.class_vectors()[:, 0].detach()
    shown = vectors[torch.from_numpy(heat["proxy_label"])]
    before = geometry.unit(task.look(index).double()) @ geometry.unit(shown.double()).T
    np.testing.assert_allclose(heat["cosine"][0], before.numpy(), atol=1e-5)
    assert heat["cosine"].shape == (2, 6, 3)
    assert heat["label"].tolist() == np.repeat(heat["proxy_label"], 2).tolist()
    assert not np.allclose(heat["cosine"][0], heat["cosine"][1], atol=1e-3)
    kept = kept_weights.read(tmp_path / "best.pt")
    assert kept.models[0]["loss"]["loss.proxies"].shape[1] == kept.recipe.embedding, "kept weights hold them too"


def test_stages_of_a_loss_without_class_vectors_show_images_alone(tmp_path: Path) -> None:
    run(recipe(loss="triplet", figures=STAGES), tmp_path)
    plane, heat = read(tmp_path / "tsne_stages.npz"), read(tmp_path / "heat_map_stages.npz")
    assert "proxy_xy" not in plane
    assert heat["cosine"].shape == (2, 6, 6)
    np.testing.assert_allclose(np.diagonal(heat["cosine"], axis1=1, axis2=2), 1, atol=1e-5)


def test_stages_count_as_the_recipe_does(tmp_path: Path) -> None:
    what = recipe(figures=[{"name": "heat_map_stages", "at": [0, 1, 2]}], iterations=None, epochs=2, evaluate_every=1)
    run(what, tmp_path)
    held = read(tmp_path / "heat_map_stages.npz")
    epoch = Session(what, place(tmp_path), CPU).length.epoch
    assert (held["at"].tolist(), held["step"].tolist()) == ([0, 1, 2], [0, epoch, 2 * epoch])
    late = recipe(figures=[{"name": "heat_map_stages", "at": [3]}], iterations=None, epochs=2)
    with pytest.raises(ValueError, match="'heat_map_stages' looks at 3, but the training ends at 2"):
        run(late, tmp_path / "late")


def test_feature_maps_are_the_most_active_channels_of_what_the_network_sees(tmp_path: Path) -> None:
    what = recipe(figures=[{"name": "feature_maps", "images": 3, "channels": 4, "side": 32}], select={"split": "last"})
    result, _ = run(what, tmp_path)
    assert {"feature_maps.npz", "feature_maps.png"} < set(result.artifacts)
    held = read(tmp_path / "feature_maps.npz")
    session = Session(what, place(tmp_path), CPU)
    session.load(kept_weights.read(tmp_path / "final.pt").models[0])
    task = retrieval(session)
    images = batches(session).splits.test
    index = torch.from_numpy(held["index"])
    seen = torch.cat([*task.read(images, index)])
    task.model.eval()
    with torch.no_grad():
        maps = task.model.maps(seen)
        np.testing.assert_allclose(
            task.model.head(maps.mean(dim=(2, 3))), task.embed(images, index), rtol=1e-4, atol=1e-6
        )
    for at, means in enumerate(maps.mean(dim=(2, 3))):
        best = sorted(range(maps.shape[1]), key=lambda channel: -float(means[channel]))[:4]
        assert held["channel"][at].tolist() == best
        np.testing.assert_allclose(held["map"][at], maps[at, best].numpy(), rtol=1e-5)
        np.testing.assert_allclose(held["mean"][at], means[best].numpy(), rtol=1e-5)
    np.testing.assert_array_equal(held["picture"][..., 0], seen[:, 0].round().byte().numpy())
    drawn = Image.open(tmp_path / "feature_maps.png")
    assert drawn.size == (5 * (32 + 14) + 6, 3 * (32 + 42) + 6)
