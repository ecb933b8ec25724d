"""Images a second from the decoded map, and of the same images where they stay JPEG: python -m benchmarks.decoding.

Batches are drawn, taken and cropped as a training does, with no network. Without --data photographs of noise are made.
`--nvjpeg` also has the decoder of a GPU decode them, and says how far its pixels are from PIL's; nothing is resized.
"""

import argparse
import io
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from PIL import Image
from torchvision.io import decode_jpeg

from workers.catalog import complete, load
from workers.contract import Place, Recipe
from workers.data import images
from workers.data.batches import Batches
from workers.data.encoded import SETTING
from workers.data.picture import processors
from workers.training import determinism


def photographs(folder: Path, count: int, size: tuple[int, int]) -> None:
    """Smooth noise, which takes about as many bytes as photographs do."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (size[1] // 8, size[0] // 8, 3), np.uint8)
        path = folder / f"class {number % 4}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        grain = rng.normal(0, 6, (size[1], size[0], 3))
        smooth = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.float64)
        Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8)).save(path, quality=90)


class Rate(NamedTuple):
    """How fast images come."""

    second: float
    """Images a second, by the clock."""
    cpu: float
    """Images a second of CPU time: the same on a busy machine."""


def rate(recipe: Recipe, place: Place, batches: int) -> Rate:
    """That of so many batches, the first ones not counted."""
    torch.set_num_threads(place.threads)
    drawn = Batches(recipe, place, torch.device("cpu"), partial(determinism.derived, 0))
    for _ in range(3):
        drawn.next()
    begun = time.perf_counter(), time.process_time()
    taken = sum(len(drawn.next().labels) for _ in range(batches))
    return Rate(taken / (time.perf_counter() - begun[0]), taken / (time.process_time() - begun[1]))


_One = TypeVar("_One")


def batched(ones: Sequence[_One], size: int) -> Iterator[Sequence[_One]]:
    """So many at a time; Python's own is of 3.12."""
    return (ones[start : start + size] for start in range(0, len(ones), size))


def on_gpu(files: Sequence[Path], repeats: int = 3) -> None:
    """Print how fast torchvision decodes on a GPU, which is by nvJPEG, and beside it PIL in one thread."""
    encoded = [torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) for file in files]
    seconds = []
    for _ in range(repeats + 1):  # the first makes the decoder
        torch.cuda.synchronize()
        began = time.perf_counter()
        decoded = [one for some in batched(encoded, 64) for one in decode_jpeg(list(some), device="cuda")]
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    right = [np.array(Image.open(io.BytesIO(one.numpy().tobytes())).convert("RGB")) for one in encoded]
    alone = time.perf_counter() - began
    off = [
        (one.cpu().permute(1, 2, 0).int() - torch.from_numpy(true).int()).abs()
        for one, true in zip(decoded, right, strict=True)
        if one.shape[0] == true.shape[2]
    ]
    differing = sum(int((one > 0).sum()) for one in off) / max(1, sum(one.numel() for one in off))
    print(f"nvJPEG on {torch.cuda.get_device_name()}: {len(files) / min(seconds[1:]):,.0f} images a second")
    print(f"PIL, one thread: {len(files) / alone:,.0f} images a second")
    print(f"bytes that differ: {differing:.1%}, by {max(int(one.max()) for one in off)} at most")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with a folder of photographs for each class")
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--augment", default="none", help="of a recipe, such as crop_flip (default: none)")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="*", default=sorted({1, processors()}))
    parser.add_argument("--nvjpeg", action="store_true")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        root = chosen.data.parent if chosen.data else Path(made)
        name = chosen.data.name if chosen.data else "photographs"
        if not chosen.data:
            photographs(root / name, 400, (500, 375))
        raw = {
            "dataset": {"name": "image_folder", "folder": name, "side": chosen.side},
            "sampler": {"name": "shuffle", "batch": 64},
            "backbone": "small_cnn",
            "loss": "triplet",
            "iterations": 1,
            "augment": chosen.augment,
        }
        recipe = complete(Recipe.model_validate(raw), load())
        print(f"{name} at {chosen.side} pixels, augment {chosen.augment}, {processors()} processors")
        for threads in chosen.threads:
            found = {}
            for kind, gigabytes in (("decoded", "1e9"), ("encoded", "0")):
                os.environ[SETTING] = gigabytes
                images._load.cache_clear()
                place = Place(root, Path(made) / "scratch", Path(made), "cpu", threads)
                found[kind] = rate(recipe, place, chosen.batches)
            decoded, encoded = found["decoded"], found["encoded"]
            print(f"{threads} threads: decoded {decoded.second:,.0f} images a second ({decoded.cpu:,.0f} of CPU time)")
            print(f"           encoded {encoded.second:,.0f} images a second ({encoded.cpu:,.0f} of CPU time)")
            print(f"           ratio {decoded.second / encoded.second:.1f} ({decoded.cpu / encoded.cpu:.1f})")
        if chosen.nvjpeg:
            files = (file for file in (root / name).rglob("*") if file.suffix.lower() in (".jpg", ".jpeg"))
            on_gpu(sorted(files)[:1024])


if __name__ == "__main__":
    main()
