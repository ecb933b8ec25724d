"""Any loss of pytorch-metric-learning, by its name there."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, Final

import torch
from annotated_types import Ge
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from pytorch_metric_learning.utils.loss_and_miner_utils import get_all_pairs_indices, remove_self_comparisons
from torch import Tensor, nn

from workers.catalog.source import load
from workers.catalog.wording import unknown
from workers.contract import Part
from workers.geometry import precise

_MODULES: Final[Mapping[str, Any]] = {
    "pml_loss": losses, "pml_miner": miners, "pml_distance": distances, "pml_reducer": reducers,
    "pml_regularizer": regularizers,
}  # fmt: skip


class PytorchMetricLearning(nn.Module):
    """The loss `of` of pytorch-metric-learning on raw embeddings, which its distance normalizes as it states.

    Without them, `miner`, `distance` and `reducer` are the library's own defaults; `miner_distance` is that of the
    miner. `embedding_reg_weight` and `weight_reg_weight` of the loss weight the regularizers. Numbers of classes and
    dimensions are filled in from the training.

    `memory` is the size of a cross-batch memory (Wang et al. 2020), if it is above 0: after `memory_start` iterations
    the loss compares a batch with the embeddings of the newest `memory` images, which get no gradients. They include
    the batch itself, without pairs of an image with itself.
    """

    label = "pytorch-metric-learning"
    paper = "Musgrave et al. 2020"
    order = "free"

    def __init__(  # noqa: PLR0913 - what the library's losses take
        self,
        dim: int,
        classes: int,
        *,
        of: Annotated[Part, "pml_loss"],
        miner: Annotated[Part, "pml_miner"] | None = None,
        distance: Annotated[Part, "pml_distance"] | None = None,
        reducer: Annotated[Part, "pml_reducer"] | None = None,
        miner_distance: Annotated[Part, "pml_distance"] | None = None,
        embedding_regularizer: Annotated[Part, "pml_regularizer"] | None = None,
        weight_regularizer: Annotated[Part, "pml_regularizer"] | None = None,
        memory: Annotated[int, Ge(0)] = 0,
        memory_start: Annotated[int, Ge(0)] = 0,
    ) -> None:
        super().__init__()
        offers = {"dim": dim, "classes": classes}
        self.loss = _built(
            "pml_loss",
            of,
            offers,
            distance=_built("pml_distance", distance, offers),
            reducer=_built("pml_reducer", reducer, offers),
            embedding_regularizer=_built("pml_regularizer", embedding_regularizer, offers),
            weight_regularizer=_built("pml_regularizer", weight_regularizer, offers),
        )
        self.miner = _built("pml_miner", miner, offers, distance=_built("pml_distance", miner_distance, offers))
        self.memory = _Memory(memory, dim, memory_start) if memory else None

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Raw embeddings [b, d] and labels [b] to a scalar."""
        embeddings = precise(embeddings)
        if self.memory and self.memory.begun(self.training):
            loss: Tensor = self._against_memory(self.memory, embeddings, labels)
        else:
            loss = self.loss(embeddings, labels, self.miner and self.miner(embeddings, labels))
        for buffer in self.loss.buffers():  # running statistics, whose graph would reach into earlier iterations
            buffer.detach_()
        return loss.sum()  # of MarginLoss it is [1]

    def _against_memory(self, memory: "_Memory", embeddings: Tensor, labels: Tensor) -> Tensor:
        places = memory.put(embeddings, labels)
        rows, others = memory.newest()
        found = self.miner(embeddings, labels, rows, others) if self.miner else get_all_pairs_indices(labels, others)
        pairs = remove_self_comparisons(found, places, len(memory.labels))
        loss: Tensor = self.loss(embeddings, labels, pairs, rows, others)
        return loss


class _Memory(nn.Module):
    """The embeddings and labels of the newest `size` images, from iteration `start` on.

    The library's `CrossBatchMemory` keeps its own outside the state dict, so that a resumed training would lose them.
    """

    rows: Tensor
    labels: Tensor
    iterations: Tensor
    seen: Tensor  # images

    def __init__(self, size: int, dim: int, start: int) -> None:
        super().__init__()
        self.start = start
        self.register_buffer("rows", torch.zeros(size, dim))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("iterations", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def begun(self, training: bool) -> bool:
        """Whether the memory is in use; counts an iteration if it trains."""
        self.iterations += int(training)
        return int(self.iterations) > self.start

    @torch.no_grad()
    def put(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Replaces the oldest images by those of a batch; returns the places [b] of these."""
        size = len(self.labels)
        if len(labels) > size:
            raise ValueError(f"pml: a memory of {size} images is smaller than a batch of {len(labels)}")
        places = (torch.arange(len(labels), device=labels.device) + self.seen) % size
        self.rows[places] = embeddings.to(self.rows.dtype)
        self.labels[places] = labels
        self.seen += len(labels)
        return places

    def newest(self) -> tuple[Tensor, Tensor]:
        """The embeddings [m, d] and labels [m] of the images that it has."""
        number = min(int(self.seen), len(self.labels))
        return self.rows[:number], self.labels[:number]


def _built(kind: str, part: Part | None, offers: Mapping[str, int], **parts: Any) -> Any:
    """An object of the library; None without a part. Raises ValueError for options that the library refuses."""
    if part is None:
        return None
    entry = load().get(kind, part.name)
    if entry is None:
        raise ValueError(f"pml: {unknown(kind, part.name, load().names(kind))}")
    _check_release(entry.version)
    options = {name: _as_python(value) for name, value in entry.filled(part.options).items()}
    fills = entry.facts.get("fills")
    for name, offer in fills.items() if isinstance(fills, dict) else ():
        if options.get(name, True):
            options[name] = offers[str(offer)]
        else:
            del options[name]
    if "weights" in options:  # of classes
        options["weights"] = torch.tensor(options["weights"])
        if len(options["weights"]) != offers["classes"]:
            raise ValueError(f"pml: {part.name} takes {offers['classes']} weights, one a class that trains")
    try:
        made = getattr(_MODULES[kind], part.name)(
            **options, **{name: one for name, one in parts.items() if one is not None}
        )
    except (AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"pml: {part.name}: {error}") from error
    _register(made)
    return made


def _check_release(wanted: int) -> None:
    """Raise ValueError if the library's release is not that of the catalog, such as 20900 for 2.9.0."""
    here = version("pytorch-metric-learning")
    release = f"{wanted // 10_000}.{wanted // 100 % 100}.{wanted % 100}"
    if here != release:
        raise ValueError(
            f"pml: the catalog is of pytorch-metric-learning {release}, and this worker has {here}; install "
            f"pytorch-metric-learning=={release} there"
        )


def _as_python(value: Any) -> Any:
    """A whole number as int, as the library's defaults are."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _register(made: nn.Module) -> None:
    """Make tensors that the library keeps as plain attributes buffers, so that they are in checkpoints."""
    for module in made.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, Tensor):
                delattr(module, name)
                module.register_buffer(name, value)
