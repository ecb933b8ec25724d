"""What a trial's page shows of its training: metrics by checkpoint and split, last values of curves, recipe, log."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dashboards.wording import plain
from orchestrator.views.trials import LogView, TrialView, leaves

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
    return (_rank(CHECKPOINTS, checkpoint), checkpoint, _rank(SPLITS, split), split)


def _rank(known: tuple[str, ...], one: str) -> int:
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
