"""The score of each query of a split, under the metrics that are means over queries."""

from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

QUERY, CLASS = "query", "class"
"""The names under which the scores say whose they are."""
MOST_VALUES: Final = 2**22
"""Scores that are kept of one split: 16 MiB of float32 before they are packed."""

QueryScores = dict[str, Tensor]
"""By `query` the place of each query among the images that are searched for, int32 [q], by `class` its class, int32,
and by the name of each metric its score, float32: on the CPU."""


@dataclass
class NotedScores:
    """What each query of a split scored, by the split, and the hash of the data set that they are of."""

    scores: dict[str, QueryScores] = field(default_factory=dict)
    data: str | None = None


def note(scores: QueryScores, name: str, metric: Any, evaluation: Any) -> None:
    """Add the scores of a metric, where it is a mean over queries, has a value and fits."""
    each = getattr(metric, "each", None)
    if each is None or name in (QUERY, CLASS):
        return
    places: Tensor = evaluation.queries.cpu()
    values: Tensor = each(evaluation).detach().cpu()
    if not len(places) or len(values) != len(places) or (held(scores) + 1) * len(places) > MOST_VALUES:
        return
    if QUERY not in scores:
        scores[QUERY] = places.to(torch.int32)
        scores[CLASS] = evaluation.labels.cpu()[places].to(torch.int32)
    if len(scores[QUERY]) == len(places):
        scores[name] = values.to(torch.float32)


def held(scores: QueryScores) -> int:
    """Of how many metrics there are scores."""
    return sum(name not in (QUERY, CLASS) for name in scores)
