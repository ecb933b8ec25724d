"""The figures of a spec: valid figures, and the messages about invalid figures."""

from typing import Any

from orchestrator.plan.check import check
from orchestrator.plan.figures import kept_data, trouble_of_curve
from orchestrator.spec.layouts import DATA
from tests.plan.conftest import Cases, Missed, Small, Told
from workers.catalog import Catalog
from workers.contract import Recipe, Select

AXES = {"regularizer": ["none", "sec"], "optimizer.lr": [1e-3, 1e-2], "dataset": ["digits"]}


def with_figure(small: Small, **figure: Any) -> dict[str, Any]:
    recipe = {"recipe.figures": ["norms", "cosines", {"name": "spectrum", "split": "train"}]}
    return small(compare=AXES, repeat={"seed": [0, 1]}, figures={"main": figure}, **recipe)


def of(kind: str, data: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "data": data, "facet": ["regularizer", "optimizer.lr"]} | more


def curve(metric: str) -> dict[str, Any]:
    return {"kind": "curves", "metric": metric, "facet": ["regularizer", "optimizer.lr"]}


def line(**more: Any) -> dict[str, Any]:
    return {"kind": "line", "metric": "recall@1", "x": "optimizer.lr", "colour": "regularizer"} | more


SOUND: list[Any] = [
    line(x_scale="log", error="interval", titles={"optimizer.lr": "rate", "recall@1": "R"}, caption="As printed"),
    line(metric=["recall@1", "nmi"], labels={"optimizer.lr": {"0.0010": "low"}}),
    {"kind": "bars", "metric": "s_mu", "x": "regularizer", "when": {"optimizer.lr": 0.001}, "reference": "nmi"},
    {"kind": "curves", "metric": "recall@1", "colour": "regularizer", "facet": "optimizer.lr"},
    {"kind": "curves", "metric": ["map@r", "validation/map@r", "train/s_mu"], "facet": [*AXES][:2]},
    of("distribution", "norms", bins=10, moments=True),
    of("distribution", "cosines", show=["cos_an"]),
    {"kind": "line", "data": "spectrum-train", "colour": "regularizer", "facet": "optimizer.lr"},
    {"kind": "heatmap", "metric": "map@r", "x": "regularizer", "y": "optimizer.lr", "decimals": 2},
    {"kind": "best_of", "colour": "regularizer", "facet": "optimizer.lr", "unit": "fraction"},
]


def test_says_what_is_wrong_and_where(small: Small, missed: Missed) -> None:
    cases: Cases = [
        ({"kind": "lin"}, ".kind", "there is no kind 'lin'; did you mean 'line'?"),
        ({"metric": "nmi"}, ".kind", "is missing; expected one of 'line', 'curves'"),
        ({"kind": ["line"]}, ".kind", 'there is no kind ["line"]; did you mean'),
        (line(metric="nmj"), ".metric", "no metric named 'nmj'; did you mean 'nmi'?"),
        (line(metric=["nmi", "nmi"]), ".metric[1]", "'nmi' stands twice"),
        (line(metric=[]), ".metric", "expected at least one metric, found []"),
        (line(metric="recall@16"), ".metric", "dataset 'digits' does not compute 'recall@16'; did you mean"),
        (line(metric=None), "", "names nothing to draw; give `metric`"),
        ({"kind": "scatter"}, "", "names nothing to draw; give `data`"),
        (line(x=None, facet="optimizer.lr"), ".x", "is missing; name one of 'regularizer'"),
        (line(x="optimizer.ler"), ".x", "there is no axis 'optimizer.ler'; did you mean 'optimizer.lr'?"),
        (line(facet="seed"), ".facet", "'seed' is a repeat axis, over which a figure averages; expected one of"),
        (line(facet="regularizer"), ".facet", "'regularizer' stands in `colour` already"),
        (line(facet=["dataset", "loss", "nmi"]), ".facet", "expected one axis, or two for columns and rows; found 3"),
        (line(x="regularizer", colour="optimizer.lr", x_scale="log"), ".x_scale", "'log' needs numbers, but"),
        (line(colour=None), "", "the compare axis 'regularizer' has no place; name it in `colour` or `facet`, or draw"),
        (line(color="loss"), ".color", "there is no key 'color' here; did you mean 'colour'?"),
        (
            of("distribution", "norms", windows=True), ".windows",
            "'norms' has no windows; only 'direction_variation' looks again and again",
        ),
        (line(windows=True), ".windows", "means nothing for kind 'line', which takes"),
        (line(bins=3), ".bins", "means nothing for kind 'line', which takes"),
        (line(error="sd"), ".error", "expected 'std', 'interval' or 'none', found 'sd'"),
        (line(when={"regularizer": "sek"}), ".when.regularizer", "axis 'regularizer' has no alternative 'sek'; did"),
        (line(labels={"regularizer": {"sek": "S"}}), ".labels.regularizer.sek", "axis 'regularizer' has no"),
        (line(titles={"regulariser": "R"}), ".titles.regulariser", "there is no axis 'regulariser'; did you mean"),
        (line(data="norms"), ".data", "stands next to `metric`; a figure draws one of them"),
        (of("distribution", "tsne"), ".data", "'tsne' is drawn by kind 'scatter', not by 'distribution'"),
        (
            of("distribution", "norms-train"), ".data",
            "the trainings keep no such data (they keep 'cosines', 'norms', 'spectrum-train'); add it to the recipe",
        ),
        (of("distribution", "nroms"), ".data", "there is no figure data 'nroms'; did you mean 'norms'?"),
        (of("distribution", "cosines", show=["cos_a"]), ".show[0]", "'cosines' has no quantity 'cos_a'; did you mean"),
        (of("line", "spectrum-train", x="optimizer.lr"), ".x", "means nothing where `data` is drawn"),
        (curve("train/lose"), ".metric", "no curve is named 'train/lose'; did you mean 'train/loss'?"),
        (
            curve("test/recall@1"), ".metric",
            "there is no such curve: this sweep selects on 'validation', so that trainings are evaluated on the",
        ),
        (
            curve("nmi"), ".metric",
            "'nmi' is not evaluated while a training runs; only 'recall@1', 'map@r' and train/... are",
        ),
    ]  # fmt: skip
    found = ((with_figure(small, **figure), f"figures.main{path}", said) for figure, path, said in cases)
    assert missed(found, alone=False) == []


