"""The resources of one trial, and what they are otherwise for some of a sweep's trials."""

import re
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from orchestrator.spec.when import When
from workers.contract import Frozen

_RESOURCE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
_RESERVED: Final = {
    "cpu": "cpus",
    "cpus": "cpus",
    "gpu": "gpus",
    "gpus": "gpus",
    "memory": "memory_gb",
    "object_store_memory": "memory_gb",
}


class Slot(BaseModel):
    """The resources of one trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpus: float = Field(default=1, gt=0, le=1024)
    gpus: float | Literal["auto"] = "auto"
    """A share of a GPU, or `auto`: one where the cluster has GPUs, none otherwise."""
    memory_gb: float | None = Field(default=None, gt=0)
    resources: dict[str, float] = Field(default_factory=dict, max_length=20, exclude_if=lambda value: not value)
    """Custom resources of the cluster by name, such as `a100: 1`."""
    stall_minutes: float = Field(default=60, gt=0, le=100_000)
    """An attempt that reports nothing for so long is stopped and counts as a failure."""
    retries: int = Field(default=1, ge=0, le=100)
    """How often a training that stalled is tried again, from its last checkpoint."""

    @field_validator("resources")
    @classmethod
    def _custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name, amount in resources.items():
            if own := _RESERVED.get(name.lower()):
                raise ValueError(f"'{name}' is no custom resource; say it as `{own}`")
            if not _RESOURCE_NAME.fullmatch(name) or name.startswith("node:"):
                raise ValueError(
                    f"'{name[:100]}' is no name of a custom resource: letters, digits and _.:- after a letter"
                )
            if not 0.0001 <= amount <= 1_000_000:
                raise ValueError(f"expected 0.0001 to 1,000,000 of '{name}', found {amount:g}")
        return resources


class SlotRule(Frozen):
    """What a slot has otherwise for the trials of some labels; later ones apply over earlier ones."""

    when: When
    slot: dict[str, JsonValue]
    """The fields that it names."""
