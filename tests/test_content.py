"""What is reused was trained by the code and on the files that are there: edited own parts and changed images train."""

import io
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from orchestrator.conduct.conductor import Conductor
from orchestrator.record.store import Store
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.sweeps import SweepView
from tests.inline_conductor import workplace
from tests.served import until
from tests.workers import trees
from workers import catalog as catalogs

LOSS = '''"""A loss of our own."""

from torch import nn

from ._scale import SCALE


class Circle(nn.Module):
    """The mean of all embeddings."""

    version = 1
    order = "free"

    def forward(self, embeddings, labels):
        """A scalar."""
        return embeddings.mean() * SCALE
'''
DATASET = '''"""A data set of our own."""

import torch

from workers.data.images import Images


class Dots:
    """Bytes of a file as images."""

    version = 1
    channels = 1
    side = 8
    manifest = None

    def __init__(self, root, *, file: str, content: str | None = None) -> None:
        self.expected = content
        pixels = torch.frombuffer(bytearray((root / file).read_bytes()), dtype=torch.uint8).view(-1, 1, 8, 8)
        labels = torch.arange(len(pixels)) // 4
        every = Images(pixels, labels)
        self.train, self.test = (every.of_classes(torch.arange(8) // 4 == half) for half in (0, 1))
'''


class Installation:
    """A home with data and own parts, whose trainings run in this process, which is warm."""

    def __init__(self, folder: Path) -> None:
        self.data, self.parts = folder / "data", folder / "own"
        for kind in "losses", "datasets":
            (self.parts / kind).mkdir(parents=True)
        self.data.mkdir()
        (self.parts / "losses" / "circle.py").write_text(LOSS)
        (self.parts / "losses" / "_scale.py").write_text("SCALE = 1.0\n")
        (self.parts / "datasets" / "dots.py").write_text(DATASET)
        trees.class_folders(self.data / "birds", dict.fromkeys("abcdefgh", 4))
        self.settings = Settings(
            home=folder / "home", data=self.data, parts=self.parts, engine="inline", lease_seconds=5
        )
        self.service = Service.open(self.settings)
        self.store = Store.open(self.settings.database)
        self.catalog = catalogs.LiveCatalog.at(self.parts)

    def run(self, name: str, **changes: Any) -> SweepView:
        """Submit a sweep of two trainings and have all of it trained by a new conductor."""
        return self.conduct(self.service.submissions.submit(self.spec(name, **changes)).id)

    def conduct(self, sweep: int) -> SweepView:
        """Have a new conductor do what there is to do."""
        self.conductor().conduct(until_idle=True)
        return self.service.sweeps.get(sweep)

    def conductor(self) -> Conductor:
        """A conductor whose trainings run in its own process."""
        return Conductor(self.settings, self.store, Inline(workplace(self.settings)), self.catalog, None)

    def spec(self, name: str, **changes: Any) -> bytes:
        recipe = {
            "dataset": {"name": "image_folder", "folder": "birds", "side": 8},
            "backbone": {"name": "small_cnn", "width": 4},
            "embedding": 4,
            "sampler": {"name": "balanced", "classes": 2, "per_class": 2},
            "iterations": 1,
            "loss": "triplet",
            "validation": "none",
        }
        held = changes.pop("recipe", {})
        document = {
            "version": 1,
            "name": name,
            "recipe": recipe | held,
            "select": {"split": "last", "metric": "recall@1"},
            "repeat": {"seed": [0, 1]},
            "slot": {"gpus": 0},
            "tables": {"main": {"rows": ["loss"], "metrics": ["recall@1"]}},
        }
        loss = document["recipe"].pop("loss")
        return yaml.safe_dump({**document, "compare": {"loss": [loss]}, **changes}, sort_keys=False).encode()

    def provenance(self, sweep: int) -> list[dict[str, Any]]:
        trials = self.service.store.trials.page(sweep, None, None, None, 9).items
        return [self.service.trials.get(one.id).provenance for one in trials]

    def close(self) -> None:
        self.service.close()
        self.store.close()


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path)
    yield made
    made.close()


def paint(folder: Path) -> None:
    """Make every image black."""
    for path in folder.rglob("*.jpg"):
        with Image.open(path) as image:
            size = image.size
        Image.new("RGB", size).save(path)


def reused(sweep: SweepView) -> tuple[str, int]:
    return sweep.state, sweep.counts.reused


