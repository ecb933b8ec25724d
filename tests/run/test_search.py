"""Optuna behind ask and tell: deterministic, replayable, conditional."""

import pytest

from orchestrator.run.optuna import OptunaStudy
from orchestrator.views.runs import Dimension

RATE = Dimension("optimizer.lr", "optimizer.lr", {}, low=1e-5, high=1e-1, log=True)
REGULARIZER = Dimension("regularizer", "regularizer", {}, labels=("none", "sec"))
ETA = Dimension("regularizer.eta", "regularizer.eta", {"regularizer": ("sec",)}, low=0.1, high=2.0)
WIDTH = Dimension("embedding", "embedding", {}, low=16, high=64, step=16, whole=True)


def score(values: dict[str, object]) -> float:
    return -abs(float(str(values["optimizer.lr"])) - 0.01)


def walk(study: OptunaStudy, n: int) -> list[dict[str, object]]:
    found = []
    for _ in range(n):
        asked = study.ask()
        assert asked is not None
        number, values = asked
        found.append(dict(values))
        study.tell(number, None if number == 2 else score(dict(values)))
    return found


@pytest.mark.parametrize("sampler", ["random", "tpe", "gp", "cmaes", "qmc"])
def test_the_same_seed_gives_the_same_suggestions(sampler: str) -> None:
    first, again, other = (walk(OptunaStudy(sampler, [RATE, WIDTH], seed, higher=True), 14) for seed in (7, 7, 8))
    assert first == again != other
    assert all(1e-5 <= float(str(one["optimizer.lr"])) <= 0.1 for one in first)
    assert all(one["embedding"] in (16, 32, 48, 64) for one in first)


@pytest.mark.parametrize("sampler", ["random", "tpe", "gp"])
def test_what_does_not_apply_is_not_suggested(sampler: str) -> None:
    found = walk(OptunaStudy(sampler, [RATE, REGULARIZER, ETA], 0, higher=True), 16)
    assert {one["regularizer"] for one in found} == {"none", "sec"}
    assert all(("regularizer.eta" in one) == (one["regularizer"] == "sec") for one in found)


def test_brute_force_tries_every_point_once() -> None:
    study = OptunaStudy("brute_force", [REGULARIZER, WIDTH], 0, higher=True)
    found = []
    for _ in range(8):
        asked = study.ask()
        assert asked is not None
        found.append(tuple(asked[1].items()))
        study.tell(asked[0], 0.5)
    assert len(set(found)) == 8


def test_a_study_learns_what_another_was_told() -> None:
    study = OptunaStudy("tpe", [RATE, REGULARIZER, ETA], 0, higher=True)
    study.learn({"optimizer.lr": 0.01, "regularizer": "none"}, 0.9)
    study.learn({"optimizer.lr": 0.02, "regularizer": "sec", "regularizer.eta": 1.0}, None)
    assert study.ask({"optimizer.lr": 0.03, "regularizer": "none"}) == (
        2,
        {"optimizer.lr": 0.03, "regularizer": "none"},
    )
    study.tell(2, 0.8)
    assert study.export().best_value == 0.9
    assert len(study.export().trials) == 3
