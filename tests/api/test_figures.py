"""Figures over HTTP and on the command line: a sweep's in every format, and the files of a trial."""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sklearn.metrics import precision_recall_fscore_support

from api.client import Client
from api.commands.tables import write_results
from api.connection import ApiError
from orchestrator.settings import Settings
from orchestrator.views import runs
from orchestrator.views.pages import FIGURE_FORMATS
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, Conductor, result
from tests.api.test_cli import metricsweep
from workers.figures.arrays import packed

FIGURES = """\
figures:
  main: {kind: bars, metric: recall@1, x: loss}
  norms: {kind: distribution, data: norms, colour: loss}
"""
DRAWN = SPEC.replace("  iterations: 20\n", "  iterations: 20\n  figures: [norms, panels]\n") + FIGURES
SIGNS = {
    "json": ("application/json", b'"$schema"'), "svg": ("image/svg+xml", b"<svg"), "png": ("image/png", b"\x89PNG"),
    "pdf": ("application/pdf", b"%PDF"), "csv": ("text/csv", b"quantity,loss,mean"),
}  # fmt: skip


def train(conductor: Conductor, settings: Settings) -> None:
    """The first of the four trainings, with the files that its figures ask for."""
    arrays: Any = {"edges": np.arange(3.0), "counts": np.array([1, 2]), "mean": 1.0, "variance": 0.25}
    keep(conductor, settings, {"norms.npz": packed(arrays), "panels.png": b"\x89PNG"})


def keep(conductor: Conductor, settings: Settings, files: dict[str, bytes]) -> None:
    """The next training, which keeps weights and these files."""
    order = conductor.start()
    folder = settings.storage / order.training / str(order.number)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    kept = result().model_copy(update={"artifacts": ["best.safetensors", *files]})
    conductor.writer.events.write(runs.Finished(order.attempt, kept))


@pytest.fixture
def path(http: TestClient, conductor: Conductor, settings: Settings) -> str:
    """The address of the figures of a sweep of which two of four trials have finished."""
    conductor.submit(http, DRAWN)
    train(conductor, settings)
    conductor.finish(0.75)
    return "/v1/sweeps/1/figures"


def test_the_figures_of_a_sweep_are_listed(http: TestClient, path: str) -> None:
    main, norms = http.get(path).json()
    assert (main["name"], main["kind"], main["url"]) == ("main", "bars", f"{path}/main")
    assert main["formats"] == list(SIGNS) == list(FIGURE_FORMATS)
    assert norms["title"] == "four-trials"
    assert http.get("/v1/sweeps/1").json()["figures"] == ["main", "norms"]
    assert http.get("/v1/sweeps/9/figures").status_code == 404


def test_a_running_sweep_has_a_figure_in_every_format(http: TestClient, path: str) -> None:
    for name, (media_type, sign) in SIGNS.items():
        answer = http.get(f"{path}/main", params={"format": name})
        assert answer.status_code == 200, answer.text
        assert media_type in answer.headers["content-type"]
        assert sign in answer.content
        assert answer.headers["content-disposition"].endswith(f"four-trials-1-main.{name}")
    for query in ("/mian", "/main?format=gif", "/main?format=..", "/main?heading=perhaps"):
        wrong = http.get(path + query)
        assert wrong.status_code in (404, 422), query
        assert wrong.headers["content-type"] == "application/problem+json"


def test_missing_data_is_reported_and_the_heading_can_be_left_out(http: TestClient, path: str) -> None:
    facts = http.get(f"{path}/main").json()["usermeta"]
    assert (facts["complete"], facts["total"]) == (1, 2)
    bare = http.get(f"{path}/main", params={"heading": "false"}).json()
    assert bare["title"]["subtitle"] == ["Incomplete: 1 of 2 points are finished."]
    lost = http.get(f"{path}/norms").json()["usermeta"]["notes"]
    assert lost[-1] == "A data file is not drawn: the training of trial 2 kept no norms.npz."
    assert len(http.get(f"{path}/norms", params={"format": "csv"}).text.splitlines()) == 1 + 4


def test_the_files_of_a_trial(http: TestClient, path: str) -> None:
    listed = http.get("/v1/trials/1/figures").json()
    assert [one["name"] for one in listed] == ["norms.npz", "panels.png"]
    picture = http.get(listed[1]["url"])
    assert (picture.headers["content-type"], picture.content) == ("image/png", b"\x89PNG")
    again = http.get(listed[1]["url"], headers={"If-None-Match": picture.headers["etag"]})
    assert again.status_code == 304
    arrays = np.load(io.BytesIO(http.get(listed[0]["url"]).content), allow_pickle=False)
    assert arrays["counts"].tolist() == [1, 2]
    assert http.get("/v1/trials/2/figures").json() == []
    for wrong in ("best.safetensors", "..%2F..%2F..%2Fmetricsweep.db", "%2Fetc%2Fpasswd", "norms.npz%00"):
        assert http.get(f"/v1/trials/1/figures/{wrong}").status_code in (404, 422), wrong
    page = http.get("/trials/1").text
    assert 'href="/v1/trials/1/figures/norms.npz"' in page
    assert 'src="/v1/trials/1/figures/panels.png"' in page


