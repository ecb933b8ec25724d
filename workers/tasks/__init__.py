"""Tasks: what is trained, what one step of it is and what is measured of it; one file a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from workers.data.batches import LabelledBatch
from workers.figures.arrays import Arrays
from workers.figures.options import Figure


class Diverged(ArithmeticError):  # noqa: N818 - an outcome, not an error
    """A loss or an embedding is no longer finite; the training ends with this outcome."""


class At(NamedTuple):
    """Where a training is."""

    step: int
    """The iterations that are done."""
    rate: float
    """The optimizer's learning rate in the iteration that comes."""
    optimizers: Mapping[str, torch.optim.Optimizer] = MappingProxyType({})
    """That of each player, as it stands: for who looks ahead of another's turn."""


class Eta(Protocol):
    """The weight of a regularizer."""

    def __call__(self, step: int) -> float:
        """Its value in iteration `step`, from 0."""
        ...


class Optimized(NamedTuple):
    """What one player moves, by an optimizer of its own."""

    modules: Mapping[str, nn.Module]
    """By their names in the recipe where they are its parts: `backbone` has its own rate and warm-up, `loss` a rate."""
    rate: float = 1.0
    """A factor on the recipe's learning rate."""


class Terms(NamedTuple):
    """What a player minimizes in its turn."""

    player: str
    total: torch.Tensor
    """A scalar."""
    noted: Callable[[], Mapping[str, float]]
    """The values of its curves, such as `loss` for `train/loss`; asked only where they become points."""


class Measured(Protocol):
    """What has metrics."""

    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics `names` of a split; NaN where there is no value. Raises Diverged."""
        ...


class Task(Protocol):
    """What a part of the kind `task` offers; a task derives from it and leaves out what it has none of.

    Its constructor says what a recipe holds: `model` asks for backbone and head, `loss`, `regularizer` and `eta` (its
    weight) for these, `batches` for data set and sampler; `X | None` may be left out, and what is not named must be.
    Everyone is offered `measures`, `figures`, `device` and `seed`, one of the task's own.
    Its literals, which the catalog reads: `metrics`, `selects` and `split` (the defaults of `select`), `reads` (what
    its metrics read), `watched` (metrics on the way), `trained` (metrics of the training images at the end), `ended`
    (what only `end` gives, and `evaluate` is never asked for: metrics by name, or by what they state as `needs`),
    `curves`, `validations` (what may be held out; none of it may be too), `distances` (what it may rank by; by nothing
    but cosines where it states none), `figures`, `views` (of an image), `tiles` and `probes` (docs/add-a-part.md).
    """

    def modules(self) -> Mapping[str, nn.Module]:
        """All that is trained or kept, by the names that it has in checkpoints."""
        ...

    def optimized(self) -> Mapping[str, Optimized]:
        """What each player moves: one player, or several that take turns."""
        ...

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """What each player in turn minimizes of a batch; resumed after its update."""
        ...

    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics `names` of a split; NaN where there is no value. Raises Diverged."""
        ...

    def begin(self) -> None:
        """What is done once, before the first iteration."""

    def after(self, step: int) -> None:
        """What is looked at after iteration `step`, whatever became of it. Raises Diverged."""

    def late(self, split: str) -> Sequence[str]:
        """The metrics that are too dear of a split to be computed of any weights but those that are kept."""
        return ()

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        """What is measured of the present weights, those of `at.step`, once a training is at its end.

        Asked of the last weights and of the best; it leaves `modules` as they are. Values are keyed as a result's,
        `train/norm_mean` or `test/top1`; the last one of a key counts, and one of no metric of the training only tells
        how it goes. Between two yields a training may stop: `state_dict` then says how far this one is, and after
        `load_state_dict` another call goes on from there. All global generators are seeded before it begins. Raises
        Diverged.
        """
        return iter(())

    def draw(self, figures: Sequence[Figure]) -> Mapping[str, Arrays]:
        """What figures show of the present weights and of what was followed on the way, by the names of their files."""
        return {}

    def joined(self, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> Measured:
        """The models of several folds as one, by the states of their modules."""
        raise NotImplementedError(f"{type(self).__name__} joins no models")

    def state_dict(self) -> dict[str, Any]:
        """What it needs to go on, besides the states of its modules."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
