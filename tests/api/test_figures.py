"""Figures over HTTP and on the command line: a sweep's in every format, and the files of a trial."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from api.cli import app
from api.client import Client
from api.commands.tables import write_figures
from api.connection import ApiError
from orchestrator.settings import Settings
from orchestrator.views import runs
from orchestrator.views.pages import FIGURE_FORMATS
from tests.api.conftest import TOKEN, named
from tests.api.played import SPEC, Conductor, result

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
    order = conductor.start()
    folder = settings.storage / order.training / str(order.number)
    folder.mkdir(parents=True)
    stream = io.BytesIO()
    np.savez_compressed(stream, edges=np.arange(3.0), counts=np.array([1, 2]), mean=1.0, variance=0.25)
    (folder / "norms.npz").write_bytes(stream.getvalue())
    (folder / "panels.png").write_bytes(b"\x89PNG")
    kept = result().model_copy(update={"artifacts": ["best.pt", "norms.npz", "panels.png"]})
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


def test_what_is_missing_is_said_and_the_heading_can_be_left_out(http: TestClient, path: str) -> None:
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
    for wrong in ("best.pt", "..%2F..%2F..%2Fmetricsweep.db", "%2Fetc%2Fpasswd", "norms.npz%00"):
        assert http.get(f"/v1/trials/1/figures/{wrong}").status_code in (404, 422), wrong
    page = http.get("/trials/1").text
    assert 'href="/v1/trials/1/figures/norms.npz"' in page
    assert 'src="/v1/trials/1/figures/panels.png"' in page


def test_the_client_and_the_command(url: str, path: str, tmp_path: Path) -> None:
    with Client(url, TOKEN) as client:
        assert [one.name for one in client.figures(1)] == ["main", "norms"]
        drawn = client.figure(1, "main", "svg", heading=False)
        assert (drawn.media_type, drawn.filename) == ("image/svg+xml", "four-trials-1-main.svg")
        assert client.figure_file(1, client.figure_files(1)[1].name).content == b"\x89PNG"
        with pytest.raises(ApiError, match="expected one of 'main', 'norms'"):
            client.figure(1, "other", "svg")
        names = [file.name for file in write_figures(client, 1, ["main"], "four trials", tmp_path)]
        assert names == [f"four-trials-figure-main.{name}" for name in FIGURE_FORMATS]

    def figure(*arguments: object) -> tuple[int, str]:
        asked = ["figure", *(str(one) for one in arguments)]
        answer = CliRunner().invoke(app, asked, env=named(url))
        return answer.exit_code, answer.stdout

    assert json.loads(figure(1)[1])["usermeta"]["figure"] == "main"
    assert figure(1, "main", "--format", "csv", "--no-heading")[1].startswith("quantity,")
    for option in ("-o", "--output", "--out"):
        file = tmp_path / "out" / f"f{option}.pdf"
        assert figure(1, "main", option, file)[0] == 0
        assert file.read_bytes().startswith(b"%PDF")
    assert figure(1, "other")[0] == 2
    assert figure(1, "--format", "gif")[0] == 2
    with Client(url, TOKEN) as client:
        bare = client.submit(SPEC.encode()).id
    none = CliRunner().invoke(app, ["figure", str(bare)], env=named(url))
    assert (none.exit_code, "add one under `figures`" in none.stderr) == (2, True)
