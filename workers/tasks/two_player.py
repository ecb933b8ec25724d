"""Two players: a generator learns a mixture of Gaussians in the plane from a discriminator."""

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

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

_Parameters = Mapping[str, Tensor]  # the parameters of a module by their names

_TINY: Final = 1e-36  # smaller than any square of a gradient that changes a float32 step
_ROOTED: Final = ("exp_avg_sq", "square_avg")
"""The states whose root optimizers take. The slope of the root at 0, for a dead unit, would make NaN of 0."""

RADIUS: Final = 2.0
STEP: Final = 2.0
"""The distance between Gaussians of the grid."""
DEVIATIONS: Final = {"circle": 0.02, "grid": 0.05}
NOISE: Final = 256
"""Dimensions of the generator's input."""
WIDTH: Final = 128
"""The width of the two hidden layers of both players."""
EVALUATED: Final = options.MOST_SAMPLES
"""Points of an evaluation."""


class TwoPlayer(Task):
    """A generator against a discriminator over Gaussians in the plane (SVMax figure 5); they move in turn.

    The regularizer sees the raw output of the generator. With `unrolled` the generator moves against the discriminator
    as it will be after so many steps of its optimizer (Metz et al. 2017); with `through` these steps depend on the
    generator in the gradient, unlike in the code that SVMax names. A circle has a `radius` of 2 and a `deviation` of
    0.02, a grid has a spacing of 2 and 0.05.
    """

    label = "Two players"
    paper = "SVMax sec. 4.2, figure 5"
    metrics = ("modes", "high_quality", "reverse_kl")
    selects = "modes"
    split = "last"
    reads = "samples"
    watched = ("modes", "high_quality", "reverse_kl")
    curves = ("discriminator", "generator", "regularizer", "lr")
    figures = ("samples",)
    added = ("layout", "radius", "deviation", "activation", "unrolled", "through")
    only_where = {"radius": {"layout": "circle"}}

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
        both: dict[str, nn.Module] = {"generator": self.generator, "discriminator": self.discriminator}
        return both if self._regularizer is None else both | {"regularizer": self._regularizer}

    def optimized(self) -> Mapping[str, Optimized]:
        return {name: Optimized({name: player}) for name, player in self.modules().items() if name != "regularizer"}

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """The discriminator separates real points from generated ones; then the generator makes points that it takes
        for real.
        """
        separated = self._separation({}, self._real(), self._made().detach())
        yield Terms("discriminator", separated, lambda: {"discriminator": float(separated.detach()), "lr": at.rate})
        made = self._made()
        judged = functional_call(self.discriminator, self._opponent(made, at), (made,))
        total = entropy(judged, torch.ones_like(judged))
        values = {"generator": total}
        if self._regularizer is not None and self._eta is not None:
            values["regularizer"] = self._regularizer(made)
            total = total + self._eta(at.step) * values["regularizer"]
        yield Terms("generator", total, lambda: {name: float(value.detach()) for name, value in values.items()})

    def _separation(self, parameters: _Parameters, real: Tensor, made: Tensor) -> Tensor:
        """The loss of the discriminator with these parameters, or with its own."""
        real, made = (functional_call(self.discriminator, dict(parameters), (points,)) for points in (real, made))
        return entropy(real, torch.ones_like(real)) + entropy(made, torch.zeros_like(made))

    def _opponent(self, made: Tensor, at: At) -> dict[str, Tensor]:
        """The parameters of the discriminator that the generator moves against; empty for its current ones."""
        if not self._unrolled:
            return {}
        seen = made if self._through else made.detach()
        optimizer = at.optimizers["discriminator"]

        def loss(parameters: _Parameters) -> Tensor:
            return self._separation(parameters, self._real(), seen)

        return dict(_ahead(self.discriminator, optimizer, loss, self._unrolled, through=self._through))

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics of generated points from the same noise every time; raises Diverged."""
        return self._measures.of(Samples(self._shown(EVALUATED), self._centres, self._deviation), names)

    @torch.no_grad()
    def _shown(self, count: int) -> Tensor:
        """The first `count` points of evaluations; raises Diverged."""
        points: Tensor = self.generator(self._held[:count])
        if not bool(points.isfinite().all()):
            raise Diverged("samples")
        return points

    def begin(self) -> None:
        self.after(0)

    def after(self, step: int) -> None:
        if self._looks is not None and step % self._looks.every == 0:
            self._looks.note(step, self._shown(self._looks.points))

    def draw(self, figures: Sequence[options.Figure]) -> Mapping[str, Arrays]:
        return {} if self._looks is None else {self._looks.file: self._looks.arrays(self._centres, self._deviation)}

    def state_dict(self) -> dict[str, Any]:
        return {} if self._looks is None else {"looks": self._looks.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
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
    """Row by row in a square about the origin; the last row may be shorter."""
    side = math.isqrt(count - 1) + 1
    places = torch.arange(count)
    return STEP * (torch.stack([places % side, places // side], dim=1) - (side - 1) / 2)


def _network(inputs: int, outputs: int, activation: type[nn.Module]) -> nn.Module:
    hidden = [nn.Linear(inputs, WIDTH), activation(), nn.Linear(WIDTH, WIDTH), activation()]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))


def _looks(asked: AskedFigures) -> SampleLooks | None:
    """What the recipe's figure records, if it has one; raises ValueError if the training is too short for it."""
    figure = next((figure for figure in asked.figures if isinstance(figure, options.FollowedSamples)), None)
    if figure is None:
        return None
    if trouble := figure.trouble(asked.total):
        raise ValueError(f"figures: {figure.name!r} {trouble}")
    return SampleLooks(figure, asked.total)


