"""A trained model outside a training: loads exported or kept weights, and embeds images."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from workers import registry
from workers.catalog import Catalog, changes, stamp
from workers.catalog import load as catalog_of
from workers.contract import EXPORTED_WEIGHTS, CheckpointError, Part, Place, Recipe
from workers.data.augmentation import Augment, Preprocess
from workers.data.batches import together
from workers.data.features import TOGETHER, frozen, network_of
from workers.data.images import onto
from workers.data.pictures import Form, Picture, processors
from workers.data.scratch import scratch
from workers.tasks._shared import Embedder, embedder, side_by_side
from workers.training import determinism, kept_weights

Images = Sequence[Image.Image | str | Path] | npt.NDArray[np.uint8]

_NETWORK: Final = ("backbone", "head", "precision")
"""The fields of a recipe that decide how its network computes."""
_PUBLISHED: Final = {"pretrained": False, "weights": None}
"""The options by which a backbone starts with weights that this machine may not have."""


def load(
    path: str | Path,
    device: str = "auto",
    *,
    threads: int | None = None,
    data: str | Path | None = None,
    parts: str | Path | None = None,
) -> "Model":
    """Loads the model in the folder of an export, or in a file of kept weights such as `best.safetensors`.

    `threads` is the number of CPU threads, by default PyTorch's. `data` and `parts` are the folders of data sets and
    own parts, by default METRICSWEEP_DATA and METRICSWEEP_PARTS; only frozen backbones and own parts need them.
    Raises CheckpointError if the file is missing, damaged or does not fit; ValueError if its task has no embeddings, or
    if a part of the network has another version or source here.
    """
    file = Path(path) / EXPORTED_WEIGHTS if Path(path).is_dir() else Path(path)
    kept = kept_weights.read(file)
    if not kept.network:
        raise ValueError(f"{file}: task {kept.recipe.task.name!r} trains no network that embeds images")
    own = parts or os.environ.get("METRICSWEEP_PARTS")
    place = Place(
        data_root=Path(data or os.environ.get("METRICSWEEP_DATA") or "data"),
        scratch=scratch(),
        storage=Path(),
        device=str(determinism.device(device)),
        threads=threads or torch.get_num_threads(),
        parts=Path(own) if own else None,
    )
    if changed := _changed(kept.recipe, catalog_of(place.parts)):
        raise ValueError(f"{file} is for other parts than this machine has: {', '.join(changed)}")
    return Model(kept, place)


def _changed(recipe: Recipe, catalog: Catalog) -> list[str]:
    """The parts of a recipe's network with another version or source here, such as `backbone 'resnet18' (...)`."""
    document = recipe.model_dump(mode="json")
    pins = {
        name: {key: value for key, value in document["pins"].get(name, {}).items() if key.partition(".")[0] in _NETWORK}
        for name in ("versions", "code")
    }
    network = {name: document[name] for name in (*_NETWORK, "select")} | {"pins": pins}
    return [str(change) for change in changes(stamp(network), catalog) if not change.what.startswith("metric ")]


