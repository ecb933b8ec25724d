"""An equal budget for every cell: what is added, in which order, what it is called, and what is refused."""

from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.grid import Plan, expand
from orchestrator.plan.points import count_trials
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.plan.conftest import Small, Told
from workers.catalog import Catalog


def planned(document: Any, catalog: Catalog) -> Plan:
    spec = check(document, catalog)
    plan = expand(Spec.model_validate(spec.model_dump(mode="json")), catalog)
    assert len(list(plan.trials())) == plan.trial_count == count_trials(spec)[0]
    return plan


def candidates(plan: Plan, cell: int) -> list[dict[str, str]]:
    return [dict(one.labels) for one in plan.candidates if one.cell == cell]


def test_every_cell_of_the_example_gets_as_many(design: Any, catalog: Catalog) -> None:
    design["select"]["budget"] = 4
    plan = planned(design, catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 64, 192)
    assert candidates(plan, 0) == [{"optimizer.lr": rate} for rate in ("0.001", "0.0005", "0.002", "0.00025")]
    assert candidates(plan, 1) == [
        {"regularizer.eta": "0.01", "optimizer.lr": "0.001"}, {"regularizer.eta": "0.001", "optimizer.lr": "0.001"},
        {"regularizer.eta": "0.0001", "optimizer.lr": "0.001"}, {"regularizer.eta": "0.01", "optimizer.lr": "0.0005"},
    ]  # fmt: skip
    for trial in plan.trials():
        labels = candidates(plan, trial.cell)[trial.candidate]
        assert trial.recipe.optimizer.options["lr"] == float(labels["optimizer.lr"])
        if "regularizer.eta" in labels:
            assert trial.recipe.regularizer.options["eta"] == float(labels["regularizer.eta"])
    assert len({trial.fingerprint for trial in plan.trials()}) == 192


def test_the_candidates_that_were_asked_for_are_the_trainings_they_were(design: Any, catalog: Catalog) -> None:
    before = planned(design, catalog)
    design["select"]["budget"] = 7
    after = {(one.cell, one.candidate, one.repeat): one for one in planned(design, catalog).trials()}
    for one in before.trials():
        assert after[one.cell, one.candidate, one.repeat].fingerprint == one.fingerprint


def test_a_candidate_moves_from_its_own_rate_or_the_default_of_its_optimizer(small: Small, catalog: Catalog) -> None:
    document = small(tune={"optimizer": ["sgd", {"name": "adam", "lr": 0.004}]}, select={"budget": 5})
    assert candidates(planned(document, catalog), 0) == [
        {"optimizer": "sgd", "optimizer.lr": "0.01"}, {"optimizer": "adam", "optimizer.lr": "0.004"},
        {"optimizer": "sgd", "optimizer.lr": "0.005"}, {"optimizer": "adam", "optimizer.lr": "0.002"},
        {"optimizer": "sgd", "optimizer.lr": "0.02"},
    ]  # fmt: skip


def test_a_rate_that_the_cell_has_already_is_passed_over(small: Small, catalog: Catalog) -> None:
    document = small(tune={"optimizer.lr": [0.001, 0.0005, 0.002]}, select={"budget": 6})
    rates = [one["optimizer.lr"] for one in candidates(planned(document, catalog), 0)]
    assert rates == ["0.001", "0.0005", "0.002", "0.00025", "0.004", "0.000125"]
    assert len({one.fingerprint for one in planned(document, catalog).trials()}) == 6


def test_the_rate_of_the_cell_comes_from_its_axes_and_rules(small: Small, catalog: Catalog) -> None:
    document = small(
        compare={"loss": ["triplet", {"label": "slow", "patch": {"loss": "semihard", "optimizer.lr": 1e-5}}]},
        rules=[{"when": {"loss": "triplet"}, "patch": {"optimizer.lr": 0.5}}],
        select={"budget": 2},
    )
    plan = planned(document, catalog)
    assert [one["optimizer.lr"] for one in candidates(plan, 0)] == ["0.5", "0.25"]
    assert [one["optimizer.lr"] for one in candidates(plan, 1)] == ["1e-05", "5e-06"]


def test_a_cell_with_more_is_refused_by_its_name(design: Any, told: Told) -> None:
    design["select"]["budget"] = 2
    message = "expected at least 3, found 2: the cell loss triplet, regularizer l2 has 3 candidates"
    assert told(design) == [("select.budget", f"{message}; 11 other cells have more than 2 too")]


def test_more_than_learning_rates_make_is_refused(small: Small, told: Told) -> None:
    message = "expected at most 21, found 30: the only cell has 1 candidate, which 21 learning rates each make 21"
    assert told(small(select={"budget": 30})) == [("select.budget", message)]


def test_a_rate_beyond_all_numbers_is_none(small: Small, told: Told) -> None:
    message = "expected at most 11, found 21: the only cell has 1 candidate, which 21 learning rates each make 11"
    assert told(small(**{"recipe.optimizer": {"name": "adam", "lr": 1e308}}, select={"budget": 21})) == [
        ("select.budget", message)
    ]


def test_an_adaptive_search_has_its_own_budget(small: Small, told: Told) -> None:
    document = small(
        tune={"optimizer.lr": {"low": 1e-4, "high": 1e-2}}, search={"name": "tpe", "trials": 5}, select={"budget": 5}
    )
    said = "search 'tpe' gives every cell a budget already, by `search.trials`; leave one of them out"
    assert told(document) == [("select.budget", said)]


def test_learning_rates_have_one_role(small: Small, told: Told) -> None:
    for role in ("compare", "repeat"):
        ((path, message),) = told(small(**{role: {"optimizer.lr": [1e-3, 1e-4]}}, select={"budget": 2}))
        assert path == "select.budget"
        assert f"'optimizer.lr' is a {role} axis" in message


def test_too_many_trials_are_refused_before_they_are_made(design: Any, told: Told) -> None:
    design["select"]["budget"] = 10_000
    assert told(design) == [("", "the spec asks for more than 100,000 trials; at most 100,000 are allowed")]
    design["select"]["budget"] = 0
    assert told(design) == [("select.budget", "expected at least 1, found 0")]


def test_beside_is_for_an_honest_selection(small: Small, told: Told, catalog: Catalog) -> None:
    said = "is only for `split: validation`, but split is 'test'; leave it out"
    assert told(small(select={"split": "test", "beside": "test"})) == [("select.beside", said)]
    assert told(small(select={"beside": "tset"})) == [("select.beside", "expected 'test', found 'tset'")]
    (trial,) = planned(small(select={"beside": "test"}), catalog).trials()
    assert trial.recipe.select.beside_key == "best_test/test/map@r"


def test_an_optimizer_without_a_learning_rate_has_none_to_add_by(small: Small, catalog: Catalog) -> None:
    plain = [one.model_copy(update={"name": "plain", "parameters": []}) for one in catalog.of("optimizer")[:1]]
    own = Catalog(entries=[*catalog.entries, *plain])
    with pytest.raises(InvalidSpecError, match="has 1 candidate, and its optimizer has no learning rate"):
        check(small(select={"budget": 2}, **{"recipe.optimizer": "plain"}), own)
    mixed = expand(check(small(tune={"optimizer": ["plain", "sgd"]}, select={"budget": 3}), own), own)
    assert candidates(mixed, 0) == [
        {"optimizer": "plain"},
        {"optimizer": "sgd", "optimizer.lr": "0.01"},
        {"optimizer": "sgd", "optimizer.lr": "0.005"},
    ]
