"""Cells, candidates, trials and metrics as Parquet, written a few trials at a time and read back exactly."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.views.drift import RunFacts
from orchestrator.views.errors import DamagedError
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import TrialOutcome
from orchestrator.views.planned import Candidate, Cell, Labels
from orchestrator.views.provenance import TrialProvenance, origin_of
from workers.catalog import stamp

_LABELS: Final = pa.map_(pa.string(), pa.string())
CELLS: Final = pa.schema([("cell", pa.int64()), ("labels", _LABELS)])
CANDIDATES: Final = pa.schema([("cell", pa.int64()), ("candidate", pa.int64()), ("labels", _LABELS)])
TRIALS: Final = pa.schema(
    [
        ("trial", pa.int64()), ("cell", pa.int64()), ("candidate", pa.int64()), ("repeat", pa.int64()),
        ("repeat_labels", _LABELS), ("state", pa.string()), ("diverged", pa.bool_()), ("reused", pa.bool_()),
        ("uid", pa.string()), ("training", pa.string()), ("fingerprint", pa.string()), ("recipe", pa.string()),
        ("best_step", pa.int64()), ("seconds", pa.float64()), ("score", pa.float64()), ("error", pa.string()),
        ("dataset", pa.string()), ("data_hash", pa.string()), ("git_commit", pa.string()), ("device", pa.string()),
        ("versions", _LABELS), ("provenance", pa.string()), ("mlflow_run", pa.string()),
    ]
)  # fmt: skip
"""One row a trial in the order of the plan; `recipe` (completed) and `provenance` are JSON."""
METRICS: Final = pa.schema([("trial", pa.int64()), ("key", pa.string()), ("value", pa.float64())])
"""One row a trial and metric, keyed checkpoint/split/metric; NaN where the value is not a number."""

AT_ONCE: Final = 500
MOST_ROWS: Final = 50_000_000
MOST_BYTES: Final = 4 * 2**30
"""What one file may take in memory."""


def cells(found: Iterable[Cell]) -> bytes:
    """The cells of a sweep as a file."""
    return parquet(CELLS, [{"cell": one.index, "labels": _pairs(one.labels)} for one in found])


def candidates(found: Iterable[Candidate]) -> bytes:
    """The candidates of a sweep as a file."""
    rows = [{"cell": one.cell, "candidate": one.index, "labels": _pairs(one.labels)} for one in found]
    return parquet(CANDIDATES, rows)


def write_trials(found: Iterable[Sequence[TrialProvenance]], trials: IO[bytes], metrics: IO[bytes]) -> None:
    """Trials, and their metrics, as two files, from lists of a few hundred."""
    with _writer(trials, TRIALS) as into, _writer(metrics, METRICS) as values:
        for some in found:
            into.write_table(pa.Table.from_pylist([_trial(one) for one in some], schema=TRIALS))
            rows = [
                {"trial": one.outcome.trial, "key": key, "value": value}
                for one in some
                for key, value in one.outcome.values.items()
            ]
            values.write_table(pa.Table.from_pylist(rows, schema=METRICS))


def read_cells(content: bytes) -> tuple[Cell, ...]:
    """The cells in a file; raises DamagedError, as all readers here do."""
    return tuple(Cell(row["cell"], dict(row["labels"])) for row in rows(content, CELLS, "cells"))


def read_candidates(content: bytes) -> tuple[Candidate, ...]:
    """The candidates in a file."""
    found = rows(content, CANDIDATES, "candidates")
    return tuple(Candidate(row["cell"], row["candidate"], dict(row["labels"])) for row in found)


def read_trials(trials: bytes, metrics: bytes) -> tuple[TrialOutcome, ...]:
    """The trials in two files, each metric in its place."""
    values: dict[int, dict[str, float]] = {}
    for row in rows(metrics, METRICS, "metrics"):
        values.setdefault(row["trial"], {})[row["key"]] = row["value"]
    wanted = ["trial", "cell", "candidate", "repeat", "repeat_labels", "state", "diverged", "reused", "recipe"]
    outcomes = []
    for position, row in enumerate(rows(trials, TRIALS, "trials", [*wanted, "seconds", "provenance"])):
        try:
            state = TrialState(row.pop("state"))
        except ValueError as error:
            raise DamagedError(f"the trials of the bundle cannot be read: {error}") from error
        labels, recipe = dict(row.pop("repeat_labels")), row.pop("recipe")
        origin = origin_of(json.loads(row.pop("provenance")))
        planned = stamp(json.loads(recipe)) if state is TrialState.FINISHED else ""
        its = values.get(row["trial"], {})
        outcomes.append(
            TrialOutcome(
                **row, repeat_labels=labels, state=state, values=its, stamp=planned, origin=origin, position=position
            )
        )
    return tuple(outcomes)


def read_facts(trials: bytes) -> Iterator[tuple[int, RunFacts]]:
    """What may explain the numbers of each trial in a file."""
    wanted = ["trial", "recipe", "git_commit", "data_hash", "versions"]
    for row in rows(trials, TRIALS, "trials", wanted):
        facts = RunFacts(json.loads(row["recipe"]), row["git_commit"], row["data_hash"], dict(row["versions"]))
        yield row["trial"], facts


def _trial(one: TrialProvenance) -> dict[str, Any]:
    outcome = one.outcome
    return {
        "trial": outcome.trial, "cell": outcome.cell, "candidate": outcome.candidate, "repeat": outcome.repeat,
        "repeat_labels": _pairs(outcome.repeat_labels), "state": outcome.state.value, "diverged": outcome.diverged,
        "reused": outcome.reused, "uid": one.uid, "training": one.training, "fingerprint": one.fingerprint,
        "recipe": _json(one.recipe), "best_step": one.best_step, "seconds": one.seconds, "score": one.score,
        "error": one.error, "dataset": one.dataset, "data_hash": one.data_hash, "git_commit": one.commit,
        "device": one.device, "versions": _pairs(one.versions), "provenance": _json(one.provenance),
        "mlflow_run": one.run,
    }  # fmt: skip


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _pairs(labels: Labels) -> list[tuple[str, str]]:
    return list(labels.items())  # a Parquet map keeps the order of the axes


def _writer(out: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(out, schema, compression="zstd")


def parquet(schema: pa.Schema, told: list[dict[str, Any]]) -> bytes:
    """Rows as a file."""
    out = io.BytesIO()
    with _writer(out, schema) as into:
        into.write_table(pa.Table.from_pylist(told, schema=schema))
    return out.getvalue()


def rows(content: bytes, schema: pa.Schema, what: str, wanted: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a file, those columns that are `wanted`; raises DamagedError."""
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        size = sum(file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups))
        if file.metadata.num_rows > MOST_ROWS or size > MOST_BYTES:
            raise DamagedError(f"the {what} of the bundle are more than this reads")
        if not file.schema_arrow.equals(schema):
            raise DamagedError(f"the {what} of the bundle have other columns than {', '.join(schema.names)}")
        for batch in file.iter_batches(AT_ONCE * 20, columns=wanted):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"the {what} of the bundle cannot be read: {error}") from error
