"""Two players: a generator learns a mixture of Gaussians in the plane from a discriminator that learns to tell."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import torch
from annotated_types import Ge, Le
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits as entropy

from workers.data.batches import LabelledBatch
from workers.evaluation.measures import Measures
from workers.evaluation.probe import Samples
from workers.figures import options
from workers.figures.arrays import Arrays
from workers.figures.traces import AskedFigures, SampleLooks
from workers.tasks import At, Diverged, Eta, Optimized, Task, Terms
from workers.tasks._ahead import Parameters, ahead

RADIUS: Final = 2.0
STEP: Final = 2.0
"""From a Gaussian of the grid to the next."""
DEVIATIONS: Final = {"circle": 0.02, "grid": 0.05}
NOISE: Final = 256
"""Dimensions of what the generator makes its points from."""
WIDTH: Final = 128
"""Of the two hidden layers of either player."""
EVALUATED: Final = options.MOST_SAMPLES
"""Points of an evaluation."""


class TwoPlayer(Task):
    """A generator against a discriminator over Gaussians in the plane (SVMax figure 5); they move in turn.

    The regularizer sees what the generator makes, raw. With `unrolled` the generator moves against the discriminator as
    its optimizer will have made it so many steps ahead (Metz et al. 2017), and with `through` knows that these steps
    depend on what it makes; the code that SVMax names looks ahead and does not. A circle has a `radius` of 2 and a
    `deviation` of 0.02, a grid lies 2 apart with 0.05.
    """

    label = "Two players"
    paper = "SVMax sec. 4.2, figure 5"
    version = 1
    metrics = ("modes", "high_quality", "reverse_kl")
    selects = "modes"
    split = "last"
    reads = "samples"
    watched = ("modes", "high_quality", "reverse_kl")
    curves = ("discriminator", "generator", "regularizer", "lr")
    figures = ("samples",)
    added = ("layout", "radius", "deviation", "activation", "unrolled", "through")
    only_where: ClassVar[Mapping[str, Mapping[str, str]]] = {"radius": {"layout": "circle"}}

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        regularizer: nn.Module | None,
        eta: Eta | None,
        measures: Measures,
        figures: AskedFigures,
        device: torch.device,
        seed: int,
        *,
        gaussians: Annotated[int, Ge(2), Le(1_000)] = 8,
        batch: Annotated[int, Ge(2), Le(65_536)] = 512,
        layout: Literal["circle", "grid"] = "circle",
        radius: Annotated[float, Ge(0.001), Le(1_000)] | None = None,
        deviation: Annotated[float, Ge(0.0001), Le(1_000)] | None = None,
        activation: Literal["relu", "tanh"] = "relu",
        unrolled: Annotated[int, Ge(0), Le(100)] = 0,
        through: bool = True,
    ) -> None:
        where = _circle(gaussians, RADIUS if radius is None else radius) if layout == "circle" else _grid(gaussians)
        self._centres = where.to(device)
        self._deviation = DEVIATIONS[layout] if deviation is None else deviation
        self._regularizer, self._eta, self._measures = regularizer, eta, measures
        self._batch, self._unrolled, self._through = batch, unrolled, through
        held = torch.randn(EVALUATED, NOISE, generator=torch.Generator().manual_seed(seed))
        self._held = held.to(device)  # the noise of all evaluations
        self.generator = _network(NOISE, 2, {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]).to(device)
        self.discriminator = _network(2, 1, nn.ReLU).to(device)
        self._looks = _looks(figures)

    def modules(self) -> Mapping[str, nn.Module]:
        """Both players."""
        both: dict[str, nn.Module] = {"generator": self.generator, "discriminator": self.discriminator}
        return both if self._regularizer is None else both | {"regularizer": self._regularizer}

    def optimized(self) -> Mapping[str, Optimized]:
        """Each player moves itself."""
        return {name: Optimized({name: one}) for name, one in self.modules().items() if name != "regularizer"}

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """The discriminator tells real from made; then the generator makes what it takes for real."""
        told = self._told({}, self._real(), self._made().detach())
        yield Terms("discriminator", told, lambda: {"discriminator": float(told.detach()), "lr": at.rate})
        made = self._made()
        taken = functional_call(self.discriminator, self._met(made, at), (made,))
        fooled = entropy(taken, torch.ones_like(taken))
        if self._regularizer is None or self._eta is None:
            yield Terms("generator", fooled, lambda: {"generator": float(fooled.detach())})
            return
        spread = self._regularizer(made)
        total = fooled + self._eta(at.step) * spread
        values = {"generator": fooled, "regularizer": spread}
        yield Terms("generator", total, lambda: {name: float(one.detach()) for name, one in values.items()})

    def _told(self, parameters: Parameters, real: Tensor, made: Tensor) -> Tensor:
        """What the discriminator minimizes, with these parameters or with its own."""
        real, made = (functional_call(self.discriminator, dict(parameters), (points,)) for points in (real, made))
        return entropy(real, torch.ones_like(real)) + entropy(made, torch.zeros_like(made))

    def _met(self, made: Tensor, at: At) -> dict[str, Tensor]:
        """The parameters of the discriminator that the generator moves against; empty for those that it has."""
        if not self._unrolled:
            return {}
        seen = made if self._through else made.detach()
        player, optimizer = self.discriminator, at.optimizers["discriminator"]
        found = ahead(
            player, optimizer, lambda now: self._told(now, self._real(), seen), self._unrolled, through=self._through
        )
        return dict(found)

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics of what the generator makes of the same noise every time; raises Diverged."""
        return self._measures.of(Samples(self._shown(EVALUATED), self._centres, self._deviation), names)

    @torch.no_grad()
    def _shown(self, count: int) -> Tensor:
        """The first `count` of the points that evaluations see; raises Diverged."""
        points: Tensor = self.generator(self._held[:count])
        if not bool(points.isfinite().all()):
            raise Diverged("samples")
        return points

    def begin(self) -> None:
        """Have the figure see what an untrained generator makes."""
        self.after(0)

    def after(self, step: int) -> None:
        """Have the figure look again where it is due; raises Diverged."""
        if self._looks is not None and step % self._looks.every == 0:
            self._looks.note(step, self._shown(self._looks.points))

    def draw(self, figures: Sequence[options.Figure]) -> Mapping[str, Arrays]:
        """Where the samples were at each look."""
        return {} if self._looks is None else {self._looks.file: self._looks.arrays(self._centres, self._deviation)}

    def state_dict(self) -> dict[str, Any]:
        """What the figure has seen so far."""
        return {} if self._looks is None else {"looks": self._looks.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        if self._looks is not None:
            self._looks.load_state_dict(state["looks"])

    def _real(self) -> Tensor:
        which = torch.randint(len(self._centres), (self._batch,), device=self._centres.device)
        return self._centres[which] + self._deviation * torch.randn_like(self._centres[which])

    def _made(self) -> Tensor:
        made: Tensor = self.generator(torch.randn(self._batch, NOISE, device=self._centres.device))
        return made


def _circle(count: int, radius: float) -> Tensor:
    turns = torch.arange(count) * (2 * math.pi / count)
    return radius * torch.stack([turns.cos(), turns.sin()], dim=1)


def _grid(count: int) -> Tensor:
    """Row by row in a square about the origin; the last row has what is left."""
    side = math.isqrt(count - 1) + 1
    places = torch.arange(count)
    return STEP * (torch.stack([places % side, places // side], dim=1) - (side - 1) / 2)


def _looks(asked: AskedFigures) -> SampleLooks | None:
    """What the recipe's figure follows, if it has one; raises ValueError where the training is too short for a look."""
    figure = next((one for one in asked.figures if isinstance(one, options.FollowedSamples)), None)
    if figure is None:
        return None
    if trouble := figure.trouble(asked.total):
        raise ValueError(f"figures: {figure.name!r} {trouble}")
    return SampleLooks(figure, asked.total)


def _network(inputs: int, outputs: int, activation: type[nn.Module]) -> nn.Module:
    hidden = [nn.Linear(inputs, WIDTH), activation(), nn.Linear(WIDTH, WIDTH), activation()]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))
