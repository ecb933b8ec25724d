"""A run in MLflow's own terms: its tags, params and metrics, in as few batches as a server takes."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from orchestrator.record.mlflow.names import accepted
from orchestrator.record.tracker import RunMirror

KEY_TAG: Final = "metricsweep.key"
KIND_TAG: Final = "metricsweep.kind"
NAME_TAG: Final = "mlflow.runName"
NOT_FINITE_TAG: Final = "metricsweep.not_finite"
SHAPE_TAG: Final = "metricsweep.shape"
SHAPE: Final = "2"
"""Of the names of params, metrics and tags: a run of another shape is made anew when it is told anew."""
MAX_NAME: Final = 480  # characters
MAX_PARAM: Final = 6_000
MAX_TAG: Final = 5_000
MAX_DIGEST: Final = 36
DATASET_SOURCE: Final = "metricsweep"
DATASET_TAG: Final = ("mlflow.data.context", "training")

_MAX_METRICS, _MAX_PARAMS, _MAX_TAGS, _MAX_ENTITIES = 1_000, 100, 100, 1_000  # per log_batch, of all MLflow servers
_MAX_BYTES: Final = 800_000  # of a batch's JSON; the server refuses 1,000,000


class Metric(NamedTuple):
    """A value, at which millisecond and step."""

    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    """A param."""

    key: str
    value: str


class Tag(NamedTuple):
    """A tag of a run."""

    key: str
    value: str


Entity: TypeAlias = Metric | Param | Tag


@dataclass(frozen=True, slots=True)
class RunContent:
    """All that a run has to show beside its times, its files and its data set."""

    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: list[Metric]


def content_of(run: RunMirror) -> RunContent:
    """Of a run; a tag names the values that are not finite, since they are left out."""
    metrics, bad = metrics_of(run)
    tags = tags_of(run) | ({NOT_FINITE_TAG: ", ".join(bad)[:MAX_TAG]} if bad else {})
    return RunContent(tags, params_of(run), metrics)


def end_of(run: RunMirror) -> tuple[str, int | None]:
    """Its status and when it ended, as far as it has."""
    if run.ended is None or run.status == "RUNNING":
        return "RUNNING", None
    return run.status, milliseconds(run.ended)


def tags_of(run: RunMirror) -> dict[str, str]:
    """Every tag of a run; ours win over the caller's."""
    tags = {accepted(key): value[:MAX_TAG] for key, value in run.tags.items()}
    tags |= {
        KEY_TAG: run.key,
        KIND_TAG: run.kind,
        NAME_TAG: run.name[:MAX_NAME],
        "mlflow.source.name": "metricsweep",
        "mlflow.source.type": "LOCAL",
    }
    if run.parent is not None:
        tags["mlflow.parentRunId"] = run.parent
    return tags


def params_of(run: RunMirror) -> dict[str, str]:
    """Every param of a run."""
    return {accepted(key): value[:MAX_PARAM] for key, value in run.params.items()}


def metrics_of(run: RunMirror) -> tuple[list[Metric], list[str]]:
    """The finite values, and what was left out as `key@step=nan`.

    MLflow would show +inf as 1.8e308, and its charts break on it.
    """
    final_at = milliseconds(run.ended or run.started)  # fixed: a second sending is the same entry
    told = [(point.key, point.value, milliseconds(point.at), point.step) for point in run.points]
    told += [(key, value, final_at, 0) for key, value in run.metrics.items()]
    metrics = [Metric(accepted(key), float(value), at, step) for key, value, at, step in told if math.isfinite(value)]
    bad = [f"{key}@{step}={value}" for key, value, _, step in told if not math.isfinite(value)]
    return metrics, bad


def batches(entities: Iterable[Entity]) -> Iterator[list[Entity]]:
    """Pack entities, in order, into as few batches as the server's limits allow; none when there is nothing."""
    limits: dict[type, int] = {Metric: _MAX_METRICS, Param: _MAX_PARAMS, Tag: _MAX_TAGS}
    batch: list[Entity] = []
    counts: dict[type, int] = dict.fromkeys(limits, 0)
    size = 0
    for entity in entities:
        cost = 100 + len(json.dumps([entity.key, entity.value]))
        full = counts[type(entity)] == limits[type(entity)] or len(batch) == _MAX_ENTITIES or size + cost > _MAX_BYTES
        if batch and full:
            yield batch
            batch, counts, size = [], dict.fromkeys(limits, 0), 0
        batch.append(entity)
        counts[type(entity)] += 1
        size += cost
    if batch:
        yield batch


def milliseconds(at: datetime) -> int:
    """Since the epoch, as MLflow counts; a time without a zone is UTC here."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
