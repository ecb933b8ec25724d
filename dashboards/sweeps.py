"""Pages of sweeps and trials, their comparison and their curves."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlencode

from dashboards import rendering
from dashboards.rendering import plain, render
from orchestrator.views.accounts import EVERYTHING, Allowed
from orchestrator.views.evidence import ResolutionBudget, ResolutionView, VerdictsView
from orchestrator.views.operations import CollectionView, SweepStorage
from orchestrator.views.pages import FigureFile, Page
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import AxisGroup, GridCell, Heat, SweepSummary, SweepView, axis_groups
from orchestrator.views.tables import CellView, ComparedCell
from orchestrator.views.trials import Against, ClassScores, CurveLine, CurveLines, LogView, Neighbour, TrialView, leaves
from workers.catalog import Problem

MOST: Final = 8
"""How many trials, cells, or sweeps a comparison shows."""


def comparison_page(trials: Sequence[TrialView], left_out: int) -> str:
    """A comparison of trials; `left_out` further ones were chosen."""
    differing, same = _difference([trial.recipe for trial in trials])
    keys = sorted({key for trial in trials for key in trial.metrics}, key=_rank)
    metrics = [(key, [trial.metrics.get(key) for trial in trials]) for key in keys]
    curves = f"/curves?{urlencode({'trials': ','.join(str(trial.id) for trial in trials)})}"
    return render(
        "compare.html", trials=trials, differing=differing, same=same, metrics=metrics,
        curves=curves, left_out=left_out,
    )  # fmt: skip


def cell_comparison_page(cells: Sequence[ComparedCell], left_out: int = 0) -> str:
    """A comparison of cells; `left_out` further ones were chosen."""
    axes = dict.fromkeys(axis for cell in cells for axis in cell.labels)
    labels = [(axis, [cell.labels.get(axis, "–") for cell in cells]) for axis in axes]
    differing, same = _difference([cell.recipe for cell in cells])
    keys = sorted({key for cell in cells for key in cell.metrics}, key=_rank)
    places = [f"{cell.sweep}/{cell.index}" for cell in cells]
    return render(
        "compare_cells.html", cells=cells, places=places, left_out=left_out,
        apart=[(axis, values) for axis, values in labels if len(set(values)) > 1],
        alike=[(axis, values[0]) for axis, values in labels if len(set(values)) == 1],
        differing=differing, same=same, metrics=[(key, [cell.metrics.get(key) for cell in cells]) for key in keys],
        selections=sorted({cell.selection_key for cell in cells}),
    )  # fmt: skip


def _difference(recipes: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, list[str]]], int]:
    """The fields in which recipes differ, each with its values, and the number of further fields.

    An empty recipe is not known, and counts as equal. Versions and content hashes (`pins`) are left out.
    """
    fields = [dict(leaves(recipe)) for recipe in recipes]
    paths = sorted({path for recipe in fields for path in recipe if not path.startswith("pins.")})
    shown = [(path, [plain(recipe[path]) if path in recipe else "–" for recipe in fields]) for path in paths]
    known = [at for at, recipe in enumerate(fields) if recipe]
    differing = [(path, values) for path, values in shown if len({values[at] for at in known}) > 1]
    return differing, len(shown) - len(differing)


def _rank(key: str) -> tuple[bool, bool, str]:
    return not key.startswith("best/"), "/test/" not in key, key


_CHECKPOINTS: Final = ("best", "last")
SPLITS: Final = ("validation", "test", "train")
MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 30_000
_BOOKKEEPING: Final = frozenset({"version", "pins"})
"""Fields of a recipe that are not chosen; they are only in its JSON."""


@dataclass(frozen=True, slots=True)
class MetricTable:
    """A result's metrics: a row for each metric, a column for each checkpoint and split."""

    checkpoints: list[tuple[str, int]]
    """Each checkpoint and how many columns it has."""
    columns: list[tuple[str, str]]
    """Checkpoint and split."""
    rows: list[tuple[str, list[tuple[bool, float | None]]]]
    """Each metric with, by column, whether it has a value, and the value."""
    others: list[tuple[str, float | None]]
    """Values whose keys are not checkpoint/split/metric."""


def _metric_table(metrics: Mapping[str, float | None]) -> MetricTable:
    by_metric: dict[str, dict[tuple[str, str], float | None]] = {}
    others = []
    for key, value in metrics.items():
        match key.split("/", 2):
            case [checkpoint, split, metric] if checkpoint and split:
                by_metric.setdefault(metric, {})[checkpoint, split] = value
            case _:
                others.append((key, value))
    columns = sorted({column for row in by_metric.values() for column in row}, key=_column_rank)
    spans = list(Counter(checkpoint for checkpoint, _ in columns).items())
    rows = [(metric, [(column in row, row.get(column)) for column in columns]) for metric, row in by_metric.items()]
    return MetricTable(spans, columns, rows, others)


