"""The data of figures equals brute force; those of trainings say of which images and weights they are."""

import io
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.workers.inputs import random_batch
from tests.workers.recipes import DIGITS, batches, begun, numbers, place, problems, recipe, retrieval, run
from tests.workers.test_checkpoint import cut_and_resumed, stopping_after
from workers import geometry
from workers.contract import Stopped
from workers.figures import options
from workers.figures.arrays import FIGURES, Arrays, Embedded, contact_sheet, packed
from workers.figures.traces import DirectionTrace
from workers.geometry import direction_variation
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
        "best.safetensors", "norms.npz", "norms-train.npz", "norms-validation.npz", "spectrum.npz", "queries.npz",
    ]  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == set(result.artifacts)
    for file, key in (("norms", "test"), ("norms-train", "train"), ("norms-validation", "validation")):
        held = read(tmp_path / f"{file}.npz")
        assert float(held["mean"]) == pytest.approx(result.metrics[f"best/{key}/norm_mean"], rel=1e-5)
        assert float(held["variance"]) == pytest.approx(result.metrics[f"best/{key}/norm_var"], rel=1e-4)
    assert float(read(tmp_path / "spectrum.npz")["s_mu"]) == pytest.approx(result.metrics["best/test/s_mu"], rel=1e-5)


def test_direction_variation_and_norms_are_of_the_images_that_are_followed(tmp_path: Path) -> None:
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
    traces, session = read(tmp_path / "norm_traces.npz"), begun(what, tmp_path)
    task = retrieval(session)
    assert traces["step"].tolist() == [0, 3, 6, 9, 12]
    index = torch.from_numpy(traces["index"])
    np.testing.assert_array_equal(traces["norm"][0], geometry.norms(task.look(index)).numpy())
    session.load(kept_weights.read(tmp_path / "best.safetensors").models[0])
    if result.best_step in traces["step"]:
        seen = traces["norm"][traces["step"].tolist().index(result.best_step)]
        np.testing.assert_allclose(seen, geometry.norms(task.look(index)).numpy(), rtol=1e-5)
    assert traces["label"].tolist() == batches(begun(what, tmp_path)).splits.train.labels[index].tolist()


def test_directions_are_compared_with_those_of_the_last_look() -> None:
    looks, labels = [random_batch(seed)[0] for seed in range(3)], random_batch()[1]
    trace = DirectionTrace(options.DirectionVariation(every=1), len(labels))
    for step, embeddings in enumerate(looks):
        trace.note(step, embeddings)
    expected = [direction_variation(before, after).angle.numpy() for before, after in pairwise(looks)]
    np.testing.assert_allclose(trace.arrays(labels)["angle"], expected, rtol=1e-12)


def test_gradients_are_those_of_the_loss_and_orthogonal_to_embeddings(tmp_path: Path) -> None:
    """Of a batch as it trains, without the regularizer, whose gradient is parallel to the embedding."""
    what = recipe(figures=[{"name": "gradients", "every": 5, "images": 7}], regularizer="sec", loss="tuplet")
    plain, _ = run(recipe(regularizer="sec", loss="tuplet"), tmp_path / "plain")
    result, _ = run(what, tmp_path)
    assert (result.metrics, result.curves) == (plain.metrics, plain.curves), "looking changes nothing"
    held, session = read(tmp_path / "gradients.npz"), begun(what, tmp_path)
    assert held["step"].tolist() == [0, 5, 10]
    assert held["norm"].shape == held["gradient"].shape == (3, 7)
    np.testing.assert_allclose(held["turn"], held["gradient"] / held["norm"])
    task, batch = retrieval(session), batches(session).next()
    task.model.train()
    embeddings = task.model(batch.images).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(task.loss(embeddings, batch.labels), embeddings)
    np.testing.assert_allclose(held["norm"][0], geometry.norms(embeddings.detach())[:7].numpy(), rtol=1e-4)
    np.testing.assert_allclose(held["gradient"][0], geometry.norms(gradient)[:7].numpy(), rtol=1e-3)


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
    asked = [VARIATION, TRACES, "gradients", "norms", *STAGES]
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
    assert result.artifacts == ["best.safetensors", *expected, "queries.npz"]
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


def test_stages_show_images_with_the_class_vectors_of_that_moment(tmp_path: Path) -> None:
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
    kept = kept_weights.read(tmp_path / "best.safetensors")
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
    late = {"figures": [{"name": "heat_map_stages", "at": [3]}], "iterations": None, "epochs": 2, "evaluate_every": 1}
    message = "'heat_map_stages' looks at 3, but the training ends at 2"
    assert problems({**DIGITS, **late}) == {"figures.0.at": message}


