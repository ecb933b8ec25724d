"""The figures of the papers that a recipe may ask for, and their options; arrays.py and traces.py compute them."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

Distance = Literal["cosine", "euclidean"]
"""The distance by which embeddings are ranked and clustered, see `Recipe.distance`."""

MOST_FIGURES: Final = 50
"""The maximal number of figures in a recipe."""
MOST_VALUES: Final = 1_000_000
"""The maximal number of values that a figure records during a training; a checkpoint holds them all."""
MOST_SAMPLES: Final = 2_500
"""The number of samples of a generator that metrics are computed from, and the most that a figure shows."""


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    name: str

    @property
    def file(self) -> str:
        """The name of its files without suffix, such as `norms`, or `norms-train` if it is not of the test split."""
        split = getattr(self, "split", "test")
        return self.name if split == "test" else f"{self.name}-{split}"

    @property
    def key(self) -> str:
        """The figure with all its options as text, which begins with its file."""
        return f"{self.file} {self.model_dump_json()}"


class _Shown(_Asked):
    """A figure of all embeddings of a split, computed with the kept weights."""

    split: Literal["test", "validation", "train"] = "test"


class _Drawn(_Shown):
    """A figure of some images of a split."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    """Draws the images; all trainings with the same seed show the same images."""


class Norms(_Shown):
    """Histogram of ||f|| (SEC figures 1 and 5a)."""

    name: Literal["norms"] = "norms"
    bins: int = Field(default=50, ge=1, le=10_000)


class Cosines(_Drawn):
    """Histograms of cos_ap, cos_an and their difference (SEC figures 5b to d)."""

    name: Literal["cosines"] = "cosines"
    bins: int = Field(default=100, ge=1, le=10_000)
    anchors: int = Field(default=1000, ge=1, le=1_000_000)


class Panels(_Drawn):
    """The `depth` nearest images of some queries, also as a sheet of pictures of `side` pixels (SEC figure 9)."""

    name: Literal["panels"] = "panels"
    queries: int = Field(default=10, ge=1, le=200)
    depth: int = Field(default=3, ge=1, le=100)
    side: int = Field(default=96, ge=16, le=512)


class Tsne(_Drawn):
    """t-SNE in the plane (ISA figures 2 and 6)."""

    name: Literal["tsne"] = "tsne"
    points: int = Field(default=2000, ge=3, le=20_000)
    perplexity: float = Field(default=30.0, gt=0, le=1000)


class FeatureMaps(_Drawn):
    """The most active maps of a backbone's last layer of some images, also as a sheet of pictures (SEC figure 8)."""

    name: Literal["feature_maps"] = "feature_maps"
    images: int = Field(default=4, ge=1, le=50)
    channels: int = Field(default=6, ge=1, le=32)
    side: int = Field(default=96, ge=16, le=512)


class UnitCircle(_Drawn):
    """Where embeddings of two dimensions lie on the circle (SVMax figure 7)."""

    name: Literal["unit_circle"] = "unit_circle"
    points: int = Field(default=2000, ge=1, le=1_000_000)


class Spectrum(_Shown):
    """The singular values and their mean (SVMax figures 3 and 15)."""

    name: Literal["spectrum"] = "spectrum"


class HeatMap(_Drawn):
    """The cosines between images of a few classes (ISA figure 8)."""

    name: Literal["heat_map"] = "heat_map"
    classes: int = Field(default=10, ge=1, le=50)
    per_class: int = Field(default=10, ge=1, le=50)