class Model:
    """A trained network, or the networks of all folds; `load` makes it."""

    def __init__(self, kept: kept_weights.KeptWeights, place: Place) -> None:
        self.recipe, self._facts, self._place = kept.recipe, kept.network, place
        self._device = torch.device(place.device)
        self._form, self._crop = Form(**self._facts["decode"]), int(self._facts["centre_crop"])
        inner = frozen(self.recipe, place.parts)
        self._frozen = inner and network_of(
            self.recipe, inner.part, self._facts["channels"], self._crop, place, self._device
        )
        self._networks = [self._built(weights) for weights in kept.models]
        task = catalog_of(place.parts).get("task", self.recipe.task.name)
        self._features = task is not None and task.facts.get("reads") == "features"

    def embed(self, images: Images) -> npt.NDArray[np.float32]:
        """The raw embeddings of images, float32 [n, d], as an evaluation computes them.

        `images` are paths, PIL images, or an array uint8 [n, h, w, c] or [n, h, w] with red first. They are resized,
        cropped and normalized as in the training's evaluations. Of a self-supervised task these are the features that
        it judges. Raises ValueError for an image that the model cannot take, OSError for a file that cannot be read.
        """
        preprocess = getattr(self._networks[0].backbone, "preprocess", None)
        size = together(self._facts["channels"], self._crop, preprocess)
        rows = []
        with determinism.applied(self._device, self._place.threads), torch.no_grad():
            for first in range(0, len(images), size):
                seen = self._seen(images[first : first + size])
                every = [self._rows(network, seen) for network in self._networks]
                rows.append(side_by_side(every, self.recipe.distance) if len(every) > 1 else every[0])
        if not rows:
            return np.zeros((0, self.recipe.embedding), np.float32)
        embeddings: npt.NDArray[np.float32] = torch.cat(rows).float().cpu().numpy()
        return embeddings

    def _rows(self, network: Embedder, seen: Tensor) -> Tensor:
        compute = network.encoded if self._features else network
        rows: Tensor = compute(seen)
        return rows + compute(seen.flip(-1)) if self._facts["mirrored"] else rows

    def _seen(self, images: Images) -> Tensor:
        """Images as the network takes them: cropped bytes [b, c, h, w], or features of a frozen backbone."""
        with ThreadPoolExecutor(processors()) as threads:
            decoded = [*threads.map(self._decoded, images)]
        crops = Augment("none", stored=self._crop)
        seen = torch.cat([crops.test(torch.from_numpy(pixels)[None]) for pixels in decoded])
        if self._frozen is None:
            return onto(self._device, seen)
        rows = [self._frozen.rows(some, None, crops) for some in torch.split(seen, TOGETHER)]
        return torch.cat(rows)[:, :, None, None].to(self._device)

    def _decoded(self, image: Image.Image | str | Path | npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The pixels of an image, uint8 [c, h, w]."""
        if isinstance(image, str | Path):
            with Picture(Path(image)).open() as opened:
                pixels = np.array(self._form.pixels(opened))
        else:
            if isinstance(image, np.ndarray):
                image = Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
            pixels = np.array(self._form.pixels(image))
        _, height, width = pixels.shape
        wanted = self._facts["shape"]  # of all images of a data set of arrays
        if wanted is not None and [*pixels.shape] != wanted:
            raise ValueError(f"the model takes images of {wanted[2]}x{wanted[1]} pixels, found {width}x{height}")
        return pixels

    def _built(self, weights: Mapping[str, Mapping[str, Any]]) -> Embedder:
        """The network with these weights; raises CheckpointError if they do not fit."""
        parts = self._place.parts
        offers = {**self._facts["offers"], "root": self._place.data_root, "scratch": self._place.scratch}
        if self._frozen is not None:
            offers["network"] = self._frozen.identity
        try:
            backbone = registry.build("backbone", self._unpublished(), parts, **offers)
            head = registry.build("head", self.recipe.part("head"), parts, **offers, features=backbone.features)
            backbone.load_state_dict(weights["backbone"])
            head.load_state_dict(weights["head"])
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(f"the weights do not fit their recipe: {str(error).splitlines()[0]}") from error
        if (normalize := self._facts["normalize"]) is not None:  # a network may take it from its published weights
            mean, std = tuple(normalize["mean"]), tuple(normalize["std"])
            backbone.preprocess = Preprocess(**{**normalize, "mean": mean, "std": std})
        recipe = self.recipe.model_copy(update={"compile": False})
        network = embedder(backbone.to(self._device), head.to(self._device), recipe)
        return network.eval()

    def _unpublished(self) -> Part:
        """The backbone without the weights that it started with, which the kept ones replace."""
        part = self.recipe.part("backbone")
        entry = catalog_of(self._place.parts).get("backbone", part.name)
        start = {} if entry is None or entry.own else _PUBLISHED
        replaced = {name: value for name, value in start.items() if name in part.options}
        return Part.model_validate({"name": part.name, **part.options, **replaced})
