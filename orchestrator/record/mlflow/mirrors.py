"""Turns what the database says of a sweep, a cell or a trial into the run that the tracker shows."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.record.json_floats import number
from orchestrator.record.mlflow.mirror_states import CellRun, SweepRun, TrialRun
from orchestrator.record.reads.trial_name import cell_name, trial_name
from orchestrator.record.tracker import RunMirror, RunStatus
from orchestrator.views.lifecycle import TrialState

_STATUS: Final[Mapping[str, RunStatus]] = {
    "finished": "FINISHED",
    "failed": "FAILED",
    "cancelled": "KILLED",
    "pruned": "KILLED",
}
_CELL_STATUS: Final[Mapping[str, RunStatus]] = {"failed": "FAILED", "missing": "KILLED"}


def experiment_name(sweep: SweepRun) -> str:
    """The name of a sweep's experiment."""
    return f"{sweep.name} #{sweep.id}"


def experiment_tags(sweep: SweepRun) -> dict[str, str]:
    """What MLflow shows of a sweep's experiment, the spec's description as its own."""
    return sweep_tags(sweep) | ({"mlflow.note.content": sweep.description} if sweep.description else {})


def summary_mirror(sweep: SweepRun, files: Mapping[str, bytes], url: str) -> RunMirror:
    """The run that carries a sweep's tables."""
    tags = sweep_tags(sweep) | {"metricsweep.state": sweep.state, "metricsweep.url": f"{url}/sweeps/{sweep.id}"}
    if sweep.error:
        tags["metricsweep.error"] = sweep.error
    # MLflow keeps the larger of two values of one moment: what still changes must not be told as a metric.
    counts = {f"trials/{state}": float(sweep.counts.get(state, 0)) for state in TrialState} if sweep.ended else {}
    return RunMirror(
        kind="sweep", key=f"{sweep.uid}/summary", run=sweep.run, name="summary",
        status=_STATUS.get(sweep.state, "RUNNING"), started=sweep.started or sweep.created, ended=sweep.ended,
        tags=tags, metrics=counts, files=files,
    )  # fmt: skip


def cell_mirror(cell: CellRun, url: str) -> RunMirror:
    """The parent run of a cell's trials, with what its selection decided: metrics and tags, never params."""
    tags = sweep_tags(cell.sweep) | _cell_tags(cell) | {"metricsweep.url": f"{url}/sweeps/{cell.sweep.id}"}
    metrics: dict[str, float] = {}
    status: RunStatus = "RUNNING"
    summary = cell.summary
    if summary is not None:
        status = _CELL_STATUS.get(summary["status"], "FINISHED")
        tags["metricsweep.status"] = summary["status"]
        tags["metricsweep.selection_key"] = summary["selection_key"]
        tags["metricsweep.candidates"] = str(summary["candidates"])
        tags |= {f"metricsweep.selected.{axis}": label for axis, label in summary["labels"].items()}
        metrics = dict(_statistics(summary))
    return RunMirror(
        kind="cell", key=f"{cell.sweep.uid}/cell/{cell.index}", run=cell.run, name=cell_name(cell.labels),
        status=status, started=cell.sweep.started or cell.sweep.created,
        ended=cell.settled if summary is not None else None,
        tags=tags, metrics=metrics,
    )  # fmt: skip


def trial_mirror(trial: TrialRun, url: str) -> RunMirror:
    """The run of one trial; one that reuses a known training is small and says whose it is."""
    sweep = trial.cell.sweep
    ended = trial.ended if trial.state in _STATUS else None
    return RunMirror(
        kind="trial", key=trial.uid, run=trial.run, name=_trial_name(trial),
        status=_STATUS.get(trial.state, "RUNNING"), started=trial.started or ended or sweep.started or sweep.created,
        ended=ended, parent=trial.cell.run, params=flat_params(trial.recipe), tags=_trial_tags(trial, url),
        points=trial.points, metrics=_final_metrics(trial),
    )  # fmt: skip


