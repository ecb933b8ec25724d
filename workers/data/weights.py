"""Pretrained weights: reading a state dict without running code, downloads, and which are missing."""

import pickle
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from workers.catalog.recipe import below_root
from workers.contract import DataDamagedError, DataMissingError, Part
from workers.data import published_weights
from workers.data.download import Checksum, offered
from workers.data.file_content import digests
from workers.data.published_weights import FOLDER, PublishedWeights, cached, look_up, of, wrong

T = TypeVar("T")

_NAMED: Final = re.compile(r"-([0-9a-f]{8,64})\.[a-z]+$")  # torch.hub's convention: resnet50-0676ba61.pth
_WRAPPERS: Final = ("state_dict", "model")  # under what training scripts save the weights
_PARALLEL: Final = "module."  # what DataParallel puts before every name
_SHOWN: Final = 5  # missing names in a message; a wrong file may lack hundreds


class WeightsError(RuntimeError):
    """Weights are missing, damaged or of another network; the message names the file and gives advice."""


class WeightsMissingError(WeightsError, DataMissingError):
    """A file of pretrained weights is missing."""


class WeightsDamagedError(WeightsError, DataDamagedError):
    """A file of pretrained weights has a wrong hash."""


class Weights(NamedTuple):
    """The named tensors of a weights file, with their hash."""

    state: dict[str, Tensor]
    meta: Mapping[str, Any]  # the metadata of the file
    origin: str  # `sha256:` and the hash of the file


def find(root: Path, path: str) -> Path:
    """The path of the weights file `path` under the data root; raises WeightsError."""
    if not below_root(path) or not (place := (root / path).resolve()).is_relative_to(root.resolve()):
        raise WeightsError(f"weights {path!r}: give a path relative to the data folder, and within it")
    if not place.is_file():
        raise WeightsMissingError(
            f"weights {path!r} are missing: {place} does not exist; "
            "put the file there, or set METRICSWEEP_DATA (or --data) to the folder that holds it"
        )
    return place