class Followed(_Asked):
    """A figure whose data is recorded repeatedly during a training."""

    every: int | None = Field(default=None, ge=1, le=10_000_000)
    """Iterations between two looks, also if the recipe counts epochs."""
    looks: ClassVar[int] = 100
    """The number of looks by default."""
    counts: ClassVar[Literal["images", "points"]] = "images"
    """The field with the number of values that each look records."""

    def interval(self, total: int) -> int:
        """The iterations between two recordings in a training of `total` iterations."""
        return self.every or max(1, total // self.looks)

    def trouble(self, total: int) -> str:
        """Why a training of `total` iterations cannot have the figure; empty if it can."""
        every = self.interval(total)
        if every > total:
            return f"looks every {every:,} iterations, but the training has {total:,}; set `every`"
        count = getattr(self, self.counts)
        if total // every * count > MOST_VALUES:
            noted = f"{total // every:,} looks at {count:,} {self.counts} are more than {MOST_VALUES:,} values"
            return f"{noted}; look more seldom, or at fewer {self.counts}"
        return ""


class FollowedImages(Followed):
    """A figure that records some training images repeatedly during a training."""

    images: int
    seed: int = Field(default=0, ge=0, lt=2**31)


class DirectionVariation(FollowedImages):
    """The angle by which f^ of training images turns within `every` iterations (SEC figure 7)."""

    name: Literal["direction_variation"] = "direction_variation"
    every: int = Field(default=1000, ge=1, le=10_000_000)
    images: int = Field(default=1000, ge=1, le=10_000)
    bins: int = Field(default=50, ge=1, le=10_000)


class NormTraces(FollowedImages):
    """||f|| of a few training images over the iterations (rebuttal figure 1); by default at a hundred of them."""

    name: Literal["norm_traces"] = "norm_traces"
    images: int = Field(default=10, ge=1, le=10_000)


class Gradients(Followed):
    """||f|| and ||dL/df|| of the images of a batch, by default at ten times of the training (SEC equation 6)."""

    name: Literal["gradients"] = "gradients"
    images: int = Field(default=512, ge=1, le=10_000)
    """The most images of a batch."""
    looks = 10


def _rising(at: list[int]) -> list[int]:
    if any(later <= earlier for earlier, later in pairwise(at)):
        raise ValueError(f"expected each stage later than the one before it, found {at}")
    return at


_Stage = Annotated[int, Field(ge=0, le=10_000_000)]


class Staged(_Asked):
    """A figure of training images and of the loss's class vectors at some stages of a training."""

    at: Annotated[list[_Stage], Field(min_length=1, max_length=20), AfterValidator(_rising)]
    """Iterations, or epochs if the recipe counts epochs; 0 is before the first."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Draws the images and the classes."""

    def trouble(self, length: int) -> str:
        """Why a training of `length` iterations or epochs cannot have the figure; empty if it can."""
        return f"looks at {self.at[-1]:,}, but the training ends at {length:,}" if self.at[-1] > length else ""


class TsneStages(Staged):
    """t-SNE of training images together with the class vectors, for each stage (ISA figures 2 and 6)."""

    name: Literal["tsne_stages"] = "tsne_stages"
    points: int = Field(default=2000, ge=3, le=20_000)
    perplexity: float = Field(default=30.0, gt=0, le=1000)


class HeatMapStages(Staged):
    """The cosines between training images of some classes and their class vectors, for each stage (ISA figure 8)."""

    name: Literal["heat_map_stages"] = "heat_map_stages"
    classes: int = Field(default=100, ge=1, le=200)
    per_class: int = Field(default=3, ge=1, le=10)


class FollowedSamples(Followed):
    """The samples of a generator, by default at ten times of the training (SVMax figure 5)."""

    name: Literal["samples"] = "samples"
    points: int = Field(default=2_500, ge=1, le=MOST_SAMPLES)
    looks = 10
    counts = "points"


_Any = Annotated[
    Norms
    | Cosines
    | Panels
    | FeatureMaps
    | Tsne
    | UnitCircle
    | Spectrum
    | HeatMap
    | DirectionVariation
    | NormTraces
    | Gradients
    | TsneStages
    | HeatMapStages
    | FollowedSamples,
    Field(discriminator="name"),
]
MODELS: Final[Mapping[str, type[_Asked]]] = {
    model.model_fields["name"].default: model for model in get_args(get_args(_Any)[0])
}
"""The options of each figure by name."""
OF_WEIGHTS: Final = frozenset(name for name, model in MODELS.items() if issubclass(model, _Shown))
"""The figures that kept weights give; all others look at the training."""


def figure_of(key: str) -> _Asked:
    """The figure with this `key`."""
    options = json.loads(key.partition(" ")[2])
    return MODELS[options["name"]].model_validate(options)


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class _NameOrMapping:
    """The JSON schema of a figure, built only when it is needed, since commands would wait for it."""

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        schemas = [model.model_json_schema() for model in MODELS.values()]
        plain = [name for name, schema in zip(MODELS, schemas, strict=True) if not schema.get("required")]
        schemas = [schema | {"required": ["name", *schema.get("required", ())]} for schema in schemas]
        return {"anyOf": [{"enum": plain}, *schemas]}


Figure = Annotated[_Any, BeforeValidator(_named), _NameOrMapping()]
"""A figure that a recipe asks for: its name, or a mapping with `name` and options."""


def few(value: Any) -> Any:
    """Refuses a list of too many figures, before each figure is validated."""
    if isinstance(value, list) and len(value) > MOST_FIGURES:
        raise ValueError(f"expected at most {MOST_FIGURES} figures, found {len(value):,}")
    return value


Figures = Annotated[list[Figure], BeforeValidator(few)]
