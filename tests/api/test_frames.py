"""Frames over HTTP: every trial, candidate and point once, with the values of the other routes; and the notebook."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair
import nbformat
import pytest
import yaml
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.util import run_sync

from api.client import Client
from api.connection import ApiError, Unreachable
from tests.api.conftest import TOKEN, named
from tests.api.played import SPEC, Conductor

NOTEBOOK = Path(__file__).parents[2] / "docs" / "examples" / "first_table.ipynb"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, TOKEN) as opened:
        yield opened


@pytest.fixture
def sweep(client: Client, conductor: Conductor) -> int:
    made = client.submit(SPEC.encode()).id
    conductor.begin()
    for value in (0.25, 0.5, 0.75):
        conductor.finish(value)
    conductor.finish(diverged=True)
    conductor.settle()
    return made


def test_trials_are_rows_with_their_labels_and_metrics(client: Client, sweep: int) -> None:
    frame = client.sweep(sweep).trials()
    summaries = list(client.trials(sweep))
    assert list(frame["trial"]) == [one.id for one in summaries]
    assert list(frame["state"]) == [str(one.state) for one in summaries]
    for row, one in zip(frame.to_dict("records"), summaries, strict=True):
        known = client.trial(one.id)
        labels = known.labels
        assert {axis: str(row[axis]) for axis in labels} == dict(labels)
        finite = {key: value for key, value in (known.metrics or {}).items() if value is not None}
        assert {key: row[key] for key in finite} == finite
        assert json.loads(row["recipe"])["seed"] == known.recipe["seed"]


def test_candidates_are_those_of_the_cells(client: Client, sweep: int) -> None:
    frame = client.sweep(sweep).candidates()
    frame["score"] = frame["score"].astype(object).where(frame["score"].notna(), None)
    found = list(frame[["cell", "candidate", "selected", "score"]].itertuples(index=False, name=None))
    cells = [client.cell(sweep, cell.index) for cell in client.grid(sweep)]
    assert found == [(cell.index, one.index, one.selected, one.score) for cell in cells for one in cell.candidates]


def test_labels_that_are_numbers_are_numbers(client: Client, conductor: Conductor) -> None:
    tune = "tune:\n  regularizer.eta:\n    - {values: [0.5, 1], when: {regularizer: sec}}\n"
    compare = "  loss: [triplet, semihard]\n  regularizer: [none, sec]\n  embedding: [8, 16]\n"
    text = SPEC.replace("  loss: [triplet, semihard]\n", compare).replace("repeat:", f"{tune}repeat:")
    made = client.submit(text.replace("rows: [loss]", "rows: [loss, regularizer, embedding]").encode())
    conductor.begin()
    trials, candidates = client.sweep(made.id).trials(), client.sweep(made.id).candidates()
    kinds = {name: trials[name].dtype.kind for name in ("seed", "embedding", "regularizer.eta", "loss")}
    assert kinds == {"seed": "i", "embedding": "i", "regularizer.eta": "f", "loss": "O"}
    assert set(trials["seed"]) == {0, 1}
    assert set(candidates["regularizer.eta"].dropna()) == {0.5, 1.0}
    assert set(candidates.loc[candidates["regularizer"] == "none", "regularizer.eta"].isna()) == {True}


def test_curves_are_points(client: Client, sweep: int) -> None:
    every, one = client.sweep(sweep).curves(), client.sweep(sweep).curves("train/loss")
    expected = [
        (trial.id, curve.key, step, value)
        for trial in client.trials(sweep)
        for curve in client.curves(trial.id)
        for step, value in curve.points
    ]
    found = [(r["trial"], r["key"], r["step"], None if r["value"] != r["value"] else r["value"]) for r in rows(every)]
    assert found == expected
    assert len(one) == sum(row["key"] == "train/loss" for row in rows(every)) > 0
    assert set(one["key"]) == {"train/loss"}


def rows(frame: Any) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def test_sweeps_are_rows(client: Client, sweep: int) -> None:
    second = client.submit(SPEC.replace("name: four-trials", "name: second").encode()).id
    frame = client.frame()
    assert list(frame["sweep"]) == [second, sweep]
    assert list(frame["finished"]) == [client.sweep(one).counts.finished for one in (second, sweep)]
    assert client.sweep(second).trials().empty
    with pytest.raises(ApiError, match="no sweep 77"):
        client.sweep(77)


def test_a_figure_is_a_chart(client: Client, conductor: Conductor) -> None:
    figures = {"losses": {"kind": "curves", "metric": "train/loss", "colour": "loss"}}
    document = yaml.safe_load(SPEC) | {"figures": figures}
    drawn = client.submit(yaml.safe_dump(document).encode()).id
    conductor.begin()
    conductor.finish(0.5)
    here = client.sweep(drawn)
    chart = here.figure("losses")
    assert isinstance(chart, altair.TopLevelMixin)
    assert chart.to_dict()["$schema"] == json.loads(client.figure(drawn, "losses", "json").content)["$schema"]
    other = here.figure(**{**figures["losses"], "title": "Not in the spec"})
    assert other.to_dict()["datasets"] == chart.to_dict()["datasets"]
    assert client.figure(drawn, "{kind: bars, metric: recall@1, x: loss}", "svg").content.startswith(b"<svg")
    for described, wrong in (
        ({"kind": "pie", "metric": "recall@1"}, "kind"), ({"kind": "bars", "metric": "recall@1"}, "name one of 'loss'"),
        ({"kind": "bars", "metric": "recall@1", "x": "los"}, "did you mean 'loss'"), ({}, "kind"),
        ({"kind": "curves", "metric": "train/loss", "color": "loss"}, "did you mean 'colour'"),
    ):  # fmt: skip
        with pytest.raises(ApiError, match=re.escape(wrong)) as refused:
            here.figure(**described)
        assert refused.value.status == 422


def test_a_table_is_a_frame_of_numbers(client: Client, sweep: int) -> None:
    here = client.sweep(sweep)
    assert repr(here) == "<sweep 1 four-trials: 4/4 trials, finished>"
    assert client.sweep(sweep) == here
    frame, candidates = here.table().frame(), here.candidates()
    assert list(frame.columns) == ["loss", "dataset", "recall@1", "recall@1 std", "map@r", "map@r std", "n"]
    chosen = candidates[candidates["selected"]].set_index("loss")
    for row in frame[frame["n"].notna()].to_dict("records"):
        expected = chosen.loc[row["loss"]]
        assert (row["recall@1"], row["n"]) == (expected["best/test/recall@1"], 2)
        assert row["recall@1 std"] == expected["best/test/recall@1 std"]
    assert {frame[name].dtype.kind for name in ("recall@1", "recall@1 std", "n")} == {"f", "i"}


def test_waiting_shows_steps_and_survives_a_restart(
    client: Client, conductor: Conductor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = client.submit(SPEC.encode()).id
    conductor.begin()
    steps = iter([lambda: conductor.finish(0.5)] * 4 + [conductor.settle])
    connection = client._connection
    ask, looks = connection.fetch, []

    def asked(*request: Any) -> Any:
        looks.append(request)
        if len(looks) == 2:
            raise Unreachable("it is being started again")
        return ask(*request)

    monkeypatch.setattr(connection, "fetch", asked)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: next(steps, int)())
    monkeypatch.setattr("api.notebook.time", clock)
    assert client.sweep(made).wait().state == "finished"
    shown = capsys.readouterr().out
    assert "0 %" in shown
    assert "100 %" in shown
    assert "4/4 trials" in shown
    assert len(looks) >= 3


def test_the_example_runs(url: str, client: Client, sweep: int, tmp_path: Path) -> None:
    """In a kernel of its own, as Jupyter does it."""
    example = nbformat.read(NOTEBOOK, as_version=4)
    own = {f"{name}_DIR": str(tmp_path) for name in ("JUPYTER_RUNTIME", "JUPYTER_CONFIG", "JUPYTER_DATA")}
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    runner = NotebookClient(example, km=manager, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    try:
        runner.execute(env={**os.environ, **named(url), **own, "IPYTHONDIR": str(tmp_path)})
    finally:
        run_sync(manager.shutdown_kernel)(now=True)  # a manager passed by the caller is left to the caller
    shown = [output for cell in example.cells for output in cell.get("outputs", ())]
    forms = [output["data"] for output in shown if "data" in output]
    assert client.table(sweep, "main", "html").content.decode() in [form.get("text/html") for form in forms]
    printed = "".join(output["text"] for output in shown if output["output_type"] == "stream")
    assert client.table(sweep, "main", "latex").content.decode() in printed
    assert "100 %" in printed
    assert [output for output in shown if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    assert "ipywidgets" not in str(forms)
