"""Pages of sweeps and trials, their comparison and their curves."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlencode

from dashboards import rendering
from dashboards.rendering import plain, render
from orchestrator.views.accounts import EVERYTHING, Allowed
from orchestrator.views.evidence import ResolutionView
from orchestrator.views.operations import CollectionView, SweepStorage
from orchestrator.views.pages import FigureFile, Page
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView
from orchestrator.views.tables import CellView, ComparedCell
from orchestrator.views.trials import Against, CurveLine, CurveLines, LogView, Neighbour, TrialView, leaves

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


CHECKPOINTS: Final = ("best", "last")
SPLITS: Final = ("validation", "test", "train")
MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 30_000
BOOKKEEPING: Final = frozenset({"version", "pins"})
"""Fields of a recipe that nobody chose; its JSON has them."""


@dataclass(frozen=True, slots=True)
class MetricTable:
    """A result's metrics: a column a checkpoint and split, a row a metric."""

    checkpoints: list[tuple[str, int]]
    """Each checkpoint and how many columns it has."""
    columns: list[tuple[str, str]]
    rows: list[tuple[str, list[tuple[bool, float | None]]]]
    """Each metric with, by column, whether it has a value, and the value."""
    others: list[tuple[str, float | None]]
    """Values whose keys are not checkpoint/split/metric."""


@dataclass(frozen=True, slots=True)
class LastValue:
    """The end of a curve."""

    title: str
    step: int | None
    value: float | None
    points: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The last lines of a log."""

    text: str
    lines: int
    cut: bool
    """Whether lines stand before these."""


def metric_table(metrics: Mapping[str, float | None]) -> MetricTable:
    """The metrics in the order of the page."""
    by_metric: dict[str, dict[tuple[str, str], float | None]] = {}
    others = []
    for key, value in metrics.items():
        match key.split("/", 2):
            case [checkpoint, split, metric] if checkpoint and split:
                by_metric.setdefault(metric, {})[checkpoint, split] = value
            case _:
                others.append((key, value))
    columns = sorted({column for row in by_metric.values() for column in row}, key=_column_rank)
    checkpoints = list(dict.fromkeys(checkpoint for checkpoint, _ in columns))
    spans = [(checkpoint, sum(one == checkpoint for one, _ in columns)) for checkpoint in checkpoints]
    rows = [(metric, [(column in row, row.get(column)) for column in columns]) for metric, row in by_metric.items()]
    return MetricTable(spans, columns, rows, others)


def _column_rank(column: tuple[str, str]) -> tuple[int, str, int, str]:
    checkpoint, split = column
    return (_split_rank(CHECKPOINTS, checkpoint), checkpoint, _split_rank(SPLITS, split), split)


def _split_rank(known: tuple[str, ...], one: str) -> int:
    return known.index(one) if one in known else len(known)


def last_values(figure: Mapping[str, Any] | None) -> list[LastValue]:
    """The last point of each of a Vega-Lite figure's small multiples: what is read where no script draws them."""
    return [one for multiple in (figure or {}).get("concat", []) if (one := _last(multiple, figure or {}))]


def _last(multiple: Mapping[str, Any], figure: Mapping[str, Any]) -> LastValue | None:
    data = multiple.get("data", {})
    points = data.get("values") or figure.get("datasets", {}).get(data.get("name"), [])
    title = multiple.get("title", "")
    said = title.get("text", "") if isinstance(title, Mapping) else title
    if not points:
        return None
    return LastValue(str(said), points[-1].get("step"), points[-1].get("value"), len(points))


def field_rows(value: Mapping[str, Any]) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each field with its main value, and the path and value of everything below it."""
    for key, held in value.items():
        if key in BOOKKEEPING:
            continue
        if not isinstance(held, Mapping):
            yield key, plain(held), []
            continue
        below = [(path, plain(leaf)) for path, leaf in leaves(held) if path != "name"]
        yield key, plain(held["name"]) if "name" in held else "", below


def command(trial: TrialView) -> str:
    """What trains the same recipe once more when it is pasted into a shell where metricsweep is installed."""
    name = f"trial-{trial.id}"
    recipe = json.dumps(trial.recipe, indent=1, ensure_ascii=True)
    return f"cat > {name}.json <<'RECIPE'\n{recipe}\nRECIPE\npython -m workers train {name}.json --out {name}\n"


def step_seconds(trial: TrialView) -> float | None:
    """How long a step took, evaluations included; none before the end of a training."""
    return trial.seconds / trial.step if trial.seconds and trial.step else None


def selection(recipe: Mapping[str, Any]) -> str:
    """By what the training's best checkpoint was chosen: `validation/map@r`."""
    chosen = recipe.get("select", {})
    return "/".join(str(chosen[field]) for field in ("split", "metric") if field in chosen)


