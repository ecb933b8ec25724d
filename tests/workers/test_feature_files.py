"""Identification among distractors, also by feature files in MegaFace's format, equals brute force."""

import json
import struct
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers import faces
from workers.__main__ import main
from workers.evaluation import identify

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
    """The share of probes that find a mate first; of what is equally near each is first by chance."""
    unit = {name: values / np.linalg.norm(values) for name, values in found.items() if name not in wrong}
    strangers = json.loads((lists / f"megaface_features_list.json_{size}_1").read_text())["path"]
    shares = []
    for one, mate in permutations([name for name in unit if name[0] in "AB"], 2):
        if one[0] == mate[0]:
            ahead = [unit[one] @ (unit[stranger] - unit[mate]) for stranger in strangers if stranger in unit]
            tied = sum(abs(value) < 1e-6 for value in ahead)
            shares.append(0.0 if max(ahead) >= 1e-6 else 1 / (1 + tied))
    return float(np.mean(shares))


@pytest.mark.parametrize(("noise", "block"), [("kept", 2), ("dropped", 2), ("kept", 1), ("dropped", 100)])
def test_rates_equal_brute_force(
    noise: str, block: int, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identify, "BLOCK", block)
    out, found = features(tmp_path)
    copied, of = "3/a@b/3.jpg", "Ann/Ann_0.jpg"  # as near to its mates as it is itself
    found[copied] = found[of]
    written(out / "megaface" / f"{copied}{ENDING}", found[of])
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
