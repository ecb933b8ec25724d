"""The pages that set trials, cells, or sweeps side by side: what of their recipes differs, and their metrics."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from dashboards.rendering import render
from dashboards.wording import plain
from orchestrator.views.sweeps import SweepSummary
from orchestrator.views.tables import ComparedCell
from orchestrator.views.trials import TrialView

MOST: Final = 8
"""Trials, cells, or sweeps that stand side by side."""
_UNTOLD: Final = ("pins.",)  # versions and content hashes: the trial's own page has them


def comparison_page(trials: Sequence[TrialView], left_out: int) -> str:
    """Some trials; `left_out` is how many more were chosen than stand side by side."""
    differing, same = _difference([trial.recipe for trial in trials])
    keys = sorted({key for trial in trials for key in trial.metrics}, key=_rank)
    metrics = [(key, [trial.metrics.get(key) for trial in trials]) for key in keys]
    curves = f"/curves?{urlencode({'trials': ','.join(str(trial.id) for trial in trials)})}"
    return render(
        "compare.html", None, trials=trials, differing=differing, same=same, metrics=metrics,
        curves=curves, left_out=left_out,
    )  # fmt: skip


def cell_comparison_page(cells: Sequence[ComparedCell], left_out: int = 0) -> str:
    """Some cells; `left_out` is how many more were chosen than stand side by side."""
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    labels = [(axis, [cell.labels.get(axis, "–") for cell in cells]) for axis in axes]
    differing, same = _difference([cell.recipe for cell in cells])
    keys = sorted({key for cell in cells for key in cell.metrics}, key=_rank)
    places = [f"{cell.sweep}/{cell.index}" for cell in cells]
    return render(
        "compare_cells.html", None, cells=cells, places=places, left_out=left_out,
        apart=[(axis, values) for axis, values in labels if len(set(values)) > 1],
        alike=[(axis, values[0]) for axis, values in labels if len(set(values)) == 1],
        differing=differing, same=same, metrics=[(key, [cell.metrics.get(key) for cell in cells]) for key in keys],
        selections=sorted({cell.selection_key for cell in cells}),
    )  # fmt: skip


def sweep_comparison_page(
    sweeps: Sequence[SweepSummary], tables: Mapping[str, str], *, left_out: int = 0, problem: str = ""
) -> str:
    """Some sweeps, and what their cells become as one table: HTML that the formats have escaped, by its title.

    `problem` says why there is none; `left_out` is how many more were chosen than stand side by side.
    """
    numbers = ",".join(str(sweep.id) for sweep in sweeps)
    return render(
        "compare_sweeps.html", None, sweeps=sweeps, tables=tables, numbers=numbers, left_out=left_out, problem=problem
    )


def _difference(recipes: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, list[str]]], int]:
    """The fields in which recipes differ, each with its values, and how many further ones they share.

    An empty recipe is one that is not known: it differs in nothing.
    """
    fields = [dict(_leaves(recipe)) for recipe in recipes]
    paths = sorted({path for one in fields for path in one if not path.startswith(_UNTOLD)})
    shown = [(path, [plain(one[path]) if path in one else "–" for one in fields]) for path in paths]
    known = [at for at, one in enumerate(fields) if one]
    differing = [(path, values) for path, values in shown if len({values[at] for at in known}) > 1]
    return differing, len(shown) - len(differing)


def _leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, inside in value.items():
        if isinstance(inside, Mapping):
            yield from _leaves(inside, f"{before}{key}.")
        else:
            yield f"{before}{key}", inside


def _rank(key: str) -> tuple[bool, bool, str]:
    return not key.startswith("best/"), "/test/" not in key, key
