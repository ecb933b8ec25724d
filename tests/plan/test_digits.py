"""The sweep of the demo is the one that the README describes."""

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.yaml import parse
from tests.plan.conftest import DIGITS
from workers.catalog import Catalog


def test_the_demo_has_the_size_that_it_says(catalog: Catalog) -> None:
    spec = check(parse(DIGITS.read_bytes()), catalog)
    plan = expand(spec, catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 40, 200)
    assert len({trial.fingerprint for trial in plan.trials()}) == 200
    assert {tuple(cell.labels) for cell in plan.cells} == {("loss", "regularizer")}
    etas = [[one.labels["regularizer.eta"] for one in plan.candidates if one.cell == cell] for cell in (1, 2, 3)]
    assert etas == [["0.01", "0.001", "0.0001"], ["0.25", "0.5", "1.0"], ["0.1", "0.5", "1.0"]]


def test_the_demo_shows_its_data_set_and_what_regularizers_act_on(catalog: Catalog) -> None:
    table = check(parse(DIGITS.read_bytes()), catalog).tables["main"]
    assert (table.rows, table.columns) == (["loss", "regularizer"], ["dataset"])
    names = [getattr(column, "metric", column) for column in table.metrics]
    assert names == ["nmi", "recall@1", "map@r", "norm_var", "s_mu"]


def test_the_demo_shows_the_last_weights(catalog: Catalog) -> None:
    """Among the checkpoints of a training two held-out digits would choose by their noise."""
    recipes = [trial.recipe for trial in expand(check(parse(DIGITS.read_bytes()), catalog), catalog).trials()]
    assert {recipe.evaluate_every == recipe.iterations for recipe in recipes} == {True}
    assert {recipe.select.split for recipe in recipes} == {"validation"}, (
        "which chooses eta, and nothing is chosen by test"
    )


def test_the_demo_says_what_editors_need() -> None:
    assert b"# yaml-language-server: $schema=" in DIGITS.read_bytes()
