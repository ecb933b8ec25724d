"""The contents of a bundle, and how they are written and read: the archive, its Parquet files and its manifest."""

import hashlib
import io
import json
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.views.errors import DamagedError
from orchestrator.views.evidence import RunFacts
from orchestrator.views.runs import (
    Candidate,
    Cell,
    Labels,
    QuerySource,
    QuerySums,
    SweepLook,
    TrialProvenance,
    TrialResult,
    nowhere,
    origin_of,
)
from orchestrator.views.states import TrialState
from workers.catalog import stamp
from workers.contract import canonical_json

MANIFEST: Final = "manifest.json"
FORMAT: Final = "metricsweep-bundle"
_VERSION: Final = 1
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 2 * 2**30
"""The size to which all files of an archive may unpack."""
_MOST_OF_MANIFEST: Final = 16 * 2**20

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,199}){0,7}")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can store
_MODE: Final = 0o100644 << 16


class ArchiveWriter(AbstractContextManager["ArchiveWriter"]):
    """Writes the ZIP archive of a bundle file by file; `finish` adds the manifest. Use it in a `with` block."""

    def __init__(self, out: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._files: dict[str, dict[str, Any]] = {}

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, content: bytes) -> None:
        """Add a file to the archive from memory."""
        self.stream(name, io.BytesIO(content))

    def stream(self, name: str, content: IO[bytes]) -> None:
        """Add a file to the archive from a stream; raises ValueError if its name is taken or unsafe."""
        if name in self._files or name == MANIFEST or not _NAME.fullmatch(name):
            raise ValueError(f"cannot add a file named {name!r} to the bundle: the name is taken or unsafe")
        digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # has `readinto`
        self._files[name] = {"sha256": digest, "bytes": content.seek(0, io.SEEK_END)}
        content.seek(0)
        with self._zip.open(_entry(name), "w", force_zip64=True) as member:
            shutil.copyfileobj(content, member)

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest of the archive: `facts` and the hash of every file."""
        manifest = {"format": FORMAT, "version": _VERSION, **facts, "files": dict(sorted(self._files.items()))}
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        with self._zip.open(_entry(MANIFEST), "w", force_zip64=True) as member:
            member.write(text.encode())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3  # Unix, on every system, for equal bytes
    return entry


class Reader:
    """A bundle's archive whose files have been checked against its manifest."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Mapping[str, Any]) -> None:
        self._zip = archive
        self.manifest = manifest

    def holds(self, name: str) -> bool:
        """Whether the archive has a file of that name."""
        return name in self.manifest["files"]

    def read(self, name: str) -> bytes:
        """Returns the content of a file of the archive; raises DamagedError if there is no such file."""
        if not self.holds(name):
            raise DamagedError(f"the bundle has no {name}")
        return self._zip.read(name)

    @property
    def id(self) -> str:
        """The SHA-256 of the bundle's manifest; bundles with the same id have the same content."""
        return hashlib.sha256(self._zip.read(MANIFEST)).hexdigest()