def _column_rank(column: tuple[str, str]) -> tuple[int, str, int, str]:
    checkpoint, split = column
    return (_rank_in(_CHECKPOINTS, checkpoint), checkpoint, _rank_in(SPLITS, split), split)


def _rank_in(known: tuple[str, ...], name: str) -> int:
    return known.index(name) if name in known else len(known)


def _multiples(figure: Mapping[str, Any] | None) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Title and points of each small multiple of a Vega-Lite figure; a single multiple has its data in the figure."""
    for multiple in (figure or {}).get("concat", []):
        data = multiple.get("data") or (figure or {}).get("data", {})
        points = data.get("values") or (figure or {}).get("datasets", {}).get(data.get("name"), [])
        title = multiple.get("title", "")
        if points:
            yield str(title.get("text", "") if isinstance(title, Mapping) else title), points


def _last_values(figure: Mapping[str, Any] | None) -> Iterator[tuple[str, int | None, float | None, int]]:
    """Title, step and value of the last point, and number of points, of each small multiple.

    They are read where no script draws the figure.
    """
    for title, points in _multiples(figure):
        yield title, points[-1].get("step"), points[-1].get("value"), len(points)


def _field_rows(value: Mapping[str, Any]) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each field with its main value, and the path and value of everything below it."""
    for key, held in value.items():
        if key in _BOOKKEEPING:
            continue
        if not isinstance(held, Mapping):
            yield key, plain(held), []
            continue
        below = [(path, plain(leaf)) for path, leaf in leaves(held) if path != "name"]
        yield key, plain(held["name"]) if "name" in held else "", below