def test_feature_maps_are_the_most_active_channels_of_what_the_network_sees(tmp_path: Path) -> None:
    what = recipe(figures=[{"name": "feature_maps", "images": 3, "channels": 4, "side": 32}], select={"split": "last"})
    result, _ = run(what, tmp_path)
    assert {"feature_maps.npz", "feature_maps.png"} < set(result.artifacts)
    held = read(tmp_path / "feature_maps.npz")
    session = Session(what, place(tmp_path), CPU)
    session.load(kept_weights.read(tmp_path / "final.safetensors").models[0])
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


def figure_of(
    name: str,
    embeddings: torch.Tensor,
    labels: torch.Tensor,
    query: torch.Tensor | None = None,
    distance: options.Distance = "cosine",
    **choices: Any,
) -> Arrays:
    """A figure of these embeddings, with some options."""
    return FIGURES[name](Embedded(embeddings, labels, query, distance), options.MODELS[name](**choices))


def test_norms_and_the_spectrum_are_those_of_numpy_and_torch() -> None:
    embeddings, labels = random_batch(classes=5, per_class=20)
    lengths, found = embeddings.norm(dim=1).numpy(), figure_of("norms", embeddings, labels, bins=7)
    counts, edges = np.histogram(lengths, bins=7)
    np.testing.assert_array_equal(found["counts"], counts)
    np.testing.assert_allclose(found["edges"], edges)
    assert (float(found["mean"]), float(found["variance"])) == pytest.approx((lengths.mean(), lengths.var()))
    spectrum = figure_of("spectrum", embeddings, labels)
    expected = torch.linalg.svdvals(torch.nn.functional.normalize(embeddings))
    np.testing.assert_allclose(spectrum["singular"], expected.numpy())
    assert float(spectrum["s_mu"]) == pytest.approx(expected.mean().item())
    assert spectrum["lower"] < spectrum["s_mu"] < spectrum["upper"]


def test_cosines_are_counted_over_all_pairs_and_triplets() -> None:
    embeddings, labels = random_batch(classes=4, per_class=5)
    unit = torch.nn.functional.normalize(embeddings).numpy()
    cosines = np.clip(unit @ unit.T, -1, 1)
    count = range(len(unit))
    positive = [(a, p) for a in count for p in count if a != p and labels[a] == labels[p]]
    negative = [(a, n) for a in count for n in count if labels[a] != labels[n]]
    triplets = [cosines[a, p] - cosines[a, n] for a, p in positive for other, n in negative if other == a]
    found = figure_of("cosines", embeddings, labels, bins=16)
    edges, wide = np.linspace(-1, 1, 17), np.linspace(-2, 2, 17)
    np.testing.assert_array_equal(found["cos_ap"], np.histogram([cosines[pair] for pair in positive], edges)[0])
    np.testing.assert_array_equal(found["cos_an"], np.histogram([cosines[pair] for pair in negative], edges)[0])
    np.testing.assert_array_equal(found["difference"], np.histogram(triplets, wide)[0])
    np.testing.assert_allclose(found["edges"], edges)
    np.testing.assert_allclose(found["difference_edges"], wide)


def test_cosines_of_some_anchors_meet_all_images() -> None:
    embeddings, labels = random_batch(classes=10, per_class=10)
    found = figure_of("cosines", embeddings, labels, anchors=7)
    assert [int(found[name].sum()) for name in ("cos_ap", "cos_an", "difference")] == [7 * 9, 7 * 90, 7 * 9 * 90]


