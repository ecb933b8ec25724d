"""Faces in the files that people have, small: InsightFace's records and pickles, LFW's list, MegaFace's devkit."""

import json
import pickle
import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

MAGIC = struct.pack("<I", 0xCED7230A)
SIDE = 8


def face(shade: int, number: int = 0) -> bytes:
    """A JPEG whose red is about `shade` and whose blue is about `number`: who swaps the colours finds another shade."""
    file = BytesIO()
    Image.new("RGB", (SIDE, SIDE), (shade, 128, number)).save(file, "JPEG", quality=95)
    return file.getvalue()


def part(kind: int, content: bytes) -> bytes:
    """A part of a record: 0 is all of it, 1 its first, 2 one between, 3 its last."""
    return MAGIC + struct.pack("<I", kind << 29 | len(content)) + content + bytes(-len(content) % 4)


def record(content: bytes) -> bytes:
    """A record as MXNet writes it: the magic number within, where a part may begin, divides it."""
    cuts = [at for at in range(0, len(content) - 3, 4) if content[at : at + 4] == MAGIC]
    if not cuts:
        return part(0, content)
    bounds = [(first, past) for first, past in zip([0, *(at + 4 for at in cuts)], [*cuts, len(content)], strict=True)]
    kinds = [1, *[2] * (len(cuts) - 1), 3]
    return b"".join(part(kind, content[first:past]) for kind, (first, past) in zip(kinds, bounds, strict=True))


def labelled(labels: Sequence[float], image: bytes, number: int = 0) -> bytes:
    """The content of a record: the header, and where it holds more labels than one these behind it."""
    if len(labels) == 1:
        return struct.pack("<IfQQ", 0, labels[0], number, 0) + image
    return struct.pack(f"<IfQQ{len(labels)}f", len(labels), 0.0, number, 0, *labels) + image


def write_records(folder: Path, contents: Mapping[int, bytes], people: int | None = None) -> Path:
    """`train.rec` and `train.idx` of these records, and `property` where the number of people is given."""
    folder.mkdir(parents=True, exist_ok=True)
    whole, index = b"", ""
    for number, content in contents.items():
        index += f"{number}\t{len(whole)}\n"
        whole += record(content)
    (folder / "train.rec").write_bytes(whole)
    (folder / "train.idx").write_text(index)
    if people is not None:
        (folder / "property").write_text(f"{people},{SIDE},{SIDE}\n")
    return folder / "train.rec"


def casia(root: Path, people: Sequence[int] = (2, 3, 2)) -> Path:
    """`faces_webface_112x112/`: so many images of each person, whose red is 50 more than the one's before."""
    images = [(person, number) for person, count in enumerate(people) for number in range(count)]
    first = len(images) + 1
    contents = {0: labelled([first, first + len(people)], b"")}
    for place, (person, number) in enumerate(images, 1):
        contents[place] = labelled([person], face(50 * person, number), place)
    begin = 1
    for person, count in enumerate(people):  # behind the images, the range of each person's
        contents[first + person] = labelled([begin, begin + count], b"")
        begin += count
    return write_records(root / "faces_webface_112x112", contents, len(people))


def pairs(folds: int = 10, each: int = 1) -> tuple[list[bytes], list[bool]]:
    """Images two by two, in each fold `each` pairs of one person and as many of two."""
    images, same = [], []
    for fold in range(folds):
        for number in range(2 * each):
            alike = number < each
            images += [face(10 * fold, number), face(10 * fold if alike else 255 - 10 * fold, 50 + number)]
            same.append(alike)
    return images, same


def bin_file(path: Path, protocol: int = 5, **changes: Any) -> Path:
    """A `.bin` of `pairs()`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(pairs(**changes), protocol))
    return path


def pairs_txt(folder: Path, folds: int = 10) -> Path:
    """`pairs.txt` as LFW prints it, one pair of either kind a fold, with its images."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{folds}\t1"]
    for fold in range(folds):
        one, other = f"Ann_{fold:02}", f"Bob_{fold:02}"
        lines += [f"{one}\t1\t2", f"{one}\t2\t{other}\t1"]
        for person, number in ((one, 1), (one, 2), (other, 1)):
            file = folder / person / f"{person}_{number:04}.jpg"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(face(10 * fold, number))
    (folder / "pairs.txt").write_text("\n".join(lines) + "\n")
    return folder / "pairs.txt"


def python_2(images: Sequence[bytes], same: Sequence[bool]) -> bytes:
    """What Python 2 pickles by its highest protocol: bytes are its texts."""
    kept = [b"q" + bytes([place + 2]) for place in range(len(images))]
    texts = b"".join(b"T" + struct.pack("<i", len(one)) + one + memo for one, memo in zip(images, kept, strict=True))
    answers = b"".join(b"\x88" if one else b"\x89" for one in same)
    return b"\x80\x02]q\x00(" + texts + b"e]q\x01(" + answers + b"e\x86r\xff\x00\x00\x00."


def as_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def megaface(root: Path) -> Path:
    """`megaface/`: three probes of two people, lists of two and five of six strangers, a wrong image of either sort."""
    folder = root / "megaface"
    lists = folder / "devkit/templatelists"
    probes = [(person, f"{person}/{person}_{number}.jpg") for number in range(3) for person in ("Bob", "Ann")]
    for place, (person, path) in enumerate(probes):
        file = folder / "facescrub_images" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(face(10 if person == "Ann" else 60, place // 2))
    as_json(
        lists / "facescrub_features_list.json", {"id": [one for one, _ in probes], "path": [one for _, one in probes]}
    )
    paths = [f"{number}/a@b/{number}.jpg" for number in range(6)]
    for number, path in enumerate(paths):
        file = folder / "megaface_images" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(face(100 + number))
    as_json(lists / "megaface_features_list.json_5_1", {"path": paths[:5]})
    as_json(lists / "megaface_features_list.json_2_1", {"path": paths[4:]})
    (folder / "facescrub_noises.txt").write_text("# wrong\nAnn_1.jpg\n")
    (folder / "megaface_noises.txt").write_text(f"# wrong\n12\t{paths[2]}\n")
    return lists


def of_sec(root: Path, sizes: Sequence[int] = (10,)) -> None:
    """Everything that SEC's tables of faces read: records of six people, three sets of pairs, and distractors."""
    casia(root, people=(5, 5, 5, 5, 5, 5))
    for name in ("lfw", "agedb_30", "cfp_fp"):
        bin_file(root / "faces_webface_112x112" / f"{name}.bin")
    lists = megaface(root)
    paths = [f"{number}/a@b/{number}.jpg" for number in range(max(sizes))]
    for number, path in enumerate(paths):
        file = root / "megaface/megaface_images" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(face(5 * number % 250, number % 7))  # some as the probes are
    for size in sizes:
        as_json(lists / f"megaface_features_list.json_{size}_1", {"path": paths[:size]})
