"""What a bundle holds and how it is written and read: the archive, its Parquet files and its manifest."""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from orchestrator.publish.tables import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.publish.tables.table_data import Numbers
from orchestrator.views.errors import DamagedError, MetricsweepError
from orchestrator.views.evidence import RunFacts
from orchestrator.views.runs import (
    Candidate,
    Cell,
    Labels,
    QuerySource,
    QuerySums,
    SweepLook,
    SweepOutcomes,
    TrialOutcome,
    TrialProvenance,
    nowhere,
    origin_of,
)
from orchestrator.views.states import TrialState
from workers.catalog import Catalog, stamp
from workers.contract import canonical_json

MANIFEST: Final = "manifest.json"
FORMAT: Final = "metricsweep-bundle"
VERSION: Final = 1
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 2 * 2**30
"""What all files of an archive may unpack to."""
MOST_OF_MANIFEST: Final = 16 * 2**20

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,199}){0,7}")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name
_MODE: Final = 0o100644 << 16
_CHUNK: Final = 2**20


class ArchiveWriter:
    """Adds files one by one, none of which is held whole; `finish` adds the manifest. Use it in a `with` block."""

    def __init__(self, out: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._files: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, content: bytes) -> None:
        """A file from memory."""
        self.stream(name, io.BytesIO(content))

    def stream(self, name: str, content: IO[bytes]) -> None:
        """A file from a stream; ValueError for a name that is taken or leads out of the archive."""
        if name in self._files or name == MANIFEST or not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a file of this archive")
        digest, size = hashlib.sha256(), 0
        with self._zip.open(_entry(name), "w", force_zip64=True) as member:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                member.write(chunk)
        self._files[name] = {"sha256": digest.hexdigest(), "bytes": size}

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest: `facts` and the hash of every file."""
        said = {"format": FORMAT, "version": VERSION, **facts, "files": dict(sorted(self._files.items()))}
        text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        with self._zip.open(_entry(MANIFEST), "w", force_zip64=True) as member:
            member.write(text.encode())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3  # as on Unix, wherever it is made
    return entry


class Reader:
    """An archive whose files are those of its manifest, each as it was written."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Mapping[str, Any]) -> None:
        self._zip = archive
        self.manifest = manifest

    def holds(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return name in self.manifest["files"]

    def read(self, name: str) -> bytes:
        """A file's content; raises DamagedError where there is none of that name."""
        if name not in self.manifest["files"]:
            raise DamagedError(f"the bundle has no {name}")
        return self._zip.read(name)

    @property
    def id(self) -> str:
        """The SHA-256 of the manifest: two bundles with the same one hold the same."""
        return hashlib.sha256(self._zip.read(MANIFEST)).hexdigest()


@contextmanager
def opened(source: IO[bytes]) -> Iterator[Reader]:
    """An archive, checked whole; DamagedError names every file that is not what the manifest says."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = _manifest(archive)
            _verify(archive, manifest["files"])
            yield Reader(archive, manifest)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise DamagedError(f"this is no bundle, or a damaged one: {error}") from error


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise DamagedError(f"a bundle has at most {MOST_FILES:,} files, which unpack to {MOST_BYTES // 2**30} GiB")
    if len(set(names)) != len(names) or any(not _NAME.fullmatch(name) for name in names):
        raise DamagedError("the bundle has a file whose name is taken, or leads elsewhere")
    if MANIFEST not in names or archive.getinfo(MANIFEST).file_size > MOST_OF_MANIFEST:
        raise DamagedError(f"this is no bundle: it has no {MANIFEST}, or too large a one")
    try:
        manifest = json.loads(archive.read(MANIFEST))
        known = (manifest["format"], manifest["version"]) == (FORMAT, VERSION)
        hashes = {str(name): str(one["sha256"]) for name, one in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST} cannot be read: {error}") from error
    if not known:
        raise DamagedError(f"{MANIFEST} is of another format than {FORMAT} {VERSION}")
    return {**manifest, "files": hashes}


def _verify(archive: zipfile.ZipFile, hashes: Mapping[str, str]) -> None:
    present = {entry.filename for entry in archive.infolist()} - {MANIFEST}
    changed = [name for name in sorted(present & hashes.keys()) if _digest(archive, name) != hashes[name]]
    wrong = {"changed": changed, "missing": sorted(hashes.keys() - present), "added": sorted(present - hashes.keys())}
    said = "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names)
    if said:
        raise DamagedError(f"the bundle is not what its manifest says. {said}")


def _digest(archive: zipfile.ZipFile, name: str) -> str | None:
    """The hash of a file; none where it cannot even be unpacked."""
    digest = hashlib.sha256()
    try:
        with archive.open(name) as member:
            while chunk := member.read(_CHUNK):
                digest.update(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return None
    return digest.hexdigest()


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
"""One row a trial in the order of the plan; `recipe` (completed) and `provenance` are JSON."""
_METRICS: Final = pa.schema([("trial", pa.int64()), ("key", pa.string()), ("value", pa.float64())])
"""One row a trial and metric, keyed checkpoint/split/metric; NaN where the value is not a number."""

AT_ONCE: Final = 500
MOST_ROWS: Final = 50_000_000
MOST_TABLE_BYTES: Final = 4 * 2**30
"""What one file may take in memory."""


def cells(found: Iterable[Cell]) -> bytes:
    """The cells of a sweep as a file."""
    return parquet(_CELLS, [{"cell": one.index, "labels": _pairs(one.labels)} for one in found])


def candidates(found: Iterable[Candidate]) -> bytes:
    """The candidates of a sweep as a file."""
    rows = [{"cell": one.cell, "candidate": one.index, "labels": _pairs(one.labels)} for one in found]
    return parquet(_CANDIDATES, rows)


def write_trials(found: Iterable[Sequence[TrialProvenance]], trials: IO[bytes], metrics: IO[bytes]) -> None:
    """Trials, and their metrics, as two files, from lists of a few hundred."""
    with _writer(trials, _TRIALS) as into, _writer(metrics, _METRICS) as values:
        for some in found:
            into.write_table(pa.Table.from_pylist([_trial(one) for one in some], schema=_TRIALS))
            rows = [
                {"trial": one.outcome.trial, "key": key, "value": value}
                for one in some
                for key, value in one.outcome.values.items()
            ]
            values.write_table(pa.Table.from_pylist(rows, schema=_METRICS))


def read_cells(content: bytes) -> tuple[Cell, ...]:
    """The cells in a file; raises DamagedError, as all readers here do."""
    return tuple(Cell(row["cell"], dict(row["labels"])) for row in rows(content, _CELLS, "cells"))


def read_candidates(content: bytes) -> tuple[Candidate, ...]:
    """The candidates in a file."""
    found = rows(content, _CANDIDATES, "candidates")
    return tuple(Candidate(row["cell"], row["candidate"], dict(row["labels"])) for row in found)


def read_trials(trials: bytes, metrics: bytes) -> tuple[TrialOutcome, ...]:
    """The trials in two files, each metric in its place."""
    values: dict[int, dict[str, float]] = {}
    for row in rows(metrics, _METRICS, "metrics"):
        values.setdefault(row["trial"], {})[row["key"]] = row["value"]
    wanted = ["trial", "cell", "candidate", "repeat", "repeat_labels", "state", "diverged", "reused", "recipe"]
    outcomes = []
    for position, row in enumerate(rows(trials, _TRIALS, "trials", [*wanted, "seconds", "provenance"])):
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
    for row in rows(trials, _TRIALS, "trials", wanted):
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
        if file.metadata.num_rows > MOST_ROWS or size > MOST_TABLE_BYTES:
            raise DamagedError(f"the {what} of the bundle are more than this reads")
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
"""The packages that may change a byte of what is made here, or its last digit."""

WORDS: Final = """\
# {name} #{id}

{description}A sweep of metricsweep as one archive. `manifest.json` has the SHA-256 of every file.

- `tables/<name>/<numbers>/`: every table in every format; `figures/<name>.*`: every figure.
- `ledger/<paper>.*`: what this sweep says of the numbers of the papers that its tables name.
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


class Rendering(BaseModel):
    """One table in one format."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str
    numbers: Numbers
    format: str
    file: str


class PackedLedger(BaseModel):
    """The ledger of a paper by this sweep alone, in one format."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    paper: str
    format: str
    file: str

    @property
    def table(self) -> str:
        """Whose numbers it is about."""
        return self.paper

    @property
    def numbers(self) -> str:
        """What it shows of them."""
        return "ledger"


class PackedVerdicts(BaseModel):
    """The verdicts between the cells of a table."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str
    file: str

    @property
    def numbers(self) -> str:
        """What it shows of them."""
        return "verdicts"

    @property
    def format(self) -> str:
        """The only one."""
        return "json"


class Head(BaseModel):
    """What a bundle says of its sweep."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int
    uid: str
    name: str
    state: str
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None


@dataclass
class BundleFacts:
    """What the trials have in common and what not, gathered while they pass."""

    states: Counter[str] = field(default_factory=Counter)
    commits: Counter[str] = field(default_factory=Counter)
    devices: Counter[str] = field(default_factory=Counter)
    data: dict[str, Counter[str]] = field(default_factory=dict)
    versions: dict[str, Counter[str]] = field(default_factory=dict)
    code: dict[str, int] = field(default_factory=dict)
    """By what own code it stands for, as JSON, a trial that kept its source."""

    def passing(self, found: Iterable[TrialProvenance]) -> Iterator[TrialProvenance]:
        """The same trials, noted."""
        for one in found:
            self.states[one.outcome.state.value] += 1
            if one.provenance:
                self.commits[one.commit or "unknown"] += 1
                self.devices[one.device or "unknown"] += 1
            if one.data_hash:
                self.data.setdefault(one.dataset, Counter())[one.data_hash] += 1
            if code := one.provenance.get("code"):
                self.code.setdefault(canonical_json(code), one.outcome.trial)
            for package, number in one.versions.items():
                self.versions.setdefault(package, Counter())[number] += 1
            yield one

    def said(self) -> dict[str, Any]:
        """As the manifest has it: how many trials by state, commit, device, data set hash and version."""
        return {
            "trials": _sorted(self.states),
            "code_commits": _sorted(self.commits),
            "devices": _sorted(self.devices),
            "data_sets": {name: _sorted(found) for name, found in sorted(self.data.items())},
            "trained_with": {name: _sorted(found) for name, found in sorted(self.versions.items())},
        }


def made_with() -> dict[str, str]:
    """The versions of what makes tables and figures here."""
    found = {"python": python_version()}
    for package in MAKERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return dict(sorted(found.items()))


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


_QUERY_SCHEMA: Final = pa.schema(
    [
        ("trial", pa.int64()), ("split", pa.string()), ("identity", pa.string()), ("checkpoint", pa.string()),
        ("metric", pa.string()), ("sums", pa.list_(pa.float64())), ("missing", pa.string()),
    ]
)  # fmt: skip
"""One row a trial, split and metric; without a metric the queries of each class, or why there are none."""

_Asked = tuple[int, str]  # a trial, a split


class RecordedSums:
    """A source that remembers what was asked of it, so that a bundle holds that and no more."""

    def __init__(self, source: QuerySource) -> None:
        self._source = source
        self._found: dict[_Asked, QuerySums] = {}
        self._missing: dict[_Asked, str] = {}

    def __call__(self, trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        """As its source."""
        fresh = [one for one in trials if (one, split) not in self._found and (one, split) not in self._missing]
        if fresh:
            found, missing = self._source(fresh, split)
            self._found |= {(one, split): its for one, its in found.items()}
            self._missing |= {(one, split): why for one, why in missing.items()}
        return _of(self._found, trials, split), _of(self._missing, trials, split)

    def file(self) -> bytes | None:
        """All of that; none where nothing was asked."""
        told: list[dict[str, Any]] = []
        for (trial, split), its in sorted(self._found.items(), key=lambda one: one[0]):
            head = {"trial": trial, "split": split, "identity": its.identity, "checkpoint": its.checkpoint}
            told.append({**head, "metric": None, "sums": its.counts.astype(float).tolist()})
            told += [{**head, "metric": name, "sums": one.tolist()} for name, one in its.sums.items()]
        for (trial, split), why in sorted(self._missing.items()):
            told.append({"trial": trial, "split": split, "missing": why})
        return parquet(_QUERY_SCHEMA, told) if told else None


def source(content: bytes | None) -> QuerySource:
    """What a file holds, as a source; raises DamagedError."""
    import numpy as np

    if content is None:
        return nowhere
    known: dict[_Asked, QuerySums] = {}
    missing: dict[_Asked, str] = {}
    sums: dict[_Asked, dict[str, Any]] = {}
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
        shapes = {one.shape for one in (its.counts, *its.sums.values())}
        values = np.concatenate([its.counts, *its.sums.values()])
        if len(shapes) > 1 or not bool(np.isfinite(values).all()) or bool((its.counts <= 0).any()):
            raise DamagedError(f"the scores per query of trial {place[0]} in the bundle cannot be")

    def of(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        return _of(known, trials, split), _of(missing, trials, split)

    return of


def _of(known: Mapping[_Asked, Any], trials: Sequence[int], split: str) -> dict[int, Any]:
    return {one: known[one, split] for one in trials if (one, split) in known}


def looks_file(looks: Sequence[SweepLook]) -> bytes:
    """When a sweep was extended, from which trial on, and how many had finished by then."""
    rows = [{"at": one.at.isoformat(), "position": one.position, "finished": one.finished} for one in looks]
    return (json.dumps(rows, indent=2) + "\n").encode()


def read_looks(content: bytes) -> tuple[SweepLook, ...]:
    """The same again."""
    rows = json.loads(content)
    return tuple(SweepLook(datetime.fromisoformat(row["at"]), row["position"], row["finished"]) for row in rows)


def verdict_files(
    outcomes: SweepOutcomes, catalog: Catalog, looks: Sequence[SweepLook]
) -> Iterator[tuple[PackedVerdicts, bytes]]:
    """The verdicts of every table that compares something, each as a file."""
    labels = {cell.index: cell.labels for cell in outcomes.cells}
    for name in outcomes.spec.get("tables") or {}:
        try:
            found = judged(build.build(outcomes, name, catalog), outcomes, looks)
        except MetricsweepError:  # a table that cannot be built is named in the manifest already
            continue
        if found.pairs:
            content = json.dumps(found.view(labels).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
            yield PackedVerdicts(table=name, file=f"verdicts/{name}.json"), content.encode()
