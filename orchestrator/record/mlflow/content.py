"""What MLflow shows of a sweep, a cell or a trial: names, params, tags, descriptions, and the view of its runs."""

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.record.columns import number
from orchestrator.record.mlflow.tracker import Artifacts, DatasetMirror, RunMirror, RunStatus, accepted
from orchestrator.record.outbox import LOSS, CellRun, SweepRun, TrialRun
from orchestrator.record.queue import cell_name, trial_name
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import VIEW
from workers.catalog import UNKNOWN

_STATUS: Final[Mapping[str, RunStatus]] = {
    "finished": "FINISHED", "failed": "FAILED", "cancelled": "KILLED", "pruned": "KILLED",
}  # fmt: skip
_DEVIATIONS: Final = "std"
"""The folder of the deviations of means."""
_SHOWN: Final = "Tables and loss"
"""The section of charts that is open at first."""
_CLOSED: Final = ("Model metrics", "last", _DEVIATIONS, "train", "validation", "test", "best_test", "System metrics")
"""Sections that are closed at first, as MLflow names them by the folders of metrics."""
DESCRIPTION_TAG: Final = "mlflow.note.content"
_MAX_DESCRIPTION: Final = 4_800  # characters, of 5,000 that a tag may have
_VIEW_TAG: Final = f"mlflow.sharedViewState.{VIEW}"
_MAX_COLUMNS: Final = 24
"""Of a table with many data sets: with more, the tag would be too long."""
_CELL_STATUS: Final[Mapping[str, RunStatus]] = {"failed": "FAILED", "missing": "KILLED"}


def experiment_name(sweep: SweepRun) -> str:
    """The name of a sweep's MLflow experiment."""
    return f"{sweep.name} #{sweep.id}"


def experiment_tags(sweep: SweepRun, artifacts: Artifacts, url: str) -> dict[str, str]:
    """The tags of a sweep's MLflow experiment, with the view of its runs that our links open."""
    tags = {"metricsweep.sweep_id": str(sweep.id), "metricsweep.name": sweep.name}
    tags |= {DESCRIPTION_TAG: _describe_sweep(sweep, artifacts, url), _VIEW_TAG: _runs_view(artifacts)}
    return tags | ({"metricsweep.actor": sweep.actor} if sweep.actor else {})


def summary_mirror(sweep: SweepRun, artifacts: Artifacts, url: str) -> RunMirror:
    """The MLflow run that carries a sweep's tables and figures."""
    tags = {"metricsweep.state": sweep.state, DESCRIPTION_TAG: _describe_sweep(sweep, artifacts, url)}
    if sweep.error:
        tags["metricsweep.error"] = sweep.error
    # MLflow keeps the larger of two values of one time: a count that still changes must not be a metric.
    counts = {f"trials {state}": float(sweep.counts.get(state, 0)) for state in TrialState} if sweep.ended else {}
    return RunMirror(
        kind="sweep", key=f"{sweep.uid}/summary", run=sweep.run, name="tables and figures", sweep=sweep.uid,
        status=_STATUS.get(sweep.state, "RUNNING"), started=sweep.started or sweep.created, ended=sweep.ended,
        tags=tags, metrics=counts, files=artifacts.files,
    )  # fmt: skip


def cell_mirror(cell: CellRun, url: str) -> RunMirror:
    """The MLflow run of a cell, the parent of its trials; its params are the cell's and best candidate's labels."""
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
        points=cell.points, dataset=_dataset(cell.recipe, cell.provenance),
    )  # fmt: skip


def trial_mirror(trial: TrialRun, url: str) -> RunMirror:
    """The MLflow run of a trial; if the trial reuses a training, without curves but naming the trial that has them."""
    sweep = trial.cell.sweep
    ended = trial.ended if trial.state in _STATUS else None
    labels = {**trial.cell.labels, **trial.candidate_labels, **trial.repeat_labels}
    return RunMirror(
        kind="trial", key=trial.uid, run=trial.run, name=_trial_name(trial), sweep=sweep.uid,
        status=_STATUS.get(trial.state, "RUNNING"), started=trial.started or ended or sweep.started or sweep.created,
        ended=ended, parent=trial.cell.run, params={**labels, **_flat_params(trial.recipe)},
        tags=_trial_tags(trial, url), points=trial.points, metrics=_final_metrics(trial),
        dataset=_dataset(trial.recipe, trial.provenance),
    )  # fmt: skip


