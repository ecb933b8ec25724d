import json
import math

import altair
import pytest
import vl_convert

from orchestrator.publish.figures import pages, rendering
from orchestrator.views.trials import Curve
from tests.publish import sweeps


@pytest.fixture
def found():
    return [
        Curve(key="validation/map@r", points=[(100, 0.4), (200, 0.5)]),
        Curve(key="train/lr", points=[(0, 1e-3), (200, 1e-3)]),
        Curve(key="train/loss", points=[(0, 2.0), (50, math.nan), (100, None), (200, 1.0)]),
        Curve(key="validation/norm_var", points=[]),
    ]


def test_one_picture_a_curve_and_training_comes_first(found):
    specification = pages.curves(found, "Trial 3", sweeps.catalog())
    assert [one["title"] for one in specification["concat"]] == ["Loss", "Learning rate", "MAP@R (validation)"]
    assert {tuple(one["encoding"]["x"]["scale"]["domain"]) for one in specification["concat"]} == {(0, 200)}
    assert specification["title"] == "Trial 3"
    assert all(one["encoding"]["tooltip"] for one in specification["concat"])


def test_what_is_no_number_breaks_the_line(found):
    specification = pages.curves(found, "Trial 3")
    assert [one["value"] for one in specification["concat"][0]["data"]["values"]] == [2.0, None, None, 1.0]
    json.dumps(specification, allow_nan=False)


def test_without_points_there_is_an_empty_picture():
    assert pages.curves([], "Trial 3")["title"] == "Trial 3"


def test_vega_draws_it(found):
    drawing = vl_convert.vegalite_to_svg(json.dumps(pages.curves(found, "Trial 3", sweeps.catalog())))
    assert "MAP@R (validation)" in drawing


def test_the_scripts_are_those_of_altairs_vega_lite():
    scripts = rendering.bundle()
    assert "vegaEmbed" in scripts
    assert altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0] in vl_convert.get_vegalite_versions()
    assert rendering.bundle() is scripts
