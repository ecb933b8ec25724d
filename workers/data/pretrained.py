"""The weights that `pretrained: true` of a backbone loads: whether a machine has them, or would be given them."""

from pathlib import Path
from typing import Final

import torch

from workers.contract import Part
from workers.data import published_weights
from workers.data.download import offered
from workers.data.weights import WeightsDamagedError, WeightsMissingError

_COMMAND: Final = "`metricsweep weights fetch {}`"


def look(root: Path, backbone: Part, *, reach: bool) -> None:
    """Raise WeightsMissingError or WeightsDamagedError where a training would; reads files here once.

    What is not here is fetched by the training: with `reach` it is asked whether its publishers answer, else it is
    missing, and nobody elsewhere is asked anything.
    """
    if backbone.name == "timm_model":
        _look_at_timm(str(backbone.options.get("architecture")), reach=reach)
    elif any(one.backbone == backbone.name for one in published_weights.FILES):
        _look_at_file(root, published_weights.of(backbone.name), reach=reach)


def _look_at_file(root: Path, file: published_weights.PublishedWeights, *, reach: bool) -> None:
    cache = Path(torch.hub.get_dir()) / "checkpoints" / file.name
    if file.is_at(cache):
        return
    here = published_weights.look(root, file)
    if here.state == "wrong":
        raise WeightsDamagedError(str(published_weights.wrong(here)))
    if here.state == "ok":
        return
    where = f"{file.name} is missing: looked in {here.path.parent.absolute()} and {cache.parent}"
    command = _COMMAND.format(file.backbone)
    if not reach:
        first = file.addresses[0].removesuffix(f"/{file.name}")
        raise WeightsMissingError(f"{where}; the first training fetches it from {first}, or {command} before")
    if silent := offered(file.addresses):
        raise WeightsMissingError(
            f"{where}, and nobody gives it ({silent}); run {command} where there is a network, and put the file into "
            f"{published_weights.FOLDER}/ of this machine's data folder"
        )


def _look_at_timm(architecture: str, *, reach: bool) -> None:
    """The same of a file in the hub that timm asks; its name bears no hash."""
    # A second or more, for the few who name such a network; the hub's client comes with timm.
    import timm
    from huggingface_hub import constants, hf_hub_url, try_to_load_from_cache

    config = timm.models.get_pretrained_cfg(architecture) if timm.is_model(architecture) else None
    if config is None or not config.hf_hub_id:
        return  # the training says better what is wrong with it, or asks another place
    repository, _, revision = config.hf_hub_id.partition("@")
    names = [config.hf_hub_filename] if config.hf_hub_filename else ["model.safetensors", "pytorch_model.bin"]
    if any(isinstance(try_to_load_from_cache(repository, one, revision=revision or None), str) for one in names):
        return
    where = f"{names[0]} of {repository} is missing: looked in {constants.HF_HUB_CACHE}"
    addresses = [hf_hub_url(repository, one, revision=revision or None) for one in names]
    if not reach:
        raise WeightsMissingError(f"{where}; the first training fetches it from {addresses[0]}")
    if silent := "HF_HUB_OFFLINE is set" if constants.is_offline_mode() else offered(addresses):
        raise WeightsMissingError(
            f"{where}, and nobody gives it ({silent}); without a network put a file of weights under the data folder "
            "and write `weights: <its path>` instead"
        )
