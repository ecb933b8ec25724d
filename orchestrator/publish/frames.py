"""Frames: sweeps, trials, candidates and curves as Arrow's stream, a few hundred rows at a time, none kept."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from orchestrator.publish.aggregate import by_cell, selection, summary_of
from orchestrator.views.runs import Statistic, SweepOutcomes, TrialProvenance
from orchestrator.views.sweeps import SweepSummary
from orchestrator.views.trials import Curve

_WORDS: Final = pa.map_(pa.string(), pa.string())
_NUMBERS: Final = pa.map_(pa.string(), pa.float64())
_MOMENT: Final = pa.timestamp("us", tz="UTC")
SWEEPS: Final = pa.schema(
    [
        ("sweep", pa.int64()), ("name", pa.string()), ("state", pa.string()), ("total", pa.int64()),
        ("finished", pa.int64()), ("failed", pa.int64()), ("actor", pa.string()), ("created", _MOMENT),
        ("started", _MOMENT), ("ended", _MOMENT),
    ]
)  # fmt: skip
TRIALS: Final = pa.schema(
    [
        ("trial", pa.int64()), ("cell", pa.int64()), ("candidate", pa.int64()), ("repeat", pa.int64()),
        ("labels", _WORDS), ("state", pa.string()), ("diverged", pa.bool_()), ("reused", pa.bool_()),
        ("score", pa.float64()), ("best_step", pa.int64()), ("seconds", pa.float64()), ("metrics", _NUMBERS),
        ("fingerprint", pa.string()), ("dataset", pa.string()), ("data_hash", pa.string()), ("device", pa.string()),
        ("git_commit", pa.string()), ("error", pa.string()), ("recipe", pa.string()),
    ]
)  # fmt: skip
CANDIDATES: Final = pa.schema(
    [
        ("cell", pa.int64()), ("candidate", pa.int64()), ("labels", _WORDS), ("status", pa.string()),
        ("selected", pa.bool_()), ("score", pa.float64()), ("runs", pa.int64()), ("metrics", _NUMBERS),
        ("deviations", _NUMBERS),
    ]
)  # fmt: skip
CURVES: Final = pa.schema([("trial", pa.int64()), ("key", pa.string()), ("step", pa.int64()), ("value", pa.float64())])

_AT_ONCE: Final = 500
_AT_ONCE_OF_CURVES: Final = 20_000


def sweeps(summaries: Iterable[SweepSummary]) -> Iterator[bytes]:
    """Sweeps, a row each."""
    rows = (
        {
            "sweep": summary.id, "name": summary.name, "state": str(summary.state), "total": summary.total,
            "finished": summary.counts.finished, "failed": summary.counts.failed, "actor": summary.actor,
            "created": summary.created, "started": summary.started, "ended": summary.ended,
        }
        for summary in summaries
    )  # fmt: skip
    return _stream(SWEEPS, rows, _AT_ONCE)


def trials(outcomes: SweepOutcomes, known: Iterable[TrialProvenance]) -> Iterator[bytes]:
    """Trials in the order of the plan, a row each; of `outcomes` only cells and candidates are looked at."""
    labels = _labels(outcomes)
    return _stream(TRIALS, (_trial(trial, labels) for trial in known), _AT_ONCE)


def candidates(outcomes: SweepOutcomes, better: str) -> Iterator[bytes]:
    """Candidates, a row each: means over their repeats, and which one its cell shows."""
    key, labels = selection(outcomes.spec).key, _labels(outcomes)

    def rows() -> Iterator[dict[str, Any]]:
        for cell, those in by_cell(outcomes).items():
            chosen = summary_of(cell, those, key, "lower" if better == "lower" else "higher").candidate
            for candidate in those:
                score = candidate.scores.get(key)
                yield {
                    "cell": cell, "candidate": candidate.index, "status": candidate.status,
                    "labels": list(labels[cell, candidate.index].items()), "selected": candidate.index == chosen,
                    "score": score.mean if score else None, "runs": score.n if score else None,
                    "metrics": _means(candidate.metrics),
                    "deviations": [(name, statistic.std) for name, statistic in candidate.metrics.items()],
                }  # fmt: skip

    return _stream(CANDIDATES, rows(), _AT_ONCE)


def curves(by_trial: Iterable[tuple[int, Iterable[Curve]]]) -> Iterator[bytes]:
    """Points of curves, a row each, trial by trial."""
    rows = (
        {"trial": trial, "key": curve.key, "step": step, "value": value}
        for trial, several in by_trial
        for curve in several
        for step, value in curve.points
    )
    return _stream(CURVES, rows, _AT_ONCE_OF_CURVES)


def _trial(trial: TrialProvenance, labels: Mapping[tuple[int, int], Mapping[str, str]]) -> dict[str, Any]:
    outcome = trial.outcome
    named = {**labels[outcome.cell, outcome.candidate], **outcome.repeat_labels}
    return {
        "trial": outcome.trial, "cell": outcome.cell, "candidate": outcome.candidate, "repeat": outcome.repeat,
        "labels": list(named.items()), "state": outcome.state.value, "diverged": outcome.diverged,
        "reused": outcome.reused, "score": trial.score, "best_step": trial.best_step, "seconds": trial.seconds,
        "metrics": list(outcome.values.items()), "fingerprint": trial.fingerprint, "dataset": trial.dataset,
        "data_hash": trial.data_hash, "device": trial.device, "git_commit": trial.commit, "error": trial.error,
        "recipe": json.dumps(trial.recipe, ensure_ascii=False, separators=(",", ":")),
    }  # fmt: skip


def _labels(outcomes: SweepOutcomes) -> dict[tuple[int, int], dict[str, str]]:
    cells = {cell.index: cell.labels for cell in outcomes.cells}
    return {(one.cell, one.index): {**cells[one.cell], **one.labels} for one in outcomes.candidates}


def _means(metrics: Mapping[str, Statistic]) -> list[tuple[str, float]]:
    return [(name, one.mean) for name, one in metrics.items()]


def _stream(schema: pa.Schema, rows: Iterable[dict[str, Any]], at_once: int) -> Iterator[bytes]:
    passing, out = iter(rows), io.BytesIO()
    with pa.ipc.new_stream(out, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        while some := list(islice(passing, at_once)):
            writer.write_batch(pa.RecordBatch.from_pylist(some, schema=schema))
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()
