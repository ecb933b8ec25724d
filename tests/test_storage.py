"""The storage as a folder and as a bucket of a real S3-compatible server, also where its store is late or broken."""
# ruff: noqa: F811 - fixtures that are imported

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.__main__ import main as api
from api.main import create_app
from orchestrator.__main__ import main
from orchestrator.host.storage import Bucket, Folder, opened
from orchestrator.record.retention import WeightFiles
from orchestrator.record.store import Store
from orchestrator.run import workdir
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import settle_from_spool
from orchestrator.run.spool import Message, PartedSpool, read
from orchestrator.service.backups import back_up, restore
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Failure
from tests.api.conftest import BEARER, TOKEN, URL
from tests.inline_conductor import conduct, ran
from tests.lying_store import Lies, lying
from tests.object_store import ObjectStore, bucket_at, bucket_url, object_store, put  # noqa: F401 - fixtures
from tests.run.broker import MemoryBroker, order
from workers.contract import Result
from workers.data.scratch import unmade
from workers.model import load

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "far",
    "recipe": {
        "dataset": "digits",
        "backbone": {"name": "mlp", "width": 16},
        "embedding": 8,
        "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
        "iterations": 12,
        "evaluate_every": 4,
        "figures": ["norms"],
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    },
    "repeat": {"seed": [0, 1]},
    "slot": {"cpus": 1, "gpus": 0},
    "tables": {"main": {"rows": [], "columns": ["dataset"], "metrics": ["map@r"]}},
}


@pytest.fixture(autouse=True)
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's scratch folder, for this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return unmade()


def settings_at(home: Path, url: str, train: str = "hasty") -> Settings:
    return Settings(
        home=home, storage_url=url, engine="inline", train=f"tests.remote_trainings:{train}", lease_seconds=1
    )


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Folder | Bucket:
    if request.param == "folder":
        return Folder(tmp_path / "storage")
    return bucket_at(request.getfixturevalue("bucket_url"))


def test_a_folder_and_a_bucket_answer_alike(place: Folder | Bucket) -> None:
    place.check()
    assert place.names("t") == []
    for folder, name in (("t/1", "last.pt"), ("t/1", "a b.npz"), ("t/2", "x"), ("other/1", "x")):
        put(place, folder, name, name.encode())
    assert place.names("t/1") == ["a b.npz", "last.pt"]
    assert place.names("t") == [], "folders are no files"
    assert (place.size("t/1", "a b.npz"), place.content("t/1", "a b.npz")) == (7, b"a b.npz")
    for missing in (("t/1", "y"), ("t/3", "x"), ("t", "1")):
        with pytest.raises(OSError):  # noqa: PT011 - the kinds differ for a folder, which is never requested
            place.content(*missing)
    with pytest.raises(FileNotFoundError):
        place.size("t/1", "y")
    place.remove("t")
    place.remove("t")
    assert (place.names("t/1"), place.names("other/1")) == ([], ["x"])
    for folder, name in (
        ("t/1", "last.pt"),
        ("t/2", "best.safetensors"),
        ("t/2", "norms.npz"),
        ("u/1", "best.safetensors"),
    ):
        put(place, folder, name, b"1234")
    kept = WeightFiles(place)
    files = kept.of("t", [1, 2, 3])
    assert files == [("t/1", "last.pt", 4), ("t/2", "best.safetensors", 4)]
    for _ in range(2):
        kept.remove(files)
    assert (kept.of("t", [1, 2, 3]), place.entries("t/2")) == ([], [("norms.npz", 4)])
    assert kept.of("u", [1]) == [("u/1", "best.safetensors", 4)]
    assert place.problem() is None


