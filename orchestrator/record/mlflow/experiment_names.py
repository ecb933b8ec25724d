"""What a sweep's experiment is called in MLflow, and by which tag it is known as that sweep's."""

from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.record.mlflow.entities import MAX_NAME, MAX_TAG
from orchestrator.record.mlflow.names import accepted

SWEEP_TAG: Final = "metricsweep.sweep"
EXPERIMENT_KIND_TAG: Final = "mlflow.experimentKind"  # else MLflow 3 opens an experiment as if of language models


def tags_of(uid: str, tags: Mapping[str, str]) -> dict[str, str]:
    """Every tag of a sweep's experiment."""
    accepted_tags = {accepted(key): value[:MAX_TAG] for key, value in tags.items()}
    return accepted_tags | {SWEEP_TAG: uid, EXPERIMENT_KIND_TAG: "custom_model_development"}


def candidates(name: str, uid: str) -> Iterator[str]:
    """Names in turn until one is free: that of another sweep's, or of a deleted experiment, is taken."""
    short = name[:MAX_NAME]
    yield short
    yield f"{short} ({uid[:8]})"
    for number in range(2, 100):
        yield f"{short} ({uid[:8]}-{number})"
