"""Faces from the published files: what is read, and the messages about damaged or hostile files."""

import json
import pickle
import re
import struct
import time
from collections.abc import Callable
from io import BytesIO
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.workers import faces
from workers import catalog, registry
from workers.__main__ import main
from workers.contract import DataDamagedError, DataMissingError, Part
from workers.data import images
from workers.data.faces import read_records
from workers.data.images import Images
from workers.evaluation import verification


def load(name: str, root: Path, **options: Any) -> Any:
    """The data set as a part of the official one, in small images."""
    options = {"official": False, "side": faces.SIDE, **options}
    return registry.build("dataset", Part(name=name, **options), root=root, scratch=root / "scratch")


def colours(split: Images) -> list[list[int]]:
    """The mean red and blue of each image."""
    pixels = split.take(torch.arange(len(split))).images.float().mean(dim=(2, 3))
    return pixels[:, [0, 2]].round().int().tolist()


def close(found: list[list[int]], expected: list[list[int]]) -> bool:
    """Whether colours are the same but for what JPEG loses."""
    return bool(np.allclose(found, expected, atol=6))


def written(root: Path) -> list[Path]:
    """What lies in the scratch folder, but for locks."""
    # The hashes of files are kept, whatever came of reading them.
    files = [path for path in (root / "scratch").rglob("*") if path.is_file() and path.suffix != ".lock"]
    return [path for path in files if path != root / "scratch" / "hashes" / "files.db"]


# CASIA-WebFace


def casia(root: Path, **options: Any) -> Any:
    faces.bin_file(root / "faces_webface_112x112/lfw.bin")
    return load("casia_webface", root, **options)


def test_records_are_read_in_red_green_and_blue(tmp_path: Path) -> None:
    faces.casia(tmp_path)
    found = casia(tmp_path)
    assert found.train.labels.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert close(colours(found.train), [[0, 0], [0, 1], [50, 0], [50, 1], [50, 2], [100, 0], [100, 1]])
    assert len(found.test.pairs.same) == 20
    assert found.content == casia(tmp_path).content
    assert images.faults(found) == []
    with pytest.raises(DataDamagedError, match="train has 3 classes, expected 10,572; train has 7 images"):
        images.load(Part(name="casia_webface"), tmp_path, tmp_path / "scratch")


def test_class_folders_are_the_same_faces(tmp_path: Path) -> None:
    faces.casia(tmp_path / "records")
    for person, count in enumerate((2, 3, 2)):
        for number in range(count):
            path = tmp_path / f"folders/casia_webface/{person:07}/{number:03}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(faces.face(50 * person, number))
    with pytest.raises(DataMissingError, match=r"lfw\.bin is missing: .* has neither this file nor lfw/pairs"):
        load("casia_webface", tmp_path / "folders")
    faces.bin_file(tmp_path / "folders/lfw.bin")
    assert load("casia_webface", tmp_path / "folders").content == casia(tmp_path / "records").content
    with pytest.raises(DataMissingError, match=r"faces_webface_112x112/train\.rec is missing: looked in"):
        load("casia_webface", tmp_path)


def test_records_whose_first_is_an_image_are_all_images(tmp_path: Path) -> None:
    contents = {number: faces.labelled([number % 2], faces.face(100 * (number % 2))) for number in range(4)}
    contents[3] = faces.labelled([1, 7, 9], faces.face(100))  # more labels than one: the person is the first
    path = faces.write_records(tmp_path / "faces_webface_112x112", contents, people=2)
    assert casia(tmp_path).train.labels.tolist() == [0, 0, 1, 1]
    assert [one.number for one in read_records(path)] == [0, 1, 2, 3]


def test_a_record_that_holds_the_magic_number_is_joined(tmp_path: Path) -> None:
    contents = {
        1: faces.labelled([0.0], b"before" + b"\0\0" + faces.MAGIC + b"behind"),
        2: faces.labelled([0.0], faces.MAGIC + faces.MAGIC),
        3: faces.labelled([0.0], b"odd" + faces.MAGIC + b"x"),  # where no part may begin, it is content like any other
    }
    path = faces.write_records(tmp_path, contents)
    assert path.read_bytes().count(faces.MAGIC) == 2 + 3 + 1 + 1
    assert [bytes(one.content) for one in read_records(path)] == [content[24:] for content in contents.values()]


