"""Tasks: what is trained, what a step is, and what is measured; one file a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from workers.data.batches import LabelledBatch
from workers.figures.arrays import Arrays
from workers.figures.options import Figure


class Diverged(ArithmeticError):  # noqa: N818 - an outcome, not an error
    """A loss or an embedding is not finite; the training ends with the state `diverged`."""


class At(NamedTuple):
    """The progress of a training when a task computes a step."""

    step: int  # the number of iterations that are done
    rate: float  # the optimizer's learning rate in the next iteration
    optimizers: Mapping[str, torch.optim.Optimizer] = MappingProxyType({})
    """The optimizer of each player, for tasks that compute another player's next steps."""


Eta = Callable[[int], float]
"""The weight of a regularizer in an iteration, from 0."""


class Optimized(NamedTuple):
    """The modules that a player optimizes, with an optimizer of their own."""

    modules: Mapping[str, nn.Module]
    """By their names in the recipe if they are its parts: `backbone` has its own rate and warm-up, `loss` a rate."""
    rate: float = 1.0  # a factor on the recipe's learning rate


class Terms(NamedTuple):
    """The loss terms that a player minimizes in its turn."""

    player: str
    total: torch.Tensor
    noted: Callable[[], Mapping[str, float]]
    """Gives the values of its curves, such as `loss` for `train/loss`; called only if they become points."""


class Task(Protocol):
    """The interface of parts of the kind `task`; a task derives from it and overrides what it needs.

    Its constructor decides what a recipe holds: `model` asks for backbone and head; `loss`, `regularizer` and `eta`
    (its weight) for these; `batches` for data set and sampler. A type `X | None` means that the recipe may leave the
    part out. All tasks are offered `measures`, `figures`, `device` and `seed`, a seed of their own.

    The catalog reads its literals: `metrics`, `selects` and `split` (the defaults of `select`), `reads` (what its
    metrics read), `watched` (metrics during the training), `trained` (metrics of the training images at the end),
    `ended` (metrics that only `end` gives, by name or by their `needs`), `curves`, `validations` (allowed hold-outs;
    always optional), `distances` (for ranking; only cosines if absent), `figures`, `views` (of an image), `tiles` and
    `probes` (docs/add-a-part.md).
    """

    def modules(self) -> Mapping[str, nn.Module]:
        """All modules that are trained or kept, by their names in checkpoints."""

    def optimized(self) -> Mapping[str, Optimized]:
        """The modules that each player optimizes: one player, or several that take turns."""

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """Yields the terms that each player in turn minimizes for a batch; resumed after the player's update."""

    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """Computes the metrics `names` of a split; NaN where there is no value. Raises Diverged."""

    def begin(self) -> None:
        """Called once before the first iteration."""

    def after(self, step: int) -> None:
        """Called after iteration `step`, even if it made no step. Raises Diverged."""

    def late(self, split: str) -> Sequence[str]:
        """The metrics that are too expensive on a split to be computed before the end of the training."""
        return ()

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        """Measures the current weights, those of `at.step`, at the end of a training.

        Called for the last weights and for the best; it leaves `modules` unchanged. Values are keyed as in a result,
        `train/norm_mean` or `test/top1`; the last value of a key counts, and values that are no metric of the training
        only show progress. A training may stop between two yields: `state_dict` then contains the progress, and after
        `load_state_dict` another call continues. All global generators are seeded before it begins. Raises Diverged.
        """
        return iter(())

    def draw(self, figures: Sequence[Figure]) -> Mapping[str, Arrays]:
        """The arrays of the requested figures, from the current weights and the recordings, by the names of their
        files.
        """
        return {}

    def joined(self, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> AbstractContextManager[None]:
        """Within the context, `evaluate` joins the models of several folds, given by the states of their modules."""
        raise NotImplementedError(f"{type(self).__name__} joins no models")

    def state_dict(self) -> dict[str, Any]:
        """The state of the task for a checkpoint, in addition to the states of its modules."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the task from a checkpoint."""