def left_mirror(trial: TrialRun, run: str) -> RunMirror:
    """The MLflow run that a trial had before it was planned anew, marked as ended and with another key."""
    sweep = trial.cell.sweep
    tags = {"metricsweep.trial": str(trial.id), "metricsweep.state": "planned anew"}
    return RunMirror(
        kind="trial", key=f"{trial.uid}/{run}", run=run, name=_trial_name(trial), sweep=sweep.uid, status="KILLED",
        started=sweep.started or sweep.created, ended=datetime.now(UTC), tags=tags,
    )  # fmt: skip


def _flat_params(recipe: Mapping[str, Any]) -> dict[str, str]:
    """A recipe as `loss.name`, `loss.margin`, ..., without what may change of a run: its pins and further metrics."""
    fixed = {key: value for key, value in recipe.items() if key not in {"pins", "metrics"}}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in _flat(fixed)}


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{path}{key}.")
        elif item is not None:
            yield f"{path}{key}", item


def _trial_name(trial: TrialRun) -> str:
    return trial_name(trial.cell.labels, {**trial.candidate_labels, **trial.repeat_labels})


def _dataset(recipe: Mapping[str, Any], provenance: Mapping[str, Any]) -> DatasetMirror | None:
    """The data set of a recipe, if its content is known before or after the training."""
    part, pins = recipe.get("dataset"), recipe.get("pins") or {}
    pinned = [pins.get("manifest"), pins.get("content"), provenance.get("manifest")]
    content = next((str(found) for found in pinned if found and not str(found).startswith(UNKNOWN)), None)
    if part is None or content is None:
        return None
    where = [str(part[option]) for option in ("folder", "file") if part.get(option)]
    return DatasetMirror(" ".join([part["name"], *where]), content)


def _trial_tags(trial: TrialRun, url: str) -> dict[str, str]:
    """Few tags, since each is a column in MLflow; the rest is in the description."""
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
    tags["metricsweep.selected"] = str(chosen == trial.candidate).lower()
    if trial.reused:
        tags["metricsweep.reused"] = "true"
    return tags


def _final_metrics(trial: TrialRun) -> dict[str, float]:
    metrics = {single(key): trial.metrics[key] for key in sorted(trial.metrics, key=_importance)}
    if trial.best_step is not None:
        metrics["best_step"] = float(trial.best_step)
    if trial.seconds is not None and not trial.reused:
        metrics["seconds"] = trial.seconds
    return metrics


def _statistics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key in sorted(summary["metrics"], key=_importance):
        statistic = summary["metrics"][key]
        yield single(key), number(statistic["mean"])
        if statistic["std"] is not None:
            yield f"{_DEVIATIONS}/{single(key).replace('/', ' ')}", statistic["std"]


def single(key: str) -> str:
    """The name that a number of a result gets in MLflow: `best/test/recall@1` -> `recall@1`.

    Numbers of other weights and splits than those that tables print are in folders, which MLflow draws as sections:
    `last/test/map@r` -> `last/map@r`. No curve, such as `validation/map@r`, has such a folder.
    """
    checkpoint, _, rest = key.partition("/")
    split, _, metric = rest.partition("/")
    if not metric:
        return key.replace("/", " ")
    folder = " ".join([checkpoint, *([split] if split != "test" else [])])
    return metric.replace("/", " ") if folder == "best" else f"{folder}/{metric.replace('/', ' ')}"


def _importance(key: str) -> tuple[bool, bool]:
    """The sort key of result keys, best on test first, since MLflow keeps the order of metrics."""
    checkpoint, _, rest = key.partition("/")
    return checkpoint != "best", rest.partition("/")[0] != "test"


def _describe_sweep(sweep: SweepRun, artifacts: Artifacts, url: str) -> str:
    where = f"[Sweep {sweep.id}, {_plain(sweep.name)}]({url}/sweeps/{sweep.id}) with its tables and figures."
    return _joined([where, sweep.description, *artifacts.captions])


def _describe_cell(cell: CellRun, url: str) -> str:
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
    means = "Its numbers are means over the seeds, those in `std` their deviations."
    if cell.model is None:
        return _joined([where, _plain(what), means])
    seed = f"The curve of the loss and the [model]({_model(cell.model, url)}) are those of trial {cell.model}."
    return _joined([where, _plain(what), means, seed])


