"""The pages: each a pure function from what the service gives to HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from dashboards import problems, progress, training
from dashboards.rendering import render
from orchestrator.views.accounts import EVERYTHING, Allowed
from orchestrator.views.evidence import ResolutionView
from orchestrator.views.operations import CollectionView, SweepStorage
from orchestrator.views.pages import FigureFile, Page
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView
from orchestrator.views.tables import CellView
from orchestrator.views.trials import LogView, Neighbour, TrialView

EXPORTS: Final = ("latex", "markdown", "csv", "json", "html")
FIGURE_EXPORTS: Final = ("pdf", "svg", "png", "json", "csv")
SECONDS: Final = {"active": 3, "list": 15}
"""How often a page asks for itself again: while what it shows is active, and a list in which nothing is."""
HEATS: Final = (("metric", "by metric"), ("state", "by state"), ("none", "not"))
"""By what the tables of a sweep's page may be coloured."""
MOST_SQUARES: Final = progress.MOST_SQUARES
MOST_TABLED: Final = 20_000
"""Trials of a sweep whose page shows its tables; of a greater one they are computed when they are asked for."""


def sweeps_page(
    page: Page[SweepSummary],
    *,
    state: str | None,
    name: str | None,
    tag: str | None = None,
    now: datetime | None = None,
) -> str:
    """The sweeps, newest first; `state`, part of the `name` and `tag` are those that filter it."""
    asked = {"state": str(state or ""), "name": name or "", "tag": tag or ""}
    kept = {key: value for key, value in asked.items() if value}
    newest = f"/?{urlencode(kept)}" if kept else "/"
    further = f"/?{urlencode(kept | {'cursor': page.next_cursor})}" if page.next_cursor else None
    active = any(one.state in progress.ACTIVE for one in page.items)
    return render(
        "sweeps.html", now, sweeps=page.items, asked=asked, filtered=bool(kept), newest=newest, further=further,
        states=list(SweepState), refresh=SECONDS["active" if active else "list"], active=active, follow="all",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BesideSweep:
    """What a sweep's page shows beside it."""

    by_name: Mapping[str, str | None] = field(default_factory=dict)
    """Its tables as HTML that the formats have escaped; none: too great to be shown."""
    heat: str = "none"
    """By what they are coloured."""
    resolution: ResolutionView | None = None
    """What decides the comparisons of one of them."""
    may: Allowed = EVERYTHING
    """What who asks may do with the sweep."""


def sweep_page(
    sweep: SweepView,
    grid: Sequence[GridCell],
    tables: BesideSweep,
    *,
    cells: int = 0,
    left: Sequence[str] = (),
    now: datetime | None = None,
) -> str:
    """One sweep; `grid` may be the first cells alone, of `cells` in all; `left` says what is still to be trained."""
    active = sweep.state in progress.ACTIVE
    return render(
        "sweep.html", now, sweep=sweep, tables=tables.by_name,
        grid=progress.drawn(grid, cells=cells, trials=sweep.counts.total),
        problems=problems.gathered(sweep.problems), exports=EXPORTS, figure_exports=FIGURE_EXPORTS,
        left=left, heat=tables.heat, heats=HEATS, may=tables.may,
        can_cancel=progress.can_cancel(sweep), can_retry=progress.can_retry(sweep), resolution=tables.resolution,
        can_resolve=progress.can_resolve(sweep, tables.resolution),
        active=active, refresh=SECONDS["active"] if active else None, follow=f"sweep {sweep.id}",
    )  # fmt: skip


def storage_page(kept: SweepStorage, going: CollectionView | None, *, now: datetime | None = None) -> str:
    """What the trainings of a sweep keep, and what of it could go today; `going` is none while the sweep goes on."""
    parts = {"weights": kept.weights_bytes, "figures": kept.figures_bytes}
    parts |= {"spools": kept.spools_bytes, "logs": kept.logs_bytes}
    row = going.sweeps[0] if going and going.sweeps else None
    return render(
        "storage.html", now, kept=kept, parts=parts, total=sum(parts.values()), going=row, ended=going is not None
    )


def cell_page(
    cell: CellView,
    figure: Mapping[str, Any] | None = None,
    may: Allowed = EVERYTHING,
    *,
    now: datetime | None = None,
) -> str:
    """What stands behind the numbers of one cell; `figure` draws its candidates."""
    states = [trial.state for candidate in cell.candidates for trial in candidate.trials]
    active = any(state in progress.ACTIVE for state in states)
    return render(
        "cell.html", now, cell=cell, may=may, active=active, refresh=SECONDS["active"] if active else None,
        follow=f"sweep {cell.sweep} cell {cell.index}",
        figure=embedded(figure) if figure else None, grammar=grammar(figure),
        failed=sum(state == "failed" for state in states), left=sum(state in progress.ACTIVE for state in states),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands beside a trial."""

    neighbours: Sequence[Neighbour] = ()
    kept: tuple[str, Sequence[str]] | None = None
    """The folder of its files in the storage, and their names."""
    may: Allowed = EVERYTHING
    """What who asks may do with its sweep."""


def trial_page(
    trial: TrialView,
    figure: Mapping[str, Any] | None,
    log: LogView,
    files: Sequence[FigureFile] = (),
    beside: Surroundings = Surroundings(),
    *,
    now: datetime | None = None,
) -> str:
    """One trial; `figure` is the Vega-Lite specification of its curves, `files` are those of the recipe's figures."""
    evaluated = trial.evaluation is not None and trial.evaluation.state in progress.ACTIVE
    active = trial.state in progress.ACTIVE or evaluated
    last = training.last_values(figure)
    return render(
        "trial.html", now, beside=beside, may=beside.may, again=training.command(trial), trial=trial,
        step_seconds=training.step_seconds(trial), log=log, files=files, tail=training.tail(log), last=last,
        kind="diverged" if trial.diverged else trial.state.value,
        figure=embedded(figure) if figure and last else None, grammar=grammar(figure),
        metrics=training.metric_table(trial.metrics), recipe=list(training.field_rows(trial.recipe)),
        provenance=list(training.field_rows(trial.provenance)),
        selection=training.selection(trial.recipe), active=active, refresh=SECONDS["active"] if active else None,
        follow=f"sweep {trial.sweep} trial {trial.id}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedProvider:
    """Who else logs people in, as the login page names it."""

    name: str
    logs_out: bool = False
    """Whether the browser was just logged out here, and may be there too."""


def login_page(message: str, then: str = "/", provider: NamedProvider | None = None) -> str:
    """The form that asks for the token; `message` says why the last one was refused, `then` leads on."""
    return render("login.html", None, message=message, query=urlencode({"next": then}), provider=provider)


def login_link_page(code: str, then: str, name: str, now: str | None) -> str:
    """The question whether to log in as `name` by a link; `now` names the person who is logged in already."""
    query = urlencode({"next": then})
    return render("login_link.html", None, code=code, query=query, name=name, current=now, then=then)


def problem_page(status: int, title: str, detail: str) -> str:
    """What went wrong, each line of `detail` for itself."""
    return render("problem.html", None, status=status, title=title, lines=detail.splitlines())


def embedded(figure: Mapping[str, Any]) -> dict[str, Any]:
    """The figure without what the page says itself, and without the schema's address: nothing here names a server."""
    return {key: value for key, value in figure.items() if key not in {"$schema", "title"}}


def grammar(figure: Mapping[str, Any] | None) -> str:
    """The Vega-Lite version that the figure is written in: `v6.1.0`."""
    return str((figure or {}).get("$schema", "")).rpartition("/")[2].removesuffix(".json")