@contextmanager
def opened(source: IO[bytes]) -> Iterator[Reader]:
    """Open a bundle and check all of it; DamagedError names every file that differs from the manifest."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = _manifest(archive)
            _verify(archive, manifest["files"])
            yield Reader(archive, manifest)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise DamagedError(f"the file is not a bundle, or is damaged: {error}") from error


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise DamagedError(f"the bundle is too large; at most {MOST_FILES:,} files, {MOST_BYTES // 2**30} GiB unpacked")
    if len(set(names)) != len(names) or any(not _NAME.fullmatch(name) for name in names):
        raise DamagedError("the bundle has two files of one name, or a file name that leads out of it")
    if MANIFEST not in names or archive.getinfo(MANIFEST).file_size > _MOST_OF_MANIFEST:
        raise DamagedError(f"the file is not a bundle: its {MANIFEST} is missing or too large")
    try:
        manifest = json.loads(archive.read(MANIFEST))
        known = (manifest["format"], manifest["version"]) == (FORMAT, _VERSION)
        hashes = {str(name): str(file["sha256"]) for name, file in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"the {MANIFEST} of the bundle cannot be read: {error}") from error
    if not known:
        raise DamagedError(f"the {MANIFEST} of the bundle has an unknown format; expected {FORMAT} {_VERSION}")
    return {**manifest, "files": hashes}


def _verify(archive: zipfile.ZipFile, hashes: Mapping[str, str]) -> None:
    present = {entry.filename for entry in archive.infolist()} - {MANIFEST}
    changed = [name for name in sorted(present & hashes.keys()) if _digest(archive, name) != hashes[name]]
    wrong = {"changed": changed, "missing": sorted(hashes.keys() - present), "added": sorted(present - hashes.keys())}
    if differences := "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names):
        raise DamagedError(f"the files of the bundle differ from its manifest. {differences}")


def _digest(archive: zipfile.ZipFile, name: str) -> str | None:
    """The hash of a file; `None` if it cannot be unpacked."""
    try:
        with archive.open(name) as member:
            return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type] # has `readinto`
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return None


_LABELS: Final = pa.map_(pa.string(), pa.string())
_CELLS: Final = pa.schema([("cell", pa.int64()), ("labels", _LABELS)])
_CANDIDATES: Final = pa.schema([("cell", pa.int64()), ("candidate", pa.int64()), ("labels", _LABELS)])
_TRIALS: Final = pa.schema(
    [
        ("trial", pa.int64()), ("cell", pa.int64()), ("candidate", pa.int64()), ("repeat", pa.int64()),
        ("repeat_labels", _LABELS), ("state", pa.string()), ("diverged", pa.bool_()), ("reused", pa.bool_()),
        ("uid", pa.string()), ("training", pa.string()), ("fingerprint", pa.string()), ("recipe", pa.string()),
        ("best_step", pa.int64()), ("seconds", pa.float64()), ("score", pa.float64()), ("error", pa.string()),
        ("dataset", pa.string()), ("data_hash", pa.string()), ("git_commit", pa.string()), ("device", pa.string()),
        ("versions", _LABELS), ("provenance", pa.string()), ("mlflow_run", pa.string()),
    ]
)  # fmt: skip
"""One row per trial in the order of the plan; `recipe` (completed) and `provenance` are JSON."""
_METRICS: Final = pa.schema([("trial", pa.int64()), ("key", pa.string()), ("value", pa.float64())])
"""One row per trial and metric, keyed checkpoint/split/metric; NaN if the value is not a number."""

AT_ONCE: Final = 500
MOST_ROWS: Final = 50_000_000
_MOST_TABLE_BYTES: Final = 4 * 2**30
"""The memory that one file may take."""


def cells(found: Iterable[Cell]) -> bytes:
    """Writes the cells of a sweep as a Parquet file."""
    return parquet(_CELLS, [{"cell": cell.index, "labels": _pairs(cell.labels)} for cell in found])


def candidates(found: Iterable[Candidate]) -> bytes:
    """Writes the candidates of a sweep as a Parquet file."""
    rows = [
        {"cell": candidate.cell, "candidate": candidate.index, "labels": _pairs(candidate.labels)}
        for candidate in found
    ]
    return parquet(_CANDIDATES, rows)


def write_trials(batches: Iterable[Sequence[TrialProvenance]], trials: IO[bytes], metrics: IO[bytes]) -> None:
    """Writes batches of trials to the Parquet file `trials`, and their results to the Parquet file `metrics`."""
    with _writer(trials, _TRIALS) as trial_rows, _writer(metrics, _METRICS) as metric_rows:
        for batch in batches:
            trial_rows.write_table(pa.Table.from_pylist([_trial(trial) for trial in batch], schema=_TRIALS))
            values = [
                {"trial": trial.result.trial, "key": key, "value": value}
                for trial in batch
                for key, value in trial.result.values.items()
            ]
            metric_rows.write_table(pa.Table.from_pylist(values, schema=_METRICS))


def read_cells(content: bytes) -> tuple[Cell, ...]:
    """Reads the cells from a bundle's Parquet file; raises DamagedError."""
    return tuple(Cell(row["cell"], dict(row["labels"])) for row in rows(content, _CELLS, "cells"))


