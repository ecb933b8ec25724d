"""Frames: streams sweeps, trials, candidates and curves in Arrow's format, 2,000 rows at a time."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from orchestrator.publish.aggregate import Better, by_cell, selection, summary_of
from orchestrator.views.runs import SweepResults, TrialProvenance
from orchestrator.views.sweeps import SweepSummary
from orchestrator.views.trials import Curve

_TEXTS: Final = pa.map_(pa.string(), pa.string())
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
        ("labels", _TEXTS), ("state", pa.string()), ("diverged", pa.bool_()), ("reused", pa.bool_()),
        ("score", pa.float64()), ("best_step", pa.int64()), ("seconds", pa.float64()), ("metrics", _NUMBERS),
        ("fingerprint", pa.string()), ("dataset", pa.string()), ("data_hash", pa.string()), ("device", pa.string()),
        ("git_commit", pa.string()), ("error", pa.string()), ("recipe", pa.string()),
    ]
)  # fmt: skip
CANDIDATES: Final = pa.schema(
    [
        ("cell", pa.int64()), ("candidate", pa.int64()), ("labels", _TEXTS), ("status", pa.string()),
        ("selected", pa.bool_()), ("score", pa.float64()), ("runs", pa.int64()), ("metrics", _NUMBERS),
        ("deviations", _NUMBERS),
    ]
)  # fmt: skip
CURVES: Final = pa.schema([("trial", pa.int64()), ("key", pa.string()), ("step", pa.int64()), ("value", pa.float64())])

_AT_ONCE: Final = 2_000


def sweeps(summaries: Iterable[SweepSummary]) -> Iterator[bytes]:
    """Streams sweeps in Arrow's format, a sweep per row."""
    rows = (
        {
            "sweep": summary.id, "name": summary.name, "state": str(summary.state), "total": summary.total,
            "finished": summary.counts.finished, "failed": summary.counts.failed, "actor": summary.actor,
            "created": summary.created, "started": summary.started, "ended": summary.ended,
        }
        for summary in summaries
    )  # fmt: skip
    return _stream(SWEEPS, rows)


def trials(results: SweepResults, known: Iterable[TrialProvenance]) -> Iterator[bytes]:
    """Streams trials in Arrow's format, in the order of the plan; of `results` only cells and candidates are used."""
    labels = _labels(results)
    return _stream(TRIALS, (_trial(trial, labels) for trial in known))


def candidates(results: SweepResults, better: Better) -> Iterator[bytes]:
    """Streams candidates in Arrow's format: means over their repeats, and whether the cell shows the candidate."""
    key, labels = selection(results.spec).key, _labels(results)

    def rows() -> Iterator[dict[str, Any]]:
        for cell, competing in by_cell(results).items():
            chosen = summary_of(cell, competing, key, better).candidate
            for candidate in competing:
                score = candidate.scores.get(key)
                yield {
                    "cell": cell, "candidate": candidate.index, "status": candidate.status,
                    "labels": list(labels[cell, candidate.index].items()), "selected": candidate.index == chosen,
                    "score": score.mean if score else None, "runs": score.n if score else None,
                    "metrics": [(name, statistic.mean) for name, statistic in candidate.metrics.items()],
                    "deviations": [(name, statistic.std) for name, statistic in candidate.metrics.items()],
                }  # fmt: skip

    return _stream(CANDIDATES, rows())


def curves(by_trial: Iterable[tuple[int, Iterable[Curve]]]) -> Iterator[bytes]:
    """Streams the curves of trials in Arrow's format, a point per row."""
    rows = (
        {"trial": trial, "key": curve.key, "step": step, "value": value}
        for trial, several in by_trial
        for curve in several
        for step, value in curve.points
    )
    return _stream(CURVES, rows)


def _trial(trial: TrialProvenance, labels: Mapping[tuple[int, int], Mapping[str, str]]) -> dict[str, Any]:
    result = trial.result
    named = {**labels[result.cell, result.candidate], **result.repeat_labels}
    return {
        "trial": result.trial, "cell": result.cell, "candidate": result.candidate, "repeat": result.repeat,
        "labels": list(named.items()), "state": result.state.value, "diverged": result.diverged,
        "reused": result.reused, "score": trial.score, "best_step": trial.best_step, "seconds": trial.seconds,
        "metrics": list(result.values.items()), "fingerprint": trial.fingerprint, "dataset": trial.dataset,
        "data_hash": trial.data_hash, "device": trial.device, "git_commit": trial.commit, "error": trial.error,
        "recipe": json.dumps(trial.recipe, ensure_ascii=False, separators=(",", ":")),
    }  # fmt: skip


def _labels(results: SweepResults) -> dict[tuple[int, int], dict[str, str]]:
    cells = {cell.index: cell.labels for cell in results.cells}
    return {
        (candidate.cell, candidate.index): {**cells[candidate.cell], **candidate.labels}
        for candidate in results.candidates
    }


def _stream(schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    remaining, out = iter(rows), io.BytesIO()
    with pa.ipc.new_stream(out, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        while batch := list(islice(remaining, _AT_ONCE)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()
