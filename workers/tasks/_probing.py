"""The linear probe of a network at the end of its training: its course over the images, and what comes of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from workers.data.augmentation import Augment
from workers.data.batches import Batches
from workers.data.images import Images
from workers.evaluation.probe import Classified, Probe, Schedule

Layers = Mapping[str, Tensor]
"""Features [b, d] of images by the name of the layer that made them."""
Values = dict[str, float]


class Probed(NamedTuple):
    """What a probe is to do."""

    schedule: Schedule
    views: Literal["centre", "crops"]
    """How it sees training images: as an evaluation, or by SimCLR's random crops and flips in every epoch."""
    reports: Literal["chosen", "best"]
    """The rate that held-out images choose, after the last epoch; or what is best on the test images, in any epoch."""


class Probing:
    """Trains a probe on the training images and judges it on the others.

    `encode` gives the features of images, and moves no weight; `judge` gives the metrics of a layer's classifier on a
    split. Raises ValueError where that is impossible with these images.
    """

    def __init__(
        self,
        probed: Probed,
        batches: Batches,
        encode: Callable[[Tensor], Layers],
        judge: Callable[[str, str, Classified], Values],
        device: torch.device,
        seed: int,
    ) -> None:
        self._probed, self._batches, self._encode, self._judge = probed, batches, encode, judge
        self._device, self._seed = device, seed
        _check(probed, batches)
        train = batches.splits.train
        self._crops = Augment("proxy_anchor", stored=train.side, crop=batches.augment.side)
        self._splits = ("test", "validation") if batches.splits.validation else ("test",)
        self._drawn = torch.Generator()
        self._probe: Probe | None = None
        self._widths: dict[str, int] = {}
        self._best: dict[str, tuple[float, Values]] = {}

    def course(self) -> Iterator[Values]:
        """Train; yields the loss after each epoch and the metrics at the end, and goes on where it was stopped."""
        train = self._batches.splits.train
        tested = {split: self._seen(self._batches.splits.named(split)) for split in self._splits}
        known = self._seen(train) if self._probed.views == "centre" else None
        probe = self._probe or self._begun({layer: one.shape[1] for layer, one in tested["test"].items()})
        while probe.epoch < self._probed.schedule.epochs:
            losses = []
            order = torch.randperm(len(train), generator=self._drawn)
            for indices in torch.split(order, self._probed.schedule.batch):
                features = self._cropped(indices) if known is None else _picked(known, indices)
                losses.append(probe.learn(features, train.labels[indices.to(train.labels.device)].to(self._device)))
            probe.epoch += 1
            if self._probed.reports == "best":
                self._note(probe, tested)
            yield {"train/probe_loss": float(torch.stack(losses).mean(dim=0).min())}
        if self._probed.reports == "chosen":
            self._best = {}
            self._note(probe, tested)
        yield {key: value for _, values in self._best.values() for key, value in values.items()}
        self._probe = None

    def _begun(self, widths: dict[str, int]) -> Probe:
        self._drawn.manual_seed(self._seed)
        self._widths, self._best = widths, {}
        self._probe = Probe(widths, self._batches.splits.train.classes, self._probed.schedule, self._device)
        return self._probe

    def _seen(self, images: Images) -> Layers:
        """The features of all images of a split, as an evaluation sees them."""
        parts = [self._encode(batch) for batch in self._batches.read(images)]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in parts[0]}

    def _cropped(self, indices: Tensor) -> Layers:
        """The features of random crops of training images."""
        images, sizes = self._batches.splits.train.take(indices)
        return self._encode(self._crops.train(images.to(self._device), self._drawn, sizes))

    def _said(self, probe: Probe, features: Layers, split: str) -> list[Classified]:
        labels = self._batches.splits.named(split).labels.to(self._device)
        return [Classified(scores, labels) for scores in probe.scores(features)]

    def _note(self, probe: Probe, tested: Mapping[str, Layers]) -> None:
        """Keep of each layer what is better than all before, by the images that choose."""
        said = {split: self._said(probe, features, split) for split, features in tested.items()}
        chooses = "validation" if self._probed.reports == "chosen" and "validation" in said else "test"
        for place, (layer, _) in enumerate(probe.keys):
            score = float(said[chooses][place].hits(1).mean())
            if layer not in self._best or score > self._best[layer][0]:
                self._best[layer] = score, self._judged(layer, {split: ones[place] for split, ones in said.items()})

    def _judged(self, layer: str, said: Mapping[str, Classified]) -> Values:
        found = {split: self._judge(layer, split, one) for split, one in said.items()}
        return {f"{split}/{name}": value for split, values in found.items() for name, value in values.items()}

    def state_dict(self) -> dict[str, Any]:
        """How far the course is; empty where it has not begun or is over."""
        if self._probe is None:
            return {}
        drawn, best = self._drawn.get_state(), {layer: [*one] for layer, one in self._best.items()}
        return {"probe": self._probe.state_dict(), "widths": self._widths, "drawn": drawn, "best": best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self._probe, self._best = None, {}
        if state:
            self._begun(state["widths"]).load_state_dict(state["probe"])
            self._drawn.set_state(state["drawn"])
            self._best = {layer: (score, values) for layer, (score, values) in state["best"].items()}


def _check(probed: Probed, batches: Batches) -> None:
    """Raise ValueError where a probe of these images has no meaning, or nothing to choose a rate by."""
    train, test, rates = batches.splits.train, batches.splits.test, probed.schedule.rates
    if fault := probed.schedule.fault():
        raise ValueError(f"probe: {fault}")
    for name, split in (("training", train), ("test", test)):
        if not len(split) or int(split.labels.min()) < 0:
            raise ValueError(f"probe: it needs the class of each image, and {name} images are without labels")
    known = train.classes if train.names is None else train.names
    other = test.classes if test.names is None else test.names
    if train.classes < 2 or (type(known) is type(other) and known != other):
        counts = f"found {train.classes} of training images and {test.classes} of test images"
        raise ValueError(f"probe: it tells the classes that it has learned, two at least; {counts}, or other ones")
    if len(rates) > 1 and probed.reports == "chosen" and batches.splits.validation is None:
        right = "hold images out (`validation: {name: image_holdout}`), give one rate, or `probe_reports: best`"
        raise ValueError(f"probe: there are {len(rates)} learning rates and no images to choose one by; {right}")


def _picked(features: Layers, indices: Tensor) -> Layers:
    return {layer: one[indices.to(one.device)] for layer, one in features.items()}
