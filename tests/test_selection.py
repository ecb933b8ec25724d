"""Both selections and an equal budget from a spec to a table, by real trainings; then what more of them would cost."""

import csv
import io
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from orchestrator.service import offline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "two-selections",
    "recipe": {
        "dataset": "digits", "backbone": {"name": "mlp", "width": 16}, "loss": "triplet",
        "optimizer": {"name": "adam", "lr": 0.01}, "sampler": {"name": "balanced", "classes": 3, "per_class": 4},
        "iterations": 20, "evaluate_every": 2, "validation": {"name": "class_holdout", "folds": 3},
    },
    "compare": {"regularizer": ["none", "sec"]},
    "tune": {"regularizer.eta": {"values": [0.5, 1.0], "when": {"regularizer": "sec"}}},
    "repeat": {"seed": [0, 1]},
    "select": {"metric": "recall@1", "beside": "test", "budget": 3},
    "tables": {
        "main": {
            "rows": ["regularizer"], "metrics": ["recall@1", "map@r"], "selections": ["validation", "test"],
            "selection_gap": True, "unit": "fraction",
        },
    },
}  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, engine="inline", lease_seconds=60)


def test_from_a_spec_to_a_table(service: Service, settings: Settings) -> None:
    body = yaml.safe_dump(SPEC, sort_keys=False).encode()
    before = service.submissions.preview(body)
    assert (before.cells, before.candidates, before.trials, before.trainings, before.cached) == (2, 6, 12, 12, 0)
    assert (before.cost.trainings, before.cost.measured, before.cost.hours) == (12, 0, [])
    assert (before.cost.steps, before.cost.images) == (12 * 20, 12 * 20 * 12)
    submitted = service.submissions.submit(body)
    sweep = submitted.id
    assert submitted.cost == service.sweeps.left(service.sweeps.get(sweep)) == before.cost
    conduct(settings)
    assert (service.sweeps.get(sweep).state, service.sweeps.get(sweep).counts.finished) == ("finished", 12)
    assert service.sweeps.left(service.sweeps.get(sweep)) is None
    assert [[dict(one.labels) for one in cell.candidates] for cell in service.sweeps.grid(sweep)] == [
        [{"optimizer.lr": rate} for rate in ("0.01", "0.005", "0.02")],
        [
            {"regularizer.eta": "0.5", "optimizer.lr": "0.01"},
            {"regularizer.eta": "1.0", "optimizer.lr": "0.01"},
            {"regularizer.eta": "0.5", "optimizer.lr": "0.005"},
        ],
    ]
    for trial in service.store.trials.page(sweep, None, None, None, 50).items:
        metrics = service.trials.get(trial.id).metrics
        assert (metrics["best_test/test/recall@1"] or 0) >= (metrics["best/test/recall@1"] or 1)
    rows = list(csv.DictReader(io.StringIO(service.tables.render(sweep, "main", "csv").content.decode())))
    assert len(rows) == 2 * 3 * 2
    by = {(one["regularizer"], one["metric"], one["key"].partition("/")[0]): float(one["mean"]) for one in rows}
    for cell in ("none", "sec"):
        selection_gap = by[cell, "selection_gap:recall@1", "best_test"]
        assert selection_gap >= 0  # the best of all that the other choice could take
        assert selection_gap == by[cell, "recall@1", "best_test"] - by[cell, "recall@1", "best"]
    shown = service.tables.html(sweep, "main")
    assert "Selected on test" in shown
    assert "Selection budget: 3 candidates in every cell" in shown
    costs(service, settings)


def costs(service: Service, settings: Settings) -> None:
    """What was trained is known; what is left takes as long as that did, and nobody knows of a longer training."""
    more = yaml.safe_dump({**SPEC, "repeat": {"seed": [0, 1, 2]}}).encode()
    found = service.submissions.preview(more)
    assert (found.trials, found.cached, found.cost.trainings, found.cost.measured) == (18, 12, 6, 6)
    seconds = [service.trials.get(one).seconds or 0.0 for one in range(1, 13)]
    (hours,) = found.cost.hours
    assert (hours.kind, hours.trainings, hours.slots) == ("cpu", 6, None)
    assert hours.hours == pytest.approx(6 * median(seconds) / 3600)
    assert hours.low <= hours.hours <= hours.high
    assert offline.preview(more, settings) == found
    assert offline.preview(more, settings.model_copy(update={"home": settings.home / "other"})).cost.measured == 0
    longer = [{"label": str(n), "patch": {"iterations": n, "evaluate_every": every}} for n, every in ((40, 2), (20, 5))]
    other = {**SPEC, "repeat": {"seed": [2]}, "compare": {"length": longer}, "tune": {}, "tables": {}}
    partly = service.submissions.preview(yaml.safe_dump(other).encode())
    assert (partly.cost.trainings, partly.cost.measured, partly.cost.unmeasured_shapes) == (6, 3, 1)
    assert partly.cost.hours[0].hours == pytest.approx(2 * hours.hours / 2), "three trainings twice as long"
    folds = {**SPEC["recipe"], "validation": {"name": "cross_validation", "folds": 3}}
    several = service.submissions.preview(yaml.safe_dump({**SPEC, "recipe": folds}).encode())
    assert (several.cost.trainings, several.cost.models, several.cost.measured) == (12, 36, 0)
    assert several.cost.steps == 36 * 20
    fresh = service.submissions.preview(yaml.safe_dump({**SPEC, "fresh": True}).encode())
    assert (fresh.cached, fresh.cost.trainings) == (0, 12)
