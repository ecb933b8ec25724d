"""What a sweep costs, as the outside sees it: work, and hours by device."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class DeviceHours(BaseModel):
    """The hours that trainings would take on one device, from the median seconds a step of those that ran on it."""

    model_config = ConfigDict(defer_build=True)

    kind: Literal["cpu", "gpu"]
    device: str
    trainings: int
    """Those of whose shape enough ran on this device; the hours are of these alone."""
    hours: float
    """One after the other."""
    low: float
    """By the lower quartile of the seconds a step."""
    high: float
    """By the upper one."""
    slots: int | None = None
    """How many of them the nodes that are there can train at once; none: not known."""
    wall_hours: float | None = None
    """The hours, shared between these slots."""


class Cost(BaseModel):
    """What is still to be trained: the work, and the hours that it would take by what was measured."""

    model_config = ConfigDict(defer_build=True)

    trainings: int
    """Different recipes without a result."""
    models: int
    """What these train: one each, and one a fold under cross-validation."""
    steps: int | None = None
    """Of the optimizer; none: not known before the data is read."""
    images: int | None = None
    """Through the network, forward and back: steps times the images of a batch."""
    evaluated: int | None = None
    """At most so many more through the network, by evaluations."""
    clusterings: int = 0
    """Dear clusterings by the protocol of SEC's code (`nmi_sec`, `f1_sec`), once at the end of a training."""
    products: int = 0
    """The multiplications that one iteration of all their starts takes, of tens of iterations that a start needs."""
    at_most: list[str] = Field(default_factory=list)
    """Why it may turn out to be less; empty: it is all trained to its end."""
    measured: int = 0
    """Trainings whose hours are known."""
    unmeasured_shapes: int = 0
    """Shapes of the others: trainings of one shape take about as long a step."""
    nearest: int = 0
    """The most trainings that ran of one of these shapes, on one device."""
    needed: int = 3
    """How many have to run before hours are told."""
    hours: list[DeviceHours] = Field(default_factory=list)
    """By device: alternatives where the same trainings are known of several."""
