"""Code of several tasks: the embedding network, its evaluation, and linear probes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from workers import geometry
from workers.contract import Recipe
from workers.data.augmentation import SIGNED, Augment
from workers.data.batches import Batches, LabelledBatch
from workers.data.images import Images
from workers.data.scratch import claim_code_caches
from workers.evaluation.measures import Measures
from workers.evaluation.probe import Classified, Probe, Schedule
from workers.figures import arrays, traces
from workers.figures.arrays import FIGURES, Arrays, Embedded
from workers.figures.options import FeatureMaps, Figure, Followed, Staged
from workers.figures.traces import AskedFigures, ClassVectors, GradientTrace
from workers.geometry import batch_statistics
from workers.tasks import At, Diverged, Eta, Optimized, Task, Terms

_TYPES: Final = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Embedder(nn.Module):
    """The network of a recipe from images to embeddings: preprocessing, backbone, head.

    The backbone's `preprocess` defines its input; without it the bytes become [-1, 1]. Embeddings are float32 in any
    precision, so that losses, norms and singular values are, too.

    With a `chunk`, gradients are cached (Gao et al. 2021): a batch passes in chunks of at most so many images, whose
    activations are not kept but computed again in the backward pass. Layers that draw or take statistics of a batch,
    such as batch norm, see a chunk at a time, and change their buffers once.
    """

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        precision: str = "none",
        channels_last: bool = False,
        width: int = 0,
        chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.width = width
        self._chunk = chunk
        self._type = _TYPES[precision]
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        if channels_last:
            self.to(memory_format=torch.channels_last)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images [b, c, h, w] as bytes, or as floats of 0 to 255, to embeddings [b, dim]."""
        if self._chunk is None or len(images) <= self._chunk or not torch.is_grad_enabled():
            return self._embedded(images)

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            return nullcontext(), self._keeping_buffers()

        chunks = torch.tensor_split(images, math.ceil(len(images) / self._chunk))  # of equal size: none of one image
        return torch.cat([checkpoint(self._embedded, one, use_reentrant=False, context_fn=contexts) for one in chunks])

    def _embedded(self, images: torch.Tensor) -> torch.Tensor:
        return self._computed(images, lambda pixels: self.head(self.backbone(pixels)))

    @contextmanager
    def _keeping_buffers(self) -> Iterator[None]:
        """Within the context, what is computed leaves no trace in buffers, such as running means."""
        kept = [(buffer, buffer.clone()) for buffer in self.buffers()]
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in kept:
                    buffer.copy_(value)

    def encoded(self, images: torch.Tensor) -> torch.Tensor:
        """Computes the features [b, n] of images, the input of the head, in float32."""
        return self._computed(images, self.backbone)

    def convolved(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """The maps [b, c, h, w] of each convolution of the backbone by name, in float32; empty if it gives none."""
        maps = getattr(self.backbone, "convolved", None)
        if maps is None:
            return {}
        return {name: geometry.precise(values) for name, values in maps(self._pixels(images)).items()}

    def _computed(self, images: torch.Tensor, network: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        pixels = self._pixels(images)
        if self._type is None:
            return network(pixels)
        with torch.autocast(images.device.type, self._type):
            values = network(pixels)
        return geometry.precise(values)

    def _pixels(self, images: torch.Tensor) -> torch.Tensor:
        pixels: torch.Tensor = getattr(self.backbone, "preprocess", SIGNED)(images)
        return pixels.contiguous(memory_format=self._format)

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """The maps [b, c, h, w] of the backbone's last layer, in full precision."""
        maps: Callable[[torch.Tensor], torch.Tensor] = getattr(self.backbone, "maps")  # noqa: B009 - a module's
        return maps(self._pixels(images))


def embedder(backbone: nn.Module, head: nn.Module, recipe: Recipe) -> Embedder:
    """Builds the network of a recipe; compilation does not change the names in its state."""
    made = Embedder(backbone, head, recipe.precision, recipe.channels_last, recipe.embedding, recipe.chunk)
    if recipe.compile:
        claim_code_caches()  # of a process in which `train` was called directly
        for part in (made,) if recipe.chunk is None else (backbone, head):  # chunks are computed again around them
            part.compile()
    return made


def side_by_side(every: Sequence[torch.Tensor], distance: str) -> torch.Tensor:
    """The embeddings [n, m dim] of m models, each [n, dim], for which cosines are the mean of the models'.

    For the Euclidean distance, squared distances are the mean.
    """
    joined = every if distance == "euclidean" else [*map(geometry.unit, every)]
    return torch.cat([*joined], dim=1) / math.sqrt(len(every))


class Embedding(Task):
    """A task that trains embeddings by loss + eta x regularizer, both on raw embeddings.

    `eta` is None if there is no regularizer. With `mirrored`, evaluations add the embedding of the mirror image.
    """

    def __init__(
        self,
        model: Embedder,
        loss: nn.Module,
        regularizer: nn.Module,
        eta: Eta | None,
        batches: Batches,
        measures: Measures,
        figures: AskedFigures,
    ) -> None:
        self._measures = measures
        self.model, self.loss, self.regularizer, self.batches = model, loss, regularizer, batches
        self.eta, self._distance, self.mirrored = eta, figures.distance, False
        self._together: Sequence[Mapping[str, Mapping[str, Any]]] = ()
        vectors: ClassVectors | None = getattr(loss, "class_vectors", None)
        self.traces = traces.asked(figures, batches.splits.train.labels.cpu(), vectors or (lambda: None))
        shows_maps = callable(getattr(model.backbone, "maps", None))
        if any(isinstance(figure, FeatureMaps) for figure in figures.figures) and not shows_maps:
            raise ValueError("figures: 'feature_maps' shows maps, and the backbone gives none: it has no `maps`")
        self._labelled = bool(getattr(regularizer, "labelled", False))

    def modules(self) -> Mapping[str, nn.Module]:
        model = self.model
        return {"backbone": model.backbone, "head": model.head, "loss": self.loss, "regularizer": self.regularizer}

    def optimized(self) -> Mapping[str, Optimized]:
        """The network and the loss."""
        return {"model": Optimized({name: part for name, part in self.modules().items() if name != "regularizer"})}

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        if batch is None:
            raise ValueError("this task has no batch of images, which embeddings need")
        yield self.terms(at, self.model(batch.images), batch.labels)

    def terms(
        self, at: At, embeddings: torch.Tensor, labels: torch.Tensor, regularized: torch.Tensor | None = None
    ) -> Terms:
        """The terms for embeddings [b, d] with labels [b]; the regularizer sees `regularized`, the first ones, if
        given.
        """
        loss = total = self.loss(embeddings, labels)
        for trace in self.traces.values():
            if isinstance(trace, GradientTrace):
                trace.see(at.step, loss, embeddings)
        eta, regularizer = None if self.eta is None else float(self.eta(at.step)), None
        if eta is not None:
            seen = embeddings if regularized is None else regularized
            regularizer = self.regularizer(seen, labels[: len(seen)]) if self._labelled else self.regularizer(seen)
            total = loss + eta * regularizer

        def noted() -> dict[str, float]:
            values = {"loss": float(loss.detach()), "lr": at.rate}
            if regularizer is not None:
                values["regularizer"] = float(regularizer.detach())
            if eta is not None and getattr(self.eta, "moves", True):
                values["eta"] = eta
            return values | batch_statistics(embeddings, labels)

        return Terms("model", total, noted)

    def begin(self) -> None:
        self._give_mean_norm()
        self.after(0)

    def _give_mean_norm(self) -> None:
        """Give the regularizer the mean norm of the training images, if it asks for it."""
        begin: Callable[[Callable[[], float]], None] | None = getattr(self.regularizer, "begin", None)
        if begin is not None:
            begin(lambda: float(geometry.norms(self.look()).double().mean()))

    def after(self, step: int) -> None:
        """Record embeddings for figures that are due, and the mean norm for the regularizer."""
        every: int | None = getattr(self.regularizer, "every", None)
        if every is not None and step and step % every == 0:
            self._give_mean_norm()
        for trace in self.traces.values():
            if trace.due(step):
                trace.note(step, self.look(trace.index))

    def read(self, images: Images, chosen: torch.Tensor | None = None) -> Iterator[torch.Tensor]:
        """All images of a split in order, or those `chosen`, as an evaluation sees them and some at a time."""
        return self.batches.read(images, getattr(self.model.backbone, "preprocess", None), chosen)

    @torch.no_grad()
    def embed(self, images: Images, chosen: torch.Tensor | None = None, *, mirrored: bool = False) -> torch.Tensor:
        """The raw embeddings [n, dim] of a split, or of the images `chosen`; does not affect the training.

        With `mirrored`, the embedding of the mirror image is added. Joined models have theirs side by side, each of
        unit length, and together of unit length, unless the distance is Euclidean. Raises Diverged if they are not
        finite.
        """
        if not self._together:
            return self._embed(images, chosen, mirrored)
        every = []
        for weights in self._together:
            self.model.backbone.load_state_dict(weights["backbone"])
            self.model.head.load_state_dict(weights["head"])
            every.append(self._embed(images, chosen, mirrored))
        return side_by_side(every, self._distance)

    def _embed(self, images: Images, chosen: torch.Tensor | None, mirrored: bool) -> torch.Tensor:
        embedded = []
        with self.evaluating():
            for batch in self.read(images, chosen):
                embedded.append(self.model(batch))
                if mirrored:
                    embedded[-1] = embedded[-1] + self.model(batch.flip(-1))
            embeddings = torch.cat(embedded)
        if not bool(embeddings.isfinite().all()):
            raise Diverged("embeddings")
        return embeddings

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within the context, the network is in evaluation mode."""
        self.model.eval()
        try:
            yield
        finally:
            self.model.train()

    @contextmanager
    def joined(self, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> Iterator[None]:
        """Within the context, embeddings are those of models with these weights, side by side.

        So cosines are the mean of the models', or squared Euclidean distances are.
        """
        self._together = weights
        try:
            yield
        finally:
            self._together = ()

    def look(self, chosen: torch.Tensor | None = None) -> torch.Tensor:
        """The raw embeddings of all training images or those `chosen`, as an evaluation sees them."""
        return self.embed(self.batches.splits.train, chosen)

    def draw(self, figures: Sequence[Figure]) -> Mapping[str, Arrays]:
        drawn: dict[str, Arrays] = {}
        embedded: dict[str, Embedded] = {}
        for figure in figures:
            if isinstance(figure, Followed | Staged):
                drawn[figure.file] = self.traces[figure.name].arrays(self.batches.splits.train.labels)
                continue
            images = self.batches.splits.named(figure.split)
            if isinstance(figure, FeatureMaps):
                drawn[figure.file] = self._maps(figure, images)
                continue
            if figure.split not in embedded:
                embedded[figure.split] = Embedded(self.embed(images), images.labels, images.query, self._distance)
            drawn[figure.file] = FIGURES[figure.name](embedded[figure.split], figure)
        return drawn

    @torch.no_grad()
    def _maps(self, figure: FeatureMaps, images: Images) -> Arrays:
        index = arrays.drawn(len(images), images.query, figure)
        seen = torch.cat([batch.cpu() for batch in self.read(images, index)])
        with self.evaluating():
            maps = torch.cat([self.model.maps(batch).float().cpu() for batch in self.read(images, index)])
        return arrays.feature_maps(images.labels, index, seen, maps, figure.channels)

    def state_dict(self) -> dict[str, Any]:
        return {"traces": {name: trace.state_dict() for name, trace in self.traces.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, trace in self.traces.items():
            trace.load_state_dict(state["traces"][name])


class ProbedEmbedding(Embedding):
    """A task of embeddings whose features are judged by a probe at the end of a training."""

    probing: "Probing"

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        """Trains and judges the probe at the end of the training; raises Diverged."""
        yield from self.probing.course()

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"probe": self.probing.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.probing.load_state_dict(state["probe"])

    @torch.no_grad()
    def features(self, compute: Callable[[Tensor], "Layers"], images: Tensor) -> "Layers":
        """The features of images, computed in evaluation mode; raises Diverged."""
        with self.evaluating():
            layers = compute(images)
        if not all(bool(values.isfinite().all()) for values in layers.values()):
            raise Diverged("features")
        return layers


Layers = Mapping[str, Tensor]
"""Features [b, d] of images by the name of their layer."""
Values = dict[str, float]


class Probing:
    """Trains a linear probe on features of the training images and judges it on the other splits.

    `encode` gives the features of images and changes no weight; `judge` gives the metrics of a layer's classifier on a
    split. Raises ValueError if a probe of these images is impossible.
    """

    def __init__(
        self,
        schedule: Schedule,
        batches: Batches,
        encode: Callable[[Tensor], Layers],
        judge: Callable[[str, Classified], Values],
        device: torch.device,
        seed: int,
    ) -> None:
        self._schedule, self._batches, self._encode, self._judge = schedule, batches, encode, judge
        self._device, self._seed = device, seed
        _check(schedule, batches)
        train = batches.splits.train
        self._crops = Augment("proxy_anchor", stored=train.side, crop=batches.augment.side)
        self._splits = ("test", "validation") if batches.splits.validation else ("test",)
        self._drawn = torch.Generator()
        self._probe: Probe | None = None
        self._widths: dict[str, int] = {}
        self._best: dict[str, tuple[float, Values]] = {}

    def course(self) -> Iterator[Values]:
        """Trains the probe; yields the loss after each epoch and the metrics at the end; resumes if interrupted."""
        train = self._batches.splits.train
        tested = {split: self._seen(self._batches.splits.named(split)) for split in self._splits}
        known = self._seen(train) if self._schedule.views == "centre" else None
        probe = self._probe or self._begun({layer: values.shape[1] for layer, values in tested["test"].items()})
        while probe.epoch < self._schedule.epochs:
            losses = []
            order = torch.randperm(len(train), generator=self._drawn)
            for indices in torch.split(order, self._schedule.batch):
                if known is None:
                    images, sizes = train.take(indices)
                    features = self._encode(self._crops.train(images.to(self._device), self._drawn, sizes))
                else:
                    features = {layer: values[indices.to(values.device)] for layer, values in known.items()}
                losses.append(probe.learn(features, train.labels[indices.to(train.labels.device)].to(self._device)))
            probe.epoch += 1
            if self._schedule.reports == "best":
                self._note(probe, tested)
            yield {"train/probe_loss": float(torch.stack(losses).mean(dim=0).min())}
        if self._schedule.reports == "chosen":
            self._best = {}
            self._note(probe, tested)
        yield {key: value for _, values in self._best.values() for key, value in values.items()}
        self._probe = None

    def _begun(self, widths: dict[str, int]) -> Probe:
        self._drawn.manual_seed(self._seed)
        self._widths, self._best = widths, {}
        self._probe = Probe(widths, self._batches.splits.train.classes, self._schedule, self._device)
        return self._probe

    def _seen(self, images: Images) -> Layers:
        """The features of all images of a split, as an evaluation sees them."""
        parts = [self._encode(batch) for batch in self._batches.read(images)]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in parts[0]}

    def _note(self, probe: Probe, tested: Mapping[str, Layers]) -> None:
        """Keep what is better than all before, for each layer, by the images that choose."""
        classified: dict[str, list[Classified]] = {}
        for split, features in tested.items():
            labels = self._batches.splits.named(split).labels.to(self._device)
            classified[split] = [Classified(scores, labels) for scores in probe.scores(features)]
        chooses = "validation" if self._schedule.reports == "chosen" and "validation" in classified else "test"
        for place, (layer, _) in enumerate(probe.keys):
            score = float(classified[chooses][place].hits(1).mean())
            if layer not in self._best or score > self._best[layer][0]:
                values = {
                    f"{split}/{name}": value
                    for split, of_split in classified.items()
                    for name, value in self._judge(layer, of_split[place]).items()
                }
                self._best[layer] = score, values

    def state_dict(self) -> dict[str, Any]:
        """The progress of the probe; empty if it has not begun or has ended."""
        if self._probe is None:
            return {}
        drawn, best = self._drawn.get_state(), {layer: [*best_of_layer] for layer, best_of_layer in self._best.items()}
        return {"probe": self._probe.state_dict(), "widths": self._widths, "drawn": drawn, "best": best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._probe, self._best = None, {}
        if state:
            self._begun(state["widths"]).load_state_dict(state["probe"])
            self._drawn.set_state(state["drawn"])
            self._best = {layer: (score, values) for layer, (score, values) in state["best"].items()}


def _check(schedule: Schedule, batches: Batches) -> None:
    """Raise ValueError if a probe of these images has no meaning, or if there are no images to choose a rate by."""
    train, test, rates = batches.splits.train, batches.splits.test, schedule.rates
    if not rates:
        raise ValueError("probe: expected at least one learning rate, found none")
    if any(not 0 < epoch < schedule.epochs for epoch in schedule.at):
        raise ValueError(f"probe: the rate is to fall after epochs {[*schedule.at]}, and there are {schedule.epochs}")
    for name, split in (("training", train), ("test", test)):
        if not len(split) or int(split.labels.min()) < 0:
            raise ValueError(f"probe: it needs the class of each image, and {name} images are without labels")
    known = train.classes if train.names is None else train.names
    other = test.classes if test.names is None else test.names
    if train.classes < 2 or (type(known) is type(other) and known != other):
        counts = f"found {train.classes} of training images and {test.classes} of test images"
        raise ValueError(f"probe: it tells the classes that it has learned, two at least; {counts}, or other ones")
    if len(rates) > 1 and schedule.reports == "chosen" and batches.splits.validation is None:
        right = "hold images out (`validation: {name: image_holdout}`), give one rate, or `probe_reports: best`"
        raise ValueError(f"probe: {len(rates)} learning rates, but no held-out images to choose one by; {right}")