def left_mirror(trial: TrialRun, run: str) -> RunMirror:
    """The run that a trial had before it was planned anew: it ends, and its key is free for the trial's next run."""
    sweep = trial.cell.sweep
    tags = sweep_tags(sweep) | {"metricsweep.trial": str(trial.id), "metricsweep.state": "planned anew"}
    return RunMirror(
        kind="trial", key=f"{trial.uid}/{run}", run=run, name=_trial_name(trial), status="KILLED",
        started=sweep.started or sweep.created, ended=datetime.now(UTC), tags=tags,
    )  # fmt: skip


def sweep_tags(sweep: SweepRun) -> dict[str, str]:
    """The tags of a sweep's experiment and of every run in it."""
    tags = {"metricsweep.sweep_id": str(sweep.id), "metricsweep.sweep": sweep.uid, "metricsweep.name": sweep.name}
    return tags | ({"metricsweep.actor": sweep.actor} if sweep.actor else {})


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


def _cell_tags(cell: CellRun) -> dict[str, str]:
    tags = {"metricsweep.cell": cell_name(cell.labels), "metricsweep.cell_index": str(cell.index)}
    return tags | {f"metricsweep.cell.{axis}": label for axis, label in cell.labels.items()}


def _trial_tags(trial: TrialRun, url: str) -> dict[str, str]:
    pins = trial.recipe.get("pins") or {}
    tags = sweep_tags(trial.cell.sweep) | _cell_tags(trial.cell)
    tags |= {
        "metricsweep.trial": str(trial.id),
        "metricsweep.candidate": str(trial.candidate),
        "metricsweep.seed": str(trial.recipe.get("seed")),
        "metricsweep.fingerprint": trial.fingerprint,
        "metricsweep.training": trial.training,
        "metricsweep.attempts": str(trial.attempts),
        "metricsweep.state": trial.state,
        "metricsweep.url": f"{url}/trials/{trial.id}",
    }
    tags |= {f"metricsweep.candidate.{axis}": label for axis, label in trial.candidate_labels.items()}
    tags |= {f"metricsweep.repeat.{axis}": label for axis, label in trial.repeat_labels.items()}
    tags |= {"metricsweep.metrics": ", ".join(metrics)} if (metrics := trial.recipe.get("metrics")) else {}
    tags |= {f"metricsweep.pins.{key}": value for key, value in _flat(pins)}
    tags |= {f"metricsweep.provenance.{key}": value for key, value in _flat(trial.provenance)}
    commit = trial.provenance.get("git_commit")
    if commit:
        tags["mlflow.source.git.commit"] = str(commit)
    if trial.state == "finished":
        tags["metricsweep.outcome"] = "diverged" if trial.diverged else "ok"
    if trial.error:
        tags["metricsweep.error"] = trial.error
    if trial.reason:
        tags["metricsweep.pruned"] = trial.reason
    if trial.cell.summary is not None:
        tags["metricsweep.selected"] = str(trial.cell.summary["candidate"] == trial.candidate).lower()
    if trial.reused:
        tags["metricsweep.reused"] = "true"
        tags["metricsweep.source_trial"] = str(trial.source)
        tags |= {"metricsweep.source_run": trial.source_run} if trial.source_run else {}
    return tags


def _final_metrics(trial: TrialRun) -> dict[str, float]:
    metrics = dict(trial.metrics)
    if trial.best_step is not None:
        metrics["best_step"] = float(trial.best_step)
    if trial.seconds is not None and not trial.reused:
        metrics["seconds"] = trial.seconds
    return metrics


def _statistics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    statistics = dict(summary["metrics"])
    if summary["score"] is not None:
        statistics["score"] = summary["score"]
    for key, one in statistics.items():
        yield f"{key}/mean", number(one["mean"])
        if one["std"] is not None:
            yield f"{key}/std", one["std"]
