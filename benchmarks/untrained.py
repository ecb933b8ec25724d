"""How well pretrained weights retrieve birds of unseen classes without training, under every reading of their input.

    METRICSWEEP_DATA=... python -m benchmarks.untrained [--backbone v1|v2] [--every N] [--only WORD] [--threads N]

Needs cub100_bbox128_jpeg.npz and the two MobileNet files under the data folder. Prints a Markdown table a backbone: R@1
of the test classes by this project's metric, and beside it by a plain argmax over the cosines, which shares no code
with it. The rows change one thing each: the input, the network, or what is taken as features. `--every 3` takes every
third image, as queries and as gallery, and so gives lower figures; `--only padding` the variants with that word. On two
free cores v1 takes a minute or two, v2 half an hour.
"""

import argparse
import copy
import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from workers import registry
from workers.backbones import ConvNet
from workers.backbones._same_padding import SameConv2d
from workers.contract import Part
from workers.data.preprocess import IMAGENET
from workers.evaluation.evaluate import evaluate

PACK: Final = "cub100_bbox128_jpeg.npz"
PARTS: Final = {
    "v1": Part(name="mobilenet_v1", width=0.25, weights="weights/mobilenet_v1_0.25_128_qat.pt"),
    "v2": Part(name="mobilenet_v2", flavour="tensorflow", weights="weights/mobilenet_v2_1.0_224_ptq.pt"),
}
SIDE: Final = {"v1": 128, "v2": 224}
"""The side of the images that each was trained on."""
STATED: Final = {"v1": 0.577, "v2": 0.766}
"""R@1 as the data folder's README states it."""

Bytes = Callable[[Tensor], Tensor]


class Variant(NamedTuple):
    """One departure from what the weights say of themselves."""

    label: str
    pixels: Bytes
    """Images of the pack, uint8 [b, 3, 128, 128], to values 0..255 of the side that the network gets."""
    scaled: Bytes = lambda pixels: pixels / 127.5 - 1
    edits: tuple[Callable[[nn.Module], None], ...] = ()
    """What is done to a copy of the network."""


def images(root: Path, every: int) -> tuple[Tensor, Tensor]:
    """The images of the test classes, uint8 [n, 3, 128, 128], and their labels."""
    with np.load(root / PACK, allow_pickle=False) as pack:
        jpeg, offset = pack["jpeg"].tobytes(), pack["offset"]
        test = np.flatnonzero(pack["split"] == 1)[::every]
        labels = torch.from_numpy(pack["label"][test].astype(np.int64))
    files = [Image.open(io.BytesIO(jpeg[offset[i] : offset[i + 1]])) for i in test]
    return torch.stack([_tensor(file.convert("RGB")) for file in files]), labels


def resized(side: int, mode: str = "bilinear") -> Bytes:
    """A resize by torch, in floats; bilinear and bicubic are antialiased."""
    antialias = mode != "nearest"
    return lambda batch: functional.interpolate(batch.float(), (side, side), mode=mode, antialias=antialias).clamp(
        0, 255
    )


def by_pil(side: int, how: Image.Resampling) -> Bytes:
    """A resize by PIL, which rounds to bytes."""
    return lambda batch: torch.stack([_tensor(_picture(image).resize((side, side), how)) for image in batch]).float()


def recompressed(quality: int, side: int) -> Bytes:
    """Through JPEG once more: what one generation of it costs."""

    def again(image: Tensor) -> Tensor:
        file = io.BytesIO()
        _picture(image).save(file, "JPEG", quality=quality)
        return _tensor(Image.open(file).convert("RGB"))

    return lambda batch: resized(side)(torch.stack([again(image) for image in batch]))


def coarser(low: int, side: int) -> Bytes:
    """Through fewer pixels: what a loss of resolution costs."""
    return lambda batch: resized(side)(resized(low)(batch))


def central(side: int) -> Bytes:
    """The middle 87.5 % of each side, as TensorFlow's evaluation of ImageNet takes it."""
    return lambda batch: resized(side)(batch[..., 8:120, 8:120])