def _ahead(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[_Parameters], Tensor],
    steps: int,
    *,
    through: bool = True,
) -> _Parameters:
    """The parameters of `module` after `steps` steps of its optimizer down `loss`; neither changes.

    `loss` takes the parameters before each step. With `through`, the result can be differentiated through the steps
    (Metz et al. 2017, equations 7 to 9); otherwise it is constant.
    """
    now = {name: parameter.detach().clone().requires_grad_() for name, parameter in module.named_parameters()}
    names = {parameter: name for name, parameter in module.named_parameters()}
    states = {name: _copied(optimizer.state.get(parameter, {}), through) for parameter, name in names.items()}
    for _ in range(steps):
        slopes = torch.autograd.grad(loss(now), [*now.values()], create_graph=through)
        later = {name: parameter.clone() for name, parameter in now.items()}
        for parameter, slope in zip(later.values(), slopes, strict=True):
            parameter.grad = slope
        twin = _twin(optimizer, {parameter: later[name] for parameter, name in names.items()})
        twin.state.update({later[name]: state for name, state in states.items()})
        twin.step()
        states = {name: _copied(twin.state[parameter], through, first=False) for name, parameter in later.items()}
        now = later if through else {name: parameter.detach().requires_grad_() for name, parameter in later.items()}
    return now


def _copied(state: Mapping[str, Any], through: bool, *, first: bool = True) -> dict[str, Any]:
    """A copy of the state of a parameter, since a step overwrites it."""
    found = {}
    for name, value in state.items():
        if not isinstance(value, Tensor):
            found[name] = value
            continue
        found[name] = value.clone() if through else value.detach().clone()
        if name == "step":  # Adam raises its betas to this power, by which a float32 would lose five of its digits
            found[name] = found[name].double()
        if through and first and name in _ROOTED:
            found[name] += _TINY
    return found


def _twin(optimizer: torch.optim.Optimizer, moved: Mapping[Tensor, Tensor]) -> torch.optim.Optimizer:
    """An optimizer of other tensors with the same rule, without state, and with differentiable steps."""
    twin = copy.copy(optimizer)
    plain = {"differentiable": True, "fused": None, "foreach": False}
    twin.defaults = {**optimizer.defaults, **plain}
    twin.param_groups = [
        {**group, **plain, "params": [moved[parameter] for parameter in group["params"] if parameter in moved]}
        for group in optimizer.param_groups
    ]
    twin.state = defaultdict(dict)
    return twin
