"""What crosses the boundary of a worker: Part, Recipe, Place, Progress and Result, free of torch."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
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

DEFAULT_TASK: Final = "retrieval"

FOLDERS: Final[Mapping[str, str]] = {
    "task": "tasks", "loss": "losses", "regularizer": "regularizers", "dataset": "datasets", "backbone": "backbones",
    "head": "heads", "sampler": "samplers", "optimizer": "optimizers", "schedule": "schedules",
    "eta_schedule": "eta_schedules", "metric": "metrics",
}  # fmt: skip
"""The folder of the parts of each kind."""

KINDS: Final = tuple(FOLDERS)
"""Every kind of part, as recipes name it."""

PML: Final = ("pml_loss", "pml_miner", "pml_distance", "pml_reducer", "pml_regularizer")
"""The kinds of classes of pytorch-metric-learning, which parts take as hyper-parameters."""

PART_FIELDS: Final = tuple(kind for kind in KINDS if kind != "metric")
"""The recipe's fields that hold a part."""

GOES_WITH: Final[Mapping[str, str]] = {
    "augment": "dataset", "crop": "dataset", "validation": "dataset",
    "head": "backbone", "embedding": "backbone", "warmup": "backbone", "backbone_rate": "backbone",
    "precision": "backbone", "channels_last": "backbone", "compile": "backbone", "chunk": "backbone",
    "regularizer": "loss", "eta_schedule": "loss", "loss_rate": "loss",
}  # fmt: skip
"""Fields of a recipe that refer to a part. If the recipe has no such part, they are absent from its JSON at their
default."""


class Frozen(BaseModel):
    """Base class of immutable pydantic models that refuse unknown keys, NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copies the model and computes its cached properties again."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class Part(Frozen):
    """A named ingredient; other fields than `name` are its hyper-parameters. A bare string is a part with defaults."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, JsonValue]:
        return dict(self.__pydantic_extra__ or {})


BEST_TEST: Final = "best_test"
"""The prefix of test metrics at the point that is best on the test split."""

TEST_SET: Final = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
"""The names of further test sets of a data set: `lfw`, whose split is `test_lfw`."""


class Select(Frozen):
    """How the best checkpoint of a training and the best candidate of a cell are chosen.

    The catalog fills in the task's defaults; these are the defaults of the default task.
    """

    metric: str = Field(default="map@r", max_length=100)
    split: Literal["validation", "test", "last"] = "validation"
    """`validation` and `test` choose the best checkpoint on that split; `last` chooses the last one, and candidates by
    their test metric."""
    beside: Literal["test"] | None = Field(
        default=None, exclude_if=lambda value: value is None
    )  # so that fingerprints stay
    """Also keep the test metrics of the checkpoint that is best on this split, as `best_test/test/map@r`."""

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
        """The splits that are evaluated during a training."""
        if self.split == "last":
            return ("test",)
        return (self.split,) if self.beside is None else (self.split, self.beside)

    @property
    def key(self) -> str:
        """The result key that ranks candidates, such as `best/validation/map@r`."""
        return f"{self.checkpoint}/{self.watched[0]}/{self.metric}"

    @property
    def beside_key(self) -> str:
        """The result key that ranks candidates by the test split, such as `best_test/test/map@r`."""
        return f"{BEST_TEST}/test/{self.metric}"


class NoValidation(Frozen):
    """No hold-out: all training classes are trained on."""

    name: Literal["none"] = "none"


def _existing(fold: int, info: ValidationInfo) -> int:
    folds = info.data.get("folds", math.inf)
    if fold >= folds:
        raise ValueError(f"fold {fold} does not exist; with {folds} folds it is 0 to {folds - 1}")
    return fold


