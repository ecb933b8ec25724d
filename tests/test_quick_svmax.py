"""The quick variant of SVMax's table 1 run for real: its layout, and differences taken from unrounded means."""

import json
from typing import Any

import pytest

from orchestrator.plan.edit import edited, excerpt
from tests.conftest import ROOT
from tests.served import Served, until

pytestmark = pytest.mark.ray

LOSSES = {"Contrastive": ("1",), "Triplet": ("1", "0.1"), "N-pair": ("1",), "Angular": ("2",)}
"""Each loss with its lambdas."""


@pytest.fixture(scope="module")
def table(served_home: Served) -> Any:
    """One of its seeds, cut short and submitted to a service that stands; SEC's table 3 is run by `metricsweep run`."""
    client = served_home.client
    whole = (ROOT / "sweeps" / "quick" / "svmax_t1.yaml").read_bytes()
    body = excerpt(edited(whole, ["recipe.iterations=8", "recipe.evaluate_every=8"]), ["seed=0"], [])
    sweep = client.submit(body).id
    until(lambda: client.sweep(sweep).ended is not None, "the sweep ended")
    found = client.sweep(sweep)
    assert (found.state, found.counts.finished, found.counts.failed) == ("finished", found.counts.total, 0)
    return json.loads(client.table(sweep, "main", "json").content)


def test_its_layout(table: Any) -> None:
    (panel,) = table["panels"]
    assert (table["complete"], table["total"]) == (39, 39)
    assert table["stub"] == ["Loss", ""]
    groups = [(group["text"], group["span"]) for group in panel["groups"][0]]
    assert groups == [("lr = 0.1", 4), ("lr = 0.01", 4), ("lr = 0.001", 4)]
    assert [column["title"] for column in panel["columns"]] == ["NMI", "R@1", "R@8", "ΔR@1"] * 3
    assert [row["headings"] for row in panel["rows"]] == [
        [loss, regularizer]
        for loss, lambdas in LOSSES.items()
        for regularizer in ("Vanilla", "Spread-out", *(f"SVMax (λ={one})" for one in lambdas))
    ]
    assert not any(cell["bold"] for row in panel["rows"] for cell in row["cells"])
    assert "Last checkpoint of each training" in table["caption"]
    assert "budget" not in table["caption"], "nothing was tuned"


def test_its_numbers(table: Any) -> None:
    rows = table["panels"][0]["rows"]
    alone: dict[str, Any] = {}
    for row in rows:
        loss, regularizer = row["headings"]
        if regularizer == "Vanilla":
            alone[loss] = row["cells"]
        for at in range(0, 12, 4):  # one learning rate
            nmi, first, eighth, delta = row["cells"][at : at + 4]
            assert nmi["text"] == f"{nmi['value']['mean']:.3f}", "a fraction"
            assert [first["text"], eighth["text"]] == [f"{100 * one['value']['mean']:.2f}" for one in (first, eighth)]
            if regularizer == "Vanilla":
                assert (delta["text"], delta["value"]) == ("-", None)
                continue
            difference = first["value"]["mean"] - alone[loss][at + 1]["value"]["mean"]
            assert delta["value"]["mean"] == pytest.approx(difference)
            assert float(delta["text"].replace("−", "-")) == pytest.approx(100 * difference, abs=0.0051)
