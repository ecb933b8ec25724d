"""Optuna behind ask and tell: deterministic, replayable, conditional."""

import pytest

from orchestrator.run.optuna import OptunaStudy
from orchestrator.spec.spec import Span
from orchestrator.views.runs import Dimension

RATE = Dimension("optimizer.lr", "optimizer.lr", {}, span=Span(low=1e-5, high=1e-1, log=True))
WIDTH = Dimension("embedding", "embedding", {}, span=Span(low=16, high=64, step=16, whole=True))


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