class ClassHoldout(Frozen):
    """Hold-out of classes: one of `folds` contiguous blocks of training classes validates, the others train (MLRC)."""

    name: Literal["class_holdout"] = "class_holdout"
    folds: int = Field(default=4, ge=2, le=1000)
    fold: Annotated[int, AfterValidator(_existing)] = Field(default=0, ge=0)

    def held_out(self, classes: int) -> range:
        """The indices of the validation classes among `classes` training classes."""
        start = classes * self.fold // self.folds
        return range(start, classes * (self.fold + 1) // self.folds)


class ImageHoldout(Frozen):
    """Hold-out of images: one of `folds` equal shares of each class's training images validates, the others train.

    The shares are the same in all trainings; the only image of a class trains.
    """

    name: Literal["image_holdout"] = "image_holdout"
    folds: int = Field(default=10, ge=2, le=1000)
    fold: Annotated[int, AfterValidator(_existing)] = Field(default=0, ge=0)


class CrossValidation(Frozen):
    """Cross-validation: trains a model for each of `folds` contiguous blocks of classes, which validates on it
    (MLRC).
    """

    name: Literal["cross_validation"] = "cross_validation"
    folds: int = Field(default=4, ge=2, le=1000)

    @property
    def holdouts(self) -> list[ClassHoldout]:
        return [ClassHoldout(folds=self.folds, fold=fold) for fold in range(self.folds)]


Validation = Annotated[NoValidation | ClassHoldout | CrossValidation | ImageHoldout, Field(discriminator="name")]


KEPT_FILES: Final = ("best.safetensors", "final.safetensors")
"""The files with kept weights: the best, or the last if no best weights were kept."""
EXPORTED_WEIGHTS: Final = "model.safetensors"
"""The same file in an exported model."""
NO_METRICS: Final = frozenset({"query", "class", "predicted", "names", "checkpoint", "data"})
"""The arrays in a file of per-query scores (`queries.npz`) that are not the scores of a metric."""


class Pins(Frozen):
    """Versions and hashes that the catalog adds to a recipe, so that its fingerprint changes when the numbers may
    change.
    """

    versions: dict[str, int] = Field(default_factory=dict)
    """The version of each part by its kind; if above 1, that of each metric, as `metric.map`, and that of `precision`.
    """
    manifest: str | None = None  # hash of the data set's content
    weights: str | None = None  # hash of the pretrained weights
    manifests: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)  # no new fingerprints
    """The hash of each further test set by name."""
    code: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The hash of the source of each own part, by the same keys as `versions` (workers/catalog/own_code.py)."""
    content: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The hash of the files that the data set reads (workers/data/file_content.py), if it has no `manifest`."""


