"""What every task keeps, whatever it trains: it resumes, diverges as an outcome, measures what is named, is refused."""

import math
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.workers.recipes import begun, numbers, problems, run, same, weights
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog
from workers.catalog import Entry, holds
from workers.contract import GOES_WITH, PART_FIELDS, Recipe, Result

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
    "loss_rate": 10.0,
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
"""What else is said of a task to train it for a moment, and to have something of everything; a new task may add."""
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
    """A task's whole training, its folder, and how often it asked whether to stop."""

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
                said = f"says something of a {part}, and task {name!r} takes none; leave it out"
                assert problems({**raw(name), field: value}) == {field: said}
                assert field not in recipe(name).model_dump(mode="json")

    def test_validates_by_what_it_says_and_by_nothing_else(self, name: str, tmp_path: Path) -> None:
        allowed = entry(name).stated("validations")
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
        wanted = [*catalog.load().metrics(recipe(name).dataset, name), *recipe(name).metrics]
        assert {key.removeprefix(prefix) for key in result.metrics if key.startswith(prefix)} == set(wanted)
        assert all(math.isfinite(value) for value in result.metrics.values())
        noted = {key.removeprefix("train/") for key in result.curves if key.startswith("train/")}
        assert "lr" in noted <= {*entry(name).stated("curves")}

    def test_a_divergence_is_an_outcome(self, name: str, tmp_path: Path) -> None:
        result, reports = run(recipe(name, optimizer={"name": "sgd", "lr": 1e30}), tmp_path)
        assert (result.outcome, result.artifacts) == ("diverged", [])
        assert "diverged" in reports[-1].log


def test_a_metric_of_another_task_is_refused() -> None:
    said = "metric 'recall@1' reads embeddings, but task 'two_player' gives samples"
    assert problems({**raw("two_player"), "metrics": ["recall@1"]}) == {"metrics.0": said}
    assert problems({**raw("two_player"), "figures": ["norms"]}) == {
        "figures.0": "task 'two_player' draws no figure 'norms'; it draws 'samples'"
    }
    assert "modes" in problems({**raw("retrieval"), "metrics": ["modes"]})["metrics.0"]


def test_every_field_that_goes_with_a_part_is_tried() -> None:
    assert FIELDS.keys() == GOES_WITH.keys() - {*PART_FIELDS}


def test_a_task_without_images_is_not_told_to_hold_some_out() -> None:
    said = "nothing is held out to select by 'validation'; select by 'test' or 'last'"
    select = {"metric": "modes", "split": "validation"}
    assert problems({**raw("two_player"), "select": select}) == {"select.split": said}


def test_players_take_turns(tmp_path: Path) -> None:
    """Each moves only itself, and the second sees what the first has become."""
    session = begun(recipe("two_player"), tmp_path)
    seen = []
    for terms in session.turns():
        before = session.weights()
        session.descend(terms)
        after = session.weights()
        moved = {name for name in after if not same(after[name], before[name])}
        assert moved == {terms.player}
        seen.append(terms.player)
    assert seen == ["discriminator", "generator"]
    assert session.players.keys() == {"generator", "discriminator"}
