"""Identification among distractors, also by feature files in MegaFace's format, equals brute force."""

import json
import math
import struct
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.workers import faces
from workers.__main__ import main
from workers.embeddings import geometry
from workers.evaluation import identify, ties
from workers.evaluation.verification import Identification
from workers.metrics.rank1 import Rank1

ENDING = "_r18.bin"
WIDTH = 8


def written(path: Path, values: Any, header: tuple[int, ...] | None = None) -> Path:
    """As InsightFace's `write_bin` packs it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.asarray(values, "<f4")
    path.write_bytes(struct.pack("<4i", *(header or (len(values), 1, 4, 5))) + values.tobytes())
    return path


def features(root: Path) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
    """A feature of each image of `faces.megaface`, not normalized, and what they are by their lists' names."""
    lists = faces.megaface(root)
    draw = np.random.default_rng(3)
    found = {}
    for name, folder in (("facescrub_features_list.json", "facescrub"), ("megaface_features_list.json_5_1", "megaface"),
                         ("megaface_features_list.json_2_1", "megaface")):  # fmt: skip
        for path in json.loads((lists / name).read_text())["path"]:
            person = {"A": 0, "B": 1}.get(path[0], 2)
            values = draw.normal(size=WIDTH) + 2 * np.eye(WIDTH)[person]
            found.setdefault(path, values.astype(np.float32))
            written(root / "out" / folder / f"{path}{ENDING}", found[path])
    return root / "out", found


def told(capsys: pytest.CaptureFixture[str], root: Path, *more: str) -> tuple[int, str]:
    chosen = ["--size", "5", "--size", "2", "--part", "--data", str(root)]
    code = main(["identify", str(root / "out"), *chosen, *more])
    said = capsys.readouterr()
    return code, said.out + said.err


def naive(found: dict[str, np.ndarray[Any, Any]], size: int, lists: Path, wrong: set[str]) -> float:
    unit = {name: values / np.linalg.norm(values) for name, values in found.items() if name not in wrong}
    strangers = json.loads((lists / f"megaface_features_list.json_{size}_1").read_text())["path"]
    probes = [name for name in unit if name[0] in "AB"]
    first = [
        all(unit[one] @ unit[mate] > unit[one] @ unit[stranger] for stranger in strangers if stranger in unit)
        for one, mate in permutations(probes, 2)
        if one[0] == mate[0]
    ]
    return float(np.mean(first))


@pytest.mark.parametrize("noise", ["kept", "dropped"])
def test_rates_equal_brute_force(noise: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify, "BLOCK", 2)
    _, found = features(tmp_path)
    code, said = told(capsys, tmp_path, "--noise", noise, "--json")
    assert code == 0, said
    lists = tmp_path / "megaface/devkit/templatelists"
    wrong = {"Ann/Ann_1.jpg", "2/a@b/2.jpg"} if noise == "dropped" else set()
    expected = {str(size): naive(found, size, lists, wrong) for size in (2, 5)}
    assert json.loads(said) == pytest.approx(expected)
    assert 0 < expected["5"] < 1, "or it shows nothing"


HARMS: dict[str, Callable[[Path], object]] = {
    "has 45 bytes, expected 48; write it again": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "has 3 bytes, and its header alone has 16; write it again": lambda path: path.write_bytes(b"abc"),
    "has 9 values, and those before it 8": lambda path: written(path, np.ones(WIDTH + 1)),
    "holds values that are no finite numbers": lambda path: written(path, [np.nan] * WIDTH),
    "holds nothing but zeros, which have no direction": lambda path: written(path, np.zeros(WIDTH)),
    "is a matrix of 4 by 4 of type 5 in 4 bytes; expected a vector of type 5, float32": (
        lambda path: written(path, np.ones(16), (4, 4, 4, 5))
    ),
    "is a matrix of 8 by 1 of type 6 in 8 bytes; expected a vector of type 5, float32": (
        lambda path: written(path, np.ones(2 * WIDTH), (WIDTH, 1, 8, 6))
    ),
    "feature files are missing: ": Path.unlink,
}


def test_a_wrong_file_is_told_before_anything_is_computed(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identify, "Identification", None)
    missed = {}
    for said, harm in HARMS.items():
        out, _ = features(tmp_path)
        harm(out / "megaface" / f"4/a@b/4.jpg{ENDING}")
        code, found = told(capsys, tmp_path)
        named = found.startswith("error: 1 of 10 feature files ") and f"4/a@b/4.jpg{ENDING}" in found
        if code != 1 or not named or said not in found:
            missed[said] = found
    assert missed == {}


