"""What every task keeps, whatever it trains: it resumes, diverges as an outcome, measures what is named, is refused."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tests.workers import recipes
from tests.workers.recipes import batches, begun, numbers, place, problems, run, same, weights
from tests.workers.test_checkpoint import cut_and_resumed, stopping_after
from workers import catalog
from workers.catalog import Entry, holds
from workers.contract import GOES_WITH, PART_FIELDS, Part, Recipe, Result, Stopped
from workers.data.batches import Batches, Splits, splits
from workers.data.images import Images, load
from workers.evaluation.probe import Features
from workers.losses.nt_xent import NTXent
from workers.metrics.knn import Knn
from workers.tasks import At
from workers.tasks.self_supervised import SelfSupervised
from workers.training import kept_weights, loop
from workers.training.determinism import derived
from workers.training.session import Session

TASKS = [entry.name for entry in catalog.load().of("task")]
LENGTH = {"iterations": 4, "evaluate_every": 2}
PARTS: dict[str, Any] = {
    "dataset": "digits",
    "backbone": {"name": "small_cnn", "width": 8},
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 3, "per_class": 4},
}
"""A part of each kind that a task may ask for."""
FIELDS: dict[str, Any] = {
    "augment": "flip", "crop": 8, "validation": {"name": "class_holdout", "folds": 2},
    "embedding": 32, "warmup": 1, "backbone_rate": 0.5, "precision": "bf16", "channels_last": True, "compile": True,
    "loss_rate": 10.0, "chunk": 8,
}  # fmt: skip
"""A value, other than the default, of each field that goes with a part."""
OWN: dict[str, dict[str, Any]] = {
    "retrieval": {"regularizer": "sec_ema", "validation": {"name": "class_holdout", "folds": 3}},
    "verification": {
        "task": {"name": "verification", "flip": True},
        "metrics": ["verification_accuracy", "tar@1e-1", "eer"],
        "validation": {"name": "class_holdout", "folds": 3},
    },
    "self_supervised": {
        "task": {
            "name": "self_supervised",
            "probe_epochs": 3,
            "probe_at": [2],
            "probe_batch": 64,
            "probe_reports": "best",
        },
        "dataset": "digits_halves",
        "loss": "nt_xent",
        "sampler": {"name": "shuffle", "batch": 8},
        "augment": "simclr",
        "regularizer": "sec_ema",
    },
    "counting": {
        "task": {"name": "counting", "probe_epochs": 3, "probe_at": [2], "probe_batch": 64},
        "dataset": "digits_halves",
        "backbone": {"name": "small_cnn", "widths": [4, 4, 4, 4, 4]},
        "loss": "rep_cnt",
        "sampler": {"name": "shuffle", "batch": 8},
        "regularizer": "svmax_unbounded",
    },
    "two_player": {
        "task": {"name": "two_player", "batch": 32, "unrolled": 2},
        "regularizer": "svmax_unbounded",
        "figures": [{"name": "samples", "every": 2, "points": 50}],
    },
}
"""Further keys of a short recipe of each task, which covers every kind of output; a new task may add its own."""
MOST_STOPS = 4
"""Of a training whose task measures for long at the end."""


def entry(name: str) -> Entry:
    found = catalog.load().get("task", name)
    assert found is not None
    return found


def raw(name: str) -> dict[str, Any]:
    """A sound recipe for a task: it holds what the task must have."""
    held = {kind: one for kind, one in PARTS.items() if kind in holds(entry(name)).must}
    return {"task": name, **LENGTH, **held, **OWN.get(name, {})}


def recipe(name: str, **changes: Any) -> Recipe:
    return catalog.complete(Recipe.model_validate({**raw(name), **changes}), catalog.load())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Result, Path, int]]:
    """A task's whole training, its folder, and how often it checked for a request to stop."""

    @cache
    def trained(name: str) -> tuple[Result, Path, int]:
        stops, folder = count(), tmp_path_factory.mktemp(name)
        result, _ = run(recipe(name), folder, stop=lambda: next(stops) < 0)
        return result, folder, next(stops)

    return trained


