"""The page that sets trials side by side: what of their recipes differs, and their metrics."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from dashboards.rendering import render
from dashboards.wording import plain
from orchestrator.views.trials import TrialView

MOST: Final = 8
"""Trials that stand side by side."""
_UNTOLD: Final = ("pins.",)  # versions and content hashes: the trial's own page has them


def comparison_page(trials: Sequence[TrialView], left_out: int) -> str:
    """Some trials; `left_out` is how many more were chosen than stand side by side."""
    recipes = [dict(_leaves(trial.recipe)) for trial in trials]
    paths = sorted({path for recipe in recipes for path in recipe if not path.startswith(_UNTOLD)})
    shown = [(path, [plain(recipe[path]) if path in recipe else "–" for recipe in recipes]) for path in paths]
    differing = [(path, values) for path, values in shown if len(set(values)) > 1]
    keys = sorted({key for trial in trials for key in trial.metrics}, key=_rank)
    metrics = [(key, [trial.metrics.get(key) for trial in trials]) for key in keys]
    curves = f"/curves?{urlencode({'trials': ','.join(str(trial.id) for trial in trials)})}"
    return render(
        "compare.html", None, trials=trials, differing=differing, same=len(shown) - len(differing), metrics=metrics,
        curves=curves, left_out=left_out,
    )  # fmt: skip


def _leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, inside in value.items():
        if isinstance(inside, Mapping):
            yield from _leaves(inside, f"{before}{key}.")
        else:
            yield f"{before}{key}", inside


def _rank(key: str) -> tuple[bool, bool, str]:
    return not key.startswith("best/"), "/test/" not in key, key