def _chosen_rows(
    recipe: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """As `_field_rows`, only values that differ from their defaults, each followed by its default."""
    usual = dict(leaves(defaults))
    for key, held in recipe.items():
        differing = {path: leaf for path, leaf in leaves({key: held}) if leaf != usual.get(path)}
        if key in _BOOKKEEPING or not differing:
            continue
        texts = {
            path.removeprefix(f"{key}."): plain(leaf)
            + (f" (default {plain(usual[path])})" if usual.get(path) is not None else "")
            for path, leaf in differing.items()
        }
        name = plain(held["name"]) if isinstance(held, Mapping) and "name" in held else ""
        yield key, texts.pop("name", texts.pop(key, name)), list(texts.items())


def command(trial: TrialView) -> str:
    """The shell command that trains the same recipe again where metricsweep is installed."""
    name = f"trial-{trial.id}"
    recipe = json.dumps(trial.recipe, indent=1, ensure_ascii=True)
    return f"cat > {name}.json <<'RECIPE'\n{recipe}\nRECIPE\npython -m workers train {name}.json --out {name}\n"


def _usage_rows(figure: Mapping[str, Any] | None) -> Iterator[tuple[str, float, float]]:
    """Title, mean and peak of each small multiple of the usage."""
    for title, points in _multiples(figure):
        if values := [point["value"] for point in points if point["value"] is not None]:
            yield title, math.fsum(values) / len(values), max(values)


def _tail(log: LogView) -> tuple[str, bool]:
    """The last lines of a log, and whether there are earlier ones."""
    text = log.text.rstrip("\n")
    tail = "\n".join(text.split("\n")[-MOST_LINES:])[-MOST_CHARACTERS:]
    return tail, len(tail) < len(text) or log.offset > 0


EXPORTS: Final = ("latex", "markdown", "csv", "json", "html")
_FIGURE_EXPORTS: Final = ("pdf", "svg", "png", "json", "csv")
SECONDS: Final = {"active": 3, "list": 15}
"""How often a page reloads itself: while something on it is active, and a list without anything active."""
_HEATS: Final = (("metric", "by metric"), ("state", "by state"), ("none", "not"))
"""The colourings of tables, with their words."""
_MOST_CLASSES: Final = 1_000
"""The rows of the page of a trial's classes."""
MOST_TABLED: Final = 20_000
"""The largest number of trials of a sweep whose page shows its tables."""


def sweeps_page(page: Page[SweepSummary], *, state: str | None, name: str | None, tag: str | None = None) -> str:
    """The sweeps, newest first, filtered by state, part of the name, and tag."""
    filters = {"state": str(state or ""), "name": name or "", "tag": tag or ""}
    kept = {key: value for key, value in filters.items() if value}
    newest = f"/?{urlencode(kept)}" if kept else "/"
    further = f"/?{urlencode(kept | {'cursor': page.next_cursor})}" if page.next_cursor else None
    active = any(sweep.state in rendering.ACTIVE for sweep in page.items)
    return render(
        "sweeps.html", sweeps=page.items, filters=filters, filtered=bool(kept), newest=newest, further=further,
        states=list(SweepState), refresh=SECONDS["active" if active else "list"], active=active, follow="all",
    )  # fmt: skip


def sweep_page(
    sweep: SweepView,
    grid: Sequence[GridCell],
    tables: Mapping[str, str | None],
    *,
    heat: Heat = "none",
    compare: bool = False,
    answer: str = "",
    resolution: ResolutionView | None = None,
    may: Allowed = EVERYTHING,
    cells: int = 0,
    left: Sequence[str] = (),
) -> str:
    """One sweep; `left` says what remains to be trained, and `answer` in a sentence which row is the best.

    `grid` may be only the first of `cells` cells. `tables` is escaped HTML by name, `None` if it is too large to be
    shown; `heat` is the colouring, and `compare` whether the cells are compared with their baselines.
    """
    active = sweep.state in rendering.ACTIVE
    return render(
        "sweep.html", sweep=sweep, tables=tables,
        grid=rendering.drawn(grid, cells, sweep.counts.total),
        problems=rendering.gathered(sweep.problems), exports=EXPORTS, figure_exports=_FIGURE_EXPORTS,
        left=left, heat=heat, heats=_HEATS, compare=compare, answer=answer, may=may,
        can_retry=rendering.can_retry(sweep), resolution=resolution, groups=_extensible(sweep), given={},
        active=active, refresh=SECONDS["active"] if active else None, follow=f"sweep {sweep.id}",
    )  # fmt: skip


def _extensible(sweep: SweepView) -> Mapping[AxisGroup, Mapping[str, Any]]:
    """The axes to which the form adds alternatives."""
    return {} if sweep.state is SweepState.QUEUED else axis_groups(sweep.spec)


def extension_page(
    sweep: SweepView,
    given: Mapping[str, str],
    *,
    planned: Sequence[str] = (),
    text: str = "",
    problems: Sequence[Problem] = (),
    refused: str = "",
    may: Allowed = EVERYTHING,
) -> str:
    """The form that extends a sweep, with the alternatives `given` by field, and what it would train.

    `planned` are lines about the sweep that the spec `text` would make of it; `problems` says what is wrong with the
    spec, and `refused` why the sweep cannot be extended.
    """
    return render(
        "extension.html", sweep=sweep, groups=_extensible(sweep), given=given, planned=planned, text=text,
        problems=problems, refused=refused, may=may,
    )  # fmt: skip


def statistics_page(
    sweep: SweepView,
    verdicts: VerdictsView | None,
    budget: ResolutionBudget,
    *,
    planned: ResolutionView | None = None,
    refused: str = "",
    resolution: ResolutionView | None = None,
    may: Allowed = EVERYTHING,
) -> str:
    """The comparisons of a table, seeds that would decide them, and the last resolution; `None` without tables.

    `planned` is the first round that would be trained within the budget; `refused` says why no seeds can be added.
    """
    active = sweep.state in rendering.ACTIVE
    return render(
        "statistics.html", sweep=sweep, verdicts=verdicts, budget=budget, planned=planned, refused=refused,
        resolution=resolution, may=may, can_resolve=rendering.can_resolve(sweep, resolution),
        active=active, refresh=SECONDS["active"] if active else None, follow=f"sweep {sweep.id}",
    )  # fmt: skip


def storage_page(kept: SweepStorage, going: CollectionView | None) -> str:
    """The stored files of a sweep, and what could be removed; `going` is `None` while the sweep is active."""
    parts = {"weights": kept.weights_bytes, "figures": kept.figures_bytes}
    parts |= {"spools": kept.spools_bytes, "logs": kept.logs_bytes}
    row = going.sweeps[0] if going and going.sweeps else None
    return render("storage.html", kept=kept, parts=parts, total=sum(parts.values()), going=row, ended=going is not None)


def cell_page(cell: CellView, figure: Mapping[str, Any] | None = None, may: Allowed = EVERYTHING) -> str:
    """One cell with its candidates and trials; `figure` draws the candidates."""
    states = [trial.state for candidate in cell.candidates for trial in candidate.trials]
    active = any(state in rendering.ACTIVE for state in states)
    return render(
        "cell.html", cell=cell, may=may, active=active, refresh=SECONDS["active"] if active else None,
        follow=f"sweep {cell.sweep} cell {cell.index}",
        figure=embedded(figure) if figure else None, grammar=grammar(figure),
        failed=sum(state == "failed" for state in states), left=sum(state in rendering.ACTIVE for state in states),
    )  # fmt: skip


def trial_page(
    trial: TrialView,
    figure: Mapping[str, Any] | None,
    log: LogView,
    *,
    files: Sequence[FigureFile] = (),
    neighbours: Sequence[Neighbour] = (),
    kept: tuple[str, Sequence[str]] | None = None,
    weights: bool = False,
    usage: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    may: Allowed = EVERYTHING,
) -> str:
    """One trial; `figure` and `usage` are the Vega-Lite specifications of its curves and of its machine's usage.

    `files` are those of the recipe's figures, `kept` is the folder of its files in the storage and their names, and
    `weights` says whether its model can be downloaded. `defaults` are those of its recipe, if they are known.
    """
    evaluated = trial.evaluation is not None and trial.evaluation.state in rendering.ACTIVE
    active = trial.state in rendering.ACTIVE or evaluated
    last = list(_last_values(figure))
    tail, cut = _tail(log)
    select = trial.recipe.get("select", {})
    return render(
        "trial.html", neighbours=neighbours, kept=kept, weights=weights, may=may, again=command(trial), trial=trial,
        step_seconds=trial.seconds / trial.step if trial.seconds and trial.step else None,
        log=log, files=files, tail=tail, cut=cut, last=last,
        kind="diverged" if trial.diverged else trial.state.value,
        figure=embedded(figure) if figure and last else None, grammar=grammar(figure),
        metrics=_metric_table(trial.metrics), recipe=list(_field_rows(trial.recipe)),
        usage=list(_usage_rows(usage)), usage_figure=embedded(usage or {}),
        chosen=[] if defaults is None else list(_chosen_rows(trial.recipe, defaults)),
        provenance=list(_field_rows(trial.provenance)),
        selection="/".join(str(select[field]) for field in ("split", "metric") if field in select),
        active=active, refresh=SECONDS["active"] if active else None,
        follow=f"sweep {trial.sweep} trial {trial.id}",
    )  # fmt: skip


def classes_page(trial: TrialView, found: ClassScores, figure: Mapping[str, Any], *, seeds: bool) -> str:
    """Recall, precision and F1 of each class of a trial, or of all `seeds`; `figure` draws the first."""
    return render(
        "classes.html", trial=trial, found=found, figure=embedded(figure), grammar=grammar(figure),
        most=_MOST_CLASSES, seeds=seeds,
    )  # fmt: skip


def embedded(figure: Mapping[str, Any]) -> dict[str, Any]:
    """A Vega-Lite figure without its title, which the page has, and without the address of the schema."""
    return {key: value for key, value in figure.items() if key not in {"$schema", "title"}}


def grammar(figure: Mapping[str, Any] | None) -> str:
    """The Vega-Lite version of a figure, such as `v6.1.0`."""
    return str((figure or {}).get("$schema", "")).rpartition("/")[2].removesuffix(".json")


_SMOOTHINGS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)
"""The smoothings of the form; the address may have any other."""