def _describe_trial(trial: TrialRun, url: str) -> str:
    cell = trial.cell
    where = (
        f"[Trial {trial.id}]({url}/trials/{trial.id}) of "
        f"[cell {cell.index}]({url}/sweeps/{cell.sweep.id}/cells/{cell.index}) of {_sweep(cell.sweep, url)}."
    )
    reused = ""
    if trial.reused and trial.source is not None:
        run = f"; its curves are in run {trial.source_run}" if trial.source_run else ""
        reused = f"Reuses the training of [trial {trial.source}]({url}/trials/{trial.source}){run}."
    finished = trial.state == "finished" and not trial.diverged
    model = f"[Its model]({_model(trial.id, url)}): weights, recipe and preprocessing." if finished else ""
    facts = [("training", trial.training), ("attempts", trial.attempts), *_flat(trial.recipe.get("pins") or {})]
    if further := trial.recipe.get("metrics"):
        facts.append(("further metrics", ", ".join(further)))
    facts += _flat(trial.provenance)
    table = "\n".join(["| | |", "|---|---|", *(f"| {_plain(name)} | {_plain(str(fact))} |" for name, fact in facts)])
    return _joined([where, reused, model, table])


def _model(trial: int, url: str) -> str:
    """The address of a trial's model."""
    return f"{url}/v1/trials/{trial}/model"


def _plain(text: str) -> str:
    """A text on one line, with Markdown's characters escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _sweep(sweep: SweepRun, url: str) -> str:
    return f"[sweep {sweep.id}, {_plain(sweep.name)}]({url}/sweeps/{sweep.id})"


def _joined(paragraphs: list[str]) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)[:_MAX_DESCRIPTION]


def _runs_view(artifacts: Artifacts) -> str:
    """The value of the tag with the view that our links open: the cells, best first, with the columns of the tables.

    MLflow's page takes filter and order from the address, but columns and charts only from a shared view, a tag of the
    experiment.
    """
    order = _metric(artifacts.selected_by) if artifacts.selected_by else "attributes.start_time"
    view = {
        "searchFilter": "tags.`metricsweep.kind` = 'cell'",
        "orderByKey": order,
        "orderByAsc": artifacts.better == "lower" or not artifacts.selected_by,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "selectedColumns": list(dict.fromkeys(_columns(artifacts)))[:_MAX_COLUMNS],
        **_charts(artifacts),
    }
    return f"deflate;{b64encode(zlib.compress(json.dumps(view).encode(), 9)).decode()}"


def _charts(artifacts: Artifacts) -> dict[str, Any]:
    """The charts of the view: the tables' numbers and the loss; the sections of all other metrics are closed.

    MLflow makes a curve of a bar chart that it would make itself (`isGenerated`) if the metric has steps.
    """
    shown = [accepted(name) for name in (*map(single, artifacts.columns), LOSS)]
    splits = {key.split("/")[1] for key in artifacts.columns if key.count("/") > 1} | {"train", "validation"}
    folders = [f"{kept} {split}" for kept in ("best", "last") for split in sorted(splits - {"test"})]
    return {
        "compareRunCharts": [
            {
                "uuid": name, "type": "BAR", "metricKey": name, "displayName": name, "runsCountToCompare": 10,
                "metricSectionId": "tables", "isGenerated": True, "deleted": False,
            }
            for name in dict.fromkeys(shown[-_MAX_COLUMNS:])
        ],
        "compareRunSections": [
            {"uuid": uuid, "name": name, "display": name == _SHOWN, "isReordered": True, "isGenerated": True}
            for uuid, name in [("tables", _SHOWN), *((name, name) for name in (*_CLOSED, *folders))]
        ],
        "isAccordionReordered": True,
    }  # fmt: skip


def _columns(artifacts: Artifacts) -> Iterator[str]:
    yield from (f"params.`{accepted(axis)}`" for axis in artifacts.axes)
    if artifacts.selected_by:
        yield _metric(artifacts.selected_by)
    yield from map(_metric, artifacts.columns)


def _metric(key: str) -> str:
    return f"metrics.`{accepted(single(key))}`"