def test_panels_of_a_collapsed_network_do_not_follow_the_files() -> None:
    """Labels in blocks, all images at one point: what is shown is drawn, and the same for the same seed."""
    found, again = (figure_of("panels", torch.ones(400, 4), torch.arange(400) // 4, queries=40) for _ in range(2))
    assert len(set(found["nearest"].flatten().tolist())) > 80
    assert found["correct"].mean() < 0.1
    assert not (found["nearest"] == found["query"][:, None]).any()
    assert (found["nearest"] == again["nearest"]).all()


def test_panels_show_the_nearest_others() -> None:
    embeddings, labels = random_batch(classes=6, per_class=5)
    found = figure_of("panels", embeddings, labels, queries=8, depth=3, seed=3)
    unit = torch.nn.functional.normalize(embeddings)
    assert len(set(found["query"].tolist())) == 8
    for query, nearest, correct, cosine in zip(*found.values(), strict=True):
        others = [i for i in range(30) if i != query]
        expected = sorted(others, key=lambda i: -float(unit[query] @ unit[i]))[:3]
        assert nearest.tolist() == expected
        assert correct.tolist() == [bool(labels[i] == labels[query]) for i in expected]
        assert cosine.tolist() == pytest.approx([float(unit[query] @ unit[i]) for i in expected])


def test_panels_and_maps_by_the_euclidean_distance_are_of_raw_embeddings() -> None:
    rows, labels = torch.tensor([[1.0, 0], [1.1, 0.4], [8.0, 0], [8.2, 3.0]]), torch.arange(4)
    found = figure_of("panels", rows, labels, distance="euclidean", queries=4, depth=1)
    assert found["nearest"].flatten().tolist() == [1, 0, 3, 2]
    np.testing.assert_allclose(found["distance"].flatten()[[0, 2]], [0.17**0.5, 9.04**0.5], rtol=1e-6)
    assert figure_of("panels", rows, labels, queries=4, depth=1)["nearest"].flatten().tolist() == [2, 3, 0, 1]
    far = figure_of("tsne", torch.cat([rows, rows * 50]), torch.zeros(8), distance="euclidean")["xy"]
    assert not np.allclose(far, figure_of("tsne", torch.cat([rows, rows * 50]), torch.zeros(8))["xy"])


def test_tsne_keeps_classes_that_are_far_apart_together() -> None:
    embeddings, labels = random_batch(classes=3, per_class=20, separation=30.0)
    found = figure_of("tsne", embeddings, labels)
    xy = torch.from_numpy(found["xy"]).double()
    assert found["label"].tolist() == labels.tolist()
    nearest = torch.cdist(xy, xy).fill_diagonal_(math.inf).argmin(dim=1)
    assert torch.equal(labels[nearest], labels)
    np.testing.assert_array_equal(figure_of("tsne", embeddings, labels)["xy"], found["xy"])
    with pytest.raises(ValueError, match="at least 3 images, found 2"):
        figure_of("tsne", torch.ones(2, 3), torch.zeros(2))


def test_the_unit_circle_keeps_the_angle() -> None:
    angles = torch.linspace(-3, 3, 9, dtype=torch.float64)
    rows = torch.stack([angles.cos(), angles.sin()], dim=1) * torch.arange(1, 10)[:, None]
    found = figure_of("unit_circle", rows, torch.arange(9))
    np.testing.assert_allclose(found["angle"], angles.numpy())
    np.testing.assert_allclose(np.linalg.norm(found["xy"], axis=1), 1)
    with pytest.raises(ValueError, match=r"expected embeddings \[n, 2\], found \[9, 3\]"):
        figure_of("unit_circle", torch.ones(9, 3), torch.arange(9))


def test_the_heat_map_goes_class_by_class() -> None:
    embeddings, labels = random_batch(classes=6, per_class=5)
    found = figure_of("heat_map", embeddings, labels, classes=4, per_class=3, seed=2)
    index, unit = found["index"], torch.nn.functional.normalize(embeddings)[found["index"]]
    assert found["label"].tolist() == labels[index].tolist() == np.repeat(found["class"], 3).tolist()
    assert len(set(index.tolist())) == 12
    np.testing.assert_allclose(found["cosine"], (unit @ unit.T).numpy(), atol=1e-12)
    for row, first in enumerate(found["class"]):
        for column, second in enumerate(found["class"]):
            pairs = [
                float(unit[a] @ unit[b])
                for a in range(12)
                for b in range(12)
                if a != b and labels[index[a]] == first and labels[index[b]] == second
            ]
            assert found["class_cosine"][row, column] == pytest.approx(sum(pairs) / len(pairs))
    assert np.isnan(np.diag(figure_of("heat_map", embeddings, labels, per_class=1)["class_cosine"])).all()


@pytest.fixture
def searched() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Embeddings, labels, and which images are queries: two of each class."""
    embeddings, labels = random_batch(classes=5, per_class=6)
    return embeddings, labels, torch.arange(30) % 3 == 0


def test_norms_and_spectra_of_queries_and_gallery(searched: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    embeddings, labels, query = searched
    norms, spectrum = (
        figure_of("norms", embeddings, labels, query, bins=6),
        figure_of("spectrum", embeddings, labels, query),
    )
    lengths, unit = embeddings.norm(dim=1).numpy(), torch.nn.functional.normalize(embeddings)
    np.testing.assert_allclose(norms["edges"], np.histogram_bin_edges(lengths, 6))
    for prefix, side in (("", query), ("gallery_", ~query)):
        own = lengths[side.numpy()]
        np.testing.assert_array_equal(norms[f"{prefix}counts"], np.histogram(own, norms["edges"])[0])
        assert float(norms[f"{prefix}mean"]) == pytest.approx(own.mean())
        assert float(norms[f"{prefix}variance"]) == pytest.approx(own.var())
        np.testing.assert_allclose(spectrum[f"{prefix}singular"], torch.linalg.svdvals(unit[side]).numpy())
        assert spectrum[f"{prefix}lower"] < spectrum[f"{prefix}s_mu"] < spectrum[f"{prefix}upper"]


def test_queries_meet_the_gallery_only(searched: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    embeddings, labels, query = searched
    unit = torch.nn.functional.normalize(embeddings)
    asks, gallery = query.nonzero()[:, 0].tolist(), (~query).nonzero()[:, 0].tolist()
    found = figure_of("cosines", embeddings, labels, query, bins=9)
    edges = np.linspace(-1, 1, 10)
    for name, same in (("cos_ap", True), ("cos_an", False)):
        pairs = [float(unit[a] @ unit[b]) for a in asks for b in gallery if bool(labels[a] == labels[b]) is same]
        np.testing.assert_array_equal(found[name], np.histogram(pairs, edges)[0])
    assert found["difference"].sum() == 10 * 4 * 16
    panels = figure_of("panels", embeddings, labels, query, queries=4, depth=25)
    assert panels["nearest"].shape == (4, 20)  # the whole gallery
    assert set(panels["query"].tolist()) <= set(asks)
    for one, nearest, correct in zip(panels["query"], panels["nearest"], panels["correct"], strict=True):
        assert nearest.tolist() == sorted(gallery, key=lambda i: -float(unit[one] @ unit[i]))
        assert correct.tolist() == (labels[nearest] == labels[one]).tolist()


def test_points_say_which_are_queries(searched: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    embeddings, labels, query = searched
    for found in (
        figure_of("tsne", embeddings, labels, query, points=20),
        figure_of("unit_circle", embeddings[:, :2], labels, query, points=20),
        figure_of("heat_map", embeddings, labels, query, classes=4, per_class=5),
    ):
        assert len(found["index"]) == 20
        assert found["query"].tolist() == query[found["index"]].tolist()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_read_without_pickle(name: str) -> None:
    embeddings, labels = random_batch(width=2)
    before = embeddings.clone()
    drawn = figure_of(name, embeddings.requires_grad_(), labels)
    assert torch.equal(embeddings, before)
    with np.load(io.BytesIO(packed(drawn)), allow_pickle=False) as read:
        assert set(read.files) == set(drawn)
        for key in read.files:
            np.testing.assert_array_equal(read[key], drawn[key])


SIDE = 32
TILE = SIDE + 2 * 4 + 6
LINE = SIDE + 2 * 4 + 2 * 14 + 6


def sheet(rows: Arrays, shape: tuple[int, ...] = (8, 8), name: str = "a class") -> np.ndarray:
    """The pixels of a sheet whose image `i` is of the shade 10 i."""
    content = contact_sheet(rows, lambda i: np.full(shape, 10 * i, np.uint8), lambda _: name, SIDE)
    assert content.startswith(b"\x89PNG")
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def tile(pixels: np.ndarray, column: int, line: int) -> np.ndarray:
    """A picture with its frame."""
    left, top = 6 + column * TILE, 6 + line * LINE
    return pixels[top : top + SIDE + 8, left : left + SIDE + 8]


ROWS: Arrays = {
    "query": np.array([1, 4]), "nearest": np.array([[2, 3], [5, 6]]),
    "correct": np.array([[True, False], [False, False]]), "cosine": np.array([[0.9, 0.8], [0.7, 0.6]]),
}  # fmt: skip


def test_every_image_stands_in_its_place() -> None:
    pixels = sheet(ROWS)
    assert pixels.shape == (2 * LINE + 6, 3 * TILE + 6, 3)
    for line, indices in enumerate(np.column_stack([ROWS["query"], ROWS["nearest"]])):
        for column, index in enumerate(indices):
            assert (tile(pixels, column, line)[4:-4, 4:-4] == 10 * index).all()
    for shape in ((10, 20, 3), (20, 10, 3)):
        inner = tile(sheet(ROWS, shape), 1, 0)[4:-4, 4:-4]
        across = inner if shape[0] < shape[1] else inner.swapaxes(0, 1)
        assert (across[8:24] == 20).all(), "it keeps its proportions"
        assert (np.delete(across, slice(8, 24), 0) == 255).all()


def test_right_and_wrong_differ_without_colour() -> None:
    grey = sheet(ROWS).mean(axis=2)
    query, right, wrong = (tile(grey, column, 0)[0] for column in range(3))
    paper = 255.0
    assert (right < paper).all()  # a whole frame
    assert set(np.diff(np.flatnonzero(np.diff(wrong != paper)))) <= {6}  # dashes
    assert (query < paper).all()
    assert (tile(grey, 0, 0)[1, 1:-1] == paper).all()  # a thin one
    assert (tile(grey, 1, 0)[3] < paper).all()
    words = [tile(grey[44:], column, 0)[:14] for column in (1, 2)]
    assert not np.array_equal(*words)