def at(path: Path, where: int, content: bytes) -> None:
    """Write over a file at a place."""
    held = bytearray(path.read_bytes())
    held[where : where + len(content)] = content
    path.write_bytes(held)


Spoil = Callable[[Path], object]
DAMAGE: dict[str, tuple[Spoil, str]] = {
    "cut off in its last record": (
        lambda path: path.write_bytes(path.read_bytes()[:-40]), r"train\.(rec|idx): at byte .*(cut off|would begin)"),
    "empty": (lambda path: path.write_bytes(b""), r"train\.rec cannot be read"),
    "another magic number": (
        lambda path: at(path, 0, b"\x0b"), r"rec: at byte 0: expected the magic number 0xced7230a, found 0xce"),
    "a record in the middle": (
        lambda path: at(path, 4, struct.pack("<I", 2 << 29 | 32)), "byte 0: expected the first part of a record"),
    "a record that never ends": (
        lambda path: at(path, 4, struct.pack("<I", 1 << 29 | 32)), "byte 40: expected the next part of a record"),
    "a length past the end": (
        lambda path: at(path, 4, struct.pack("<I", 2**29 - 1)), "at byte 0: a record of 536,870,911 bytes is cut off"),
    "a length into the next record": (
        lambda path: at(path, 4, struct.pack("<I", 50)), r"at byte 40: record 1 begins within the previous record"),
    "no room for its header": (
        lambda path: at(path, 4, struct.pack("<I", 8)), r"at byte 0: record 0 has 8 bytes, but its header needs 24"),
    "more labels than bytes": (
        lambda path: at(path, 8, struct.pack("<I", 2**32 - 1)), r"record 0 of 32 bytes declares 4,294,967,295 labels"),
    "people without end": (
        lambda path: at(path, 32, struct.pack("<f", np.inf)), "record 0: it says that images end before record inf"),
    "more images than are listed": (
        lambda path: at(path, 32, struct.pack("<f", 90)), "it declares 89 images, but the index lists 10 of them"),
    "half a person": (
        lambda path: at(path, 52, struct.pack("<f", 0.5)), r"at byte 40: record 1: expected the number of a person, f"),
    "an image that is none": (
        lambda path: at(path, 72, bytes(30)), r"record 1 \(byte 40\) of .*train\.rec cannot be read: it is cut off"),
    "no index": (lambda path: path.with_suffix(".idx").unlink(), r"train\.idx, the index of the records, is missing"),
    "an index of text": (
        lambda path: path.with_suffix(".idx").write_text("0\t0\none\ttwo\n"), r"at byte 4: line 2: expected"),
    "an index outside": (
        lambda path: path.with_suffix(".idx").write_text("0\t0\n1\t99999999999999999\n"), "record 1 would begin at"),
    "an index that repeats": (
        lambda path: path.with_suffix(".idx").write_text("0\t0\n0\t40\n"), "line 2 lists record 0 a second time"),
    "an index to one place": (
        lambda path: path.with_suffix(".idx").write_text("0\t0\n1\t0\n"), "record 1 begins within the previous record"),
    "no property": (lambda path: (path.parent / "property").unlink(), "property is missing: it says how many people"),
    "a property of text": (lambda path: (path.parent / "property").write_text("many"), "expected people, height"),
    "another property": (
        lambda path: (path.parent / "property").write_text("4,8,8"), r"says 4 people, and train\.rec has 3; fetch"),
}  # fmt: skip


def test_damaged_records_are_reported_with_file_and_byte(tmp_path: Path) -> None:
    missed = {}
    for number, (name, (spoil, message)) in enumerate(DAMAGE.items()):
        spoil(faces.casia(root := tmp_path / str(number)))
        try:
            missed[name] = str(casia(root))
        except (DataDamagedError, DataMissingError) as error:
            if not re.search(message, str(error)) or written(root):
                missed[name] = str(error)
    assert missed == {}


# Pairs