def test_changed_images_train_again_and_the_old_images_are_recognized(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(installed.data / "birds", installed.data / "kept")
    first = installed.run("first")
    paint(installed.data / "birds")
    machines, late = Inline.machines, iter([[]])  # no node has joined at the first look
    monkeypatch.setattr(Inline, "machines", lambda self: next(late, machines(self)))
    second = installed.run("second")
    assert reused(second) == ("finished", 0)
    manifests = [one["manifest"] for sweep in (first, second) for one in installed.provenance(sweep.id)]
    assert len(set(manifests)) == 2, manifests
    shutil.rmtree(installed.data / "birds")
    (installed.data / "kept").rename(installed.data / "birds")
    third = installed.run("third")
    assert reused(third) == ("finished", 2)
    message = f"2 of 2 trainings are reused, trained on {datetime.now(UTC):%Y-%m-%d}; `fresh: true` trains again"
    submitted = installed.service.submissions.submit(installed.spec("fourth"))
    preview = installed.service.submissions.preview(installed.spec("fourth"))
    assert third.reuse is not None
    assert submitted.reuse is not None
    assert [third.reuse.summary, submitted.reuse.summary, preview.summary[-1]] == 3 * [message]


def test_an_edited_csv_is_trained_on_anew_and_the_old_one_is_known_again(installed: Installation) -> None:
    paths = sorted((installed.data / "birds").rglob("*.jpg"))
    lines = [f"{path.parent.name}/{path.name},{path.parent.name}\n" for path in paths]
    dataset = {"name": "csv", "file": "birds/list.csv", "split": None, "side": 8}
    states = []
    for name, some in (("first", lines), ("fewer", lines[:-1]), ("again", lines)):
        (installed.data / "birds/list.csv").write_text("path,label\n" + "".join(some))
        states.append(reused(installed.run(name, recipe={"dataset": dataset})))
    assert states == [("finished", 0), ("finished", 0), ("finished", 2)]


def test_damaged_images_stop_a_training_or_are_skipped_and_counted(installed: Installation) -> None:
    for name in "ah":
        (installed.data / "birds" / name / "1.jpg").write_bytes(b"no image")
    assert installed.run("stops").counts.failed == 2
    folder = {"name": "image_folder", "folder": "birds", "side": 8, "on_error": "skip"}
    sweep = installed.run("skips", recipe={"dataset": folder})
    (found, _) = installed.provenance(sweep.id)
    assert found["skipped"] == {"images": 2, "names": ["birds/a/1.jpg", "birds/h/1.jpg"]}
    table = installed.service.tables.render(sweep.id, "main", "markdown").content.decode()
    assert "2 damaged images were left out." in table


def test_an_edited_own_loss_and_a_module_that_it_imports_are_trained_anew(installed: Installation) -> None:
    circle, scale = (installed.parts / "losses" / name for name in ("circle.py", "_scale.py"))
    own = {"loss": "circle", "dataset": "digits"}
    assert reused(installed.run("first", recipe=own)) == ("finished", 0)
    assert reused(installed.run("second", recipe=own)) == ("finished", 2)
    scale.write_text("SCALE = 0.5\n")
    assert reused(installed.run("third", recipe=own)) == ("finished", 0)
    circle.write_text(LOSS.replace(".mean()", ".mean() * 0.0"))
    assert reused(installed.run("fourth", recipe=own)) == ("finished", 0)
    code = [installed.provenance(sweep)[0]["code"]["loss"] for sweep in (1, 3, 4)]
    assert len(set(code)) == 3


def test_the_source_of_an_own_loss_is_kept_with_the_result_and_in_the_bundle(installed: Installation) -> None:
    own = {"loss": "circle", "dataset": "digits"}
    sweep = installed.run("first", recipe=own).id
    (installed.parts / "losses" / "circle.py").unlink()
    with installed.service.bundles.make(sweep) as file, zipfile.ZipFile(file) as bundle:
        (entry,) = json.loads(bundle.read("manifest.json"))["own_code"]
        packed = bundle.read(entry["file"])
    assert entry["code"] == installed.provenance(sweep)[0]["code"]
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["losses/_scale.py", "losses/circle.py"]
        assert archive.read("losses/circle.py").decode() == LOSS


def test_the_file_that_an_own_data_set_declares_counts(installed: Installation) -> None:
    path = installed.data / "dots.bin"
    path.write_bytes(bytes(range(256)) * 8)
    own = {"dataset": {"name": "dots", "file": "dots.bin"}}
    first = installed.run("first", recipe=own)
    assert reused(installed.run("second", recipe=own)) == ("finished", 2)
    path.write_bytes(bytes(64 * 32))
    assert reused(installed.run("third", recipe=own)) == ("finished", 0)
    (found, _) = installed.provenance(first.id)
    assert found["manifest"].startswith("sha256:")
    assert found["content"].startswith("sha256:")


def test_an_own_data_set_that_declares_nothing_is_never_reused(installed: Installation) -> None:
    undeclared = DATASET.replace("file: str, ", "").replace("root / file", "root / 'dots.bin'")
    (installed.parts / "datasets" / "dots.py").write_text(undeclared)
    (installed.data / "dots.bin").write_bytes(bytes(range(256)) * 8)
    own = {"dataset": "dots"}
    assert reused(installed.run("first", recipe=own)) == ("finished", 0)
    assert reused(installed.run("second", recipe=own)) == ("finished", 0)


def test_a_running_service_sees_parts_that_are_added_edited_and_broken(installed: Installation) -> None:
    own = {"loss": "later", "dataset": "digits"}
    with pytest.raises(InvalidSpecError, match="no loss named 'later'"):
        installed.service.submissions.submit(installed.spec("first", recipe=own))
    path = installed.parts / "losses" / "later.py"
    path.write_text(LOSS.replace("class Circle", "class Later"))
    assert installed.service.catalog().get("loss", "later") is not None
    assert "later" in json.dumps(installed.service.json_schema())
    assert reused(installed.run("first", recipe=own)) == ("finished", 0)
    path.write_text(LOSS.replace("class Circle", "class Later").replace("self, embeddings", "self embeddings"))
    with pytest.raises(InvalidSpecError, match=r"losses/later.py: line 14"):
        installed.service.submissions.submit(installed.spec("second", recipe=own))
    path.unlink()
    with pytest.raises(InvalidSpecError, match="no loss named 'later'"):
        installed.service.submissions.submit(installed.spec("third", recipe=own))


def test_what_waits_is_planned_anew_once_its_loss_is_edited(installed: Installation) -> None:
    own = {"loss": "circle", "dataset": "digits"}
    installed.run("first", recipe=own)
    sweep = installed.service.submissions.submit(installed.spec("second", recipe=own, fresh=True)).id
    circle = installed.parts / "losses" / "circle.py"

    def edit() -> bool:
        if installed.service.sweeps.get(sweep).counts.total and "0.5" not in circle.read_text():
            circle.write_text(LOSS.replace(".mean()", ".mean() * 0.5"))
        return active()

    active = installed.store.sweeps.active
    installed.store.sweeps.active = edit  # type: ignore[method-assign]
    found = installed.conduct(sweep)
    assert (found.state, found.counts.finished) == ("finished", 2)
    assert len({one["code"]["loss"] for one in installed.provenance(sweep)}) == 1
    assert installed.provenance(sweep)[0]["code"] != installed.provenance(1)[0]["code"]


def test_trainings_wait_while_the_files_are_not_those_that_they_were_planned_with(installed: Installation) -> None:
    sweep = installed.service.submissions.submit(installed.spec("first")).id
    birds, kept = installed.data / "birds", installed.data / "kept"
    shutil.copytree(birds, kept)
    active = installed.store.sweeps.active

    def exchange() -> bool:
        if installed.service.sweeps.get(sweep).counts.total and kept.exists():
            paint(birds)
            kept.rename(installed.data / "whole")
        return active()

    installed.store.sweeps.active = exchange  # type: ignore[method-assign]
    found = installed.conduct(sweep)
    assert (found.state, found.counts.waiting, found.counts.failed) == ("running", 2, 0)
    assert "image_folder folder=birds" in (found.notice or "")
    assert "other files than when the sweep was planned" in (found.notice or "")
    shutil.rmtree(birds)
    (installed.data / "whole").rename(birds)
    assert installed.conduct(sweep).counts.finished == 2


TUTORIAL: dict[str, Any] = {
    "recipe": {
        "dataset": {"name": "image_folder", "folder": "shapes", "side": 8},
        "validation": {"name": "class_holdout", "folds": 2, "fold": 0},
    },
    "select": {"metric": "map@r", "split": "validation"},
}


@pytest.fixture
def conducted(installed: Installation) -> Iterator[Installation]:
    """The installation with a conductor that goes on."""
    conductor = installed.conductor()
    thread = threading.Thread(target=conductor.conduct)
    thread.start()
    try:
        until(installed.store.lease.conducted, "it conducts")
        yield installed
    finally:
        conductor.close()
        thread.join()


def test_too_few_classes_of_a_folder_are_refused_with_the_way_out(conducted: Installation) -> None:
    shapes = conducted.data / "shapes"
    trees.class_folders(shapes, {f"class{number}": 4 for number in range(7)})
    with pytest.raises(InvalidSpecError) as refused:
        conducted.service.submissions.submit(conducted.spec("few", **TUTORIAL))
    said = str(refused.value)
    assert "image_folder's 3 training classes" in said, said
    assert "`dataset.train_classes`), or hold nothing out (`validation: none`)" in said
    trees.class_folders(shapes, {f"class{number}": 4 for number in range(8)})
    sweep = conducted.service.submissions.submit(conducted.spec("enough", **TUTORIAL)).id
    until(lambda: conducted.service.sweeps.get(sweep).state in SWEEP_ENDED, "the sweep ends")
    found = conducted.service.sweeps.get(sweep)
    assert (found.state, found.counts.finished) == ("finished", 2), found.problems
