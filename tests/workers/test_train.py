"""A training on real digits: what it gives, that it repeats, and how it ends."""

import gc
import math
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers import recipes
from tests.workers.inputs import evaluate
from tests.workers.recipes import batches, flat, numbers, own_part, place, recipe, retrieval, run, same, weights
from workers import catalog
from workers.contract import Pins, Progress, Result, Stopped
from workers.data import batches as data_batches
from workers.data.batches import Batches
from workers.data.images import Images, Prefetcher
from workers.tasks import Diverged
from workers.train import train
from workers.training import checkpoint, loop, session
from workers.training.loop import ProgressLog
from workers.training.session import Session, check

ROOT = Path(__file__).parents[2]


def test_a_training_learns_digits_it_never_saw(tmp_path: Path) -> None:
    what = recipe(
        iterations=60, evaluate_every=20, loss="multi_similarity", regularizer={"name": "sec", "eta": 0.5},
        backbone={"name": "small_cnn", "width": 16},
    )  # fmt: skip
    result, _ = run(what, tmp_path)
    assert result.outcome == "ok"
    assert result.steps == 60
    assert result.metrics["best/test/recall@1"] > 0.85
    assert result.metrics["best/test/map@r"] > 0.35
    assert result.metrics["best/validation/map@r"] >= result.metrics["last/validation/map@r"]


def test_every_loss_trains_with_every_regularizer_head_and_optimizer_in_turn(tmp_path: Path) -> None:
    known, wrong = catalog.load(), {}
    for number, loss in enumerate(known.names("loss")):
        turns = {kind: known.names(kind) for kind in ("regularizer", "head", "optimizer")}
        raw = {
            **recipes.DIGITS,
            "loss": {"name": "pml", "of": "CircleLoss"} if loss == "pml" else loss,
            "iterations": 2,
            "backbone": {"name": "mlp", "width": 8},
            "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
            **{kind: names[number % len(names)] for kind, names in turns.items()},
        }
        problems = recipes.problems(raw)
        if "loss" in problems:  # counting alone takes it
            continue
        raw |= {"regularizer": "none"} if "regularizer" in problems else {}
        result, _ = run(recipes.completed(raw), tmp_path / loss)
        if result.outcome != "ok" or not all(math.isfinite(value) for _, value in result.curves["train/loss"]):
            wrong[loss] = (raw, result.outcome)
    assert wrong == {}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, list[Progress], Path]:
    """A training of 12 steps whose reports come at evaluations only."""
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop, "REPORT_SECONDS", math.inf)  # on a busy machine an iteration takes as long
        return *run(recipe(figures=["norms", "spectrum"]), folder), folder


def test_all_declared_metrics_at_both_checkpoints_and_splits(plain: tuple[Result, list[Progress], Path]) -> None:
    result, _, folder = plain
    declared = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var",
        "s_mu", "s_mu_upper",
    )  # fmt: skip
    expected = {
        f"{which}/{split}/{name}" for which in ("best", "last") for split in ("test", "validation") for name in declared
    }
    expected |= {f"{which}/train/{name}" for which in ("best", "last") for name in ("norm_mean", "norm_var")}
    assert set(result.metrics) == expected
    assert all(math.isfinite(value) for value in result.metrics.values())
    assert result.artifacts == ["best.safetensors", "norms.npz", "spectrum.npz", "queries.npz"]
    assert {path.name for path in folder.iterdir()} == set(result.artifacts)
    held = np.load(folder / "norms.npz")
    assert held["mean"] == pytest.approx(result.metrics["best/test/norm_mean"], rel=1e-5)


def test_reports_are_few_and_say_where_the_training_is(plain: tuple[Result, list[Progress], Path]) -> None:
    _, reports, _ = plain
    assert [report.step for report in reports if report.metrics] == [5, 10, 12]
    assert {report.total for report in reports} == {12}
    assert reports[-1].step == 12
    log = "".join(report.log for report in reports)
    assert "\nstep 5/12 loss " in log
    assert "validation/map@r 0." in log
    assert log.endswith("\n")


def test_curves(tmp_path: Path) -> None:
    result, _ = run(recipe(regularizer={"name": "sec", "eta": 0.5}, schedule={"name": "step", "at": [6]}), tmp_path)
    assert [step for step, _ in result.curves["train/loss"]] == list(range(1, 13))
    assert [step for step, _ in result.curves["validation/map@r"]] == [5, 10, 12]
    assert [round(rate, 6) for _, rate in result.curves["train/lr"]] == [0.001] * 6 + [0.0001] * 6
    assert set(result.curves) == {
        "train/loss", "train/regularizer", "train/lr", "train/norm_mean", "train/norm_var", "train/s_mu",
        "train/cos_ap", "train/cos_an", "validation/map@r", "validation/recall@1",
    }  # fmt: skip
    # SEC is the variance of the norms of the batch.
    for (_, value), (_, variance) in zip(
        result.curves["train/regularizer"], result.curves["train/norm_var"], strict=True
    ):
        assert value == pytest.approx(variance, rel=1e-3)