def tail(log: LogView) -> Tail:
    """The last lines of what is given of a log."""
    text = log.text.rstrip("\n")
    lines = text.split("\n") if text else []
    shown = "\n".join(lines[-MOST_LINES:])[-MOST_CHARACTERS:]
    return Tail(shown, shown.count("\n") + 1 if shown else 0, len(shown) < len(text) or log.offset > 0)


EXPORTS: Final = ("latex", "markdown", "csv", "json", "html")
FIGURE_EXPORTS: Final = ("pdf", "svg", "png", "json", "csv")
SECONDS: Final = {"active": 3, "list": 15}
"""How often a page asks for itself again: while what it shows is active, and a list in which nothing is."""
HEATS: Final = (("metric", "by metric"), ("state", "by state"), ("none", "not"))
"""By what the tables of a sweep's page may be coloured."""
MOST_SQUARES: Final = rendering.MOST_SQUARES
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
    active = any(one.state in rendering.ACTIVE for one in page.items)
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
    active = sweep.state in rendering.ACTIVE
    return render(
        "sweep.html", now, sweep=sweep, tables=tables.by_name,
        grid=rendering.drawn(grid, cells=cells, trials=sweep.counts.total),
        problems=rendering.gathered(sweep.problems), exports=EXPORTS, figure_exports=FIGURE_EXPORTS,
        left=left, heat=tables.heat, heats=HEATS, may=tables.may,
        can_cancel=rendering.can_cancel(sweep), can_retry=rendering.can_retry(sweep), resolution=tables.resolution,
        can_resolve=rendering.can_resolve(sweep, tables.resolution),
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
    active = any(state in rendering.ACTIVE for state in states)
    return render(
        "cell.html", now, cell=cell, may=may, active=active, refresh=SECONDS["active"] if active else None,
        follow=f"sweep {cell.sweep} cell {cell.index}",
        figure=embedded(figure) if figure else None, grammar=grammar(figure),
        failed=sum(state == "failed" for state in states), left=sum(state in rendering.ACTIVE for state in states),
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
    evaluated = trial.evaluation is not None and trial.evaluation.state in rendering.ACTIVE
    active = trial.state in rendering.ACTIVE or evaluated
    last = last_values(figure)
    return render(
        "trial.html", now, beside=beside, may=beside.may, again=command(trial), trial=trial,
        step_seconds=step_seconds(trial), log=log, files=files, tail=tail(log), last=last,
        kind="diverged" if trial.diverged else trial.state.value,
        figure=embedded(figure) if figure and last else None, grammar=grammar(figure),
        metrics=metric_table(trial.metrics), recipe=list(field_rows(trial.recipe)),
        provenance=list(field_rows(trial.provenance)),
        selection=selection(trial.recipe), active=active, refresh=SECONDS["active"] if active else None,
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


SMOOTHINGS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)
"""What the page offers; any other weight may stand in the address."""


class Wanted(Protocol):
    """What of a question the page's form repeats."""

    @property
    def trials(self) -> Any:
        """The trials that were asked for."""

    @property
    def sweep(self) -> int | None:
        """Or the sweep."""

    @property
    def cells(self) -> Any:
        """Of which these cells."""

    @property
    def by(self) -> str:
        """What a line stands for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line in words."""

    trace: CurveLine
    last_x: float | None
    last: float | None
    least: float | None
    greatest: float | None


def rows(found: CurveLines) -> list[Row]:
    """Where each line ends, and its extremes."""
    return [_row(trace) for trace in found.traces]


def _row(trace: CurveLine) -> Row:
    values = [(x, y) for x, y in trace.points if y is not None and math.isfinite(y)]
    if not values:
        return Row(trace, None, None, None, None)
    heights = [y for _, y in values]
    return Row(trace, values[-1][0], values[-1][1], min(heights), max(heights))


def curves_page(
    wanted: Wanted,
    found: CurveLines,
    figure: Mapping[str, Any],
    *,
    y: Literal["linear", "log"],
    sweep_name: str | None,
    now: datetime | None = None,
) -> str:
    """Lines of trials, candidates or cells, and the form that chooses what is drawn."""
    kept = {"trials": ",".join(map(str, wanted.trials)), "sweep": str(wanted.sweep or "")}
    kept["cells"] = ",".join(map(str, wanted.cells or ()))
    active = any(trace.running for trace in found.traces)
    against: tuple[tuple[Against, str], ...] = (("step", "steps"), ("seconds", "time trained"))
    return render(
        "curves.html", now, found=found, rows=rows(found), figure=embedded(figure), grammar=grammar(figure),
        kept={name: value for name, value in kept.items() if value}, by=wanted.by, y=y, against=against,
        smoothings=sorted({*SMOOTHINGS, found.smoothing}), sweep=wanted.sweep, sweep_name=sweep_name,
        active=active, refresh=SECONDS["active"] if active else None,
    )  # fmt: skip