@pytest.mark.parametrize("name", TASKS)
class TestEachTask:
    def test_a_sound_recipe_is_completed_once_and_keeps_its_fingerprint(self, name: str) -> None:
        assert problems(raw(name)) == {}
        complete = recipe(name)
        assert complete.select.metric == entry(name).facts["selects"]
        assert Recipe.model_validate_json(complete.model_dump_json()).fingerprint == complete.fingerprint
        assert catalog.complete(complete, catalog.load()) == complete
        assert {*complete.pins.versions} >= {"task", "optimizer", "schedule"}
        assert not ({*PART_FIELDS} - {*complete.kinds}) & {*complete.model_dump(mode="json")}

    def test_what_is_missing_or_too_much_is_a_problem_at_its_path(self, name: str) -> None:
        must, may = holds(entry(name))
        for kind in PARTS.keys() & must:
            rest = {key: one for key, one in raw(name).items() if key != kind}
            assert problems(rest)[kind].startswith("is missing; expected one of ")
        for kind in PARTS.keys() - must - may:
            assert problems({**raw(name), kind: PARTS[kind]}) == {kind: f"task {name!r} takes no {kind}; leave it out"}
        if "dataset" not in must | may:
            assert "epochs" in problems({**raw(name), "iterations": None, "epochs": 2})
        for field, value in FIELDS.items():
            part = GOES_WITH[field]
            if part not in must | may:
                message = f"says something of a {part}, and task {name!r} takes none; leave it out"
                assert problems({**raw(name), field: value}) == {field: message}
                assert field not in recipe(name).model_dump(mode="json")

    def test_validates_by_what_it_says_and_by_nothing_else(self, name: str, tmp_path: Path) -> None:
        allowed = entry(name).fact_names("validations")
        for other in ("class_holdout", "image_holdout", "cross_validation"):
            given = {"iterations": 1, "validation": {"name": other, "folds": 3}}
            found = problems({**raw(name), **given})
            assert ("validation" in found) == (other not in allowed), found
            if other in allowed:
                result, _ = run(recipe(name, **given), tmp_path / other)
                assert result.outcome == "ok"
                kept = recipe(name).select.checkpoint
                assert f"{kept}/validation/{recipe(name).select.metric}" in result.metrics
            elif allowed:
                assert found["validation"].endswith(", or none")

    def test_resumes_bit_for_bit(self, name: str, whole: Any, tmp_path: Path) -> None:
        """At any step, and between what it measures at the end."""
        expected, folder, asked = whole(name)
        kept, *drawn = expected.artifacts
        at_the_end = range(LENGTH["iterations"] + 1, asked)
        for turn in (*range(LENGTH["iterations"] + 1), *at_the_end[:: 1 + len(at_the_end) // MOST_STOPS]):
            assert numbers(cut_and_resumed(recipe(name), tmp_path / str(turn), [turn])) == numbers(expected), turn
            assert same(weights(tmp_path / str(turn) / "end" / kept), weights(folder / kept)), turn
            for file in drawn:
                assert (tmp_path / str(turn) / "end" / file).read_bytes() == (folder / file).read_bytes(), (file, turn)

    def test_gives_every_metric_that_is_named(self, name: str, whole: Any) -> None:
        result, *_ = whole(name)
        prefix = f"{recipe(name).select.checkpoint}/test/"
        expected = [*catalog.load().metrics(recipe(name).dataset, name), *recipe(name).metrics]
        assert {key.removeprefix(prefix) for key in result.metrics if key.startswith(prefix)} == set(expected)
        assert all(math.isfinite(value) for value in result.metrics.values())
        noted = {key.removeprefix("train/") for key in result.curves if key.startswith("train/")}
        assert "lr" in noted <= {*entry(name).fact_names("curves")}

    def test_a_divergence_is_an_outcome(self, name: str, tmp_path: Path) -> None:
        result, reports = run(recipe(name, optimizer={"name": "sgd", "lr": 1e30}), tmp_path)
        assert (result.outcome, result.artifacts) == ("diverged", [])
        assert "diverged" in reports[-1].log


def test_a_metric_of_another_task_is_refused() -> None:
    message = "metric 'recall@1' reads embeddings, but task 'two_player' gives samples"
    assert problems({**raw("two_player"), "metrics": ["recall@1"]}) == {"metrics.0": message}
    assert problems({**raw("two_player"), "figures": ["norms"]}) == {
        "figures.0": "task 'two_player' draws no figure 'norms'; it draws 'samples'"
    }
    assert "modes" in problems({**raw("retrieval"), "metrics": ["modes"]})["metrics.0"]


def test_every_field_that_goes_with_a_part_is_tried() -> None:
    assert FIELDS.keys() == GOES_WITH.keys() - {*PART_FIELDS}


def test_a_task_without_images_needs_no_holdout() -> None:
    message = "nothing is held out to select by 'validation'; select by 'test' or 'last'"
    select = {"metric": "modes", "split": "validation"}
    assert problems({**raw("two_player"), "select": select}) == {"select.split": message}


def test_players_take_turns(tmp_path: Path) -> None:
    """Each moves only itself, and the second sees what the first has become."""
    session = begun(recipe("two_player"), tmp_path)
    seen = []
    for terms in session.turns():
        before = session.weights()
        session.players[terms.player].down(terms.total)
        after = session.weights()
        moved = {name for name in after if not same(after[name], before[name])}
        assert moved == {terms.player}
        seen.append(terms.player)
    assert seen == ["discriminator", "generator"]
    assert session.players.keys() == {"generator", "discriminator"}


STEPS = 4
PROBE: dict[str, Any] = {"probe_epochs": 4, "probe_at": [2, 3], "probe_batch": 64, "probe_lr": [1.0]}
PROBING: dict[str, Any] = {
    "task": {"name": "self_supervised", **PROBE},
    "dataset": "digits_halves",
    "augment": "simclr",
    "backbone": {"name": "small_cnn", "width": 8},
    "head": "projection",
    "embedding": 16,
    "loss": "nt_xent",
    "regularizer": {"name": "sec", "eta": 0.5},
    "eta_schedule": "linear",
    "sampler": {"name": "shuffle", "batch": 16},
    "optimizer": {"name": "sgd", "lr": 0.1},
    "iterations": STEPS,
    "evaluate_every": STEPS,
}


def probing(probe: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {**PROBING, "task": {**PROBING["task"], **(probe or {})}, **changes}


def probed(probe: Mapping[str, Any] | None = None, **changes: Any) -> Recipe:
    return recipes.completed(probing(probe, **changes))


def task(of: Session) -> SelfSupervised:
    assert isinstance(of.task, SelfSupervised)
    return of.task


def test_labels_never_reach_what_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other labels the same weights, bit by bit; only the probe tells them apart."""
    whole, _ = run(probed(), tmp_path / "one")

    def shuffled(*given: Any) -> Splits:
        found = splits(*given)
        order = torch.randperm(len(found.train), generator=torch.Generator().manual_seed(0))
        return replace(found, train=replace(found.train, labels=found.train.labels[order]))

    monkeypatch.setattr("workers.data.batches.splits", shuffled)
    other, _ = run(probed(), tmp_path / "other")
    assert same(weights(tmp_path / "one" / "final.safetensors"), weights(tmp_path / "other" / "final.safetensors"))
    assert whole.curves["train/loss"] == other.curves["train/loss"]
    assert whole.metrics["last/test/top@1"] > other.metrics["last/test/top@1"] + 0.2


def test_the_loss_is_nt_xent_of_raw_projections_plus_sec(tmp_path: Path) -> None:
    """As SimCLR has it: the views of image i are rows i and n + i, against all 2n - 2 others."""
    at_work = begun(probed(), tmp_path)
    (terms,) = at_work.task.step(batches(at_work).next(), At(2, 0.1))
    again = begun(probed(), tmp_path)
    images, _ = batches(again).next()
    embeddings = task(again).model(images)
    unit = torch.nn.functional.normalize(embeddings)
    logits = unit @ unit.T / 0.5
    logits.fill_diagonal_(-torch.inf)
    other = torch.cat([torch.arange(16, 32), torch.arange(16)])
    contrast = torch.nn.functional.cross_entropy(logits, other)
    lengths = embeddings.norm(dim=1)
    expected = contrast + 0.5 * 2 / 4 * (lengths - lengths.mean()).square().mean()
    assert float(terms.total.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
    assert float(lengths.detach().var()) > 0
    assert NTXent.views == SelfSupervised.views == 2


def test_the_head_is_dropped_where_features_are_judged(tmp_path: Path) -> None:
    """k-NN and probe by hand, on what the backbone makes of the images of an evaluation."""
    at_work = begun(probed(), tmp_path)
    network = task(at_work).model.eval()
    held = batches(at_work).splits
    with torch.no_grad():
        known, told = (network.backbone(network.backbone.preprocess(one.images)) for one in (held.train, held.test))
    expected = Knn(k=200)(Features(told, held.test.labels, known, held.train.labels))
    assert at_work.task.evaluate("test", ["knn@200"])["knn@200"] == pytest.approx(expected, abs=1e-6)
    *_, found = task(at_work).end(At(0, 0.0))
    peer = LogisticRegression(C=10, max_iter=2000).fit(known.numpy(), held.train.labels.numpy())
    assert set(found) == {"test/top@1"}
    assert 0.4 < found["test/top@1"] < peer.score(told.numpy(), held.test.labels.numpy()) + 0.05


CHOSEN: dict[str, Any] = {"select": {"metric": "knn@200", "split": "test"}, "evaluate_every": 1}
"""Keeps other weights than the last, so that both are probed at the end."""


def test_probes_of_the_best_and_of_the_last_weights_are_those_of_what_is_kept(tmp_path: Path) -> None:
    """tests/workers/test_tasks.py cuts a training whose last weights alone are probed."""
    what, stops = probed({"probe_views": "crops", "probe_epochs": 2, "probe_at": [1]}, **CHOSEN), count()
    whole, _ = run(what, tmp_path / "whole", stop=lambda: next(stops) < 0)
    asked = range(next(stops))
    assert whole.best_step != STEPS
    assert whole.metrics["last/test/top@1"] != whole.metrics["best/test/top@1"]
    assert len(asked) >= STEPS + 1 + 2 * 2
    for turn in asked[STEPS + 1 :]:
        resumed = cut_and_resumed(what, tmp_path / str(turn), [turn])
        assert numbers(resumed) == numbers(whole), turn
    pieces = [STEPS + 2, 1, 0]  # an attempt checks once more before it continues without an iteration left
    assert numbers(cut_and_resumed(what, tmp_path / "pieces", pieces)) == numbers(whole)
    kept = kept_weights.read(tmp_path / "whole/best.safetensors")
    best = {key: value for key, value in whole.metrics.items() if key.startswith("best/")}
    assert kept_weights.evaluate(kept, ["top@1", "knn@200"], place(tmp_path)) == best


DRAWS_AT_THE_END = '''
import torch
from torch import nn
from workers.tasks import Optimized, Task, Terms


class Drawn(Task):
    """A weight that falls to zero; at the end, three values that are drawn from the global generator."""

    label = "Drawn"
    version = 1
    metrics = ("fitted",)
    selects = "fitted"
    split = "last"
    reads = "points"
    ended = ("fitted",)
    curves = ("loss", "lr")

    def __init__(self, measures, device):
        self.point, self.measures, self.sum, self.epoch = nn.Linear(1, 1, bias=False).to(device), measures, 0.0, 0

    def modules(self):
        return {"point": self.point}

    def optimized(self):
        return {"model": Optimized(self.modules(), rate=0.5)}

    def step(self, batch, at):
        loss = self.point.weight.square().sum()
        yield Terms("model", loss, lambda: {"loss": float(loss.detach()), "lr": at.rate})

    def evaluate(self, split, names):
        return self.measures.of(self.sum, names)

    def end(self, at):
        while self.epoch < 3:
            self.sum, self.epoch = self.sum + float(torch.rand(())), self.epoch + 1
            yield {"train/probe_loss": self.sum, "test/fitted": self.measures.of(self.sum, ["fitted"])["fitted"]}
        self.sum, self.epoch = 0.0, 0

    def state_dict(self):
        return {"sum": self.sum, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.sum, self.epoch = state["sum"], state["epoch"]
'''
FITTED = '''
class Fitted:
    """The sum."""

    better = "lower"
    reads = "points"

    def __call__(self, evaluation):
        return evaluation
'''


def test_what_a_task_draws_at_the_end_goes_on_too(tmp_path: Path) -> None:
    for folder, name, source in (("tasks", "drawn", DRAWS_AT_THE_END), ("metrics", "fitted", FITTED)):
        (tmp_path / "parts" / folder).mkdir(parents=True)
        (tmp_path / "parts" / folder / f"{name}.py").write_text(source)
    written = {"task": "drawn", "iterations": 2, "optimizer": {"name": "adam", "lr": 0.1}}
    what, parts, stops = recipes.completed(written, tmp_path / "parts"), tmp_path / "parts", count()
    whole, _ = run(what, tmp_path / "whole", parts=parts, stop=lambda: next(stops) < 0)
    assert begun(what, tmp_path, parts=parts).players["model"].rates == [0.05], "the task's factor on the rate"
    asked = next(stops)
    assert asked == 2 + 1 + 3
    for cuts in (*([turn] for turn in range(asked)), [4, 1, 0]):
        folder = tmp_path / "-".join(map(str, cuts))
        assert numbers(cut_and_resumed(what, folder, cuts, parts=parts)) == numbers(whole), cuts


def test_a_resumed_probe_does_not_repeat_its_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("REPORT_SECONDS", "REPORT_SHARE", "LINE_SECONDS"):
        monkeypatch.setattr(loop, limit, 0.0)
    for epochs in (1, 3):
        with pytest.raises(Stopped):
            run(probed(), tmp_path / str(epochs), stop=stopping_after(STEPS + epochs))
        _, reports = run(probed(), tmp_path / f"{epochs}-on", tmp_path / str(epochs) / "last.pt")
        assert len([one for one in reports if "probe_loss " in one.log]) == PROBE["probe_epochs"] - epochs, epochs


def test_the_end_writes_checkpoints_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("REPORT_SECONDS", "REPORT_SHARE", "LINE_SECONDS"):
        monkeypatch.setattr(loop, limit, 0.0)
    _, reports = run(probed(), tmp_path, checkpoint_seconds=0.0)
    ends = PROBE["probe_epochs"] + 1  # each epoch, and what is measured then
    assert [one.step for one in reports if one.checkpoint] == [1, 2, 3, 4, *[STEPS] * ends]
    probing = [one for one in reports if "train/probe_loss" in one.metrics]
    assert len(probing) == PROBE["probe_epochs"]
    assert all("probe_loss " in one.log for one in probing)
    assert any("measuring top@1 of step 4" in one.log for one in reports)


def test_images_stand_once_for_each_view(tmp_path: Path) -> None:
    def made(views: int, augment: str = "simclr") -> Batches:
        what = recipes.recipe(augment=augment)
        return Batches(what, place(tmp_path), torch.device("cpu"), lambda purpose: derived(0, purpose), views)

    batch = (whole := made(3)).next()
    assert len(batch.images) == whole.batch == 12 * 3
    assert torch.equal(batch.labels, torch.arange(12).repeat(3))
    first, second = batch.images[:12], batch.images[12:24]
    assert not any(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    alone, several = made(1, "none").next().images, made(3, "none").next().images
    assert torch.equal(several, alone.repeat(3, 1, 1, 1)), "the sampler draws images as it does for one view"
    state, after = whole.state_dict(), whole.next()
    (other := made(3)).load_state_dict(state)
    assert torch.equal(other.next().images, after.images)


def test_the_best_report_is_no_lower_than_any_rate(tmp_path: Path) -> None:
    def top(rates: list[float], reports: str) -> float:
        what = probed({"probe_lr": rates, "probe_reports": reports})
        return run(what, tmp_path / str(rates))[0].metrics["last/test/top@1"]

    assert top([0.1, 5.0], "best") >= max(top([0.1], "chosen"), top([5.0], "chosen"))


def test_what_does_not_fit_is_a_problem_before_anything_runs(tmp_path: Path) -> None:
    changes: dict[str, Any]
    for changes, path, message in (
        ({"sampler": "balanced"}, "sampler", "draws by classes, but task"),
        ({"sampler": {"name": "shuffle", "batch": 1}}, "sampler.batch", "expected at least 2"),
        ({"loss": "proxy_anchor"}, "loss", "needs the classes of images, but task"),
        ({"dataset": "cub200"}, "dataset", "are of other classes than its training images; data sets that fit"),
        ({"metrics": ["top@11"]}, "metrics.0", "has no meaning where dataset 'digits_halves' has 10 classes"),
        ({"metrics": ["recall@1"]}, "metrics.0", "reads embeddings, but task 'self_supervised' gives features"),
        ({"select": {"metric": "top@1", "split": "test"}}, "select.metric", "at the end only"),
        ({"metrics": ["top@5"], "select": {"metric": "top@5", "split": "test"}}, "select.metric", "at the end only"),
        ({"augment": "none"}, "augment", "leaves equal"),
    ):
        assert message in recipes.problems(probing(**changes))[path]
    probe: dict[str, Any]
    for probe, message in (
        ({"probe_lr": [1.0, 2.0]}, "2 learning rates, but no held-out images to choose one by; hold images out"),
        ({"probe_lr": []}, "at least one learning rate"),
        ({"probe_at": [4]}, "there are 4"),
    ):
        with pytest.raises(ValueError, match=message):
            begun(probed(probe), tmp_path)


@pytest.mark.parametrize(
    ("metrics", "labels", "said"),
    [
        ([], [-1, -1, 0, 1], "training images are without labels"),
        ([], [0, 0, 0, 0], "two at least"),
        (["top@5"], [0, 1, 0, 1], "'top@5' of 2 classes"),
    ],
)
def test_labels_that_tell_nothing_are_refused(
    metrics: list[str], labels: list[int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a data set of which the catalog knows nothing."""
    one = load(Part(name="digits_halves"), tmp_path, tmp_path).train
    few = Images(one.images[:4], torch.tensor(labels))
    monkeypatch.setattr("workers.data.batches.splits", lambda *given: Splits(few, None, few))
    with pytest.raises(ValueError, match=said):
        begun(probed(metrics=metrics, sampler={"name": "shuffle", "batch": 2}), tmp_path)
