"""What metrics measure: the values of one evaluation, and those of each query."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from workers import registry
from workers.catalog import parse_metric
from workers.catalog.inventory import EMBEDDINGS
from workers.contract import Distance, Part

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


class Measures:
    """The metrics `names`, built in or from the folder `parts`.

    `seed` is what they draw by, and `distance` by what they rank and cluster.
    """

    def __init__(
        self, names: Iterable[str], parts: Path | None = None, seed: int = 0, distance: Distance = "cosine"
    ) -> None:
        self.names, self.seed, self.distance = tuple(names), seed, distance
        self._parts = parts
        self._noted: QueryScores | None = None

    @contextmanager
    def noting(self, scores: QueryScores) -> Iterator[None]:
        """Within it the score of each query is added to `scores`, of the metrics that are means over queries."""
        self._noted = scores
        try:
            yield
        finally:
            self._noted = None

    def over_queries(self, name: str) -> bool:
        """Whether the metric `name` is a mean over queries whose scores it tells; raises UnknownPart."""
        return hasattr(registry.find("metric", parse_metric(name)[0], self._parts), "each")

    def needs(self, name: str) -> str:
        """What the metric `name` is computed from, as it states it; raises UnknownPart."""
        return str(getattr(registry.find("metric", parse_metric(name)[0], self._parts), "needs", ""))

    def reads(self, name: str) -> str:
        """What the metric `name` reads, as it states it; raises UnknownPart."""
        return str(getattr(registry.find("metric", parse_metric(name)[0], self._parts), "reads", EMBEDDINGS))

    def of(self, evaluation: Any, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names`, such as `recall@1`, of what they read, keyed as given; NaN where there is no value.

        Raises UnknownPart for a metric that neither this package nor the folder of own parts has.
        """
        values: dict[str, float] = {}
        for name in names:
            file, k = parse_metric(name)
            options = {} if k is None else {"k": int(k) if k.isdecimal() else k}
            metric = registry.build("metric", Part(name=file, **options), self._parts)
            value = float(metric(evaluation))
            values[name] = value if math.isfinite(value) else math.nan
            if self._noted is not None:
                note(self._noted, name, metric, evaluation)
        return values
