"""What a recipe says of the content of its data set is held to, and no training mixes two contents."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers import trees
from tests.workers.recipes import DIGITS, place
from workers import catalog
from workers.contract import CheckpointError, DataDamagedError, Part, Place, Progress, Recipe, Stopped
from workers.data import images
from workers.train import train

OTHER = "sha256:" + "0" * 64
PART = {"name": "packed", "file": "mine.npz"}


def pack(root: Path, shade: int = 0) -> Path:
    """A pack of eight classes with six images each, one of which has another shade; gives its folder."""
    root.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 200, (48, 8, 8)).astype(np.uint8)
    pixels[0] += np.uint8(shade)
    np.savez(root / "mine.npz", image=pixels, label=np.arange(48) // 6)
    return root


def content(root: Path, **options: Any) -> str:
    return images.content_hash(images.load(Part(**PART, **options), root, root / "scratch"))


def completed(**changes: Any) -> Recipe:
    sampler = {"name": "balanced", "classes": 2, "per_class": 4}
    raw = {
        **DIGITS, "dataset": PART, "sampler": sampler, "validation": "none", "select": {"split": "last"}, **changes,
    }  # fmt: skip
    assert catalog.problems(raw, catalog.load()) == []
    return catalog.complete(Recipe.model_validate(raw), catalog.load())


def on(data: Path, out: Path, **changes: Any) -> Place:
    return replace(place(out, **changes), data_root=data)


def test_another_content_is_refused_and_named(tmp_path: Path) -> None:
    before, after = pack(tmp_path / "before"), pack(tmp_path / "after", shade=1)
    known = content(before)
    assert content(before, content=known) == known != content(after)
    with pytest.raises(DataDamagedError, match=f"the content is {content(after)}, expected {known}"):
        images.load(Part(**PART, content=known), after, after / "scratch")
    what = completed(dataset={**PART, "content": known})
    assert train(what, on(before, tmp_path / "one"), [].append).provenance["manifest"] == known
    with pytest.raises(DataDamagedError, match="the content is"):
        train(what, on(after, tmp_path / "two"), [].append)


@pytest.mark.parametrize("name", ["cub200", "cars196", "sop", "inshop", "image_folder"])
def test_whatever_part_of_a_data_set_it_is(name: str, tmp_path: Path) -> None:
    trees.cub(tmp_path)
    trees.cars(tmp_path, "devkit")
    trees.sop(tmp_path)
    trees.inshop(tmp_path / "inshop")
    own = {"folder": "CUB_200_2011/images"} if name == "image_folder" else {"official": False}
    part = {"name": name, "side": 16, **own}
    known = images.content_hash(images.load(Part.model_validate(part), tmp_path, tmp_path / "scratch"))
    images.load(Part.model_validate({**part, "content": known}), tmp_path, tmp_path / "scratch")
    with pytest.raises(DataDamagedError, match=f"the content is {known}, expected {OTHER}"):
        images.load(Part.model_validate({**part, "content": OTHER}), tmp_path, tmp_path / "scratch")


def test_every_data_set_states_its_content_or_is_told_it() -> None:
    for entry in catalog.load().of("dataset"):
        assert isinstance(entry.facts["manifest"], str) != (entry.parameter("content") is not None), entry.name


def test_another_content_is_another_recipe_and_none_is_as_ever() -> None:
    plain = completed()
    assert "content" not in plain.dataset.options
    assert completed(dataset={**PART, "content": None}).fingerprint == plain.fingerprint
    prints = {completed(dataset={**PART, "content": known}).fingerprint for known in (OTHER, OTHER[:-1] + "1")}
    assert len({plain.fingerprint, *prints}) == 3
    told = completed(dataset={**PART, "content": OTHER})
    assert catalog.complete(told, catalog.load()) == told


@pytest.mark.parametrize("validation", ["none", {"name": "cross_validation", "folds": 2}])
def test_a_training_does_not_go_on_with_other_images(validation: Any, tmp_path: Path) -> None:
    before, after = pack(tmp_path / "before"), pack(tmp_path / "after", shade=1)
    what = completed(validation=validation, sampler={"name": "shuffle", "batch": 4})
    turns = iter([False] * 5 + [True])
    with pytest.raises(Stopped):
        train(what, on(before, tmp_path / "out", stop=lambda: next(turns)), [].append)
    checkpoint = tmp_path / "out/last.pt"
    with pytest.raises(CheckpointError, match=f"does not fit: it was trained on {content(before)}, and the data set"):
        train(what, on(after, tmp_path / "out"), [].append, checkpoint)
    reports: list[Progress] = []
    assert train(what, on(before, tmp_path / "out"), reports.append, checkpoint).outcome == "ok"
    assert "from step 5 " in reports[0].log
