"""The files that trainings keep for figures: read where they are, and nothing else is."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.host.storage import Folder
from orchestrator.record import figure_files
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Finished, Started
from tests.record.conftest import ON_BOTH
from tests.record.sample import claimed, fail, lease, result, started

PNG = b"\x89PNG and so on"


def packed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


@pytest.fixture
def finished(store: Store, tmp_path: Path) -> tuple[FigureFiles, Path]:
    """The first of four trials has finished, and names what a test puts into its folder."""
    fence = lease(store)
    started(store, fence)
    order = claimed(store, fence)
    names = [
        "best.safetensors",
        "norms.npz",
        "panels.png",
        "../secret.npz",
        "/etc/passwd",
        "link.npz",
        "a b.svg",
        ".hidden",
    ]
    store.writer(fence).events.write(Started(order.attempt, "slot-0", "lab"))
    store.writer(fence).events.write(Finished(order.attempt, result(artifacts=names)))
    root = tmp_path / "storage"
    folder = root / order.training / str(order.number)
    folder.mkdir(parents=True)
    for name in ("best.safetensors", ".hidden"):
        (folder / name).write_bytes(b"weights")
    (folder / "norms.npz").write_bytes(packed(edges=np.arange(3.0), counts=np.array([1, 2])))
    (folder / "panels.png").write_bytes(PNG)
    (folder.parent / "secret.npz").write_bytes(packed(secret=np.ones(1)))
    (folder / "link.npz").symlink_to(folder.parent / "secret.npz")
    return FigureFiles(store, root), folder


def test_nothing_else_is(finished: tuple[FigureFiles, Path]) -> None:
    for name in (
        "best.safetensors",
        ".hidden",
        "../secret.npz",
        "..",
        "/etc/passwd",
        "link.npz",
        "secret.npz",
        "norms.npz/",
        "",
        "a\\b",
        "x",
    ):
        with pytest.raises(NotFoundError):
            finished[0].read(1, name)


def test_a_folder_that_leads_away_is_not_followed(finished: tuple[FigureFiles, Path], tmp_path: Path) -> None:
    files, folder = finished
    away = tmp_path / "away"
    away.mkdir()
    folder.rename(away / "1")
    folder.symlink_to(away / "1")
    with pytest.raises(NotFoundError):
        files.read(1, "norms.npz")
    assert files.arrays_of([1], "norms")[0] == {}


def test_arrays_are_read_by_trial(finished: tuple[FigureFiles, Path]) -> None:
    files, folder = finished
    found, missing = files.arrays_of([1, 2, 1], "norms")
    assert {name: one.tolist() for name, one in found[1].items()} == {"edges": [0, 1, 2], "counts": [1, 2]}
    assert missing == {2: "the training of trial 2 kept no norms.npz"}
    (folder / "norms.npz").unlink()
    found, missing = files.arrays_of([1], "norms")
    assert found == {}
    assert missing[1].startswith("norms.npz of trial 1 is not in the storage any more, or METRICSWEEP_STORAGE_URL")


def test_damaged_files_are_not_read(finished: tuple[FigureFiles, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files, folder = finished
    path = folder / "norms.npz"

    def trouble() -> str:
        found, missing = files.arrays_of([1], "norms")
        assert found == {}
        return missing[1]

    path.write_bytes(b"no archive")
    assert "damaged" in trouble()
    path.write_bytes(packed(edges=np.arange(3))[:-30])
    assert "damaged" in trouble()
    path.write_bytes(packed(edges=np.array([{"a": 1}], dtype=object)))  # a pickle within
    assert "damaged" in trouble()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", b"\x93NUMPY nothing of the kind")
    assert "damaged" in trouble()
    path.write_bytes(packed(edges=np.zeros(1_000_000)))
    monkeypatch.setattr(figure_files, "MAX_UNPACKED", 1_000)
    assert "unpacks to more" in trouble()
    monkeypatch.setattr(figure_files, "MAX_BYTES", 100)
    assert "larger than" in trouble()


@ON_BOTH
def test_the_attempt_that_finished_keeps_the_files(store: Store, fence: int, writer: Writer) -> None:
    started(store, fence)
    first = claimed(store, fence)
    fail(store, fence, first, requeue=True)
    again = next(order for order in iter(lambda: claimed(store, fence), None) if order.training == first.training)
    assert again.number == 2
    writer.events.write(Started(again.attempt, "slot-0", "lab"))
    writer.events.write(Finished(again.attempt, result(artifacts=["norms.npz"])))
    (kept,) = store.artifacts.of(range(1, 5)).values()
    assert (kept.folder, kept.names) == (f"{first.training}/2", ("norms.npz",))


def test_an_absent_store_hides_no_page(finished: tuple[FigureFiles, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = finished

    def away(*_: object) -> int:
        raise OSError("the store does not answer")

    monkeypatch.setattr(Folder, "size", away)
    assert files.listed(1) == []
    found, missing = files.arrays_of([1, 2, 3], "norms")
    assert found == {}
    assert all(missing[one].endswith("cannot be read: the store does not answer") for one in (1, 2, 3))
