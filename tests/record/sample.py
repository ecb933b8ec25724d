"""A small sweep and what its trainings report, as the record tests use them."""

import uuid
from collections.abc import Sequence
from typing import Any

from orchestrator.record.requests import NewSweep
from orchestrator.record.store import Store
from orchestrator.record.sweeps import PlanRows
from orchestrator.spec.spec import Slot
from orchestrator.views.runs import Candidate, Cell, Failed, Failure, Finished, Order, PlannedTrial, Progressed, Started
from workers.contract import Progress, Recipe, Result

KEY = "best/validation/map@r"
SLOT = Slot(cpus=1)


def recipe(loss: str = "triplet", seed: int = 0, **more: Any) -> Recipe:
    """A recipe of the sample sweep."""
    return Recipe.model_validate(
        {
            "dataset": "digits",
            "backbone": {"name": "small_cnn", "width": 8},
            "loss": {"name": loss, "margin": 0.2},
            "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
            "iterations": 100,
            "evaluate_every": 10,
            "validation": {"name": "class_holdout", "folds": 3},
            "seed": seed,
            "pins": {"versions": {"loss": 1}},
        }
        | more
    )


def new_sweep(name: str = "sample", key: str | None = None, body_hash: str = "hash", total: int = 4) -> NewSweep:
    """A sweep as the service submits it."""
    spec = {"name": name, "tables": {"main": {"rows": ["loss"]}}}
    return NewSweep(
        name=name, uid=str(uuid.uuid4()), text=f"name: {name}\n", spec=spec, total=total, actor="ann",
        idempotency_key=key, body_hash=body_hash,
    )  # fmt: skip


def planned(losses: Sequence[str] = ("triplet", "semihard"), seeds: Sequence[int] = (0, 1)) -> dict[str, Any]:
    """Cells, candidates and trials: one cell a loss, one candidate each, one repeat a seed."""
    trials = []
    for index, loss in enumerate(losses):
        for repeat, seed in enumerate(seeds):
            made = recipe(loss, seed)
            trials.append(PlannedTrial(index, 0, repeat, {"seed": str(seed)}, made, made.fingerprint))
    return {
        "cells": [Cell(index, {"loss": loss}) for index, loss in enumerate(losses)],
        "candidates": [Candidate(index, 0, {"loss.margin": "0.2"}) for index in range(len(losses))],
        "trials": trials,
    }


def started(store: Store, fence: int, name: str = "sample", fresh: bool = False, **plan: Any) -> int:
    """A sweep that runs; returns its id."""
    sweep = store.submissions.add_sweep(new_sweep(name)).id
    store.writer(fence).sweeps.start(sweep, PlanRows(**planned(**plan)), slot=SLOT, fresh=fresh)
    return sweep


def lease(store: Store, holder: str = "conductor-1", seconds: float = 600) -> int:
    """The fence of a conductor that just started."""
    fence = store.lease.acquire(holder, seconds)
    assert fence is not None
    return fence


def result(score: float = 0.5, outcome: str = "ok", **more: Any) -> Result:
    """A training's result."""
    values: dict[str, Any] = {
        "outcome": outcome,
        "metrics": {KEY: score, "best/test/map@r": score - 0.1, "best/test/recall@1": float("nan")},
        "curves": {"train/loss": [(10, 1.0), (20, 0.5)]},
        "best_step": 20,
        "steps": 100,
        "seconds": 8.0,
        "provenance": {"git_commit": "abc123", "device": "cpu", "versions": {"torch": "2.6"}},
        "artifacts": ["best.safetensors"],
    }
    return Result(**(values | more))


def progress(step: int, **more: Any) -> Progress:
    """A message of a training."""
    return Progress(step=step, total=100, **more)


def run(store: Store, fence: int, order: Order, score: float = 0.5, outcome: str = "ok") -> None:
    """Everything that a good attempt reports."""
    store.writer(fence).events.write(Started(order.attempt, "slot-0", "host-a"))
    store.writer(fence).events.write(
        Progressed(order.attempt, 1, progress(10, metrics={"train/loss": 1.0}, log="step 10\n"))
    )
    store.writer(fence).events.write(Progressed(order.attempt, 2, progress(20, metrics={"validation/map@r": score})))
    store.writer(fence).events.write(Finished(order.attempt, result(score, outcome)))


def fail(store: Store, fence: int, order: Order, requeue: bool = False, kind: Any = "recipe") -> None:
    """An attempt that ends without a result."""
    store.writer(fence).events.write(
        Failed(order.attempt, Failure(kind, "ValueError: no such class", "Traceback ..."), requeue)
    )


def run_all(store: Store, fence: int) -> int:
    """Run whatever waits; returns how many trainings that were."""
    ran = 0
    while (order := store.writer(fence).claims.next()) is not None:
        run(store, fence, order, score=0.5 + ran / 100)
        ran += 1
    return ran


def claimed(store: Store, fence: int) -> Order:
    """The next order, which must exist."""
    order = store.writer(fence).claims.next()
    assert order is not None
    return order


def states(store: Store, sweep: int) -> list[str]:
    """The states of a sweep's trials, in order."""
    return [trial.state.value for trial in store.trials.page(sweep, limit=1000).items]