def _ends(trace: CurveLine) -> tuple[float | None, ...]:
    """The last point of a line (x and y), and its least and greatest value."""
    points = [(x, y) for x, y in trace.points if y is not None and math.isfinite(y)]
    if not points:
        return None, None, None, None
    values = [y for _, y in points]
    return *points[-1], min(values), max(values)


def curves_page(
    multiples: Sequence[CurveLines],
    figure: Mapping[str, Any],
    *,
    selection: Mapping[str, str],
    by: str,
    y: Literal["linear", "log"],
    bands: bool,
    sweep_name: str | None,
) -> str:
    """Lines of trials, candidates or cells, of several keys, with a form.

    `selection` is `trials`, or `sweep` and `cells`, in the query.
    """
    found = multiples[0]
    active = any(trace.running for trace in found.traces)
    tables = [(lines.key, [(trace, *_ends(trace)) for trace in lines.traces]) for lines in multiples]
    against: tuple[tuple[Against, str], ...] = (("step", "steps"), ("seconds", "time trained"))
    return render(
        "curves.html", found=found, tables=tables, bands=bands,
        figure=embedded(figure), grammar=grammar(figure), kept=selection, by=by, y=y, against=against,
        smoothings=sorted({*_SMOOTHINGS, found.smoothing}), sweep=selection.get("sweep"), sweep_name=sweep_name,
        active=active, refresh=SECONDS["active"] if active else None,
    )  # fmt: skip
