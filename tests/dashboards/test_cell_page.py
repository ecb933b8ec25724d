"""The page of a cell: what was selected, what lost, where it ran, and hostile names escaped."""

from typing import Any

from api import examples
from dashboards import pages
from orchestrator.views.cells import CellView
from tests.dashboards.markup import read
from tests.dashboards.specimens import HOSTILE, MLFLOW


def cell(**more: Any) -> CellView:
    return CellView.model_validate({**examples.CELL, **more})


def test_it_shows_the_way_of_a_number() -> None:
    page = read(pages.cell_page(cell()))
    said = ("selected", "70.91 ± 0.40", "60.82", "SEC-T3", "above", "best/validation/map@r", "cpu (AMD EPYC)",
            "5580518a9d")  # fmt: skip
    for word in said:
        assert word in page.text, word
    assert page.having("code", title=examples.CELL["candidates"][0]["trials"][0]["fingerprint"])
    assert page.having("a", href="/trials/40")
    assert page.having("a", href="/v1/sweeps/7/cells/0")


def test_columns_of_published_numbers_are_there_where_there_are_some() -> None:
    number = {name: None if name in {"published", "printed", "source", "difference", "tolerance", "verdict"} else value
              for name, value in examples.CELL["numbers"][0].items()}  # fmt: skip
    heads = [f'<th scope="col">{name}</th>' for name in ("published", "difference", "reproduction")]
    beside, alone = pages.cell_page(cell()), pages.cell_page(cell(numbers=[number]))
    assert all(head in beside for head in heads)
    assert not any(head in alone for head in heads)
    assert '<th scope="col">printed</th>' in alone


def test_runs_lead_to_mlflow_and_changed_code_is_said() -> None:
    (candidate,) = examples.CELL["candidates"]
    trial = {**candidate["trials"][0], "mlflow_url": MLFLOW, "git_commit": "5580518a9d-dirty"}
    other = {**candidate["trials"][0], "trial": 99}
    lost = {**candidate, "index": 1, "selected": False, "score": None, "std": None, "n": 0, "status": "diverged"}
    lost["trials"] = [other]
    page = read(pages.cell_page(cell(candidates=[{**candidate, "trials": [trial]}, lost], mlflow_url=MLFLOW)))
    assert len(page.having("a", href=MLFLOW)) == 2
    assert "changed" in page.text
    assert "diverged, not eligible" in page.text


def test_names_are_escaped() -> None:
    (candidate,) = examples.CELL["candidates"]
    trial = {**candidate["trials"][0], "labels": {HOSTILE: HOSTILE}, "device": HOSTILE, "dataset": HOSTILE}
    hostile = {**candidate, "labels": {HOSTILE: HOSTILE}, "trials": [trial]}
    text = pages.cell_page(cell(labels={HOSTILE: HOSTILE}, candidates=[hostile], sweep_name=HOSTILE))
    assert "<script>alert" not in text
    assert "49" not in read(text).text.replace("{{ 7*7 }}", "")


def test_a_cell_without_axes_trials_or_tables() -> None:
    (candidate,) = examples.CELL["candidates"]
    page = read(pages.cell_page(cell(labels={}, numbers=[], candidates=[{**candidate, "labels": {}, "trials": []}])))
    for word in ("the only cell", "No table shows this cell", "untuned", "no trials yet"):
        assert word in page.text, word