def read(root: Path, path: str, known: Mapping[str, str] | None = None) -> Weights:
    """The weights in the file `path` under the data root, on the CPU; runs no code in it. Raises WeightsError.

    The SHA-256 is compared with that in `known` (by file name, in full or its beginning), or with the one that the name
    ends with, as in torch.hub: `resnet50-0676ba61.pth`.
    """
    place = find(root, path)
    digest = Checksum("sha256", "").of(place)
    _compare(place, digest, known or {})
    try:
        if place.suffix == ".safetensors":
            content: Any = load_file(place)
        else:
            content = torch.load(place, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WeightsError(f"weights {place} hold more than tensors, or are damaged ({_first(error)})") from error
    except (OSError, EOFError, RuntimeError, ValueError, LookupError, AttributeError, SafetensorError) as error:
        raise WeightsError(f"weights {place} cannot be read; fetch the file again ({_first(error)})") from error
    meta = content.get("meta", {}) if isinstance(content, Mapping) else {}
    return Weights(_state(content, place), meta if isinstance(meta, Mapping) else {}, f"sha256:{digest}")


def content_hash(root: Path, path: str, scratch: Path) -> str:
    """The hash of a weights file as `sha256:...`; the file is read again only if it has changed.

    Raises WeightsError if it is missing, or does not match its name.
    """
    place = find(root, path)
    (digest,) = digests([str(place)], scratch).values()
    _compare(place, digest, {})
    return f"sha256:{digest}"


def _compare(place: Path, found: str, known: Mapping[str, str]) -> None:
    named = _NAMED.search(place.name)
    expected = known.get(place.name) or (named.group(1) if named else "")
    if not found.startswith(expected):
        raise WeightsDamagedError(f"weights {place} have SHA-256 {found}, expected {expected}; fetch the file again")


def fill(net: nn.Module, state: Mapping[str, Tensor], source: str, unused: Iterable[str] = ()) -> None:
    """Copy the weights `state` into `net` by name, except names that begin with one of `unused`.

    Raises WeightsError with every name that is missing, unknown or of another shape. Batch norms of PyTorch before 0.4
    (no count of batches, vectors as [1, c]) are accepted.
    """
    wanted = net.state_dict()
    given = {name: value for name, value in state.items() if not name.startswith(tuple(unused))}
    for name, value in given.items():
        if name in wanted and value.shape == (1, *wanted[name].shape):
            given[name] = value[0]
    missing = [name for name in wanted if name not in given and not name.endswith(".num_batches_tracked")]
    strange = [name for name in given if name not in wanted]
    shapes = [
        f"{name} {list(value.shape)}, expected {list(wanted[name].shape)}"
        for name, value in given.items()
        if name in wanted and value.shape != wanted[name].shape
    ]
    faults = [
        f"{len(names)} {what}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
        for what, names in (("missing", missing), ("unknown", strange), ("of another shape", shapes))
        if names
    ]
    if faults:
        raise WeightsError(f"weights {source} do not fit {type(net).__name__.lstrip('_')}: {'; '.join(faults)}")
    net.load_state_dict(given, strict=False)


def into_cache(root: Path, backbone: str) -> None:
    """Copy the published weights of a backbone into the cache of torch.hub, from which libraries load them."""
    cached(root, of(backbone), Path(torch.hub.get_dir()) / "checkpoints")


def from_hub(what: str, fetch: Callable[[], T], backbone: str | None = None) -> T:
    """Loads pretrained weights by `fetch` from a library's hub or its cache; raises WeightsError if it fails.

    `backbone` names the published file that may be in the data folder instead.
    """
    try:
        return fetch()
    except DataDamagedError as error:
        raise WeightsDamagedError(f"pretrained: {error}") from error
    except Exception as error:  # each hub fails in ways of its own
        file = of(backbone).name if backbone else ""
        ours = f"put {file} into {FOLDER}/ of the data folder, or " if file else ""
        # What a network or a full hub keeps from us is waited for, as any file that is not there.
        kind = WeightsMissingError if isinstance(error, OSError) else WeightsError
        raise kind(
            f"pretrained: {what} could not be fetched, and are not in this machine's cache "
            f"({type(error).__name__}: {_first(error)}). Without a network, {ours}put a file of weights under the data "
            "folder and write `weights: <its path>` instead"
        ) from error


def _state(content: Any, place: Path) -> dict[str, Tensor]:
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not content:
        raise WeightsError(f"weights {place} hold no named tensors")
    if wrong := [str(name) for name, value in content.items() if not isinstance(value, Tensor)]:
        raise WeightsError(f"weights {place}: {wrong[0]!r} is not a tensor; expected a state_dict")
    parallel = all(str(name).startswith(_PARALLEL) for name in content)
    return {str(name).removeprefix(_PARALLEL) if parallel else str(name): value for name, value in content.items()}


def _first(error: BaseException) -> str:
    """The first line of an error's message."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def check_pretrained(root: Path, backbone: Part, *, reach: bool) -> None:
    """Raise WeightsMissingError or WeightsDamagedError if a training would.

    With `reach`, a file that is not on this machine is missing only if its publishers do not answer; without, nobody is
    asked.
    """
    if backbone.name == "timm_model":
        _check_timm(str(backbone.options.get("architecture")), reach=reach)
    elif any(file.backbone == backbone.name for file in published_weights.FILES):
        _check_file(root, of(backbone.name), reach=reach)


def _check_file(root: Path, file: PublishedWeights, *, reach: bool) -> None:
    cache = Path(torch.hub.get_dir()) / "checkpoints" / file.name
    if file.is_at(cache):
        return
    here = look_up(root, file)
    if here.state == "wrong":
        raise WeightsDamagedError(str(wrong(here)))
    if here.state == "ok":
        return
    where = f"{file.name} is missing: looked in {here.path.parent.absolute()} and {cache.parent}"
    command = f"`metricsweep weights fetch {file.backbone}`"
    if not reach:
        first = file.addresses[0].removesuffix(f"/{file.name}")
        raise WeightsMissingError(f"{where}; the first training fetches it from {first}, or {command} before")
    if silent := offered(file.addresses):
        raise WeightsMissingError(
            f"{where}, and nobody gives it ({silent}); run {command} where there is a network, and put the file into "
            f"{FOLDER}/ of this machine's data folder"
        )


def _check_timm(architecture: str, *, reach: bool) -> None:
    """The same for a file in timm's hub; its name has no hash."""
    # A second or more, for the few who name such a network; the hub's client comes with timm.
    import timm
    from huggingface_hub import constants, hf_hub_url, try_to_load_from_cache

    config = timm.models.get_pretrained_cfg(architecture) if timm.is_model(architecture) else None
    if config is None or not config.hf_hub_id:
        return  # the training says better what is wrong with it, or asks another place
    repository, _, revision = config.hf_hub_id.partition("@")
    names = [config.hf_hub_filename] if config.hf_hub_filename else ["model.safetensors", "pytorch_model.bin"]
    if any(isinstance(try_to_load_from_cache(repository, name, revision=revision or None), str) for name in names):
        return
    where = f"{names[0]} of {repository} is missing: looked in {constants.HF_HUB_CACHE}"
    addresses = [hf_hub_url(repository, name, revision=revision or None) for name in names]
    if not reach:
        raise WeightsMissingError(f"{where}; the first training fetches it from {addresses[0]}")
    if silent := "HF_HUB_OFFLINE is set" if constants.is_offline_mode() else offered(addresses):
        raise WeightsMissingError(
            f"{where}, and nobody gives it ({silent}); without a network put a file of weights under the data folder "
            "and write `weights: <its path>` instead"
        )