def read_candidates(content: bytes) -> tuple[Candidate, ...]:
    """Reads the candidates from a bundle's Parquet file; raises DamagedError."""
    found = rows(content, _CANDIDATES, "candidates")
    return tuple(Candidate(row["cell"], row["candidate"], dict(row["labels"])) for row in found)


def read_trials(trials: bytes, metrics: bytes) -> tuple[TrialResult, ...]:
    """Reads the trials from a bundle's two Parquet files, each with its results; raises DamagedError."""
    values: dict[int, dict[str, float]] = {}
    for row in rows(metrics, _METRICS, "metrics"):
        values.setdefault(row["trial"], {})[row["key"]] = row["value"]
    wanted = ["trial", "cell", "candidate", "repeat", "repeat_labels", "state", "diverged", "reused", "recipe"]
    results = []
    for position, row in enumerate(rows(trials, _TRIALS, "trials", [*wanted, "seconds", "provenance"])):
        try:
            state = TrialState(row.pop("state"))
        except ValueError as error:
            raise DamagedError(f"the trials of the bundle cannot be read: {error}") from error
        labels, recipe = dict(row.pop("repeat_labels")), row.pop("recipe")
        origin = origin_of(json.loads(row.pop("provenance")))
        planned = stamp(json.loads(recipe)) if state is TrialState.FINISHED else ""
        measured = values.get(row["trial"], {})
        results.append(TrialResult(
            **row, repeat_labels=labels, state=state, values=measured, stamp=planned, origin=origin, position=position
        ))  # fmt: skip
    return tuple(results)


def read_facts(trials: bytes) -> Iterator[tuple[int, RunFacts]]:
    """Reads from a bundle's trials what may explain their numbers, such as code and data, by trial."""
    wanted = ["trial", "recipe", "git_commit", "data_hash", "versions"]
    for row in rows(trials, _TRIALS, "trials", wanted):
        facts = RunFacts(json.loads(row["recipe"]), row["git_commit"], row["data_hash"], dict(row["versions"]))
        yield row["trial"], facts


def _trial(trial: TrialProvenance) -> dict[str, Any]:
    result = trial.result
    return {
        "trial": result.trial, "cell": result.cell, "candidate": result.candidate, "repeat": result.repeat,
        "repeat_labels": _pairs(result.repeat_labels), "state": result.state.value, "diverged": result.diverged,
        "reused": result.reused, "uid": trial.uid, "training": trial.training, "fingerprint": trial.fingerprint,
        "recipe": _json(trial.recipe), "best_step": trial.best_step, "seconds": trial.seconds, "score": trial.score,
        "error": trial.error, "dataset": trial.dataset, "data_hash": trial.data_hash, "git_commit": trial.commit,
        "device": trial.device, "versions": _pairs(trial.versions), "provenance": _json(trial.provenance),
        "mlflow_run": trial.run,
    }  # fmt: skip


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _pairs(labels: Labels) -> list[tuple[str, str]]:
    return list(labels.items())  # a Parquet map keeps the order of the axes


