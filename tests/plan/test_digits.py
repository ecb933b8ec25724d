"""The sweep of the demo is the one that the README describes."""

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.yaml import parse
from tests.plan.conftest import DIGITS
from workers.catalog import Catalog


def test_the_demo_is_the_one_that_the_readme_describes(catalog: Catalog) -> None:
    spec = check(parse(DIGITS.read_bytes()), catalog)
    plan = expand(spec, catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 40, 200)
    assert {tuple(cell.labels) for cell in plan.cells} == {("loss", "regularizer")}
    etas = [[one.labels["regularizer.eta"] for one in plan.candidates if one.cell == cell] for cell in (1, 2, 3)]
    assert etas == [["0.01", "0.001", "0.0001"], ["0.25", "0.5", "1.0"], ["0.1", "0.5", "1.0"]]
    table = spec.tables["main"]
    assert (table.rows, table.columns) == (["loss", "regularizer"], ["dataset"])
    names = [getattr(column, "metric", column) for column in table.metrics]
    assert names == ["nmi", "recall@1", "map@r", "norm_var", "s_mu"], "and what regularizers act on"
    recipes = [trial.recipe for trial in plan.trials()]
    assert {recipe.evaluate_every == recipe.iterations for recipe in recipes} == {True}, "the last weights"
    assert {recipe.select.split for recipe in recipes} == {"validation"}, "which chooses eta"
    assert b"# yaml-language-server: $schema=" in DIGITS.read_bytes()
