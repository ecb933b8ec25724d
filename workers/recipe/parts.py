"""Parts: their kinds, the value that names one, and the fields of a recipe that go with one."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

KINDS: Final = (
    "task", "loss", "regularizer", "dataset", "backbone", "head", "sampler", "optimizer", "schedule", "eta_schedule",
    "metric",
)  # fmt: skip
"""Every kind of part, as the words stand in a recipe."""

DEFAULT_TASK: Final = "retrieval"
"""The task of a recipe that names none."""

FOLDERS: Final[Mapping[str, str]] = {
    "task": "tasks", "loss": "losses", "regularizer": "regularizers", "dataset": "datasets", "backbone": "backbones",
    "head": "heads", "sampler": "samplers", "optimizer": "optimizers", "schedule": "schedules",
    "eta_schedule": "eta_schedules", "metric": "metrics",
}  # fmt: skip
"""The folder that holds the parts of a kind, one file a part."""

PART_FIELDS: Final = tuple(kind for kind in KINDS if kind != "metric")
"""The recipe's fields that hold a part."""

GOES_WITH: Final[Mapping[str, str]] = {
    "augment": "dataset", "crop": "dataset", "validation": "dataset",
    "head": "backbone", "embedding": "backbone", "warmup": "backbone", "backbone_rate": "backbone",
    "precision": "backbone", "channels_last": "backbone", "compile": "backbone",
    "regularizer": "loss", "eta_schedule": "loss", "loss_rate": "loss",
}  # fmt: skip
"""Fields of a recipe that say something of a part: where it holds no such part, and they are at their default, they are
absent from its JSON."""


class Frozen(BaseModel):
    """A value: immutable, with no unknown keys and no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Part(Frozen):
    """One named ingredient; beside `name` stand its hyper-parameters. A bare string is a part with defaults."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, JsonValue]:
        """The hyper-parameters by name."""
        return dict(self.__pydantic_extra__ or {})
