"""The values of metrics of an evaluation, and the scores of its queries."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from workers import registry
from workers.catalog import parse_metric
from workers.contract import NO_METRICS, Distance, Part

QUERY, CLASS, PREDICTED = "query", "class", "predicted"
"""The names under which the scores say whose they are, and which class is the nearest neighbour's."""
MOST_VALUES: Final = 2**22
"""The maximal number of stored scores of a split: 16 MiB of float32 before compression."""

QueryScores = dict[str, Tensor]
"""`query`, the place of each query among the searched images, int32 [q]; `class`, its class, int32; `predicted`, the
class of its nearest neighbour, int32, if the task searches one; and by the name of each metric its score, float32; on
the CPU."""


@dataclass
class NotedScores:
    """The per-query scores of an evaluation by split, and the hash of the data set."""

    scores: dict[str, QueryScores] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    data: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)


def note(scores: QueryScores, name: str, metric: Any, evaluation: Any) -> None:
    """Add the per-query scores of a metric to `scores`, if it is a mean over queries that has a value."""
    each = getattr(metric, "each", None)
    if each is None or name in NO_METRICS:
        return
    places: Tensor = evaluation.queries.cpu()
    values: Tensor = each(evaluation).detach().cpu()
    metrics = scores.keys() - NO_METRICS
    if not len(places) or len(values) != len(places) or (len(metrics) + 1) * len(places) > MOST_VALUES:
        return
    if QUERY not in scores:
        scores[QUERY] = places.to(torch.int32)
        scores[CLASS] = evaluation.labels.cpu()[places].to(torch.int32)
        predicted: Tensor | None = getattr(evaluation, "predicted", None)
        if predicted is not None:
            scores[PREDICTED] = predicted.cpu().to(torch.int32)
    if len(scores[QUERY]) == len(places):
        scores[name] = values.to(torch.float32)


class Measures:
    """Computes the metrics `names`, built in or from the folder `parts`.

    `seed` is for metrics that draw, `distance` for ranking and clustering.
    """

    def __init__(
        self, names: Iterable[str], parts: Path | None = None, seed: int = 0, distance: Distance = "cosine"
    ) -> None:
        self.names, self.seed, self.distance = tuple(names), seed, distance
        self._parts = parts
        self._noted: QueryScores | None = None

    @contextmanager
    def noting(self, scores: QueryScores) -> Iterator[None]:
        """Within the context, store the scores of each query in `scores`, for metrics that are means over queries."""
        self._noted = scores
        try:
            yield
        finally:
            self._noted = None

    def attribute_of(self, name: str, attribute: str, default: Any = None) -> Any:
        """An attribute of the metric `name`, such as its fact `needs`; raises UnknownPart."""
        return getattr(registry.find("metric", parse_metric(name)[0], self._parts), attribute, default)

    def of(self, evaluation: Any, names: Sequence[str]) -> dict[str, float]:
        """Computes the metrics `names`, such as `recall@1`, of an evaluation; NaN if there is no value.

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