def test_the_best_weights_are_those_of_the_best_step(tmp_path: Path) -> None:
    result, _ = run(recipe(iterations=20, evaluate_every=3), tmp_path)
    scores = dict(result.curves["validation/map@r"])
    assert result.best_step == max(scores, key=lambda step: scores[step])
    assert result.metrics["best/validation/map@r"] == max(scores.values())
    assert result.artifacts == ["best.safetensors", "queries.npz"]
    assert {path.name for path in tmp_path.iterdir()} == set(result.artifacts)
    _, kept = checkpoint.kept(tmp_path / "best.safetensors")
    assert kept["steps"] == [result.best_step]
    assert kept["recipe"]["loss"]["name"] == "triplet"


def test_a_metric_that_is_better_lower_selects_its_lowest(tmp_path: Path) -> None:
    what = own_part(
        tmp_path, "metrics", "spread", "class Spread:\n"
        '    """The mean norm, as an error."""\n\n    better = "lower"\n    needs = "embeddings"\n\n'
        "    def __call__(self, evaluation):\n        return float(evaluation.norms.mean())\n",
        select={"metric": "spread"}, iterations=15, evaluate_every=3,
    )  # fmt: skip
    result, _ = run(what, tmp_path / "out", parts=tmp_path)
    scores = dict(result.curves["validation/spread"])
    assert result.best_step == min(scores, key=lambda step: scores[step])
    assert result.metrics["best/validation/spread"] == min(scores.values())


def test_selecting_the_last_keeps_the_last(tmp_path: Path) -> None:
    result, _ = run(recipe(select={"split": "last"}, validation={"name": "none"}), tmp_path)
    assert result.artifacts == ["final.safetensors", "queries.npz"]
    assert result.best_step is None
    assert {key.split("/")[0] for key in result.metrics} == {"last"}
    assert [step for step, _ in result.curves["test/map@r"]] == [5, 10, 12]


def test_an_evaluation_changes_nothing_and_judges_every_image_by_itself(tmp_path: Path) -> None:
    session = Session(recipe(), place(tmp_path), torch.device("cpu"))
    task, before = retrieval(session), flat(session.weights())
    images = batches(session).splits.test
    whole = task.evaluate("test", ["norm_mean"])["norm_mean"]
    halves = [Images(images.images[start::2], images.labels[start::2]) for start in (0, 1)]
    means = [task.judge(task.embed(half), half, ["norm_mean"])["norm_mean"] for half in halves]
    assert sum(means) / 2 == pytest.approx(whole, rel=1e-5)  # batch norm would see another batch
    assert same(flat(session.weights()), before)
    assert task.model.training


def test_queries_are_searched_in_the_gallery(tmp_path: Path) -> None:
    session = Session(recipe(), place(tmp_path), torch.device("cpu"))
    task, test, names = retrieval(session), batches(session).splits.test, ["recall@1", "map@r"]
    query = torch.arange(len(test)) % 3 == 0
    embeddings = task.embed(test)
    found = task.judge(embeddings, replace(test, query=query), names)
    gallery = (embeddings[~query], test.labels[~query])
    assert found == evaluate(embeddings[query], test.labels[query], names, gallery=gallery)
    assert found != task.evaluate("test", names)


def test_the_seed_decides_weights_and_batches_whatever_the_loss(tmp_path: Path) -> None:
    place_ = place(tmp_path)
    first, second, third = (
        Session(what, place_, torch.device("cpu"))
        for what in (recipe(), recipe(loss="multi_similarity"), recipe(seed=1))
    )
    assert same(retrieval(first).model.state_dict(), retrieval(second).model.state_dict())
    assert torch.equal(batches(first).next().images, batches(second).next().images)
    assert not same(retrieval(first).model.state_dict(), retrieval(third).model.state_dict())
    assert not torch.equal(batches(first).next().images, batches(third).next().images)


def test_a_reused_process_gives_what_a_fresh_one_gives(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.workers.recipes import recipe, run\n"
        "print(run(recipe(seed=3), Path(sys.argv[1]))[0].model_dump_json())"
    )
    fresh = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "fresh")], cwd=ROOT, check=True, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    expected = Result.model_validate_json(fresh.stdout)
    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    run(recipe(seed=4, loss="semihard", regularizer="sec_ema"), tmp_path / "other", threads=threads + 1)
    assert torch.equal(torch.get_rng_state(), before), "a training leaves the process as it was"
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    result, _ = run(recipe(seed=3), tmp_path / "same")
    assert numbers(result) == numbers(expected)
    assert same(weights(tmp_path / "same/best.safetensors"), weights(tmp_path / "fresh/best.safetensors"))


