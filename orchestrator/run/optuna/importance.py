"""Which axes decide a number, by Optuna's PED-ANOVA: a process of its own, read from its input, told on its output.

    python -m orchestrator.run.optuna.importance < asked.json

where that is `{"axes": {"eta": [0.1, 0.5], "loss": ["triplet", "npair"]}, "numbers": [0.6, 0.7], "higher": true}`.

A value that is null is one that the row's cell does not have. Whoever asks bounds the rows and the time.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

_ABSENT: Final = "–"
_WIDE: Final = 50  # of the greatest to the least, above which an axis is logarithmic
_MOST_LABELS: Final = 100


def importances(
    axes: Mapping[str, Sequence[float | str | None]], numbers: Sequence[float], *, higher: bool
) -> dict[str, float]:
    """The share of each axis that varies, the greatest first; they add up to one."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize" if higher else "minimize")
    read = {axis: _read(values) for axis, values in axes.items()}
    varied = {axis: made for axis, made in read.items() if made is not None}
    for at, number in enumerate(numbers):
        study.add_trial(
            optuna.trial.create_trial(
                params={axis: values[at] for axis, (values, _) in varied.items()},
                distributions={axis: distribution for axis, (_, distribution) in varied.items()},
                value=number,
            )
        )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator)) if varied else {}


def _read(values: Sequence[float | str | None]) -> tuple[list[Any], Any] | None:
    """The values of an axis and their distribution; none where all are equal, or too many to be categories."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if len(set(values)) < 2:
        return None
    if all(isinstance(value, float) for value in values):
        numbers = [float(value) for value in values]  # type: ignore[arg-type]
        low, high = min(numbers), max(numbers)
        return numbers, FloatDistribution(low, high, log=low > 0 and high > _WIDE * low)
    labels = [_ABSENT if value is None else str(value) for value in values]
    kinds = sorted(set(labels))
    return (labels, CategoricalDistribution(kinds)) if len(kinds) <= _MOST_LABELS else None


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(importances(asked["axes"], asked["numbers"], higher=asked["higher"]), sys.stdout)
