"""The decoded data of a machine: built once, shared, and never half there."""

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.workers import trees
from workers.contract import DataDamagedError
from workers.data import decoded as decoded_module
from workers.data.decoded import decoded
from workers.data.pictures import Form, Picture, key


def pictures(root: Path, count: int = 4) -> list[Picture]:
    for number in range(count):
        trees.picture(root / f"{number}.jpg", number * 40, (60 + number, 40))
    return [Picture(root / f"{number}.jpg") for number in range(count)]


def folders(scratch: Path) -> list[Path]:
    return sorted(path for path in (scratch / "decoded").iterdir() if path.is_dir())


def test_equal_to_pil(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, size in (("wide", (61, 40)), ("tall", (40, 99))):
        pixels = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    files = [Picture(tmp_path / "wide.png"), Picture(tmp_path / "tall.png")]
    for resize, sizes in (
        ("shorter", [(24, 16), (16, 39)]),
        ("square", [(16, 16)] * 2),
        ("keep", [(61, 40), (40, 99)]),
    ):
        found = decoded("two", files, Form(resize, 16), tmp_path / "scratch")  # type: ignore[arg-type]
        split = found.split(range(2), torch.tensor([0, 1]))
        for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
            expected = np.asarray(Image.open(file.path).resize(size, Image.Resampling.BILINEAR))
            if resize == "keep":
                expected = np.asarray(Image.open(file.path))
            taken = split.take(torch.tensor([number]))
            assert taken.sizes.tolist() == [[size[1], size[0]]]
            assert np.array_equal(taken.images[0].permute(1, 2, 0).numpy(), expected)


def test_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = pictures(tmp_path)
    first = decoded("four", files, Form("square", 16), tmp_path)

    def fail(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(decoded_module, "_write", fail)
    assert decoded("four", files, Form("square", 16), tmp_path).digest == first.digest
    with pytest.raises(AssertionError, match="decoded again"):
        decoded("four", files, Form("square", 17), tmp_path)
    trees.picture(files[0].path, 200)
    os.utime(files[0].path, (1, 1))
    with pytest.raises(AssertionError, match="decoded again"):
        decoded("four", files, Form("square", 16), tmp_path)


def test_what_was_damaged_is_decoded_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = pictures(tmp_path)
    first = decoded("four", files, Form("shorter", 16), tmp_path)
    (folder,) = folders(tmp_path)
    for name in ("pixels", "shapes.npy", "about.json"):
        content = bytearray((folder / name).read_bytes())
        content[-20] ^= 1
        (folder / name).write_bytes(content)
        again = decoded("four", files, Form("shorter", 16), tmp_path)
        assert again.digest == first.digest
        (folder / name).write_bytes(content[:-1])
        assert decoded("four", files, Form("shorter", 16), tmp_path).digest == first.digest
    assert "is damaged: decoding anew" in capsys.readouterr().err
    assert folders(tmp_path) == [folder]


def test_nothing_is_left_of_a_failure_or_a_crash(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    good = files[2].path.read_bytes()
    files[2].path.write_bytes(good[:-30])
    with pytest.raises(DataDamagedError, match="cut off"):
        decoded("four", files, Form("square", 16), tmp_path)
    assert folders(tmp_path) == []
    files[2].path.write_bytes(good)
    name = f"four-{key(files, Form('square', 16), tmp_path)[:16]}"
    (tmp_path / "decoded" / f".{name}").mkdir()  # as a process that was killed leaves it
    (tmp_path / "decoded" / f".{name}" / "pixels").write_bytes(b"half")
    decoded("four", files, Form("square", 16), tmp_path)
    assert [path.name for path in folders(tmp_path)] == [name]


def _open(root: Path, count: int, answers: "multiprocessing.Queue[tuple[str, int]]") -> None:
    built: list[Path] = []
    write = decoded_module._write

    def counted(folder: Path, files: Sequence[Picture], form: Form) -> None:
        built.append(folder)
        write(folder, files, form)

    decoded_module._write = counted  # type: ignore[assignment]
    files = [Picture(root / f"{number}.jpg") for number in range(count)]
    answers.put((decoded("many", files, Form("shorter", 16), root).digest, len(built)))


def test_processes_at_once_build_once(tmp_path: Path) -> None:
    pictures(tmp_path, 40)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[tuple[str, int]] = context.Queue()
    processes = [context.Process(target=_open, args=(tmp_path, 40, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert len({digest for digest, _ in found}) == 1
    assert sum(built for _, built in found) == 1


def test_what_is_decoded_is_known_by_content_whatever_the_times_of_files_say(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    before = decoded("four", files, Form("square", 16), tmp_path).digest
    path, status = files[2].path, files[2].path.stat()
    with Image.open(path) as image:
        painted = Image.new(image.mode, image.size)
    aside = path.with_suffix(".new.png")
    painted.save(aside)
    aside.write_bytes(aside.read_bytes().ljust(status.st_size, b"\0"))
    os.utime(aside, ns=(status.st_atime_ns, status.st_mtime_ns))
    aside.replace(path)
    assert decoded("four", files, Form("square", 16), tmp_path).digest != before
