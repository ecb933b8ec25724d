"""What crosses the boundary of a worker: Part, Recipe, Place, Progress and Result, free of torch."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from workers.figures.options import Figures

KINDS: Final = (
    "task", "loss", "regularizer", "dataset", "backbone", "head", "sampler", "optimizer", "schedule", "eta_schedule",
    "metric",
)  # fmt: skip
"""Every kind of part, as the words stand in a recipe."""

FOLDERS: Final[Mapping[str, str]] = {
    "task": "tasks", "loss": "losses", "regularizer": "regularizers", "dataset": "datasets", "backbone": "backbones",
    "head": "heads", "sampler": "samplers", "optimizer": "optimizers", "schedule": "schedules",
    "eta_schedule": "eta_schedules", "metric": "metrics",
}  # fmt: skip
"""The folder that holds the parts of a kind, one file a part."""


class Frozen(BaseModel):
    """A value: immutable, with no unknown keys and no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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


class NoValidation(Frozen):
    """All training classes train; nothing is held out."""

    name: Literal["none"] = "none"


class ClassHoldout(Frozen):
    """One of `folds` contiguous blocks of training classes validates, the others train (MLRC's partition)."""

    name: Literal["class_holdout"] = "class_holdout"
    folds: int = Field(default=4, ge=2, le=1000)
    fold: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _fold_exists(self) -> "ClassHoldout":
        if self.fold >= self.folds:
            raise ValueError(f"fold {self.fold} does not exist; with {self.folds} folds it is 0 to {self.folds - 1}")
        return self

    def held_out(self, classes: int) -> range:
        """The class indices that validate, of `classes` training classes 0..classes-1."""
        start = classes * self.fold // self.folds
        return range(start, classes * (self.fold + 1) // self.folds)


class CrossValidation(Frozen):
    """One model for each of `folds` contiguous blocks of training classes, which validates on it (MLRC)."""

    name: Literal["cross_validation"] = "cross_validation"
    folds: int = Field(default=4, ge=2, le=1000)

    @property
    def holdouts(self) -> list[ClassHoldout]:
        """The hold-out of each model."""
        return [ClassHoldout(folds=self.folds, fold=fold) for fold in range(self.folds)]


BEST_TEST: Final = "best_test"
"""What stands before the keys of test metrics at the point that is best on the test split, beside `best`."""

Validation = Annotated[NoValidation | ClassHoldout | CrossValidation, Field(discriminator="name")]


class Select(Frozen):
    """By what a training's best checkpoint and a cell's best candidate are chosen."""

    metric: str = Field(default="map@r", max_length=100)
    split: Literal["validation", "test", "last"] = "validation"
    """`validation`, `test`: the best checkpoint on that split. `last`: the last one, candidates by its test metric."""
    beside: Literal["test"] | None = Field(default=None, exclude_if=lambda value: value is None)  # no new fingerprints
    """Also keep the test metrics at the point that is best on this split, as `best_test/test/map@r`; none: do not."""

    @field_validator("beside")
    @classmethod
    def _beside_an_honest_choice(cls, value: str | None, info: ValidationInfo) -> str | None:
        split = info.data.get("split")
        if value is not None and split in {"test", "last"}:
            raise ValueError(f"is only for `split: validation`, but split is {split!r}; leave it out")
        return value

    @property
    def checkpoint(self) -> Literal["best", "last"]:
        """The checkpoint whose test metrics a table prints."""
        return "last" if self.split == "last" else "best"

    @property
    def key(self) -> str:
        """The result key that ranks candidates, such as `best/validation/map@r`."""
        return f"{self.checkpoint}/{'test' if self.split == 'last' else self.split}/{self.metric}"

    @property
    def beside_key(self) -> str:
        """The result key that ranks candidates by the test split beside that, such as `best_test/test/map@r`."""
        return f"{BEST_TEST}/test/{self.metric}"


class Pins(Frozen):
    """What the catalog adds to a recipe so that its fingerprint changes when the numbers may."""

    versions: dict[str, int] = Field(default_factory=dict)
    """By kind the version of the part; where it is above 1 that of each metric computed, as `metric.map`, and that of
    `precision`."""
    manifest: str | None = None  # hash of the data set's content
    weights: str | None = None  # hash of the pretrained weights


class Recipe(Frozen):
    """Everything that decides one training.

    With `epochs` instead of `iterations` all that is counted in iterations is counted in epochs: `evaluate_every`,
    `warmup` and the steps of schedules. An epoch is floor(N/b) batches of the N images that train.
    """

    version: Literal[1] = 1
    task: Part = Part(name="retrieval")
    dataset: Part
    augment: Literal["none", "crop_flip", "proxy_anchor", "simclr"] = "none"
    """How training images are cropped, flipped, coloured (workers.data.augmentation); evaluation crops the centre."""
    crop: int | None = Field(default=None, ge=1, le=65_536)
    """The side of the crops in pixels; none: that of `augment`."""
    backbone: Part
    head: Part = Part(name="fc")
    embedding: int = Field(default=64, ge=1, le=65_536)  # d, the width of the embedding
    loss: Part
    regularizer: Part = Part(name="none")
    eta_schedule: Part = Part(name="constant")
    sampler: Part
    optimizer: Part = Part(name="adam")
    schedule: Part = Part(name="constant")
    iterations: int | None = Field(default=None, ge=1, le=10_000_000)
    epochs: int | None = Field(default=None, ge=1, le=1_000_000)
    evaluate_every: int | None = Field(default=None, ge=1)
    """Iterations between evaluations on the selection split; none: a tenth of `iterations`, or one epoch."""
    patience: int | None = Field(default=None, ge=1)
    """Evaluations in a row without a better score after which the training ends early; none: never."""
    warmup: int = Field(default=0, ge=0, le=10_000_000)
    """Iterations at the start in which only the head and the loss learn, and the backbone's weights stay."""
    backbone_rate: float = Field(default=1.0, ge=0, le=1e6)
    """The backbone's learning rate, as a factor on the optimizer's."""
    loss_rate: float | None = Field(default=None, ge=0, le=1e6)
    """The same for the loss's own parameters, such as proxies; none: the loss's `lr_scale`, else 1."""
    undecayed: Literal["none", "norm", "norm_and_bias"] = "norm"
    """What weight decay spares: nothing, normalization layers, or these and every bias."""
    clip_value: float | None = Field(default=None, gt=0, le=1e6)
    """The largest absolute value of an element of a gradient; larger ones are cut to it."""
    clip_norm: float | None = Field(default=None, gt=0, le=1e6)
    """The largest norm of the whole gradient, scaled down to it where larger, after `clip_value`."""
    precision: Literal["none", "bf16", "fp16"] = "none"
    """Of backbone and head by autocast; losses, norms and singular values stay in float32. With fp16 an iteration whose
    loss or gradient is not finite makes no step; 17 in a row are a divergence."""
    channels_last: bool = False
    compile: bool = False
    """Whether torch.compile compiles backbone and head."""
    figures: Figures = []
    """Figures of the papers (workers/figures/options.py) whose data is kept as files."""
    metrics: list[str] = Field(default=[], max_length=50, exclude_if=lambda value: not value)  # no new fingerprints
    """Metrics that are computed beside those that the data set declares."""
    validation: Validation = NoValidation()
    select: Select = Select()
    seed: int = Field(default=0, ge=0, lt=2**31)
    pins: Pins = Pins()

    @field_validator("validation", mode="before")
    @classmethod
    def _bare_validation(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_length(self) -> "Recipe":
        if (self.iterations is None) == (self.epochs is None):
            raise ValueError("a recipe gives `iterations` or `epochs`: one of them, not both")
        return self

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON; complete the recipe by the catalog first."""
        return fingerprint_of(self.model_dump(mode="json"))

    def part(self, kind: str) -> Part:
        """The part of a kind; `metric` has none: a data set declares its metrics, and `metrics` are more of them."""
        found: Part = getattr(self, kind)
        return found


PART_FIELDS: Final = tuple(kind for kind in KINDS if kind != "metric")
"""The recipe's fields that hold a part."""


def canonical_json(value: JsonValue | Mapping[str, Any]) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def fingerprint_of(recipe: Mapping[str, Any]) -> str:
    """The fingerprint of a recipe that is JSON already."""
    return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()


class Progress(BaseModel):
    """What a training reports while it runs."""

    step: int = Field(ge=0)
    total: int = Field(ge=1)
    metrics: dict[str, float] = Field(default_factory=dict)
    """Keyed `train/loss`, `validation/map@r`, ...; NaN is allowed: a loss may become one."""
    log: str = ""
    checkpoint: str | None = None
    """Name of a checkpoint file now complete in the attempt's folder."""


class Result(BaseModel):
    """What a training gives at its end; under 1 MiB of JSON."""

    outcome: Literal["ok", "diverged"]
    metrics: dict[str, float] = Field(default_factory=dict)
    """Keyed checkpoint/split/metric, such as `best/test/recall@1`; fractions, not percent."""
    curves: dict[str, list[tuple[int, float]]] = Field(default_factory=dict)
    """(step, value) points by key, such as `train/loss`; at most 10,000 points in all."""
    best_step: int | None = None
    steps: int = Field(ge=0)
    seconds: float = Field(ge=0)
    provenance: dict[str, JsonValue] = Field(default_factory=dict)
    """Versions, device, threads, host, git commit, data manifest: facts, never inputs."""
    artifacts: list[str] = Field(default_factory=list)
    """Names of files kept in the attempt's folder, such as `best.pt`."""


@dataclass(frozen=True)
class Place:
    """Where a training runs; nothing of it is fingerprinted."""

    data_root: Path  # each machine's METRICSWEEP_DATA
    scratch: Path  # for decoded data sets, shared by the trainings of a machine
    storage: Path  # this attempt's folder: checkpoints and artifacts
    device: str = "cpu"
    threads: int = 1
    checkpoint_seconds: float = 60.0
    stop: Callable[[], bool] = field(default=lambda: False)
    parts: Path | None = None  # METRICSWEEP_PARTS: a researcher's own parts


class Stopped(Exception):  # noqa: N818 - an event asked for, not an error
    """The stop flag was seen; the last checkpoint is complete."""


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged, of another format or of another recipe; the message names the file."""


class DataMissingError(FileNotFoundError):
    """A file of a data set is not there; the message says which, where it was looked for and how to provide it."""


class DataDamagedError(ValueError):
    """The files of a data set do not hold what they must."""


class Train(Protocol):
    """The shape of `workers.train:train` and of any function that a test puts in its place.

    Beside it in its module there may be `release() -> Mapping[str, int]`: whoever trains one after another in a process
    calls it between two. It gives back what no training needs and tells the bytes that are still held, by kind.
    """

    def __call__(
        self, recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None
    ) -> Result:
        """Train `recipe` at `place`, reporting as it goes; raises Stopped when asked to stop."""
        ...
