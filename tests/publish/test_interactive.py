"""Curves for a page: what no line leads to is a dot that one sees."""

import pytest

from orchestrator.publish.figures import pages
from orchestrator.views.trials import CurveLine, CurveLines


@pytest.mark.parametrize(
    ("values", "alone"),
    [
        ([0.5], [True]),
        ([0.5, 0.6, 0.7], [False, False, False]),
        ([0.5, None, 0.6, None, 0.7, 0.8], [True, False, True, False, False, False]),
        ([0.5, -1.0, 0.6], [True, False, True]),
    ],
)
def test_what_no_line_leads_to_is_a_dot(values: list[float | None], alone: list[bool]) -> None:
    points = [(float(at), value) for at, value in enumerate(values)]
    line = CurveLine(label="seed 0", sweep=1, cell=0, candidate=0, trials=[1], runs=1, points=points)
    found = CurveLines(key="validation/map@r", x="step", smoothing=0.0, keys=["validation/map@r"], traces=[line])
    figure = pages.lines_chart(found, "MAP@R", log=True)
    drawn = [row["alone"] for row in figure["datasets"]["points"] if row["y"] is not None]
    assert drawn == [one for one, value in zip(alone, values, strict=True) if value is not None and value > 0]
    seen = figure["layer"][-1]["encoding"]["opacity"]
    assert [one.get("test") or one.get("param") for one in seen["condition"]] == ["near", "datum.alone"]
    assert seen["value"] == 0
