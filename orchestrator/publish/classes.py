"""Recall, precision and F1 of each class, by the nearest neighbours of a training's test queries."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.publish.verdicts.judge import integers
from orchestrator.views.trials import ClassScore


def pooled(every: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The arrays of the queries of several trainings, one after the other, without those that one training lacks.

    For equally many queries of a class, pooled recall is the mean of the trainings' recalls.
    """
    first, *others = every
    shared = [key for key in ("class", "predicted", "recall@1") if all(key in arrays for arrays in every)]
    joined = {key: np.concatenate([np.asarray(arrays[key]) for arrays in every]) for key in shared}
    return {"names": first.get("names", ()), **joined} if others else first


def class_scores(arrays: Mapping[str, Any]) -> list[ClassScore]:
    """The scores of each class that has queries, the lowest F1 first, from the arrays of `queries.npz`.

    A file without `predicted` gives the means of `recall@1` alone. Raises KeyError for a missing array, ValueError for
    a wrong array.
    """
    classes = integers(arrays["class"], "class")
    numbers, places, counts = np.unique(classes, return_inverse=True, return_counts=True)
    names = [str(name) for name in np.asarray(arrays.get("names", ())).ravel()]

    def name(label: int) -> str:
        return names[label] if 0 <= label < len(names) else f"class {label}"

    if "predicted" not in arrays:
        sums = np.bincount(places, weights=np.asarray(arrays["recall@1"], dtype=np.float64))
        found = [
            ClassScore(label=label, name=name(label), queries=count, recall=total / count)
            for label, count, total in zip(numbers.tolist(), counts.tolist(), sums.tolist(), strict=True)
        ]
        return sorted(found, key=lambda one: one.recall)
    predicted = integers(arrays["predicted"], "predicted")
    if len(predicted) != len(classes):
        raise ValueError(f"{len(classes):,} queries have {len(predicted):,} predicted classes")
    right = np.bincount(places, weights=predicted == classes).tolist()
    times = dict(zip(*(column.tolist() for column in np.unique(predicted, return_counts=True)), strict=True))
    wrong = np.stack([classes, predicted])[:, predicted != classes]
    pairs, repeated = np.unique(wrong, axis=1, return_counts=True)
    rarest_first = np.lexsort((-pairs[1], repeated))
    mistaken = dict(pairs[:, rarest_first].T.tolist())  # of each class the most frequent stays
    found = [
        ClassScore(
            label=label, name=name(label), queries=count, recall=hits / count,
            precision=hits / times[label] if label in times else None,
            f1=2 * hits / (count + times.get(label, 0)),
            mistaken_for=name(mistaken[label]) if label in mistaken else None,
        )
        for label, count, hits in zip(numbers.tolist(), counts.tolist(), right, strict=True)
    ]  # fmt: skip
    return sorted(found, key=lambda one: (one.f1, one.label))
