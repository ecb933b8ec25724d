"""The files of what each test query scored by the weights that are kept: one for each split that tests."""

from collections.abc import Mapping

import numpy as np
from pydantic import JsonValue

from workers.evaluation.query_scores import CLASS, QUERY, QueryScores
from workers.figures.arrays import Arrays, packed
from workers.training.session import Session

Scores = Mapping[str, QueryScores]
"""What each query of a split scored, by the split."""


def scored(session: Session, step: int) -> Scores:
    """What each test query scored by the present weights, those of `step`."""
    known = session.ending.queries.get(step)
    if known is None:  # gone on from a checkpoint of a release that noted metrics alone
        names = [name for name in session.among(session.metrics) if session.measures.over_queries(name)]
        known = {split: {} for split in session.tests}
        for split, scores in known.items():
            with session.measures.noting(scores):
                _ = session.task.evaluate(split, names) if names else {}
    return known


def files(scores: Scores, checkpoint: str, data: str | None) -> dict[str, bytes]:
    """The content of each file by its name; `checkpoint` is `best` or `last`, `data` the hash of the data set."""
    found = {}
    for split, arrays in scores.items():
        if arrays:
            metrics = sorted(arrays.keys() - {QUERY, CLASS})
            held: Arrays = {name: arrays[name].numpy() for name in (QUERY, CLASS, *metrics)}
            found[named(split)] = packed({**held, "checkpoint": np.array(checkpoint), "data": np.array(data or "")})
    return found


def facts(scores: Scores, checkpoint: str) -> dict[str, JsonValue]:
    """What the provenance says of them."""
    return {
        split: {
            "file": named(split),
            "checkpoint": checkpoint,
            "queries": len(arrays[QUERY]),
            "classes": len(arrays[CLASS].unique()),  # type: ignore[no-untyped-call]
            "metrics": [*sorted(arrays.keys() - {QUERY, CLASS})],
        }
        for split, arrays in scores.items()
        if arrays
    }


def named(split: str) -> str:
    """The file of a split: `queries.npz` of `test`, `queries-test_lfw.npz` of another."""
    return "queries.npz" if split == "test" else f"queries-{split}.npz"