def test_embeddings_that_explode_at_an_evaluation_are_an_outcome(tmp_path: Path) -> None:
    result, reports = run(recipe(optimizer={"name": "sgd", "lr": 1e38}, evaluate_every=1), tmp_path)
    assert result.outcome == "diverged"
    assert "embeddings" in reports[-1].log
    session = Session(recipe(), place(tmp_path), torch.device("cpu"))
    with torch.no_grad():
        retrieval(session).model.head.get_parameter("linear.bias").fill_(math.nan)
    with pytest.raises(Diverged):
        session.task.evaluate("test", ["recall@1"])


def test_what_is_known_of_a_diverged_training(tmp_path: Path) -> None:
    result, _ = run(doomed(tmp_path, "nan"), tmp_path / "out", parts=tmp_path)
    assert (result.outcome, result.steps, result.best_step) == ("diverged", 6, 5)
    assert set(result.metrics) == {"best/validation/map@r"}
    assert [step for step, _ in result.curves["train/loss"]] == [1, 2, 3, 4, 5, 6]


def test_pins_that_this_machine_cannot_honour_are_refused(tmp_path: Path) -> None:
    what = recipe()
    for update, message in (
        ({"versions": {**what.pins.versions, "loss": 99}}, "version 99 of loss 'triplet'; this machine has 1"),
        ({"manifest": "sha256:other"}, "content sha256:other of dataset 'digits'"),
        ({"weights": "sha256:11"}, "for weights sha256:11 of the backbone; this machine has None"),
    ):
        with pytest.raises(ValueError, match=message):
            run(what.model_copy(update={"pins": what.pins.model_copy(update=update)}), tmp_path)


def test_another_version_of_a_metric_is_refused(tmp_path: Path) -> None:
    source = 'class Spread:\n    """The mean norm."""\n\n    version = {}\n    better = "lower"\n\n'
    source += "    def __call__(self, evaluation):\n        return float(evaluation.norms.mean())\n"
    known = {}
    for version in (1, 2, 3):
        parts = tmp_path / str(version)
        parts.mkdir()
        what = own_part(parts, "metrics", "spread", source.format(version), select={"metric": "spread"})
        assert what.pins.versions.get("metric.spread") == (version if version > 1 else None)
        known[version] = what
    assert run(known[2], tmp_path / "out", parts=tmp_path / "2")[0].outcome == "ok"
    for version, here in ((1, 2), (2, 1), (2, 3)):
        with pytest.raises(ValueError, match=f"version {version} of metric 'spread'; this machine has {here}"):
            run(known[version], tmp_path / "out", parts=tmp_path / str(here))
    never_completed = known[1].model_copy(update={"pins": Pins()})
    check(never_completed, tmp_path / "3")


def test_curves_stay_under_their_limit() -> None:
    curves: dict[str, list[tuple[int, float]]] = {}
    journal = ProgressLog(20_000, 1, curves, lambda _: None)
    for step in range(1, 20_001):
        journal.evaluated(step, {"validation/map@r": 0.5, "validation/recall@1": math.nan})
    assert list(curves) == ["validation/map@r"]
    assert len(curves["validation/map@r"]) <= 1_001
    assert curves["validation/map@r"][-1] == (20_000, 0.5)


def test_a_device_that_is_not_here_is_refused(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ValueError, match="no CUDA device"):
        run(recipe(), tmp_path, device="cuda")
    assert run(recipe(), tmp_path, device="auto")[0].provenance["device"] == "cpu"


