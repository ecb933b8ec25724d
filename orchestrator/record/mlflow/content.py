"""What MLflow shows of a sweep, a cell or a trial: names, params, tags, descriptions, and the view of its runs."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.record.columns import number
from orchestrator.record.mirror_runs import CellRun, SweepRun, TrialRun
from orchestrator.record.mlflow.tracker import DatasetMirror, Exhibit, RunMirror, RunStatus, accepted
from orchestrator.record.queue import cell_name, trial_name
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import VIEW

_STATUS: Final[Mapping[str, RunStatus]] = {
    "finished": "FINISHED",
    "failed": "FAILED",
    "cancelled": "KILLED",
    "pruned": "KILLED",
}
_USUAL: Final = {"best", "test"}
"""What a result key says of nearly every number that people look at, and a name leaves out."""
DESCRIPTION_TAG: Final = "mlflow.note.content"
_MAX_DESCRIPTION: Final = 4_800  # characters, of 5,000 that a tag may have
VIEW_TAG: Final = f"mlflow.sharedViewState.{VIEW}"
_MAX_COLUMNS: Final = 24
"""Of a table of many data sets: more nobody compares, and the tag would be too long."""
_CELL_STATUS: Final[Mapping[str, RunStatus]] = {"failed": "FAILED", "missing": "KILLED"}


def experiment_name(sweep: SweepRun) -> str:
    """The name of a sweep's experiment."""
    return f"{sweep.name} #{sweep.id}"


def experiment_tags(sweep: SweepRun, exhibit: Exhibit, url: str) -> dict[str, str]:
    """What MLflow shows of a sweep's experiment, and the view of its runs that our links open."""
    tags = {"metricsweep.sweep_id": str(sweep.id), "metricsweep.name": sweep.name}
    tags |= {DESCRIPTION_TAG: _describe_sweep(sweep, exhibit, url), VIEW_TAG: _runs_view(exhibit)}
    return tags | ({"metricsweep.actor": sweep.actor} if sweep.actor else {})


def summary_mirror(sweep: SweepRun, exhibit: Exhibit, url: str) -> RunMirror:
    """The run that carries a sweep's tables and figures."""
    tags = {"metricsweep.state": sweep.state, DESCRIPTION_TAG: _describe_sweep(sweep, exhibit, url)}
    if sweep.error:
        tags["metricsweep.error"] = sweep.error
    # MLflow keeps the larger of two values of one moment: what still changes must not be told as a metric.
    counts = {f"trials {state}": float(sweep.counts.get(state, 0)) for state in TrialState} if sweep.ended else {}
    return RunMirror(
        kind="sweep", key=f"{sweep.uid}/summary", run=sweep.run, name="tables and figures", sweep=sweep.uid,
        status=_STATUS.get(sweep.state, "RUNNING"), started=sweep.started or sweep.created, ended=sweep.ended,
        tags=tags, metrics=counts, files=exhibit.files,
    )  # fmt: skip


def cell_mirror(cell: CellRun, url: str) -> RunMirror:
    """The parent run of a cell's trials: as params its labels and, once it is settled, those of what was chosen."""
    tags = {DESCRIPTION_TAG: _describe_cell(cell, url)}
    params, metrics = dict(cell.labels), dict[str, float]()
    status: RunStatus = "RUNNING"
    summary = cell.summary
    if summary is not None:
        status = _CELL_STATUS.get(summary["status"], "FINISHED")
        tags["metricsweep.status"] = summary["status"]
        params |= summary["labels"]
        metrics = dict(_statistics(summary))
    return RunMirror(
        kind="cell", key=f"{cell.sweep.uid}/cell/{cell.index}", run=cell.run, name=cell_name(cell.labels),
        sweep=cell.sweep.uid, status=status, started=cell.sweep.started or cell.sweep.created,
        ended=cell.settled if summary is not None else None, params=params, tags=tags, metrics=metrics,
        dataset=_dataset(cell.recipe),
    )  # fmt: skip


