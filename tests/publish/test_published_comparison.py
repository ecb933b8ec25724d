"""Own numbers beside the published ones, in every view and format."""

import csv
import io
import json

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.cell import trace
from orchestrator.views.errors import ConflictError, NotFoundError
from tests.publish import sweeps

LAYOUT = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi", "recall@1", "map@r"]}
FATES = {"l2": "diverged", "svmax": "waiting"}


def fate(labels, candidate, repeat):
    return FATES.get(labels["regularizer"], "ok")


def outcomes(published="SEC-T3", seeds=3, fate=fate, **layout):
    """SEC's table 3 on CUB, held in the recipe, with a loss that diverged and one that has not run."""
    table = {**LAYOUT, **({"published": published} if published else {}), **layout}
    spec = sweeps.spec(recipe={"dataset": {"name": "cub200"}, "seed": 0}, tables={"main": table})
    compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "l2", "sec", "svmax")}
    return sweeps.grid(compare, spec, fate=fate, seeds=seeds, state="running")


def built(numbers, given=None):
    return build(given or outcomes(), "main", sweeps.catalog(), numbers=numbers)


def cells(table, row):
    return table.panels[0].rows[row].cells


def test_without_a_published_table_nothing_is_compared():
    plain = outcomes(published=None)
    assert built("own", plain).published is None
    for numbers in ("published", "difference", "both", "verdict"):
        with pytest.raises(ConflictError, match=r"add `published: "):
            built(numbers, plain)


def test_a_published_table_that_is_gone_spoils_no_own_table():
    gone = outcomes(published="SEC-T99")
    assert built("own", gone).published is None
    with pytest.raises(NotFoundError, match="did you mean 'SEC-T9'"):
        built("both", gone)


def test_the_page_of_a_cell_has_what_the_paper_prints():
    (nmi, *_) = trace(outcomes(), 2, (), sweeps.catalog()).numbers
    assert (nmi.published, nmi.printed, nmi.verdict) == ("SEC-T3", "64.24", "reproduced")
    assert nmi.difference == pytest.approx(nmi.mean - 0.6424)
    (own, *_) = trace(outcomes(published=None), 2, (), sweeps.catalog()).numbers
    assert (own.published, own.printed, own.verdict) == (None, None, None)


@pytest.mark.parametrize("numbers", ["own", "difference", "both", "verdict"])
def test_json_and_csv_carry_all_of_it_in_every_view(numbers):
    table = built(numbers)
    content = json.loads(render(table, "json").content)
    assert content["published"]["id"] == "SEC-T3"
    assert set(content["published"]["conflicts"]) >= {"C7", "C8"}
    quoted = [
        one["published"]
        for row in content["panels"][0]["rows"]
        for column, one in zip(content["panels"][0]["columns"], row["cells"], strict=True)
        if one.get("published") and column["kind"] in {"metric", "difference"}
    ]
    assert len(quoted) == 2 * 3 * 2  # losses, regularizers that SEC has, metrics that it prints
    sec = quoted[4]
    assert (
        sec["printed"], sec["value"], sec["bold"], sec["tuned"],
    ) == ("64.24", 0.6424, True, {"regularizer.eta": "1.0"})  # fmt: skip
    assert {one["verdict"] for one in quoted} >= {"diverged"}
    lines = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode(), newline="")))
    assert len(lines) == 8 * 3
    line = next(one for one in lines if (one["regularizer"], one["metric"]) == ("sec", "nmi"))
    assert line["published"] == "0.6424"
    assert float(line["mean"]) - 0.6424 == pytest.approx(float(line["difference"]))
    assert line["verdict"] == sec["verdict"]
