"""What is trained: images to embeddings, in the precision and memory layout that the recipe asks for."""

from collections.abc import Callable
from typing import Final

import torch
from torch import nn

from workers import geometry
from workers.contract import Recipe
from workers.data.augmentation import SIGNED
from workers.data.scratch import claim_code_caches

_TYPES: Final = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Embedder(nn.Module):
    """Images to embeddings: bytes to what the backbone expects, backbone, head.

    A backbone says by its `preprocess` what it expects; without it the bytes become [-1, 1]. Embeddings are float32 in
    any precision, so that losses, norms and singular values are too.
    """

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        precision: str = "none",
        channels_last: bool = False,
        width: int = 0,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.width = width
        self._type = _TYPES[precision]
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        if channels_last:
            self.to(memory_format=torch.channels_last)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images [b, c, h, w] as bytes, or as floats of 0 to 255, to embeddings [b, dim]."""
        return self._computed(images, lambda pixels: self.head(self.backbone(pixels)))

    def encoded(self, images: torch.Tensor) -> torch.Tensor:
        """The features [b, n] that the head gets of images, in float32."""
        return self._computed(images, self.backbone)

    def convolved(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """The maps [b, c, h, w] of each convolution of the backbone by name, in float32; none without."""
        maps = getattr(self.backbone, "convolved", None)
        if maps is None:
            return {}
        return {name: geometry.precise(one) for name, one in maps(self._pixels(images)).items()}

    def _computed(self, images: torch.Tensor, what: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        pixels = self._pixels(images)
        if self._type is None:
            return what(pixels)
        with torch.autocast(images.device.type, self._type):
            found = what(pixels)
        return geometry.precise(found)

    def _pixels(self, images: torch.Tensor) -> torch.Tensor:
        """What the backbone gets of images."""
        pixels: torch.Tensor = getattr(self.backbone, "preprocess", SIGNED)(images)
        return pixels.contiguous(memory_format=self._format)

    @property
    def shows_maps(self) -> bool:
        """Whether the backbone can say of which maps its features are made."""
        return callable(getattr(self.backbone, "maps", None))

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """Images as in `forward` to the maps [b, c, h, w] of the backbone's last layer, in full precision."""
        maps: Callable[[torch.Tensor], torch.Tensor] = getattr(self.backbone, "maps")  # noqa: B009 - a module's
        return maps(self._pixels(images))


def embedder(backbone: nn.Module, head: nn.Module, recipe: Recipe) -> Embedder:
    """The network of a recipe; its state has the same names whether it is compiled or not."""
    made = Embedder(backbone, head, recipe.precision, recipe.channels_last, recipe.embedding)
    if recipe.compile:
        claim_code_caches()  # of a process in which `train` was called directly
        made.compile()
    return made
