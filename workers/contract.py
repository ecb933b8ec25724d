"""What crosses the boundary of a worker: Part, Recipe, Place, Progress and Result, free of torch."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from workers.figures.options import Distance, Figures

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


BEST_TEST: Final = "best_test"
"""What stands before the keys of test metrics at the point that is best on the test split, beside `best`."""

TEST_SET: Final = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
"""The name of a test set that a data set has beside `test`: `lfw`, whose split is `test_lfw`."""


class Select(Frozen):
    """By what a training's best checkpoint and a cell's best candidate are chosen.

    What is not said is the task's: the catalog completes it, and these defaults are those of the default task.
    """

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
    def watched(self) -> tuple[str, ...]:
        """The splits that are evaluated while a training runs."""
        if self.split == "last":
            return ("test",)
        return (self.split,) if self.beside is None else (self.split, self.beside)

    @property
    def key(self) -> str:
        """The result key that ranks candidates, such as `best/validation/map@r`."""
        return f"{self.checkpoint}/{self.watched[0]}/{self.metric}"

    @property
    def beside_key(self) -> str:
        """The result key that ranks candidates by the test split beside that, such as `best_test/test/map@r`."""
        return f"{BEST_TEST}/test/{self.metric}"


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
        _check_fold(self.fold, self.folds)
        return self

    def held_out(self, classes: int) -> range:
        """The class indices that validate, of `classes` training classes 0..classes-1."""
        start = classes * self.fold // self.folds
        return range(start, classes * (self.fold + 1) // self.folds)


class ImageHoldout(Frozen):
    """One of `folds` equal shares of the training images validates, the others train; of each class an equal share.

    Which images these are is drawn once for all trainings; the only image of a class trains.
    """

    name: Literal["image_holdout"] = "image_holdout"
    folds: int = Field(default=10, ge=2, le=1000)
    fold: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _fold_exists(self) -> "ImageHoldout":
        _check_fold(self.fold, self.folds)
        return self


class CrossValidation(Frozen):
    """One model for each of `folds` contiguous blocks of training classes, which validates on it (MLRC)."""

    name: Literal["cross_validation"] = "cross_validation"
    folds: int = Field(default=4, ge=2, le=1000)

    @property
    def holdouts(self) -> list[ClassHoldout]:
        """The hold-out of each model."""
        return [ClassHoldout(folds=self.folds, fold=fold) for fold in range(self.folds)]


Validation = Annotated[NoValidation | ClassHoldout | CrossValidation | ImageHoldout, Field(discriminator="name")]


def _check_fold(fold: int, folds: int) -> None:
    if fold >= folds:
        raise ValueError(f"fold {fold} does not exist; with {folds} folds it is 0 to {folds - 1}")


__all__ = [
    "BEST_TEST", "DEFAULT_TASK", "FOLDERS", "GOES_WITH", "KEPT_FILES", "KINDS", "PART_FIELDS", "TEST_SET",
    "CheckpointError", "ClassHoldout", "CodeChangedError", "CrossValidation", "DataDamagedError",
    "DataMissingError", "Distance", "Evaluate", "Frozen", "ImageHoldout", "NoValidation", "Part", "Pins",
    "Place", "Progress", "Recipe", "Result", "Select", "Stopped", "Train", "Validation", "canonical_json",
    "fingerprint_of",
]  # fmt: skip

KEPT_FILES: Final = ("best.pt", "final.pt")
"""The file of weights that a training keeps, one of these: the best, or the last where there are no best."""


class Pins(Frozen):
    """What the catalog adds to a recipe so that its fingerprint changes when the numbers may."""

    versions: dict[str, int] = Field(default_factory=dict)
    """By kind the version of the part; where it is above 1 that of each metric computed, as `metric.map`, and that of
    `precision`."""
    manifest: str | None = None  # hash of the data set's content
    weights: str | None = None  # hash of the pretrained weights
    manifests: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)  # no new fingerprints
    """By name the hash of each test set beside `test`."""
    code: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The hash of the source of each own part, by the keys that `versions` has (workers/catalog/own_code.py)."""
    content: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The hash of the files that the data set reads (workers/data/file_content.py), where it has no `manifest`."""


def _absent(value: object) -> bool:
    """Whether a field is left out of the JSON: a part that the task does not ask for."""
    return value is None


class Recipe(Frozen):
    """Everything that decides one training.

    Which parts it holds the task says; a field that goes with a part (GOES_WITH) is absent from its JSON where that
    part is, and it is at its default.

    With `epochs` instead of `iterations` all that is counted in iterations is counted in epochs: `evaluate_every`,
    `warmup` and the steps of schedules. An epoch is floor(N/b) batches of the N images that train.
    """

    version: Literal[1] = 1
    task: Part = Part(name=DEFAULT_TASK)
    dataset: Part | None = Field(default=None, exclude_if=_absent)
    augment: Literal["none", "flip", "crop_flip", "proxy_anchor", "simclr"] = "none"
    """How training images are cropped, flipped, coloured (workers.data.augmentation); evaluation crops the centre."""
    crop: int | None = Field(default=None, ge=1, le=65_536)
    """The side of the crops in pixels; none: that of `augment`."""
    backbone: Part | None = Field(default=None, exclude_if=_absent)
    head: Part = Part(name="fc")
    embedding: int = Field(default=64, ge=1, le=65_536)  # d, the width of the embedding
    loss: Part | None = Field(default=None, exclude_if=_absent)
    regularizer: Part = Part(name="none")
    eta_schedule: Part = Part(name="constant")
    sampler: Part | None = Field(default=None, exclude_if=_absent)
    optimizer: Part = Part(name="adam")
    schedule: Part = Part(name="constant")
    iterations: int | None = Field(default=None, ge=1, le=10_000_000)
    epochs: int | None = Field(default=None, ge=1, le=1_000_000)
    evaluate_every: int | None = Field(default=None, ge=1)
    """Iterations between evaluations on the selection split; none: as `evaluates_every` says."""
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
    figures: Figures = Field(default=[])
    """Figures of the papers (workers/figures/options.py) whose data is kept as files."""
    metrics: list[str] = Field(default=[], max_length=50, exclude_if=lambda value: not value)  # no new fingerprints
    """Metrics that are computed beside those that the task and the data set declare."""
    distance: Distance = Field(default="cosine", exclude_if=lambda value: value == "cosine")  # no new fingerprints
    """How near two images are in evaluations and figures: by the angle of their embeddings, or by the Euclidean
    distance of the raw embeddings."""
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
    def evaluates_every(self) -> int:
        """`evaluate_every`; where it is none a tenth of `iterations`, or one epoch."""
        return self.evaluate_every or max(1, (self.iterations or 1) // 10)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON; complete the recipe by the catalog first."""
        return fingerprint_of(self.model_dump(mode="json"))

    def part(self, kind: str) -> Part:
        """The part of a kind that the recipe holds; raises LookupError where it holds none.

        `metric` has none: a task and a data set declare the metrics, and `metrics` are more of them.
        """
        found: Part | None = getattr(self, kind)
        if found is None:
            raise LookupError(f"a recipe for task {self.task.name!r} holds no {kind}")
        return found

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the parts that the recipe holds."""
        unsaid = self._unsaid()
        return tuple(kind for kind in PART_FIELDS if getattr(self, kind) is not None and kind not in unsaid)

    def _unsaid(self) -> set[str]:
        """The fields that go with a part which it does not hold, and say no more than their default."""
        absent = (name for name, part in GOES_WITH.items() if getattr(self, part) is None)
        return {name for name in absent if getattr(self, name) == type(self).model_fields[name].default}

    @model_serializer(mode="wrap")
    def _without_what_it_does_not_hold(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said: dict[str, Any] = handler(self)
        return {name: one for name, one in said.items() if name not in unsaid} if (unsaid := self._unsaid()) else said


def canonical_json(value: JsonValue | Mapping[str, Any]) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def fingerprint_of(recipe: Mapping[str, Any]) -> str:
    """The fingerprint of a recipe that is JSON already."""
    return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()


class Progress(BaseModel):
    """What a training reports while it runs."""

    model_config = ConfigDict(defer_build=True)

    step: int = Field(ge=0)
    total: int = Field(ge=1)
    metrics: dict[str, float] = Field(default_factory=dict)
    """Keyed `train/loss`, `validation/map@r`, ...; NaN is allowed: a loss may become one."""
    log: str = ""
    checkpoint: str | None = None
    """Name of a checkpoint file now complete in the attempt's folder."""


