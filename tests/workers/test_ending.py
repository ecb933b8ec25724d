"""What a task measures at the end of a training: asked of the weights that are kept, told, cut and resumed."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.workers.recipes import numbers, place, run
from tests.workers.test_checkpoint import cut_and_resumed, stopping_after
from workers import catalog
from workers.contract import Recipe, Stopped
from workers.training import checkpoint, kept_weights, loop

ITERATIONS, EPOCHS = 4, 3
TASK = '''
import torch
from torch import nn
from workers.tasks import Optimized, Task, Terms


class Probed(Task):
    """A point that falls to zero; at the end a second one is drawn to it, by steps that are drawn."""

    label = "Probed"
    version = 1
    metrics = ("far", "fitted")
    selects = "fitted"
    split = "last"
    reads = "points"
    ended = ("fitted",)
    curves = ("loss", "lr")

    def __init__(self, measures, device, *, watching: bool = False):
        self.point = nn.Linear(1, 1, bias=False).to(device)
        self.watched = ("far",) if watching else ()
        self.measures, self.probe, self.epoch = measures, None, 0

    def modules(self):
        return {"point": self.point}

    def optimized(self):
        return {"model": Optimized(self.modules())}

    def step(self, batch, at):
        loss = self.point.weight.square().sum()
        yield Terms("model", loss, lambda: {"loss": float(loss.detach()), "lr": at.rate})

    def evaluate(self, split, names):
        assert "fitted" not in names
        return self.measures.of(float(self.point.weight.detach()), names)

    def end(self, at):
        if self.probe is None:
            self.probe, self.epoch = torch.zeros(1, requires_grad=True), 0
        while self.epoch < 3:
            loss = (self.probe - self.point.weight.detach().flatten() * at.step).square().sum()
            (moved,) = torch.autograd.grad(loss, self.probe)
            with torch.no_grad():
                self.probe -= torch.rand(()) * moved
            self.epoch += 1
            values = self.measures.of(float(self.probe.detach()), ["fitted"])
            yield {"train/probe_loss": float(loss.detach()), "test/fitted": values["fitted"]}
        self.probe = None

    def state_dict(self):
        return {} if self.probe is None else {"probe": self.probe.detach().clone(), "epoch": self.epoch}

    def load_state_dict(self, state):
        if "probe" in state:
            self.probe, self.epoch = state["probe"].requires_grad_(), state["epoch"]
'''
METRIC = '''
class {0}:
    """The point."""

    better = "lower"
    reads = "points"

    def __call__(self, evaluation):
        return evaluation
'''


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of own parts with a task that measures at the end."""
    for folder, name, source in (
        ("tasks", "probed", TASK),
        ("metrics", "far", METRIC.format("Far")),
        ("metrics", "fitted", METRIC.format("Fitted")),
    ):
        (tmp_path / "parts" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "parts" / folder / f"{name}.py").write_text(source)
    return tmp_path / "parts"


def raw(**changes: Any) -> dict[str, Any]:
    return {"task": "probed", "iterations": ITERATIONS, "optimizer": {"name": "adam", "lr": 0.1}} | changes


def made(parts: Path, **changes: Any) -> Recipe:
    known = catalog.load(parts)
    assert catalog.problems(raw(**changes), known) == []
    return catalog.complete(Recipe.model_validate(raw(**changes)), known)


BEST = {"task": {"name": "probed", "watching": True}, "evaluate_every": 1, "select": {"metric": "far", "split": "test"}}


def test_it_is_a_result_of_the_weights_that_are_kept(parts: Path, tmp_path: Path) -> None:
    result, _ = run(made(parts), tmp_path, parts=parts)
    assert result.metrics.keys() == {"last/test/far", "last/test/fitted"}
    kept = kept_weights.read(tmp_path / "final.pt")
    assert kept_weights.evaluate(kept, ["fitted", "far"], place(tmp_path, parts=parts)) == result.metrics
    chosen = made(parts, **BEST, optimizer={"name": "sgd", "lr": 2.0})  # back and forth over zero
    result, _ = run(chosen, tmp_path / "best", parts=parts)
    assert result.best_step != ITERATIONS
    assert result.metrics.keys() == {f"{which}/test/{name}" for which in ("last", "best") for name in ("far", "fitted")}
    assert result.metrics["last/test/fitted"] != result.metrics["best/test/fitted"]


@pytest.mark.parametrize("changes", [{}, BEST | {"optimizer": {"name": "sgd", "lr": 2.0}}], ids=str)
def test_it_stops_and_resumes_between_any_two_values(parts: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    what, stops = made(parts, **changes), count()
    whole, _ = run(what, tmp_path / "whole", parts=parts, stop=lambda: next(stops) < 0)
    asked = range(next(stops))
    apart = "best/test/far" in whole.metrics and whole.best_step != ITERATIONS
    assert len(asked) == ITERATIONS + 1 + EPOCHS * (2 if apart else 1)
    for turn in asked:
        assert numbers(cut_and_resumed(what, tmp_path / str(turn), [turn], parts=parts)) == numbers(whole), turn
    pieces = [ITERATIONS + 2, 1, 0]  # an attempt is asked once more before it goes on where no iteration is left
    assert numbers(cut_and_resumed(what, tmp_path / "pieces", pieces, parts=parts)) == numbers(whole)


def test_a_checkpoint_is_written_in_it_when_it_is_time(parts: Path, tmp_path: Path) -> None:
    what = made(parts)
    _, reports = run(what, tmp_path, parts=parts, checkpoint_seconds=0.0)
    assert [one.step for one in reports if one.checkpoint] == [1, 2, 3, 4, *[ITERATIONS] * EPOCHS]
    with pytest.raises(Stopped):
        run(what, tmp_path / "cut", parts=parts, stop=stopping_after(ITERATIONS + 2))
    ending = checkpoint.load(tmp_path / "cut" / "last.pt")["ending"]
    assert ending["found"][ITERATIONS].keys() == {"test/far", "test/fitted"}
    assert (ending["over"], ending["now"]) == ([], ITERATIONS)


def test_how_it_goes_is_told(parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "REPORT_SHARE", 0.0)
    monkeypatch.setattr(loop, "LINE_SECONDS", 0.0)
    _, reports = run(made(parts), tmp_path, parts=parts)
    told = [one for one in reports if "train/probe_loss" in one.metrics]
    assert len(told) == EPOCHS
    assert all("probe_loss " in one.log and "test/fitted " in one.log for one in told)
    assert any("measuring fitted of step 4" in one.log for one in reports)


def test_a_checkpoint_is_not_chosen_by_it(parts: Path) -> None:
    known = catalog.load(parts)
    found = catalog.problems(raw(select={"split": "test"}), known)
    said = "task 'probed' measures 'fitted' at the end only, of the weights that are kept"
    assert [(one.path, one.message) for one in found] == [
        ("select.metric", f"{said}; write `split: last`, or select by another")
    ]
