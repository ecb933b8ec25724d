"""Any network of timm by its name, such as a vision transformer or DINOv2."""

import difflib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import timm
from annotated_types import Ge, Gt
from torch import Tensor

from workers.backbones import ConvNet
from workers.data.augmentation import Preprocess
from workers.data.weights import from_hub

_CLASSIFIERS: Final = ("classifier.", "fc.", "head.", "head_drop.", "last_linear.")


class TimmModel(ConvNet):
    """timm's network `architecture` without its classifier, such as `vit_small_patch14_dinov2.lvd142m`.

    `pool: own` uses the network's own pooling: a transformer's class token, a convolutional network's average. Other
    pools act on its maps or patch tokens. Mean and deviation are those that timm states for the weights. Images are
    resized to `resize` pixels; without it to the network's own side, if that is fixed. A network with a fixed side is
    adapted to `resize` after its weights are loaded: timm interpolates the position embeddings of a transformer.
    """

    label = "timm"
    added = ("gem_p",)
    only_where = {"gem_p": {"pool": "gem"}}

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        channels: int,
        root: Path,
        *,
        architecture: str,
        pool: Literal["own", "avg", "max", "avg+max", "gem"] = "own",
        gem_p: Annotated[float, Gt(0)] | None = None,
        freeze_bn: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(
            channels, "avg" if pool == "own" else pool, gem_p=gem_p, pretrained=pretrained, weights=weights
        )
        _check_name(architecture)
        self._own = pool == "own"
        self.net: Any = self._network(architecture, pretrained)
        own_features = getattr(self.net, "head_hidden_size", self.net.num_features)
        self.features = int(own_features if self._own else self.net.num_features)
        self._prefix = int(getattr(self.net, "num_prefix_tokens", 0))
        config = timm.data.resolve_model_data_config(self.net)
        fixed = int(config["input_size"][-1]) if self.net.pretrained_cfg.get("fixed_input_size") else None
        side = resize or fixed
        self.preprocess = Preprocess(mean=tuple(config["mean"]), std=tuple(config["std"]), side=side)
        self.load(root, weights, unused=_CLASSIFIERS, freeze_bn=freeze_bn)
        if fixed and side and side != fixed and hasattr(self.net, "set_input_size"):
            patch = getattr(getattr(self.net, "patch_embed", None), "patch_size", (1,))[0]
            if side % patch:
                near = max(1, round(side / patch)) * patch
                raise ValueError(f"timm_model.resize: {architecture} has patches of {patch} pixels; write {near}")
            self.net.set_input_size(img_size=side)

    def _network(self, architecture: str, pretrained: bool) -> Any:
        if not pretrained:
            return timm.create_model(architecture, num_classes=0)
        self.origin = f"timm {architecture}"
        what = f"timm's weights of {architecture}"
        return from_hub(what, lambda: timm.create_model(architecture, num_classes=0, pretrained=True))

    def forward(self, images: Tensor) -> Tensor:
        if self._own:
            features: Tensor = self.net(images)
            return features
        return super().forward(images)

    def maps(self, images: Tensor) -> Tensor:
        """Computes the maps [b, features, h', w'] of images [b, 3, h, w]; for a transformer [b, features, patches,
        1].
        """
        maps: Tensor = self.net.forward_features(images)
        if maps.ndim == 3:
            return maps[:, self._prefix :].transpose(1, 2)[..., None]
        return maps if maps.shape[1] == self.features else maps.permute(0, 3, 1, 2)


def _check_name(architecture: str) -> None:
    if timm.is_model(architecture):
        return
    near = difflib.get_close_matches(architecture, timm.list_models(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"timm_model.architecture: timm {timm.__version__} has no model named {architecture!r}{hint}")