class Result(BaseModel):
    """What a training gives at its end; under 1 MiB of JSON."""

    model_config = ConfigDict(defer_build=True)

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


class DataOptionError(ValueError):
    """A hyper-parameter of a data set does not fit its files: the recipe is at fault, not the files."""


class CodeChangedError(RuntimeError):
    """An own part has another source here than the recipe was planned with: planned anew, it is trained."""


class Train(Protocol):
    """The shape of `workers.train:train` and of any function that a test puts in its place.

    Beside it in its module there may be `release() -> Mapping[str, int]`: whoever trains one after another in a process
    calls it between two. It gives back what no training needs and tells the bytes that are still held, by kind. And
    there may be `evaluate`, of the shape of Evaluate; without it no kept weights are evaluated.
    """

    def __call__(
        self, recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None
    ) -> Result:
        """Train `recipe` at `place`, reporting as it goes; raises Stopped when asked to stop."""
        ...


class Evaluate(Protocol):
    """The shape of `workers.train:evaluate`: what stands for a training that differs by further metrics alone."""

    def __call__(
        self, recipe: Recipe, place: Place, report: Callable[[Progress], None], weights: Path, names: Sequence[str]
    ) -> Result:
        """The metrics `names` alone, as a training of `recipe` would give them where it kept these weights.

        Raises CheckpointError where the weights are missing, damaged or of another recipe.
        """
        ...