NAMES = {"lfw": "lfw.bin", "agedb30": "agedb_30.bin", "cfp_fp": "cfp_fp.bin"}


@pytest.mark.parametrize(("name", "protocol"), [("lfw", 3), ("agedb30", 4), ("cfp_fp", 5)])
def test_pairs_are_those_of_the_pickle(name: str, protocol: int, tmp_path: Path) -> None:
    faces.bin_file(tmp_path / NAMES[name], protocol, each=2)
    held, same = faces.pairs(each=2)
    found = load(name, tmp_path)
    assert len(found.train) == 0
    assert found.test.pairs.same.tolist() == same
    assert found.test.pairs.fold.tolist() == [fold for fold in range(10) for _ in range(4)]
    shown = torch.stack([found.test.pairs.first, found.test.pairs.second], dim=1).flatten()
    whole = colours(found.test)
    assert [whole[place] for place in shown.tolist()] == [colours_of(one) for one in held]
    assert len(found.test) == len(set(held)) < len(held)  # an image of several pairs is one image
    with pytest.raises(DataDamagedError, match=r"has 40 pairs, 20 of them of the same person; expected [67],000 and 3"):
        images.load(Part(name=name), tmp_path, tmp_path / "scratch")
    raw = {"task": "verification", "dataset": name, "backbone": "small_cnn", "loss": "triplet", "iterations": 1}
    said = [str(one) for one in catalog.problems(raw, catalog.load())]
    assert any(f"dataset '{name}' has only 0 training classes" in one for one in said), said


def colours_of(content: bytes) -> list[int]:
    """The mean red and blue of a JPEG."""
    pixels = np.asarray(Image.open(BytesIO(content)), np.float32).mean(axis=(0, 1))
    return [round(float(pixels[0])), round(float(pixels[2]))]


def test_pairs_that_python_2_pickled(tmp_path: Path) -> None:
    held, same = faces.pairs(each=2)
    content = faces.python_2(held, same)
    assert pickle.loads(content, encoding="bytes") == (held, same)
    (tmp_path / "lfw.bin").write_bytes(content)
    one = load("lfw", tmp_path)
    faces.bin_file(tmp_path / "lfw.bin", each=2)
    assert load("lfw", tmp_path).content == one.content
    held, same = faces.pairs()  # folds of unequal size are those of KFold
    (tmp_path / "lfw.bin").write_bytes(pickle.dumps((held[:26], same[:13])))
    assert load("lfw", tmp_path).test.pairs.fold.tolist() == [0, 0, 1, 1, 2, 2, *range(3, 10)]


class _Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.path,)