def _writer(out: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(out, schema, compression="zstd")


def parquet(schema: pa.Schema, rows: list[dict[str, Any]]) -> bytes:
    """Rows as a Parquet file."""
    out = io.BytesIO()
    with _writer(out, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return out.getvalue()


def rows(content: bytes, schema: pa.Schema, what: str, wanted: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Reads the rows of a Parquet file with the columns `wanted` (`None` means all); raises DamagedError."""
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        size = sum(file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups))
        if file.metadata.num_rows > MOST_ROWS or size > _MOST_TABLE_BYTES:
            raise DamagedError(f"the bundle has too many {what}; at most {MOST_ROWS:,} rows can be read")
        if not file.schema_arrow.equals(schema):
            raise DamagedError(f"the {what} of the bundle have other columns than {', '.join(schema.names)}")
        for batch in file.iter_batches(AT_ONCE * 20, columns=wanted):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"the {what} of the bundle cannot be read: {error}") from error


POSTED, SPEC, SWEEP, CATALOG, README = "spec.yaml", "spec.json", "sweep.json", "catalog.json", "README.md"
CELLS, CANDIDATES = "data/cells.parquet", "data/candidates.parquet"
TRIALS, METRICS, LOOKS = "data/trials.parquet", "data/metrics.parquet", "data/looks.json"
QUERIES = "data/queries.parquet"

MAKERS: Final = ("metricsweep", "altair", "numpy", "pyarrow", "scipy", "vl-convert-python")
"""The packages whose version may change a byte or the last digit of a table or figure."""

WORDS: Final = """\
# {name} #{id}

{description}A sweep of metricsweep as one archive. `manifest.json` has the SHA-256 of every file.

- `tables/<name>/<numbers>/`: every table in every format; `figures/<name>.*`: every figure.
- `reproduction/<paper>.*`: what this sweep says of the numbers of the papers that its tables name.
- `verdicts/<name>.json`: whether the cells of a table are better than their baselines; `data/looks.json`: when the
  sweep was extended after a look, which these rest on.
- `spec.yaml` as it was posted, `spec.json` as it was understood.
- `data/trials.parquet`: every trial with its completed recipe, provenance, data set hash and code commit.
- `data/metrics.parquet`: every result metric of every trial.
- `data/queries.parquet`, where a table covers test queries: what these scored, summed up by class.
- `data/cells.parquet`, `data/candidates.parquet`: the labels of cells and candidates.
- `code/<hash>.zip`: the source of own parts that trainings used; `own_code` in the manifest says which hashes.
- `catalog.json`: the parts with the labels that the tables print; `published/`: what the papers printed.

`metricsweep rebuild FILE.zip` makes every table again from the data and compares it with the one inside.
"""


class BundleFacts:
    """Counts the commits, devices, data hashes and versions of trials while the trials are written to a bundle."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()  # by their place in the manifest
        self.code: dict[str, int] = {}
        """By own code, as canonical JSON, a trial that kept its source."""

    def counted(self, trials: Iterable[TrialProvenance]) -> Iterator[TrialProvenance]:
        """Passes the trials through unchanged, and counts each."""
        for trial in trials:
            self._counts["trials", trial.result.state.value] += 1
            if trial.provenance:
                self._counts["code_commits", trial.commit or "unknown"] += 1
                self._counts["devices", trial.device or "unknown"] += 1
            if trial.data_hash:
                self._counts["data_sets", trial.dataset, trial.data_hash] += 1
            if code := trial.provenance.get("code"):
                self.code.setdefault(canonical_json(code), trial.result.trial)
            self._counts.update(("trained_with", package, number) for package, number in trial.versions.items())
            yield trial

    def manifest(self) -> dict[str, Any]:
        """The counts for the manifest: trials by state, commit, device, data set hash and version, sorted."""
        found: dict[str, Any] = {"trials": {}, "code_commits": {}, "devices": {}, "data_sets": {}, "trained_with": {}}
        for (kind, *names, last), count in sorted(self._counts.items()):
            place = found[kind]
            for name in names:
                place = place.setdefault(name, {})
            place[last] = count
        return found


def made_with() -> dict[str, str]:
    """The versions of Python and of the packages that make tables and figures."""
    versions = {"python": python_version()}
    for package in MAKERS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "none"
    return dict(sorted(versions.items()))


_QUERY_SCHEMA: Final = pa.schema(
    [
        ("trial", pa.int64()), ("split", pa.string()), ("identity", pa.string()), ("checkpoint", pa.string()),
        ("metric", pa.string()), ("sums", pa.list_(pa.float64())), ("missing", pa.string()),
    ]
)  # fmt: skip
"""One row per trial, split and metric; without a metric, the number of queries of each class, or why it has none."""

_Key = tuple[int, str]  # a trial, a split


class RecordedSums:
    """A source of per-query scores that records its answers, so that a bundle holds only what its tables use."""

    def __init__(self, source: QuerySource) -> None:
        self._source = source
        self._found: dict[_Key, QuerySums] = {}
        self._missing: dict[_Key, str] = {}

    def __call__(self, trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        """Returns the per-class sums of the trials' scores on a split, and the reasons for trials without them."""
        fresh = [trial for trial in trials if not {(trial, split)} & (self._found.keys() | self._missing.keys())]
        if fresh:
            found, missing = self._source(fresh, split)
            self._found |= {(trial, split): sums for trial, sums in found.items()}
            self._missing |= {(trial, split): why for trial, why in missing.items()}
        return _of(self._found, trials, split), _of(self._missing, trials, split)

    def file(self) -> bytes | None:
        """The recorded per-query scores as a Parquet file; `None` if none were requested."""
        rows: list[dict[str, Any]] = []
        for (trial, split), its in sorted(self._found.items(), key=lambda item: item[0]):
            head = {"trial": trial, "split": split, "identity": its.identity, "checkpoint": its.checkpoint}
            rows.append({**head, "metric": None, "sums": its.counts.astype(float).tolist()})
            rows += [{**head, "metric": name, "sums": sums.tolist()} for name, sums in its.sums.items()]
        for (trial, split), why in sorted(self._missing.items()):
            rows.append({"trial": trial, "split": split, "missing": why})
        return parquet(_QUERY_SCHEMA, rows) if rows else None


def source(content: bytes | None) -> QuerySource:
    """A source of per-query scores from the Parquet file of a bundle (`None` means no scores); raises DamagedError."""
    if content is None:
        return nowhere
    known: dict[_Key, QuerySums] = {}
    missing: dict[_Key, str] = {}
    sums: dict[_Key, dict[str, Any]] = {}
    for row in rows(content, _QUERY_SCHEMA, "scores per query"):
        place = (row["trial"], row["split"])
        if row["missing"] is not None:
            missing[place] = row["missing"]
        elif row["metric"] is None:
            counts = np.asarray(row["sums"], dtype=np.float64)
            known[place] = QuerySums(row["identity"], row["checkpoint"], counts, sums.setdefault(place, {}))
        else:
            sums.setdefault(place, {})[row["metric"]] = np.asarray(row["sums"], dtype=np.float64)
    for place, its in known.items():
        shapes = {array.shape for array in (its.counts, *its.sums.values())}
        values = np.concatenate([its.counts, *its.sums.values()])
        if len(shapes) > 1 or not bool(np.isfinite(values).all()) or bool((its.counts <= 0).any()):
            raise DamagedError(f"the bundle's scores per query of trial {place[0]} are not finite, or differ in shape")

    return lambda trials, split: (_of(known, trials, split), _of(missing, trials, split))


def _of(known: Mapping[_Key, Any], trials: Sequence[int], split: str) -> dict[int, Any]:
    return {trial: known[trial, split] for trial in trials if (trial, split) in known}


def looks_file(looks: Sequence[SweepLook]) -> bytes:
    """The JSON file of a sweep's looks: when it was extended, from which trial on, and how many trials had finished."""
    rows = [{"at": look.at.isoformat(), "position": look.position, "finished": look.finished} for look in looks]
    return json_file(rows)


def read_looks(content: bytes) -> tuple[SweepLook, ...]:
    """Reads the looks of a sweep from the JSON file of a bundle."""
    rows = json.loads(content)
    return tuple(SweepLook(datetime.fromisoformat(row["at"]), row["position"], row["finished"]) for row in rows)


def json_file(content: Any) -> bytes:
    """The content of a JSON file of a bundle."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