def test_the_scores_of_each_class(http: TestClient, conductor: Conductor, settings: Settings) -> None:
    drawn = np.random.default_rng(0)
    labels, predicted = (drawn.integers(0, 5, 200, dtype=np.int32) for _ in range(2))
    predicted[predicted == 4] = 3  # nothing is taken for class 4
    scores: Any = {"query": np.arange(200), "class": labels, "recall@1": (labels == predicted).astype(np.float32)}
    about: Any = {"checkpoint": "best", "data": "", "names": ["ant", "bee", "cow", "<dog>", "eel"]}
    conductor.submit(http)
    keep(conductor, settings, {"queries.npz": packed({**scores, **about, "predicted": predicted})})
    keep(conductor, settings, {"queries.npz": packed({**scores, **about})})
    found = {one["name"]: one for one in http.get("/v1/trials/1/classes").json()["classes"]}
    expected = precision_recall_fscore_support(labels, predicted, zero_division=0.0)
    for label, name in enumerate(about["names"]):
        precision, recall, f1, queries = (column[label] for column in expected)
        one = found[name]
        assert (one["label"], one["queries"]) == (label, queries)
        assert (one["recall"], one["f1"]) == (pytest.approx(recall), pytest.approx(f1))
        assert one["precision"] == (pytest.approx(precision) if label < 4 else None)
        others = np.bincount(predicted[(labels == label) & (predicted != label)])
        assert others[about["names"].index(one["mistaken_for"])] == others.max()
    assert [one["f1"] for one in found.values()] == sorted(one["f1"] for one in found.values())
    page = http.get("/trials/1/classes").text
    assert "&lt;dog&gt;" in page
    assert "<dog>" not in page
    older = {one["name"]: one for one in http.get("/v1/trials/2/classes").json()["classes"]}
    assert {name: one["recall"] for name, one in older.items()} == {name: one["recall"] for name, one in found.items()}
    assert {one["f1"] for one in older.values()} == {None}
    for wrong in ("/v1/trials/3/classes", "/v1/trials/1/classes?split=test_lfw", "/v1/trials/9/classes"):
        assert http.get(wrong).status_code == 404, wrong
    other = drawn.integers(0, 5, 200, dtype=np.int32)
    for guesses in (predicted, other):
        keep(conductor, settings, {"queries.npz": packed({**scores, **about, "predicted": guesses})})
    both = http.get("/v1/trials/4/classes?seeds=true").json()
    recalls = precision_recall_fscore_support([*labels, *labels], [*predicted, *other], zero_division=0.0)[1]
    assert both["trials"] == [3, 4]
    assert {one["label"]: one["recall"] for one in both["classes"]} == pytest.approx(dict(enumerate(recalls)))
    assert http.get("/v1/trials/1/classes?seeds=true").json()["classes"][0]["f1"] is None, "trial 2 kept no `predicted`"


def test_the_client_and_the_command(url: str, path: str, tmp_path: Path) -> None:
    with Client(url, TOKEN) as client:
        assert [one.name for one in client.figures(1)] == ["main", "norms"]
        drawn = client.figure(1, "main", "svg", heading=False)
        assert (drawn.media_type, drawn.filename) == ("image/svg+xml", "four-trials-1-main.svg")
        assert client.figure_file(1, client.figure_files(1)[1].name).content == b"\x89PNG"
        with pytest.raises(ApiError, match="expected one of 'main', 'norms'"):
            client.figure(1, "other", "svg")
        drawn_alone = client.sweep(1).model_copy(update={"name": "four trials", "tables": [], "figures": ["main"]})
        names = [file.name for file in write_results(client, drawn_alone, tmp_path)]
        assert names == [f"four-trials-figure-main.{name}" for name in FIGURE_FORMATS]

    figure = partial(metricsweep, url, "figure")
    assert json.loads(figure(1).stdout)["usermeta"]["figure"] == "main"
    assert figure(1, "main", "--format", "csv", "--no-heading").stdout.startswith("quantity,")
    for option in ("-o", "--output", "--out"):
        file = tmp_path / "out" / f"f{option}.pdf"
        assert figure(1, "main", option, file).exit_code == 0
        assert file.read_bytes().startswith(b"%PDF")
    assert figure(1, "{kind: bars, metric: map@r, x: loss}", "--format", "csv").stdout.startswith("quantity,")
    assert figure(1, "{kind: bars, metric: map@r, x: los}").exit_code == 2
    assert figure(1, "other").exit_code == 2
    assert figure(1, "--format", "gif").exit_code == 2
    with Client(url, TOKEN) as client:
        bare = client.submit(SPEC.encode()).id
    none = figure(bare)
    assert (none.exit_code, "add one under `figures`" in none.stderr) == (2, True)