def trial_mirror(trial: TrialRun, url: str) -> RunMirror:
    """The run of one trial; one that reuses a known training has no curves and says whose it is."""
    sweep = trial.cell.sweep
    ended = trial.ended if trial.state in _STATUS else None
    labels = {**trial.cell.labels, **trial.candidate_labels, **trial.repeat_labels}
    return RunMirror(
        kind="trial", key=trial.uid, run=trial.run, name=_trial_name(trial), sweep=sweep.uid,
        status=_STATUS.get(trial.state, "RUNNING"), started=trial.started or ended or sweep.started or sweep.created,
        ended=ended, parent=trial.cell.run, params={**labels, **flat_params(trial.recipe)},
        tags=_trial_tags(trial, url), points=trial.points, metrics=_final_metrics(trial),
    )  # fmt: skip


def left_mirror(trial: TrialRun, run: str) -> RunMirror:
    """The run that a trial had before it was planned anew: it ends, and its key is free for the trial's next run."""
    sweep = trial.cell.sweep
    tags = {"metricsweep.trial": str(trial.id), "metricsweep.state": "planned anew"}
    return RunMirror(
        kind="trial", key=f"{trial.uid}/{run}", run=run, name=_trial_name(trial), sweep=sweep.uid, status="KILLED",
        started=sweep.started or sweep.created, ended=datetime.now(UTC), tags=tags,
    )  # fmt: skip


def flat_params(recipe: Mapping[str, Any]) -> dict[str, str]:
    """A recipe as `loss.name`, `loss.margin`, ...; what may change of a run is a tag: its pins, and further metrics."""
    return dict(_flat({key: value for key, value in recipe.items() if key not in {"pins", "metrics"}}))


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{path}{key}.")
        elif item is not None:
            yield f"{path}{key}", item if isinstance(item, str) else json.dumps(item)


def _trial_name(trial: TrialRun) -> str:
    chosen = {**trial.candidate_labels, **trial.repeat_labels}
    return trial_name(trial.cell.labels, chosen)


def _dataset(recipe: Mapping[str, Any]) -> DatasetMirror | None:
    """The data set of a recipe, as far as its content is known."""
    content = (recipe.get("pins") or {}).get("manifest")
    return DatasetMirror(str(recipe["dataset"]["name"]), content) if content and recipe.get("dataset") else None


def _trial_tags(trial: TrialRun, url: str) -> dict[str, str]:
    """Few, since each is a column that people meet; the rest is in the description."""
    state = "diverged" if trial.state == "finished" and trial.diverged else trial.state
    tags = {
        "metricsweep.cell": cell_name(trial.cell.labels),
        "metricsweep.trial": str(trial.id),
        "metricsweep.fingerprint": trial.fingerprint,
        "metricsweep.state": state,
        DESCRIPTION_TAG: _describe_trial(trial, url),
    }
    commit = trial.provenance.get("git_commit")
    if commit:
        tags["mlflow.source.git.commit"] = str(commit)
    if trial.error:
        tags["metricsweep.error"] = trial.error
    if trial.reason:
        tags["metricsweep.pruned"] = trial.reason
    chosen = (trial.cell.summary or {}).get("candidate")
    tags["metricsweep.selected"] = str(chosen == trial.candidate).lower()  # told before it is known: seldom a change
    if trial.reused:
        tags["metricsweep.reused"] = "true"
    return tags


def _final_metrics(trial: TrialRun) -> dict[str, float]:
    metrics = {single(key): trial.metrics[key] for key in sorted(trial.metrics, key=importance)}
    if trial.best_step is not None:
        metrics["best_step"] = float(trial.best_step)
    if trial.seconds is not None and not trial.reused:
        metrics["seconds"] = trial.seconds
    return metrics


def _statistics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key in sorted(summary["metrics"], key=importance):
        one = summary["metrics"][key]
        yield single(key), number(one["mean"])
        if one["std"] is not None:
            yield spread(key), one["std"]


def single(key: str) -> str:
    """A number of a result: `best/test/recall@1` is `recall@1`, `last/validation/map@r` is `map@r validation last`.

    No slash is left in it: MLflow draws what has one first, and that is the curves.
    """
    checkpoint, _, rest = key.partition("/")
    split, _, metric = rest.partition("/")
    if not metric:
        return key.replace("/", " ")
    return " ".join([metric.replace("/", " "), *(word for word in (split, checkpoint) if word not in _USUAL)])


def importance(key: str) -> tuple[bool, bool]:
    """By what result keys are sorted, since MLflow lists metrics as they come: the best on test before all others."""
    checkpoint, _, rest = key.partition("/")
    return checkpoint != "best", rest.partition("/")[0] != "test"


