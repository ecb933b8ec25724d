"""A layout's arrows, the heading over all columns, and a caption that begins with what is shown."""

import html
from dataclasses import replace

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from tests.publish import sweeps

METRICS = ["recall@1", {"metric": "map@r", "label": "mAP"}, "norm_var"]
ALL = {"arrows": True, "groups": "several", "lead": "contents"}


def built(made=sweeps.digits, **layout):
    outcomes = made()
    tables = {"main": {**outcomes.spec["tables"]["main"], **layout}}
    return build_own(replace(outcomes, spec={**outcomes.spec, "tables": tables}), "main", sweeps.catalog())


def titles(table):
    return [column.title for column in table.panels[0].columns]


def test_arrows_say_which_way_each_metric_is_better():
    assert titles(built(metrics=METRICS, arrows=True)) == ["R@1 ↑", "mAP ↑", "Norm var"]
    assert titles(built(metrics=METRICS)) == ["R@1", "mAP", "Norm var"]
    delta = {"metric": "map@r", "delta": {"regularizer": "none"}, "label": "ΔMAP"}
    assert titles(built(metrics=["recall@1", delta], arrows=True))[1] == "ΔMAP"
    said = {"metric": "map@r", "label": "MAP@R ↑"}
    assert titles(built(metrics=[said], arrows=True)) == ["MAP@R ↑"]
    table = built(metrics=METRICS, arrows=True)
    assert r"R@1 $\uparrow$" in render(table, "latex").content.decode()
    assert ">R@1 ↑<" in html.unescape(render(table, "html").content.decode())
    assert "↑" not in table.caption


def test_a_heading_over_all_columns_is_left_to_the_caption():
    alone = built(groups="several")
    assert alone.panels[0].groups == ()
    assert len(built().panels[0].groups) == 1
    assert r"\cmidrule" not in render(alone, "latex").content.decode()
    assert " on Digits" in alone.caption
    assert built(groups="several", caption="Norms matter.").caption.startswith("Norms matter. All on Digits. Test")
    assert "All on" not in built(caption="Norms matter.").caption


def test_a_caption_begins_with_what_is_shown():
    found = built(metrics=METRICS, **ALL).caption
    assert found.startswith(
        "R@1, mAP and Norm var on Digits, by loss and regularizer (sec-on-digits). "
        "Test metrics, mean ± standard deviation over 3 seeds (0, 1, 2). "
    )
    assert built(lead="contents", caption="Norms matter").caption.startswith("Norms matter. Test metrics")