def test_every_problem_of_every_figure_at_once(small: Small, told: Told) -> None:
    figures = {"a b": line(metric="nmj", x="optimizer.lr"), "c": 3, "d": line(x_scale="log", metric="nmi", bins=2)}
    assert {path for path, _ in told(small(compare=AXES, figures=figures))} == {
        "figures.a b", "figures.a b.metric", "figures.c", "figures.d.bins",
    }  # fmt: skip
    assert told(small(figures=[]))[0][0] == "figures"
    many = {f"f{number}": line() for number in range(51)}
    assert "at most 50" in told(small(compare=AXES, figures=many))[0][1]


def test_what_trainings_keep_under_cross_validation(small: Small, checked: Any, catalog: Catalog) -> None:
    recipe = {"recipe.figures": ["norms"], "recipe.validation": {"name": "cross_validation", "folds": 2}}
    spec = checked(small(figures={"f": {"kind": "distribution", "data": "norms-fold1"}}, **recipe))
    assert kept_data(spec) == {"norms-fold0", "norms-fold1"}
    axis = {"figures": [{"label": "with", "patch": {"figures": ["norms"]}}, {"label": "not", "patch": {"figures": []}}]}
    assert kept_data(check(small(compare=axis), catalog)) == {"norms"}


def test_curves_of_the_test_split_need_a_selection_by_it(small: Small, checked: Any, told: Told) -> None:
    figures = {"a": {"kind": "curves", "metric": "test/map@r"}, "b": {"kind": "curves", "metric": "validation/map@r"}}
    assert list(checked(small(select={"beside": "test"}, figures=figures)).figures) == ["a", "b"]
    ((path, message),) = told(small(figures=figures))
    assert path == "figures.a.metric"
    assert "evaluated on the validation split" in message


def test_the_data_are_figures_of_the_workers() -> None:
    schema = Recipe.model_json_schema()
    forms = schema["properties"]["figures"]["items"]["anyOf"]
    named = {form["properties"]["name"]["const"] for form in forms if "properties" in form}
    assert {name for names in DATA.values() for name in names} == named


def test_what_is_measured_at_the_end_has_no_curve(catalog: Catalog) -> None:
    """Though the sweep selects by it: there is one point, after the training."""
    task = catalog.get("task", "self_supervised")
    assert task is not None
    select = Select(metric="top@1", split="last")
    message = "'top@1' is not evaluated while a training runs; only 'knn@200' and train/... are"
    assert trouble_of_curve("top@1", select, [task], catalog) == message
    assert trouble_of_curve("test/knn@200", select, [task], catalog) is None


def test_the_best_of_candidates_is_drawn_over_compare_axes_alone(small: Small, told: Any) -> None:
    figure = {"kind": "best_of", "colour": "optimizer.lr", "facet": "loss"}
    document = small(
        compare={"loss": ["triplet", "semihard"]}, tune={"optimizer.lr": [1e-3, 1e-2]}, figures={"f": figure}
    )
    assert told(document) == [
        ("figures.f", "'optimizer.lr' is a tune axis, over which the best is taken; compare axes are 'loss'")
    ]
    assert told(with_figure(small, kind="best_of", metric="nmi", facet=[*AXES][:2]))[0][0] == "figures.main.metric"