WRONG = {
    "gopher://bucket/x?region=hush": "no storage of the kind gopher://; give a folder, file:///folder or s3://",
    "s3://": "no bucket; give it as s3://bucket/folder",
    "s3:///folder?region=hush": "no bucket",
    "s3://127.0.0.1:9000/bucket": "no bucket",
    "s3://me:hush@bucket/folder": "no credentials in the URL; set AWS_ACCESS_KEY_ID",
    "s3://bucket?endpoint_override=me:hush@minio:9000": "no credentials in the URL",
    "s3://bucket?secret_key=hush": "no option 'secret_key' of an s3:// URL; there are endpoint_override",
    "s3://bucket?scheme=ftp": "is http or https",
}


def test_a_wrong_url_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("METRICSWEEP_HOME", str(tmp_path))
    for url, says in WRONG.items():
        monkeypatch.setenv("METRICSWEEP_STORAGE_URL", url)
        for start, status in ((lambda: main(["conduct"]), 1), (api, 2)):
            assert start() == status, url
            told = capfd.readouterr().err
            assert "METRICSWEEP_STORAGE_URL" in told, url
            assert says in " ".join(told.split()), url
            assert "hush" not in told, url


def test_a_missing_bucket_is_refused_at_the_start(
    object_store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("METRICSWEEP_HOME", str(tmp_path))
    monkeypatch.setenv("METRICSWEEP_STORAGE_URL", object_store.url("nowhere/x"))
    with caplog.at_level(logging.WARNING):
        opened("s3://bucket?endpoint_override=127.0.0.1:9&scheme=http").check()  # away, but it may come
    assert "METRICSWEEP_STORAGE_URL: its bucket in s3://bucket" in caplog.text
    assert main(["conduct"]) == 1
    assert "METRICSWEEP_STORAGE_URL: 127.0.0.1:" in (said := capsys.readouterr().err)
    assert "has no bucket 'nowhere'; make it" in said


def test_paths_stay_what_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("kept", f"file://{tmp_path}/kept", str(tmp_path / "kept")):
        assert Settings(storage_url=url).storage == tmp_path / "kept"
    assert Settings(home=tmp_path).storage == tmp_path / "storage"


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_the_model_of_a_trial_is_downloaded_and_embeds(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("bucket_url") if kind == "bucket" else str(tmp_path / "kept")
    settings = settings_at(tmp_path / "home", url)
    settings.resolved_home.mkdir(mode=0o700)
    service = Service.open(settings)
    number = ran(service, settings, yaml.safe_dump(SPEC).encode())
    first, second = service.store.trials.page(number, None, None, None, 10).items
    app = create_app(service, settings.model_copy(update={"token": SecretStr(TOKEN)}))
    http = TestClient(app, base_url=URL, headers=BEARER)
    answer = http.get(f"/v1/trials/{first.id}/model")
    assert answer.headers["content-disposition"] == f'attachment; filename="trial-{first.id}.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["README.md", "recipe.json", "preprocessing.json", "model.safetensors"]
        archive.extractall(tmp_path / "model")
    recipe = json.loads((tmp_path / "model" / "recipe.json").read_text())
    prepared = json.loads((tmp_path / "model" / "preprocessing.json").read_text())
    assert recipe == service.trials.get(first.id).recipe
    assert (prepared["centre_crop"], prepared["normalize"]["scale"], prepared["shape"]) == (8, 127.5, [1, 8, 8])
    assert '"seed": "0"' in (tmp_path / "model" / "README.md").read_text()
    assert load(tmp_path / "model", "cpu").embed(np.zeros((3, 8, 8), np.uint8)).shape == (3, 8)
    assert f"/v1/trials/{first.id}/model" in http.get(f"/trials/{first.id}").text
    kept = service.store.artifacts.of_trial(second.id)
    assert kept is not None
    if kind == "folder":
        header = json.dumps({"__metadata__": {"recipe": "{}", "network": "[1]"}}).encode()
        damaged = len(header).to_bytes(8, "little") + header
        (tmp_path / "kept" / kept.folder / "best.safetensors").write_bytes(damaged)
        refused = http.get(f"/v1/trials/{second.id}/model")
        assert (refused.status_code, "is damaged" in refused.json()["detail"]) == (404, True)
    opened(settings.storage).discard(kept.folder, "best.safetensors")
    for trial, message in ((second.id, "is not in the storage any more"), (99, "no trial 99")):
        gone = http.get(f"/v1/trials/{trial}/model")
        assert (gone.status_code, message in gone.json()["detail"]) == (404, True)


def test_a_sweep_over_a_bucket(bucket_url: str, own_scratch: Path, tmp_path: Path) -> None:
    settings = settings_at(tmp_path, bucket_url)
    service = Service.open(settings)
    sweep = ran(service, settings, yaml.safe_dump(SPEC).encode())
    assert service.sweeps.get(sweep).counts.finished == 2
    bucket = bucket_at(bucket_url)
    first = service.store.trials.page(sweep, None, None, None, 10).items[0].id
    log = service.store.logs.of(first).text
    assert "not stored" not in log
    trial = service.trials.get(first)
    file, scores = service.files.listed(first)
    assert scores.name == "queries.npz"
    assert (file.name, file.size) == ("norms.npz", len(service.files.read(first, "norms.npz").content))
    arrays, missing = service.files.arrays_of([first], "norms")
    assert arrays.keys() == {first}
    assert missing == {}
    folder = Store.open(settings.database).artifacts.of([first])[first].folder
    names = bucket.names(folder)
    assert [name for name in names if not name.startswith("spool-")] == [
        "best.safetensors",
        "norms.npz",
        "queries.npz",
    ], "last.pt is gone"
    assert len(names) > 10, "the spool went along with the checkpoints"
    assert not list(own_scratch.glob("attempts/*/*")), "nothing stays on the machine that trained"
    assert trial.attempts[0].number == 1
    service.commands.delete(sweep, "far")
    conduct(settings)
    assert bucket.names(folder) == []
    service.close()


@pytest.mark.soak
def test_killed_in_the_middle_it_goes_on_from_the_bucket(
    object_store: ObjectStore,
    bucket_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump({**SPEC, "repeat": {"seed": [0]}}))
    told = {
        "METRICSWEEP_HOME": str(tmp_path), "METRICSWEEP_STORAGE_URL": bucket_url, "METRICSWEEP_LEASE_SECONDS": "1",
        "METRICSWEEP_TRAIN": "tests.remote_trainings:killed", "TMPDIR": str(tmp_path / "other machine"),
    }  # fmt: skip
    (tmp_path / "other machine").mkdir()
    command = [sys.executable, "-m", "orchestrator", "run", str(spec)]
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    settings = settings_at(tmp_path, bucket_url, "killed")
    monkeypatch.setattr("orchestrator.host.storage.REQUEST_SECONDS", 3.0)
    held = "holding, nothing is requeued: the storage does not answer"

    def come_back_once_missed() -> None:  # by the messages, not by the clock: other tests make it slow
        until = time.monotonic() + 120
        while held not in caplog.text and time.monotonic() < until:
            time.sleep(0.1)
        object_store.go_on()

    object_store.halt()
    back = threading.Thread(target=come_back_once_missed)
    back.start()
    conduct(settings)
    back.join()
    assert held in caplog.text
    service = Service.open(settings)
    trial = service.trials.get(service.store.trials.page(1, None, None, None, 10).items[0].id)
    assert [each.state for each in trial.attempts] == ["lost", "finished"]
    assert "training from step 3 on cpu" in service.store.logs.of(trial.id).text
    service.close()
    whole = settings_at(tmp_path / "whole", "", "hasty")
    service = Service.open(whole)
    service.submissions.submit(spec.read_bytes())
    conduct(whole)
    assert service.trials.get(1).metrics == trial.metrics, "as if it had not been killed"
    service.close()


def test_leftovers_of_a_killed_attempt_are_removed(bucket_url: str, own_scratch: Path) -> None:
    from tests.run.broker import order

    first, second = order(), order()
    killed = own_scratch / "attempts" / "gone" / "1"
    killed.mkdir(parents=True)
    (killed / workdir.HELD).touch()
    (killed / "last.pt").touch()
    directories = [
        workdir.RemoteWorkDirectory(bucket_at(bucket_url), each, own_scratch, lambda: False) for each in (first, second)
    ]
    for each in directories:
        each.open()
    assert not killed.parent.exists()
    assert directories[0].folder.is_dir(), "it is at work"
    for each in directories:
        each.end("stopped", {})
    assert not list(own_scratch.glob("attempts/*/*"))


def test_a_bucket_is_backed_up_and_restored(
    bucket_url: str, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into another bucket, and into the folder of a home; never into one that holds anything."""
    for name in ("DATABASE_URL", "STORAGE_URL"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    home = Settings(home=tmp_path / "home", storage_url=bucket_url)
    home.resolved_home.mkdir(mode=0o700)
    Store.open(home.database).close()
    objects = {
        "a/1/best.safetensors": os.urandom(3_000),
        "a/1/curves.json": b"{}",
        "b/2/last.ckpt": b"state",
        "top": b"",
    }
    for key, content in objects.items():
        above, _, last = key.rpartition("/")
        (tmp_path / last).write_bytes(content)
        bucket_at(bucket_url).put(tmp_path / last, above, last)
    made = back_up(home, tmp_path / "backup", print)
    assert {one.path.removeprefix("storage/") for one in made.files} == {"metricsweep.db", *objects}
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "backup").rglob("*"))

    there = Settings(home=tmp_path / "there", storage_url=object_store.new_bucket())
    restore(tmp_path / "backup", there, print)
    assert list(bucket_at(str(there.storage)).every()) == sorted(objects)
    restore(tmp_path / "backup", Settings(home=tmp_path / "file"), print)
    for key, content in objects.items():
        above, _, last = key.rpartition("/")
        assert (tmp_path / "file" / "storage" / key).read_bytes() == content
        bucket_at(str(there.storage)).fetch(key, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == content
    assert not (there.resolved_home / "storage").exists()
    again = there.model_copy(update={"home": tmp_path / "again"})
    with pytest.raises(ConflictError, match="bucket's folder is not empty"):
        restore(tmp_path / "backup", again, print)


@pytest.fixture
def lies() -> Lies:
    return Lies()


@pytest.fixture
def url(object_store: ObjectStore, bucket_url: str, lies: Lies) -> Iterator[str]:
    """The bucket as the liar shows it."""
    with lying(object_store.port, lies) as port:
        yield bucket_url.replace(f":{object_store.port}", f":{port}")


@pytest.fixture
def bucket(url: str) -> Bucket:
    return bucket_at(url)


def spooled(bucket: Bucket, folder: str, *counts: int) -> list[Message]:
    """A spool of so many parts, of so many messages each."""
    spool, told = PartedSpool(bucket, folder), []
    for count in counts:
        told += [spool.append("progress", {"step": at, "total": 9}) for at in range(count)]
        spool.flush()
    return told


def test_what_a_listing_lacks_is_read(bucket: Bucket, lies: Lies) -> None:
    messages = spooled(bucket, "t/1", 3, 1, 12, 1)
    for hidden in ((1,), (4,), (17,), (5, 17), (1, 4, 5, 17)):
        lies.hides = lambda key, hidden=hidden: any(f"spool-{first:09d}" in key for first in hidden)
        for seen in (0, 3, 6, 16, 17):
            assert list(read(bucket, "t/1", seen)) == messages[seen:], (hidden, seen)


def test_removed_parts_that_a_listing_still_shows_hold_no_messages(bucket: Bucket, lies: Lies) -> None:
    lies.remembers = True
    spooled(bucket, "t/1", 2, 2)
    assert len(bucket.names("t/1")) == 2
    bucket.remove("t")
    assert len(bucket.names("t/1")) == 2, "it lies"
    assert [list(read(bucket, "t/1", seen)) for seen in range(5)] == [[]] * 5
    messages = spooled(bucket, "t/1", 3)  # a part of the same name, and one that is gone
    assert list(read(bucket, "t/1", 2)) == messages[2:]


def parts(lies: Lies) -> list[str]:
    return [path for method, path in lies.seen if method == "PUT" and "partNumber=" in path]


CONTENT = np.random.default_rng(0).bytes(25_000_000)  # three parts


class Break:
    """Breaks the first requests of a kind."""

    def __init__(self, method: str, word: str, times: int) -> None:
        self.method, self.word, self.left = method, word, times

    def __call__(self, method: str, path: str) -> bool:
        hit = self.left > 0 and method == self.method and self.word in path
        self.left -= hit
        return hit


def test_an_upload_that_breaks_once_sends_that_part_again(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    lies.cuts = Break("PUT", "partNumber=2", 1)
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    sent = ["".join(path.partition("partNumber=")[2][:1]) for path in parts(lies)]
    assert sorted(sent) == ["1", "2", "2", "3"]
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_an_upload_that_breaks_for_good_keeps_the_one_before(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(b"before")
    bucket.put(tmp_path / "before", "t/1", "last.pt")
    (tmp_path / "here").write_bytes(CONTENT)
    lies.cuts = Break("PUT", "partNumber=2", 99)
    with pytest.raises(OSError, match=r"last\.pt"):
        bucket.put(tmp_path / "here", "t/1", "last.pt")
    lies.cuts = lambda method, path: False
    assert bucket.content("t/1", "last.pt") == b"before"
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    assert bucket.size("t/1", "last.pt") == len(CONTENT)


def test_a_download_that_breaks_is_made_whole_or_is_an_error(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    lies.cuts = Break("GET", "last.pt", 1)  # the client asks for the rest by itself
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT
    lies.cuts = Break("GET", "last.pt", 99)
    with pytest.raises(OSError, match=r"last\.pt"):
        bucket.fetch("t/1/last.pt", tmp_path / "back")
    lies.cuts = lambda method, path: False
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_messages_missing_from_a_truncated_listing_are_read(bucket: Bucket, lies: Lies) -> None:
    messages = spooled(bucket, "t/1", 1, 2, 3, 4)
    for lies.page in (0, 1, 2):
        assert len(bucket.names("t/1")) == lies.page
        assert list(read(bucket, "t/1")) == messages
        assert list(read(bucket, "t/1", 8)) == messages[8:]


def test_a_training_whose_end_was_not_received_ends_once(bucket: Bucket, url: str, lies: Lies, tmp_path: Path) -> None:
    each = order()
    spool = PartedSpool(bucket, f"{each.training}/1")
    spool.append("progress", {"step": 3, "total": 3})
    spool.flush()
    spool.append("finished", Result(outcome="ok", metrics={}, steps=3, seconds=0.1).model_dump(mode="json"))
    spool.flush()
    lies.hides = lambda key: True
    broker = MemoryBroker(deque())
    settle_from_spool(broker, each, Workplace("", url, tmp_path), 0, Failure("infrastructure", "slot is gone"))
    assert (list(broker.results), broker.failures, list(broker.waiting)) == ([each.training], [], [])


def test_weights_missing_from_a_listing_are_removed(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"weights")
    for name in ("best.safetensors", "last.pt", "odd.ckpt", "norms.npz"):
        bucket.put(tmp_path / "here", "t/1", name)
    lies.hides = lambda key: "best" in key or "last" in key
    files = WeightFiles(bucket)
    found = files.of("t", [1])
    assert found == [("t/1", "best.safetensors", 7), ("t/1", "last.pt", 7), ("t/1", "odd.ckpt", 7)]
    files.remove(found)
    lies.hides = lambda key: False
    lies.remembers = True
    assert bucket.names("t/1") == ["best.safetensors", "last.pt", "norms.npz", "odd.ckpt"], "it lies"
    assert files.of("t", [1]) == []
    files.remove(found)
    assert bucket.content("t/1", "norms.npz") == b"weights"