class Recipe(Frozen):
    """A recipe: everything that decides one training.

    The task decides which parts it holds. A field that refers to a part (GOES_WITH) is absent from the JSON if there is
    no such part and the field is at its default.

    With `epochs` instead of `iterations`, `evaluate_every`, `warmup` and the steps of schedules count epochs, too. An
    epoch is floor(N/b) batches of the N images that train.
    """

    version: Literal[1] = 1
    task: Part = Part(name=DEFAULT_TASK)
    dataset: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    augment: Literal["none", "flip", "crop_flip", "proxy_anchor", "simclr"] = "none"
    """How training images are cropped, flipped and coloured (workers.data.augmentation); evaluation uses the centre."""
    crop: int | None = Field(default=None, ge=1, le=65_536)
    """The side of crops in pixels; None means that of `augment`."""
    backbone: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    head: Part = Part(name="fc")
    embedding: int = Field(default=64, ge=1, le=65_536)  # d, the width of the embedding
    loss: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    regularizer: Part = Part(name="none")
    eta_schedule: Part = Part(name="constant")
    sampler: Part | None = Field(default=None, exclude_if=lambda value: value is None)
    optimizer: Part = Part(name="adam")
    schedule: Part = Part(name="constant")
    iterations: int | None = Field(default=None, ge=1, le=10_000_000)
    epochs: int | None = Field(default=None, ge=1, le=1_000_000)
    evaluate_every: int | None = Field(default=None, ge=1)
    """Iterations between evaluations on the selection split; None means `evaluates_every`."""
    patience: int | None = Field(default=None, ge=1)
    """Evaluations without a better score after which the training ends; None means never."""
    warmup: int = Field(default=0, ge=0, le=10_000_000)
    """Iterations at the start in which the backbone's weights do not change."""
    backbone_rate: float = Field(default=1.0, ge=0, le=1e6)
    """The factor on the learning rate of the backbone."""
    loss_rate: float | None = Field(default=None, ge=0, le=1e6)
    """The factor on the learning rate of the loss's parameters, such as proxies; None means the loss's `lr_scale`, or
    1."""
    undecayed: Literal["none", "norm", "norm_and_bias"] = "norm"
    """What weight decay leaves out: nothing, normalization layers, or these and every bias."""
    clip_value: float | None = Field(default=None, gt=0, le=1e6)
    """The maximal absolute value of a gradient's elements, which are clipped to it."""
    clip_norm: float | None = Field(default=None, gt=0, le=1e6)
    """The maximal norm of the whole gradient, which is scaled down to it, after `clip_value`."""
    precision: Literal["none", "bf16", "fp16"] = "none"
    """The autocast of backbone and head; losses, norms and singular values stay in float32. With fp16, an iteration
    whose loss or gradient is not finite makes no step; 17 in a row are a divergence."""
    channels_last: bool = False
    compile: bool = False
    """Whether torch.compile compiles backbone and head."""
    chunk: int | None = Field(default=None, ge=4, exclude_if=lambda value: value is None)  # no new fingerprints
    """The most images that pass backbone and head at a time in a step, with cached gradients; None means the batch.
    Memory then grows with `chunk` and not with the batch, and a step computes the network forward twice."""
    figures: Figures = Field(default=[])
    """Figures of the papers (workers/figures/options.py) whose data is kept."""
    metrics: list[str] = Field(default=[], max_length=50, exclude_if=lambda value: not value)  # no new fingerprints
    """Metrics in addition to those that the task and the data set declare."""
    distance: Distance = Field(default="cosine", exclude_if=lambda value: value == "cosine")  # no new fingerprints
    """The distance in evaluations and figures: the angle of embeddings, or the Euclidean distance of raw embeddings."""
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
        """The interval of evaluations: `evaluate_every`, or by default a tenth of `iterations`, or one epoch."""
        return self.evaluate_every or max(1, (self.iterations or 1) // 10)

    @property
    def fingerprint(self) -> str:
        """The recipe's SHA-256 fingerprint, over the canonical JSON; the recipe must be completed."""
        return fingerprint_of(self.model_dump(mode="json"))

    def part(self, kind: str) -> Part:
        """The recipe's part of a kind; raises LookupError if it has none."""
        part: Part | None = getattr(self, kind)
        if part is None:
            raise LookupError(f"a recipe for task {self.task.name!r} holds no {kind}")
        return part

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that the recipe holds."""
        unused = self._unused()
        return tuple(kind for kind in PART_FIELDS if getattr(self, kind) is not None and kind not in unused)

    def _unused(self) -> set[str]:
        absent = (name for name, part in GOES_WITH.items() if getattr(self, part) is None)
        return {name for name in absent if getattr(self, name) == type(self).model_fields[name].default}

    @model_serializer(mode="wrap")
    def _without_unused_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused, dumped = self._unused(), handler(self)
        return {name: value for name, value in dumped.items() if name not in unused}


def canonical_json(value: JsonValue | Mapping[str, Any]) -> str:
    """Writes JSON with sorted keys and without spaces, so that equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def fingerprint_of(recipe: Mapping[str, Any]) -> str:
    """The SHA-256 fingerprint of a completed recipe that is given as JSON."""
    return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()


class Progress(BaseModel):
    """A progress message of a running training."""

    step: int = Field(ge=0)
    total: int = Field(ge=1)
    metrics: dict[str, float] = Field(default_factory=dict)
    """Keyed `train/loss`, `validation/map@r`, ...; may be NaN."""
    log: str = ""
    checkpoint: str | None = None
    """The name of a complete checkpoint file in the attempt's folder."""


class Result(BaseModel):
    """The result of a training; under 1 MiB of JSON."""

    outcome: Literal["ok", "diverged"]
    metrics: dict[str, float] = Field(default_factory=dict)
    """Keyed checkpoint/split/metric, such as `best/test/recall@1`; fractions, not percent."""
    curves: dict[str, list[tuple[int, float]]] = Field(default_factory=dict)
    """(step, value) points by key, such as `train/loss`; at most 10,000 points in all."""
    best_step: int | None = None
    steps: int = Field(ge=0)
    seconds: float = Field(ge=0)
    provenance: dict[str, JsonValue] = Field(default_factory=dict)
    """Versions, device, threads, host, git commit, data manifest."""
    artifacts: list[str] = Field(default_factory=list)
    """The names of kept files in the attempt's folder, such as `best.safetensors`."""


@dataclass(frozen=True)
class Place:
    """Where a training runs: device, folders and threads. Does not affect the fingerprint."""

    data_root: Path  # each machine's METRICSWEEP_DATA
    scratch: Path  # for decoded data sets, shared by the trainings of a machine
    storage: Path  # this attempt's folder: checkpoints and artifacts
    device: str = "cpu"
    threads: int = 1
    checkpoint_seconds: float = 60.0
    stop: Callable[[], bool] = field(default=lambda: False)
    parts: Path | None = None  # METRICSWEEP_PARTS: a researcher's own parts


class Stopped(Exception):  # noqa: N818 - an event asked for, not an error
    """The training has ended because it was asked to stop; its last checkpoint is complete."""


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged, or of another format or recipe; the message names the file."""


class DataMissingError(FileNotFoundError):
    """A file of a data set is missing; the message says where it was searched and how to provide it."""


class DataDamagedError(ValueError):
    """The files of a data set have wrong content."""


class DataOptionError(ValueError):
    """A hyper-parameter of a data set does not fit its files."""


class CodeChangedError(RuntimeError):
    """The source of an own part has changed since the recipe was planned."""


class Train(Protocol):
    """The signature of `workers.train:train`, and of functions that replace it in tests.

    Its module may also have `release() -> Mapping[str, int]`, which is called between two trainings of a process: it
    frees memory and returns the bytes that are still reserved, by kind. And it may have `evaluate`, with the signature
    Evaluate; without it no kept weights are evaluated.
    """

    def __call__(
        self, recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None
    ) -> Result:
        """Trains `recipe` at `place`, calls `report` with progress; raises Stopped if asked to stop."""


class Evaluate(Protocol):
    """The signature of `workers.train:evaluate`, which computes added metrics from kept weights instead of training
    again.
    """

    def __call__(
        self, recipe: Recipe, place: Place, report: Callable[[Progress], None], weights: Path, names: Sequence[str]
    ) -> Result:
        """Computes the metrics `names` of kept weights, equal to those of a training of `recipe`.

        Raises CheckpointError if the weights are missing, damaged or of another recipe.
        """
