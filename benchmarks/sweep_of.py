"""A sweep of any size for the benchmarks: so many cells, candidates a cell and seeds."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """What a sweep's trials are made of."""

    cells: int
    candidates: int
    seeds: int

    @property
    def trials(self) -> int:
        """How many there are."""
        return self.cells * self.candidates * self.seeds

    def __str__(self) -> str:
        return f"{self.cells}x{self.candidates}x{self.seeds}"

    @classmethod
    def parse(cls, text: str) -> "Shape":
        """The shape that `cells x candidates x seeds`, written `10x100x10`, says."""
        cells, candidates, seeds = (int(part) for part in text.split("x"))
        return cls(cells, candidates, seeds)


def body(shape: Shape, iterations: int = 1) -> bytes:
    """A spec of that shape; the cells are numbered by the embedding's size, the candidates by the learning rate.

    Sweeps of other `iterations` share no training.
    """
    spec: dict[str, Any] = {
        "version": 1,
        "name": f"sweep of {shape}",
        "recipe": {
            "dataset": "digits",
            "backbone": "mlp",
            "loss": "triplet",
            "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
            "iterations": iterations,
            "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
        },
        "compare": {"embedding": list(range(1, shape.cells + 1))},
        "tune": {"optimizer.lr": [round(1e-6 * (at + 1), 9) for at in range(shape.candidates)]},
        "repeat": {"seed": list(range(shape.seeds))},
        "slot": {"cpus": 1, "gpus": 0},
        "tables": {"main": {"rows": ["embedding"], "columns": [], "metrics": ["nmi", "f1", "recall@1", "map@r"]}},
    }
    return json.dumps(spec).encode()
