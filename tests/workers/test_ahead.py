"""What a GPU's training does ahead of time, on the CPU: the same numbers, resumes, outcomes and messages as without."""

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.recipes import numbers, own_part, recipe, run, same, weights
from workers.contract import Result, Stopped
from workers.data import batches as data_batches
from workers.data.batches import Batches
from workers.data.images import Prefetcher
from workers.training import session

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