def test_what_is_not_there_is_said_with_where_it_was_looked_for(tmp_path: Path, capsys: Any) -> None:
    code, said = told(capsys, tmp_path)
    assert (code, "facescrub_features_list.json is missing: looked in" in said) == (1, True)
    faces.megaface(tmp_path)
    code, said = told(capsys, tmp_path)
    assert (code, said.startswith(f"error: expected one feature file {tmp_path}/out/facescrub/Ann/Ann_")) == (1, True)
    features(tmp_path)
    written(tmp_path / "out/facescrub/Ann/Ann_0.jpg_r50.bin", np.ones(WIDTH))
    code, said = told(capsys, tmp_path)
    assert (code, f"2 begin so: {ENDING}, _r50.bin; choose one by --ending" in said) == (1, True)


def test_a_person_with_one_probe_has_no_mate(tmp_path: Path, capsys: Any) -> None:
    features(tmp_path)
    lists = tmp_path / "megaface/devkit/templatelists"
    faces.as_json(lists / "facescrub_features_list.json", {"path": ["Ann/Ann_0.jpg", "Bob/Bob_1.jpg"]})
    code, said = told(capsys, tmp_path)
    assert (code, said) == (1, "error: no person has two probes, so that there is no mate to be found\n")


IDENTITY = torch.tensor([0, 0, 0, 1, 1, 2, 0, 1, 1, 3, 3])  # one is alone
AMONG = {10: torch.arange(40, 50), 100: torch.arange(100), 1000: torch.arange(1000).flip(0)}  # in lists of their own


def drawn(seed: int, separation: float = 1.0, width: int = 16) -> tuple[Tensor, Tensor]:
    """Probes near their identity's direction, and distractors anywhere."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(4, width, generator=generator)
    probes = separation * directions[IDENTITY] + torch.randn(len(IDENTITY), width, generator=generator)
    return geometry.unit(probes), geometry.unit(torch.randn(1000, width, generator=generator))


def blocks(distractors: Tensor, size: int = 300) -> Iterator[tuple[Tensor, Tensor]]:
    for numbers in torch.split(torch.randperm(len(distractors), generator=torch.Generator().manual_seed(9)), size):
        yield numbers, distractors[numbers]


def found(probes: Tensor, distractors: Tensor, size: int = 300, **more: Any) -> Identification:
    return Identification.of(probes, IDENTITY, blocks(distractors, size), AMONG, **more)


def brute(probes: Tensor, distractors: Tensor, size: int) -> float:
    shares = []
    for one, other in permutations(range(len(IDENTITY)), 2):
        if IDENTITY[one] == IDENTITY[other]:
            mate = float(probes[one] @ probes[other])
            rivals = [float(probes[one] @ distractors[number]) for number in AMONG[size].tolist()]
            slack = ties.tolerance(torch.float32)
            closer = sum(rival > mate + slack for rival in rivals)
            tied = sum(abs(rival - mate) <= slack for rival in rivals)
            shares.append(0.0 if closer else 1 / (1 + tied))
    return sum(shares) / len(shares)


def test_rank_1_equals_brute_force_and_equals_are_found_by_chance() -> None:
    probes, distractors = drawn(0)
    for k, size in (("1e1", 10), ("1e2", 100), ("1e3", 1000)):
        value = Rank1(k=k)(found(probes, distractors))  # type: ignore[arg-type]
        assert 0 < value <= 1
        assert value == pytest.approx(brute(probes, distractors, size), abs=1e-12)
    distractors[[41, 43, 500]] = probes[0]  # as close to probe 0 as nothing else, and to its mates as it is itself
    for k, size in (("1e1", 10), ("1e3", 1000)):
        value = Rank1(k=k)(found(probes, distractors))  # type: ignore[arg-type]
        assert value == pytest.approx(brute(probes, distractors, size), abs=1e-12)
    collapsed = torch.ones_like(probes) / 4
    everywhere = found(collapsed, torch.ones_like(distractors) / 4)
    assert [Rank1(k=k)(everywhere) for k in ("1e1", "1e2")] == pytest.approx([1 / 11, 1 / 101])


@pytest.mark.parametrize(("size", "chunk"), [(1, 1), (7, 50), (300, 64), (1000, 2**25)])
def test_neither_blocks_nor_chunks_matter(size: int, chunk: int) -> None:
    probes, distractors = drawn(2)
    usual, other = found(probes, distractors), found(probes, distractors, size, chunk=chunk)
    for among in AMONG:
        first, second = usual.first(among), other.first(among)
        assert first is not None
        assert second is not None
        assert torch.equal(first, second)


def test_without_a_list_or_a_mate_there_is_no_value() -> None:
    probes, distractors = drawn(0)
    assert math.isnan(Rank1(k="1e6")(found(probes, distractors)))
    alone = Identification.of(probes[:3], torch.arange(3), blocks(distractors), AMONG)
    assert math.isnan(Rank1(k="1e2")(alone))