def padded_evenly(net: nn.Module) -> None:
    """PyTorch's padding, the same on all sides, in place of TensorFlow's SAME."""
    for layer in net.modules():
        if isinstance(layer, SameConv2d):
            layer.__class__ = nn.Conv2d  # type: ignore[assignment]
            layer.padding = tuple((kernel - 1) // 2 for kernel in layer.kernel_size)
            layer._reversed_padding_repeated_twice = [edge for edge in reversed(layer.padding) for _ in range(2)]


def small_epsilon(net: nn.Module) -> None:
    """PyTorch's epsilon in batch norms."""
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.eps = 1e-5


def unbounded(net: nn.Module) -> None:
    """ReLU in place of ReLU6."""
    for layer in net.modules():
        if isinstance(layer, nn.ReLU6):
            layer.__class__ = nn.ReLU  # type: ignore[assignment]


def last_linear(net: nn.Module) -> None:
    """No activation after the last convolution."""
    _features(net)[-1][-1] = nn.Identity()  # type: ignore[operator]


def without_last(net: nn.Module) -> None:
    """The maps before the last 1x1 convolution."""
    del _features(net)[-1]


def variants(side: int) -> Iterator[Variant]:
    """What is tried, but for what needs no pass of its own."""
    ours = resized(side)
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET.mean, IMAGENET.std))
    yield Variant("x / 128 - 1", ours, lambda x: x / 128 - 1)
    yield Variant("x / 255", ours, lambda x: x / 255)
    yield Variant("ImageNet's mean and deviation", ours, lambda x: (x / 255 - mean) / std)
    yield Variant("blue first", lambda batch: ours(batch.flip(1)))
    yield from (Variant(f"side {other}", resized(other)) for other in (128, 160, 192, 224, 256) if other != side)
    yield Variant("middle 87.5 %", central(side))
    if side != 128:
        yield Variant("bicubic", resized(side, "bicubic"))
        yield Variant("nearest", resized(side, "nearest"))
        yield Variant("bilinear by PIL", by_pil(side, Image.Resampling.BILINEAR))
        yield Variant("bicubic by PIL", by_pil(side, Image.Resampling.BICUBIC))
    yield Variant("even padding", ours, edits=(padded_evenly,))
    yield Variant("batch norm's epsilon 1e-5", ours, edits=(small_epsilon,))
    yield Variant("even padding, epsilon 1e-5", ours, edits=(padded_evenly, small_epsilon))
    yield Variant("ReLU for ReLU6", ours, edits=(unbounded,))
    yield Variant("last convolution linear", ours, edits=(last_linear,))
    yield Variant("before the last 1x1 convolution", ours, edits=(without_last,))
    yield from (Variant(f"JPEG again, quality {q}", recompressed(q, side)) for q in (90, 75))
    yield from (Variant(f"through side {low}", coarser(low, side)) for low in (96, 73))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", choices=list(PARTS), action="append", help="default: both")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    root = Path(os.environ.get("METRICSWEEP_DATA") or parser.error("set METRICSWEEP_DATA to the data folder"))
    birds, labels = images(root, options.every)
    for name in options.backbone or PARTS:
        backbone = registry.build("backbone", PARTS[name], channels=3, side=SIDE[name], root=root).eval()
        print(f"\n{PARTS[name].name}, {len(birds):,} images; {STATED[name]} is stated\n")
        print("| variant | R@1 | by argmax | seconds |\n| --- | ---: | ---: | ---: |", flush=True)
        weights = root / str(PARTS[name].options["weights"])
        since = time.monotonic()
        for label, features in tried(backbone, weights, birds, SIDE[name], options.only):
            ours = evaluate(features, labels, ["recall@1"])["recall@1"]
            plain, spent = by_argmax(features, labels), time.monotonic() - since
            print(f"| {label} | {ours:.4f} | {plain:.4f} | {spent:.0f} |", flush=True)
            since = time.monotonic()


def tried(backbone: ConvNet, weights: Path, birds: Tensor, side: int, only: str) -> Iterator[tuple[str, Tensor]]:
    """Each variant that has the word `only` in it, and ours: its label, and its features [n, d]."""
    net = backbone.get_submodule("net")
    mean, most = pooled(net, birds, Variant("ours", resized(side)))
    yield "**ours**", mean
    if not only:
        yield "maximum for mean", most
        yield "mean + maximum", mean + most
        yield "features centred", mean - mean.mean(dim=0)
        logits = classified(mean, weights)
        yield "logits", logits
        yield "softmax", logits.softmax(dim=1)
    if only in "sum with mirrored":
        mirrored = pooled(net, birds, Variant("", lambda batch: resized(side)(batch.flip(3))))[0]
        yield "mirrored", mirrored
        yield "sum with mirrored", mean + mirrored
    for variant in variants(side):
        if only in variant.label:
            yield variant.label, pooled(net, birds, variant)[0]


@torch.inference_mode()
def pooled(net: nn.Module, birds: Tensor, variant: Variant) -> tuple[Tensor, Tensor]:
    """The mean and the maximum of each map, [n, features] each."""
    net = copy.deepcopy(net)
    for edit in variant.edits:
        edit(net)
    net.to(memory_format=torch.channels_last)
    means, most = [], []
    for batch in torch.split(birds, 32):
        maps = net(variant.scaled(variant.pixels(batch)).contiguous(memory_format=torch.channels_last))
        means.append(maps.mean(dim=(2, 3)))
        most.append(maps.amax(dim=(2, 3)))
    return torch.cat(means), torch.cat(most)


def classified(features: Tensor, weights: Path) -> Tensor:
    """The logits of ImageNet's classes, [n, 1001]."""
    state = torch.load(weights, weights_only=True)["state_dict"]
    return functional.linear(features, state["classifier.1.weight"].flatten(1), state["classifier.1.bias"])


def by_argmax(features: Tensor, labels: Tensor) -> float:
    """R@1 in a few lines; an image without another of its class is no query."""
    unit = functional.normalize(features, dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=1)
    return (labels[nearest] == labels)[labels.bincount()[labels] > 1].double().mean().item()


def _features(net: nn.Module) -> nn.Sequential:
    found = net.get_submodule("features")
    assert isinstance(found, nn.Sequential)
    return found


def _tensor(picture: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)


def _picture(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).numpy())


if __name__ == "__main__":
    main()
