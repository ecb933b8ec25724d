"""What test queries scored, summed up by class, as a Parquet file of a bundle: of the trainings whose queries count."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from orchestrator.publish.bundle.columns import parquet, rows
from orchestrator.views.errors import DamagedError
from orchestrator.views.query_sums import QuerySource, QuerySums, nowhere

QUERIES: Final = pa.schema(
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
        return parquet(QUERIES, told) if told else None


def source(content: bytes | None) -> QuerySource:
    """What a file holds, as a source; raises DamagedError."""
    import numpy as np

    if content is None:
        return nowhere
    known: dict[_Asked, QuerySums] = {}
    missing: dict[_Asked, str] = {}
    sums: dict[_Asked, dict[str, Any]] = {}
    for row in rows(content, QUERIES, "scores per query"):
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
