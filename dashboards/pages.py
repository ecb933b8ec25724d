"""The pages: each a pure function from what the service gives to HTML."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from dashboards import problems, progress, training
from dashboards.rendering import render
from orchestrator.views.cells import CellView
from orchestrator.views.files import FigureFile
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.pages import Page
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView
from orchestrator.views.trials import LogView, TrialView

EXPORTS: Final = ("latex", "markdown", "csv", "json", "html", "png")
FIGURE_EXPORTS: Final = ("pdf", "svg", "png", "json", "csv")
SECONDS: Final = {"active": 3, "list": 15}
"""How often a page asks for itself again: while what it shows is active, and a list in which nothing is."""
MOST_SQUARES: Final = progress.MOST_SQUARES
MOST_TABLED: Final = 20_000
"""Trials of a sweep whose page shows its tables; of a greater one they are computed when they are asked for."""


def sweeps_page(page: Page[SweepSummary], *, state: str | None, name: str | None, now: datetime | None = None) -> str:
    """The sweeps, newest first, by state and part of the name; `state` and `name` are those that filter it."""
    asked = {"state": str(state or ""), "name": name or ""}
    kept = {key: value for key, value in asked.items() if value}
    newest = f"/?{urlencode(kept)}" if kept else "/"
    further = f"/?{urlencode(kept | {'cursor': page.next_cursor})}" if page.next_cursor else None
    active = any(one.state in progress.ACTIVE for one in page.items)
    return render(
        "sweeps.html", now, sweeps=page.items, asked=asked, filtered=bool(kept), newest=newest, further=further,
        states=list(SweepState), refresh=SECONDS["active" if active else "list"], active=active,
    )  # fmt: skip


def sweep_page(
    sweep: SweepView,
    grid: Sequence[GridCell],
    tables: Mapping[str, str | None],
    *,
    cells: int = 0,
    left: Sequence[str] = (),
    now: datetime | None = None,
) -> str:
    """One sweep; `tables` are fragments of HTML by name, which the formats have escaped; none: too great to be shown.

    `grid` may be the first cells alone, of `cells` in all; `left` says what is still to be trained.
    """
    active = sweep.state in progress.ACTIVE
    return render(
        "sweep.html", now, sweep=sweep, tables=tables,
        grid=progress.drawn(grid, cells=cells, trials=sweep.counts.total),
        problems=problems.gathered(sweep.problems), exports=EXPORTS, figure_exports=FIGURE_EXPORTS,
        left=left, can_cancel=progress.can_cancel(sweep), can_retry=progress.can_retry(sweep),
        active=active, refresh=SECONDS["active"] if active else None,
    )  # fmt: skip


def cell_page(cell: CellView) -> str:
    """What stands behind the numbers of one cell."""
    return render("cell.html", None, cell=cell)


def trial_page(
    trial: TrialView,
    figure: Mapping[str, Any] | None,
    log: LogView,
    files: Sequence[FigureFile] = (),
    *,
    now: datetime | None = None,
) -> str:
    """One trial; `figure` is the Vega-Lite specification of its curves, `files` are those of the recipe's figures."""
    evaluated = trial.evaluation is not None and trial.evaluation.state in progress.ACTIVE
    active = trial.state in progress.ACTIVE or evaluated
    last = training.last_values(figure)
    return render(
        "trial.html", now, trial=trial, log=log, files=files, tail=training.tail(log), last=last,
        kind="diverged" if trial.diverged else trial.state.value,
        figure=embedded(figure) if figure and last else None, grammar=grammar(figure),
        metrics=training.metric_table(trial.metrics), recipe=list(training.field_rows(trial.recipe)),
        provenance=list(training.field_rows(trial.provenance)),
        selection=training.selection(trial.recipe), active=active, refresh=SECONDS["active"] if active else None,
    )  # fmt: skip


def login_page(message: str) -> str:
    """The form that asks for the token; `message` says why the last one was refused."""
    return render("login.html", None, message=message)


def problem_page(status: int, title: str, detail: str) -> str:
    """What went wrong, each line of `detail` for itself."""
    return render("problem.html", None, status=status, title=title, lines=detail.splitlines())


def embedded(figure: Mapping[str, Any]) -> dict[str, Any]:
    """The figure without what the page says itself, and without the schema's address: nothing here names a server."""
    return {key: value for key, value in figure.items() if key not in {"$schema", "title"}}


def grammar(figure: Mapping[str, Any] | None) -> str:
    """The Vega-Lite version that the figure is written in: `v6.1.0`."""
    return str((figure or {}).get("$schema", "")).rpartition("/")[2].removesuffix(".json")
