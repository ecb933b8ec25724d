"""One training as each peer calls it, and where its result lies."""

import json
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

SLOTS: Final = 2
"""Trainings at a time."""
RESULT: Final = "result.json"


class Work(NamedTuple):
    """The work of a peer."""

    recipes: list[str]
    folder: Path


def asked() -> Work:
    """By the command line."""
    recipes, folder = sys.argv[1:3]
    return Work(Path(recipes).read_text(encoding="utf-8").splitlines(), Path(folder))


def trained(recipe: str, folder: Path) -> dict[str, float]:
    """Train a recipe in this process; its metrics. The result file also says when, and how long it took."""
    from workers.contract import Place, Recipe  # here: only what trains pays for torch
    from workers.train import train

    folder.mkdir(parents=True)
    clock, cpu = time.perf_counter(), time.process_time()
    place = Place(data_root=folder, scratch=folder.parent, storage=folder)
    result = train(Recipe.model_validate_json(recipe), place, lambda progress: None)
    metrics = {name: value for name, value in result.metrics.items() if value is not None}
    cost = {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu, "ended": time.time()}
    (folder / RESULT).write_text(json.dumps(cost | {"metrics": metrics}), encoding="utf-8")
    return metrics
