"""MegaFace, challenge 1: faces of people to be found among up to a million strangers."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from annotated_types import Ge

from workers.data import listing
from workers.data.listing import Listed, Source
from workers.data.megaface import DevkitLists, every
from workers.data.pictures import Form, Picture
from workers.datasets._shared import no_faces


class Megaface:
    """3,530 probes of 80 people (FaceScrub) and the strangers of the devkit's lists; nothing of it trains.

    Read from `megaface/` with `facescrub_images/`, `megaface_images/` and in `devkit/templatelists/` its lists:
    `facescrub_features_list.json` and, for each of `sizes`, such as `megaface_features_list.json_1000000_1`, whose last
    number is `draw`. With `noise: dropped` the images that InsightFace found to be wrong are left out, as its
    `facescrub_noises.txt` and `megaface_noises.txt` list them. `official: false` takes other numbers of probes.
    """

    label = "MegaFace"
    paper = "Kemelmacher-Shlizerman et al. 2016"
    classes = {"train": 0}
    images = {"train": 0}
    channels = 3
    side = 112
    manifest = None

    def __init__(  # noqa: PLR0913 - each is one choice of which images are taken
        self,
        root: Path,
        scratch: Path,
        *,
        sizes: tuple[Annotated[int, Ge(1)], ...] = (1_000, 10_000, 100_000, 1_000_000),
        draw: Annotated[int, Ge(1)] = 1,
        noise: Literal["dropped", "kept"] = "dropped",
        side: Annotated[int, Ge(1)] = 112,
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        self.train = no_faces(side)
        devkit = DevkitLists.of(root)
        folder = devkit.folder
        probes = devkit.probes(noise, official=official)
        strangers = devkit.strangers(sizes, draw, noise)
        source = Source("megaface", Form("square", side), scratch, type(self), official)
        people = 1 + max(probe.label for probe in probes)
        others = {path: len(probes) + place for place, path in enumerate(every(strangers))}
        faces_folder = folder / "facescrub_images"
        listed = [Listed(Picture(faces_folder / probe.path), probe.label, True, probe.name) for probe in probes]
        listed += [Listed(Picture(folder / "megaface_images" / path), people, False, "strangers") for path in others]
        images, read = listing.load_half(source, "test", listed)
        among = {
            size: torch.tensor([others[path] for path in paths], dtype=torch.int64) for size, paths in strangers.items()
        }
        self.test = replace(images, distractors=among)
        whole = hashlib.sha256(read.encode())
        for size, numbers in among.items():
            whole.update(f"{size}".encode() + numbers.numpy().astype("<i8").tobytes())
        self.content = f"sha256:{whole.hexdigest()}"