def hostile(folder: Path) -> dict[str, tuple[bytes, str]]:
    held, same = faces.pairs()
    whole = pickle.dumps((held, same))
    named = "but only plain data is loaded"
    return {
        "code": (pickle.dumps(_Trap(folder / "sprung")), named),
        "code within": (pickle.dumps((held, [_Trap(folder / "sprung")])), named),
        "numbers for booleans": (pickle.dumps((held, [1, 0] * 10)), "pair 0 is int"),
        "NumPy's booleans": (pickle.dumps((held, list(np.array(same)))), named),
        "arrays for images": (pickle.dumps(([np.frombuffer(one, np.uint8) for one in held], same)), named),
        "nothing": (b"", "cannot be read"),
        "a cut": (whole[: len(whole) // 2], "cannot be read"),
        "a length past the end": (b"\x80\x04B\xff\xff\xff\xff.", "expected 4294967295 bytes"),
        "a huge memo": (b"\x80\x02]r\xff\xff\xff\xff.", "stores object 4,294,967,295, too many for 9 bytes"),
        "tuples in tuples as a key": (b"\x80\x02})" + b"\x85" * 400_000 + b"Ns.", "it makes more than 1,000 tuples"),
        "nesting": (b"\x80\x02" + b"]" * 90_000 + b"a" * 89_999 + b".", "found something else"),
        "lists in themselves": (b"\x80\x02]q\x00" + b"h\x00a" * 50_000 + b".", "found something else"),
        "steps without end": (b"\x80\x02" + b"](e" * 500_000, "it takes more than 1,000,000 steps"),
        "fewer booleans": (pickle.dumps((held, same[:-1])), "found 40 images and 19 booleans"),
        "lists for images": (pickle.dumps(([[]] * 40, same)), "image 0 is list"),
        "bytes for booleans": (pickle.dumps((held, held[:20])), "pair 0 is bytes"),
        "images that are none": (pickle.dumps(([b"no image", *held[1:]], same)), r"image 0 of .* cannot be read"),
    }  # fmt: skip


@pytest.mark.parametrize("name", hostile(Path()))
def test_a_hostile_pickle_is_refused(name: str, tmp_path: Path) -> None:
    content, message = hostile(tmp_path)[name]
    (tmp_path / "lfw.bin").write_bytes(content)
    begun = time.process_time()
    with pytest.raises(DataDamagedError, match=message) as caught:
        load("lfw", tmp_path)
    assert str(tmp_path / "lfw.bin") in str(caught.value)
    assert not (tmp_path / "sprung").exists()
    assert written(tmp_path) == []
    assert time.process_time() - begun < 60  # what grows with the square of the file would take hours


def test_pairs_from_a_list_as_lfw_prints_it(tmp_path: Path) -> None:
    faces.pairs_txt(tmp_path / "lfw")
    found = load("lfw", tmp_path)
    assert found.test.pairs.fold.tolist() == [fold for fold in range(10) for _ in range(2)]
    assert found.test.pairs.same.tolist() == [True, False] * 10
    blue = [pair[1] for pair in colours(found.test)]
    assert [round(blue[place]) for place in found.test.pairs.first.tolist()[:2]] == [blue[0], blue[1]]
    assert found.test.labels[found.test.pairs.first].eq(found.test.labels[found.test.pairs.second]).tolist() == [
        True, False,
    ] * 10  # fmt: skip
    assert found.test.classes == 20
    assert len(found.test) == 30


def test_a_list_that_names_images_that_are_not_there(tmp_path: Path) -> None:
    path = faces.pairs_txt(tmp_path / "lfw")
    (tmp_path / "lfw/Ann_03/Ann_03_0002.jpg").unlink()
    with pytest.raises(DataMissingError, match=r"lists picture 2 of Ann_03, which is missing \(and 1 more"):
        load("lfw", tmp_path)
    (tmp_path / "lfw/Ann_03/Ann_03_0002.png").write_bytes(faces.face(1))  # another suffix will do
    load("lfw", tmp_path)
    lines = path.read_text().splitlines()
    for row, line, message in (
        (1, "10", "line 1: expected the number of folds"),
        (1, "10 2", "line 1 declares 10 folds of 2 \\+ 2 pairs, but 20 lines follow"),
        (1, "0 0", "line 1: expected the number of folds"),
        (2, "Ann_00 1", "line 2: expected a person and the numbers of two pictures, found 'Ann_00 1'"),
        (2, "Ann_00 1 Bob_00 2", "line 2: expected a person and the numbers of two pictures"),
        (3, "Ann_00 1 2", "line 3: expected two persons, each with"),
        (2, "Ann_00 one 2", "line 2: expected"),
        (2, "../Ann_00 1 2", "line 2: expected"),
        (2, "Ann_00 1 " + "9" * 5000, "line 2 lists picture 999999999 of Ann_00, which is missing"),
    ):
        changed = [line if number == row else old for number, old in enumerate(lines, 1)]
        path.write_text("\n".join(changed))
        with pytest.raises((DataDamagedError, DataMissingError), match=message):
            load("lfw", tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataDamagedError, match="cannot be read"):
        load("lfw", tmp_path)


# MegaFace


def megaface(root: Path, **options: Any) -> Any:
    return load("megaface", root, **{"sizes": (2, 5), **options})


def found_among(dataset: Any, size: int) -> list[int]:
    """The red of the distractors of a size."""
    shades = colours(dataset.test)
    return [shades[number][0] for number in dataset.test.distractors[size].tolist()]


def test_probes_are_searched_among_the_strangers_of_each_list(tmp_path: Path) -> None:
    faces.megaface(tmp_path)
    found = megaface(tmp_path, noise="kept")
    assert len(found.train) == 0
    assert found.test.query.tolist() == [True] * 6 + [False] * 6
    assert found.test.labels.tolist() == [0, 0, 0, 1, 1, 1, *[2] * 6]
    assert found.test.names == ("Ann", "Bob", "strangers")
    assert close([colours(found.test)[number] for number in (0, 4)], [[10, 0], [60, 1]])
    assert np.allclose(found_among(found, 2), [104, 105], atol=6)
    assert np.allclose(found_among(found, 5), [100, 101, 102, 103, 104], atol=6)  # in the order of their list
    clean = megaface(tmp_path)
    assert clean.test.labels.tolist() == [0, 0, 1, 1, 1, *[2] * 5]  # a probe and a stranger fewer
    assert np.allclose(found_among(clean, 5), [100, 101, 103, 104], atol=6)
    assert {size: len(numbers) for size, numbers in clean.test.distractors.items()} == {2: 2, 5: 4}
    assert clean.content not in {found.content, megaface(tmp_path, sizes=(2,)).content}
    assert clean.content == megaface(tmp_path).content
    with pytest.raises(DataDamagedError, match="lists 6 probes of 2 people; expected 3,530 probes of 80"):
        megaface(tmp_path, official=True)


def test_damaged_lists_of_megaface(tmp_path: Path) -> None:
    lists = faces.megaface(tmp_path)
    probes, strangers = lists / "facescrub_features_list.json", lists / "megaface_features_list.json_5_1"
    whole = json.loads(probes.read_text()), json.loads(strangers.read_text())
    for path, held, message in (
        (
            probes,
            {**whole[0], "id": whole[0]["id"][:-1]},
            "on each of the 6 probes; found 5",
        ),
        (probes, {**whole[0], "id": [None] * 6}, "on each of the 6 probes; found 0 names"),
        (probes, {"path": ["1.jpg"]}, "on each of the 1 probes; found 0 names"),
        (probes, {"path": []}, "expected a list of images in `path`"),
        (probes, {"path": [1]}, "expected a list of images in `path`"),
        (probes, [], "expected an object"),
        (strangers, {"path": whole[1]["path"][:-1]}, "expected 5 different images, found 4"),
        (strangers, {"path": [whole[1]["path"][0]] * 5}, "expected 5 different images, found 1"),
        (strangers, {"path": ["../../secret.jpg"] * 5}, "expected a path below the data root"),
        (strangers, {"path": [*whole[1]["path"][:-1], "9/9/9.jpg"]}, r"9/9/9\.jpg is missing"),
    ):
        faces.as_json(path, held)
        with pytest.raises((DataDamagedError, DataMissingError), match=message):
            megaface(tmp_path)
        faces.as_json(probes, whole[0])
        faces.as_json(strangers, whole[1])
    assert written(tmp_path) == []
    strangers.write_text("[" * 100_000)
    with pytest.raises(DataDamagedError, match="cannot be read"):
        megaface(tmp_path)
    with pytest.raises(DataMissingError, match="json_7_1 is missing: it lists the images"):
        megaface(tmp_path, sizes=(7,))
    with pytest.raises(ValueError, match=r"dataset\.sizes, dataset\.draw: expected positive numbers, `sizes` rising"):
        megaface(tmp_path, sizes=(5, 2))
    faces.as_json(strangers, whole[1])
    (tmp_path / "megaface/facescrub_noises.txt").write_text("".join(f"Ann_{number}.jpg\n" for number in range(3)))
    with pytest.raises(DataDamagedError, match="drops every probe of some people"):
        megaface(tmp_path)
    (tmp_path / "megaface/facescrub_noises.txt").unlink()
    with pytest.raises(DataMissingError, match=r"lists the images that InsightFace found .* `noise: kept`"):
        megaface(tmp_path)


ENDING = "_r18.bin"
WIDTH = 8


def packed(path: Path, values: Any, header: tuple[int, ...] | None = None) -> Path:
    """As InsightFace's `write_bin` packs it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.asarray(values, "<f4")
    path.write_bytes(struct.pack("<4i", *(header or (len(values), 1, 4, 5))) + values.tobytes())
    return path


def features_of(root: Path) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
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
            packed(root / "out" / folder / f"{path}{ENDING}", found[path])
    return root / "out", found


def told(capsys: pytest.CaptureFixture[str], root: Path, *more: str) -> tuple[int, str]:
    chosen = ["--size", "5", "--size", "2", "--part", "--data", str(root)]
    code = main(["identify", str(root / "out"), *chosen, *more])
    output = capsys.readouterr()
    return code, output.out + output.err


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
    monkeypatch.setattr(verification, "BLOCK", block)
    out, found = features_of(tmp_path)
    copied, of = "3/a@b/3.jpg", "Ann/Ann_0.jpg"  # as near to its mates as it is itself
    found[copied] = found[of]
    packed(out / "megaface" / f"{copied}{ENDING}", found[of])
    code, said = told(capsys, tmp_path, "--noise", noise, "--json")
    assert code == 0, said
    lists = tmp_path / "megaface/devkit/templatelists"
    wrong = {"Ann/Ann_1.jpg", "2/a@b/2.jpg"} if noise == "dropped" else set()
    expected = {str(size): naive(found, size, lists, wrong) for size in (2, 5)}
    assert json.loads(said) == pytest.approx(expected)
    assert 0 < expected["5"] < 1, "or it shows nothing"


HARMS: dict[str, Callable[[Path], object]] = {
    "has 45 bytes, expected 48; write it again": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "has 3 bytes, but its header needs 16; write it again": lambda path: path.write_bytes(b"abc"),
    "has 9 values, but the files before it have 8": lambda path: packed(path, np.ones(WIDTH + 1)),
    "contains values that are not finite": lambda path: packed(path, [np.nan] * WIDTH),
    "contains only zeros, which have no direction": lambda path: packed(path, np.zeros(WIDTH)),
    "is a matrix of 4 by 4 of type 5 in 4 bytes; expected a vector of type 5, float32": (
        lambda path: packed(path, np.ones(16), (4, 4, 4, 5))
    ),
    "is a matrix of 8 by 1 of type 6 in 8 bytes; expected a vector of type 5, float32": (
        lambda path: packed(path, np.ones(2 * WIDTH), (WIDTH, 1, 8, 6))
    ),
    "feature files are missing: ": Path.unlink,
}


def test_a_wrong_file_is_reported_before_anything_is_computed(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "identified", None)
    missed = {}
    for said, harm in HARMS.items():
        out, _ = features_of(tmp_path)
        harm(out / "megaface" / f"4/a@b/4.jpg{ENDING}")
        code, found = told(capsys, tmp_path)
        named = found.startswith("error: 1 of 10 feature files ") and f"4/a@b/4.jpg{ENDING}" in found
        if code != 1 or not named or said not in found:
            missed[said] = found
    assert missed == {}


def test_missing_files_are_reported_with_the_searched_places(tmp_path: Path, capsys: Any) -> None:
    code, said = told(capsys, tmp_path)
    assert (code, "facescrub_features_list.json is missing: looked in" in said) == (1, True)
    faces.megaface(tmp_path)
    code, said = told(capsys, tmp_path)
    assert (code, said.startswith(f"error: expected one feature file {tmp_path}/out/facescrub/Ann/Ann_")) == (1, True)
    features_of(tmp_path)
    packed(tmp_path / "out/facescrub/Ann/Ann_0.jpg_r50.bin", np.ones(WIDTH))
    code, said = told(capsys, tmp_path)
    assert (code, f"found 2: {ENDING}, _r50.bin; choose one with --ending" in said) == (1, True)


def test_a_person_with_one_probe_has_no_mate(tmp_path: Path, capsys: Any) -> None:
    features_of(tmp_path)
    lists = tmp_path / "megaface/devkit/templatelists"
    faces.as_json(lists / "facescrub_features_list.json", {"path": ["Ann/Ann_0.jpg", "Bob/Bob_1.jpg"]})
    code, said = told(capsys, tmp_path)
    assert (code, said) == (1, "error: no person has two probes, so that no probe has a mate to find\n")
