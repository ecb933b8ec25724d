"""At the end the last and the best weights are evaluated once each, and once where they are the same."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workers.recipes import recipe, run
from workers.tasks.retrieval import Retrieval

SLOW = {"name": "sgd", "lr": 1e-12}  # nothing gets better, so that the first evaluation is the best


@pytest.mark.parametrize(
    ("changes", "best", "apart"),
    [
        ({"evaluate_every": 12}, 12, False),  # as sweeps/digits.yaml: the best are the last
        ({"evaluate_every": 5, "optimizer": SLOW}, 5, True),
        ({"evaluate_every": 4, "optimizer": SLOW, "patience": 1}, 4, True),  # it ends at step 8
        ({"select": {"split": "last"}, "validation": {"name": "none"}}, None, False),
    ],
    ids=["the same", "apart", "patience", "last"],
)
def test_weights_are_evaluated_once_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], best: int | None, apart: bool
) -> None:
    asked: Counter[str] = Counter()
    evaluate = Retrieval.evaluate

    def counted(self: Retrieval, split: str, names: Sequence[str]) -> dict[str, float]:
        # On the way a split is asked for less.
        asked[split] += int(split == "train" or "nmi" in names)
        return evaluate(self, split, names)

    monkeypatch.setattr(Retrieval, "evaluate", counted)
    result, _ = run(recipe(**changes), tmp_path)
    assert result.best_step == best
    splits = {key.split("/")[1] for key in result.metrics}
    assert asked == dict.fromkeys(splits, 2 if apart else 1)