@pytest.mark.gpu
def test_a_gpu_trains_and_resumes(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU")
    what = recipe(iterations=60, evaluate_every=20, loss="multi_similarity", regularizer="sec_ema")
    turns = iter([False] * 30 + [True])
    with pytest.raises(Stopped):
        run(what, tmp_path, device="cuda", stop=lambda: next(turns))
    reports: list[Progress] = []
    result = train(what, place(tmp_path, device="cuda"), reports.append, tmp_path / "last.pt")
    assert result.provenance["device"] == "cuda"
    assert result.metrics["best/test/recall@1"] > 0.85


CPU = torch.device("cpu")
CASES: dict[str, dict[str, Any]] = {
    "crops": {"augment": "crop_flip", "crop": 7},
    "a shuffle": {"loss": "multi_similarity", "sampler": {"name": "shuffle", "batch": 300}, "augment": "flip"},
    "two views": {
        "task": {"name": "self_supervised", "probe_epochs": 1, "probe_at": []}, "dataset": "digits_halves",
        "augment": "simclr", "crop": 7, "head": "projection", "loss": "nt_xent", "metrics": [],
        "sampler": {"name": "shuffle", "batch": 60}, "validation": {"name": "none"},
        "select": {"split": "last", "metric": "top@1"},
    },
}  # fmt: skip


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Has trainings go ahead as on a GPU, or not."""

    def switch(on: bool) -> None:
        monkeypatch.setattr(data_batches, "prefetcher", Prefetcher if on else lambda _: None)
        monkeypatch.setattr(session, "lateness", lambda _: 8 if on else 0)

    return switch


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_the_same_also_when_resumed(case: str, tmp_path: Path, ahead: Callable[[bool], None]) -> None:
    what = recipe(**CASES[case])
    ahead(False)
    expected, _ = run(what, tmp_path / "plain")
    ahead(True)
    whole, _ = run(what, tmp_path / "whole")
    assert numbers(whole) == numbers(expected)
    kept = whole.artifacts[0]
    assert same(weights(tmp_path / "whole" / kept), weights(tmp_path / "plain" / kept))
    for begun, ended in ((True, False), (False, True)) if case == "crops" else ((True, True),):
        folder = tmp_path / f"{begun} {ended}"
        asked = iter(range(100))
        ahead(begun)
        with pytest.raises(Stopped):
            run(what, folder, stop=lambda asked=asked: next(asked) >= 7)  # type: ignore[misc]
        ahead(ended)
        resumed, _ = run(what, folder, resume=folder / "last.pt")
        assert numbers(resumed) == numbers(expected), f"begun ahead: {begun}; ended ahead: {ended}"


def doomed(folder: Path, value: str, **changes: Any) -> Any:
    source = (
        "import torch\n\n\n"
        "class Doomed(torch.nn.Module):\n"
        '    """Not finite from the seventh batch on; refuses embeddings that are not, as a decomposition does."""\n\n'
        '    order = "free"\n\n'
        "    def __init__(self):\n        super().__init__()\n        self.batches = 0\n\n"
        "    def forward(self, embeddings, labels):\n"
        "        self.batches += 1\n"
        "        if not bool(embeddings.isfinite().all()):\n            raise RuntimeError('no decomposition of NaN')\n"
        f"        return embeddings.square().mean() * (float('{value}') if self.batches > 6 else 1)\n"
    )
    return own_part(folder, "losses", "doomed", source, loss="doomed", **changes)


@pytest.mark.parametrize(("value", "every"), [("nan", 5), ("inf", 1), ("nan", 100)])
def test_a_divergence_is_the_same_outcome_at_the_same_iteration(
    value: str, every: int, tmp_path: Path, ahead: Callable[[bool], None]
) -> None:
    what = doomed(tmp_path, value, evaluate_every=every, iterations=20)
    found: list[tuple[Result, str]] = []
    for on in (False, True):
        ahead(on)
        result, reports = run(what, tmp_path / str(on), parts=tmp_path)
        found.append((result, reports[-1].log))
    (expected, said), (result, said_ahead) = found
    assert (expected.outcome, expected.steps) == ("diverged", 6)
    assert numbers(result) == numbers(expected)
    assert (result.outcome, result.steps, result.best_step) == ("diverged", 6, expected.best_step)
    assert said_ahead == said == "diverged after step 6: the loss is not finite\n"


def test_a_checkpoint_of_a_training_that_has_diverged_is_not_written(
    tmp_path: Path, ahead: Callable[[bool], None]
) -> None:
    ahead(True)
    what = doomed(tmp_path, "nan", evaluate_every=100, iterations=20)
    result, _ = run(what, tmp_path / "out", parts=tmp_path, checkpoint_seconds=0.0)
    assert (result.outcome, result.steps) == ("diverged", 6)


@pytest.mark.parametrize("end", ["finished", "stopped", "diverged"])
def test_a_training_leaves_no_thread_and_no_images(
    end: str, tmp_path: Path, ahead: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that trains one recipe after the other holds what one of them needs, however they end."""
    made: list[weakref.ref[Batches]] = []
    init = Batches.__init__

    def noted(self: Batches, *given: Any) -> None:
        init(self, *given)
        made.append(weakref.ref(self))

    ahead(True)
    monkeypatch.setattr(Batches, "__init__", noted)
    before, asked = {*threading.enumerate()}, iter(range(100))
    what = doomed(tmp_path, "nan") if end == "diverged" else recipe()
    gc.collect()
    gc.disable()  # Python shall free what nothing refers to, without a search for cycles
    try:
        if end == "stopped":
            with pytest.raises(Stopped):
                run(what, tmp_path, stop=lambda: next(asked) >= 7)
        else:
            assert run(what, tmp_path, parts=tmp_path)[0].outcome == {"finished": "ok"}.get(end, end)
        for thread in {*threading.enumerate()} - before:
            thread.join(60)
            assert not thread.is_alive(), thread.name
        assert [one() for one in made] == [None]
    finally:
        gc.enable()