def spread(key: str) -> str:
    """The standard deviation of a number over the repeats."""
    return f"{single(key)} std"


def _describe_sweep(sweep: SweepRun, exhibit: Exhibit, url: str) -> str:
    """What the sweep is, what its tables say, and where it is."""
    where = f"[Sweep {sweep.id}, {_plain(sweep.name)}]({url}/sweeps/{sweep.id}) with its tables and figures."
    return _joined([where, sweep.description, *exhibit.captions])


def _describe_cell(cell: CellRun, url: str) -> str:
    """Which cell it is, and what was chosen in it."""
    sweep = cell.sweep
    where = f"[Cell {cell.index}]({url}/sweeps/{sweep.id}/cells/{cell.index}) of {_sweep(sweep, url)}."
    if cell.summary is None:
        return _joined([where, "Its trials have not all ended; its numbers come then."])
    chosen = ", ".join(f"{axis} = {label}" for axis, label in cell.summary["labels"].items()) or "the only one"
    number = cell.summary["candidates"]
    of = f"{number} candidates" if number != 1 else "1 candidate"
    what = f"Chosen of {of} by {cell.summary['selection_key']}: {chosen}; {cell.summary['status']}."
    if cell.summary["candidate"] is None:
        what = f"Nothing was chosen of {of}: {cell.summary['status']}."
    return _joined([where, _plain(what), "Its numbers are means over the seeds, `std` their deviation."])


def _describe_trial(trial: TrialRun, url: str) -> str:
    """Which trial it is, whose training it shows, and what of that training no parameter says."""
    cell = trial.cell
    where = (
        f"[Trial {trial.id}]({url}/trials/{trial.id}) of "
        f"[cell {cell.index}]({url}/sweeps/{cell.sweep.id}/cells/{cell.index}) of {_sweep(cell.sweep, url)}."
    )
    reused = ""
    if trial.reused and trial.source is not None:
        run = f"; its curves are in run {trial.source_run}" if trial.source_run else ""
        reused = f"Reuses the training of [trial {trial.source}]({url}/trials/{trial.source}){run}."
    facts = [("training", trial.training), ("attempts", str(trial.attempts)), *_facts(trial.recipe.get("pins") or {})]
    if asked := trial.recipe.get("metrics"):
        facts.append(("further metrics", ", ".join(asked)))
    facts += _facts(trial.provenance)
    table = "\n".join(["| | |", "|---|---|", *(f"| {_plain(name)} | {_plain(value)} |" for name, value in facts)])
    return _joined([where, reused, table])


def _plain(text: str) -> str:
    """A text that Markdown takes as it stands, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _sweep(sweep: SweepRun, url: str) -> str:
    return f"[sweep {sweep.id}, {_plain(sweep.name)}]({url}/sweeps/{sweep.id})"


def _facts(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _facts(item, f"{path}{key}.")
        elif item is not None:
            yield f"{path}{key}", str(item)


def _joined(paragraphs: list[str]) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)[:_MAX_DESCRIPTION]


def _runs_view(exhibit: Exhibit) -> str:
    """The tag that holds the view which our links open: the cells, best first, under the columns of the tables.

    MLflow's page takes filter and order from the address, but columns only from a view that somebody shared, which it
    keeps as a tag of the experiment.
    """
    order = _metric(exhibit.selected_by) if exhibit.selected_by else "attributes.start_time"
    return json.dumps(
        {
            "searchFilter": "tags.`metricsweep.kind` = 'cell'",
            "orderByKey": order,
            "orderByAsc": exhibit.better == "lower" or not exhibit.selected_by,
            "startTime": "ALL",
            "lifecycleFilter": "Active",
            "selectedColumns": list(dict.fromkeys(_columns(exhibit)))[:_MAX_COLUMNS],
        }
    )


def _columns(exhibit: Exhibit) -> Iterator[str]:
    yield from (f"params.`{accepted(axis)}`" for axis in exhibit.axes)
    if exhibit.selected_by:
        yield _metric(exhibit.selected_by)
    yield from map(_metric, exhibit.columns)


def _metric(key: str) -> str:
    return f"metrics.`{accepted(single(key))}`"
