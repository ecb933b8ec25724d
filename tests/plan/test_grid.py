"""From a spec to its cells: alternatives of an axis, all combinations, and an equal budget for every cell."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.check import check
from orchestrator.plan.grid import Plan, expand
from orchestrator.plan.points import count, count_trials, points
from orchestrator.plan.read import read as read_spec
from orchestrator.plan.soundness import cover
from orchestrator.spec.spec import Axis, Choice, Group, Spec
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.runs import PlannedTrial
from tests.plan.conftest import Small, Told
from workers.catalog import Catalog, Problem, complete
from workers.contract import Recipe


def trials(document: Any, catalog: Catalog) -> list[PlannedTrial]:
    plan = expand(check(document, catalog), catalog)
    found = list(plan.trials())
    assert len(found) == plan.trial_count
    return found


def test_the_example_of_the_design(design: Any, catalog: Catalog) -> None:
    plan = expand(check(design, catalog), catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 40, 120)
    assert [dict(cell.labels) for cell in plan.cells[:5]] == [
        {"loss": "triplet", "regularizer": "none"}, {"loss": "triplet", "regularizer": "l2"},
        {"loss": "triplet", "regularizer": "sec"}, {"loss": "triplet", "regularizer": "svmax"},
        {"loss": "semihard", "regularizer": "none"},
    ]  # fmt: skip
    of_first = [(one.cell, one.index, dict(one.labels)) for one in plan.candidates[:5]]
    assert of_first == [
        (0, 0, {}), (1, 0, {"regularizer.eta": "0.01"}), (1, 1, {"regularizer.eta": "0.001"}),
        (1, 2, {"regularizer.eta": "0.0001"}), (2, 0, {"regularizer.eta": "0.25"}),
    ]  # fmt: skip
    found = list(plan.trials())
    assert [(one.cell, one.candidate, one.repeat) for one in found[:5]] == [
        (0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0), (1, 0, 1),
    ]  # fmt: skip
    assert [dict(one.repeat_labels) for one in found[:3]] == [{"seed": "0"}, {"seed": "1"}, {"seed": "2"}]
    assert found[4].recipe.seed == 1
    assert found[4].recipe.regularizer.options == {"eta": 0.01}


def test_each_trial_has_its_own_fingerprint_and_a_completed_recipe(design: Any, catalog: Catalog) -> None:
    found = trials(design, catalog)
    assert len({one.fingerprint for one in found}) == 120
    for one in found:
        again = Recipe.model_validate(one.recipe.model_dump(mode="json"))
        assert again == one.recipe == complete(one.recipe, catalog)
        assert again.fingerprint == one.fingerprint
    assert found[0].recipe.pins.versions["loss"] >= 1
    assert found[0].recipe.evaluate_every == 30


def test_short_and_long_forms_mean_the_same_trainings(small: Small, catalog: Catalog) -> None:
    short = small(compare={"loss": ["triplet"]}, tune={"loss.margin": [1, 2.0]})
    long = small(
        compare={"loss": [{"label": "T", "patch": {"loss": {"name": "triplet", "margin": 9}}}]},
        tune={"M": [{"label": f"{one}", "patch": {"loss": {"margin": one}}} for one in (1.0, 2)]},
    )
    assert [one.fingerprint for one in trials(short, catalog)] == [one.fingerprint for one in trials(long, catalog)]


def test_ranks_are_applied_in_order(small: Small, catalog: Catalog) -> None:
    def patches(value: int) -> list[Any]:
        return [{"label": "all", "patch": {"iterations": value}}]

    recipe = {"recipe.iterations": 1}
    rules = [{"when": {"loss": "triplet"}, "patch": {"iterations": 3}}]
    loss = {"loss": ["triplet"]}
    ranks: list[tuple[dict[str, Any], int]] = [
        ({"compare": loss}, 1),
        ({"compare": loss | {"c": patches(2)}}, 2),
        ({"compare": loss | {"c": patches(2)}, "rules": rules}, 3),
        ({"compare": loss | {"c": patches(2)}, "rules": rules, "tune": {"t": patches(4)}}, 4),
        (
            {
                "compare": loss | {"c": patches(2)}, "rules": rules, "tune": {"t": patches(4)},
                "repeat": {"r": patches(5)},
            },
            5,
        ),
    ]  # fmt: skip
    for blocks, iterations in ranks:
        assert [one.recipe.iterations for one in trials(small(**blocks, **recipe), catalog)] == [iterations]


def test_a_later_rank_that_replaces_a_part_starts_it_afresh(small: Small, catalog: Catalog) -> None:
    base = {"recipe.optimizer": {"name": "adam", "lr": 0.5, "weight_decay": 0.25}}
    (merged,) = trials(small(compare={"optimizer.lr": [0.125]}, **base), catalog)
    assert merged.recipe.optimizer.options["weight_decay"] == 0.25
    (replaced,) = trials(small(compare={"optimizer": [{"name": "adam", "lr": 0.125}]}, **base), catalog)
    assert replaced.recipe.optimizer.options["weight_decay"] == 0.0


def test_axes_of_one_rank_may_stand_in_any_order(small: Small, catalog: Catalog) -> None:
    one = small(compare={"loss.margin": [0.5], "loss": ["triplet"]})
    other = small(compare={"loss": ["triplet"], "loss.margin": [0.5]})
    assert trials(one, catalog)[0].fingerprint == trials(other, catalog)[0].fingerprint
    assert trials(one, catalog)[0].recipe.loss.options == {"margin": 0.5, "over": "all"}


def test_rules_apply_where_all_their_labels_do(small: Small, catalog: Catalog) -> None:
    document = small(
        compare={"loss": ["triplet", "semihard"], "regularizer": ["none", "svmax"]},
        rules=[{"when": {"loss": "semihard", "regularizer": ["svmax"]}, "patch": {"optimizer.lr": 0.5}}],
    )
    rates = [one.recipe.optimizer.options["lr"] for one in trials(document, catalog)]
    assert rates[3] == 0.5
    assert 0.5 not in rates[:3]


def test_when_follows_labels_of_compare_and_of_earlier_tune_axes(small: Small, catalog: Catalog) -> None:
    document = small(
        compare={"regularizer": ["none", "sec_ema"]},
        tune={
            "regularizer.eta": {"values": [0.5, 1], "when": {"regularizer": "sec_ema"}},
            "regularizer.rho": {"values": [0.5, 0.9], "when": {"regularizer.eta": 1.0}},
        },
        repeat={
            "seed": [
                {"values": [0], "when": {"regularizer": "none"}},
                {"values": [1, 2], "when": {"regularizer": "sec_ema"}},
            ]
        },
    )
    plan = expand(check(document, catalog), catalog)
    assert [dict(one.labels) for one in plan.candidates] == [
        {}, {"regularizer.eta": "0.5"}, {"regularizer.eta": "1", "regularizer.rho": "0.5"},
        {"regularizer.eta": "1", "regularizer.rho": "0.9"},
    ]  # fmt: skip
    assert [(one.candidate, one.recipe.seed) for one in plan.trials()] == [
        (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2),
    ]  # fmt: skip
    assert plan.trial_count == 7


def test_repeats_of_other_paths_are_completed_each(small: Small, catalog: Catalog) -> None:
    document = small(repeat={"seed": [0, 1], "validation.fold": [0, 1, 2]})
    found = trials(document, catalog)
    assert [dict(one.repeat_labels) for one in found[:2]] == [
        {"seed": "0", "validation.fold": "0"},
        {"seed": "0", "validation.fold": "1"},
    ]
    assert {(one.recipe.seed, one.recipe.validation.model_dump()["fold"]) for one in found} == {
        (seed, fold) for seed in (0, 1) for fold in (0, 1, 2)
    }


def test_a_seed_set_in_the_completed_recipe_is_a_seed_set_before(small: Small, catalog: Catalog) -> None:
    quick = trials(small(repeat={"seed": [3, 4]}), catalog)
    for trial in quick:
        (slow,) = trials(small(**{"recipe.seed": trial.recipe.seed}), catalog)
        assert (slow.recipe, slow.fingerprint) == (trial.recipe, trial.fingerprint)


def axis(*groups: tuple[list[str], dict[str, list[str]]]) -> Axis:
    return [Group(when=when, choices=[Choice(label=label, patch={}) for label in labels]) for labels, when in groups]


def test_counting_stops_where_it_would_take_long() -> None:
    many = {f"a{at}": axis(([str(label) for label in range(100)], {})) for at in range(10)}
    assert count(many, {}, 5) == 100**10
    assert count(many | {"b": axis((["x"], {"a1": ["1"]}))}, {}, 5) > 5
    spec = Spec(name="s", recipe={}, compare=many, tune=many, repeat=many)
    assert count_trials(spec) == (100**30, True)
    spec = spec.model_copy(update={"repeat": {"b": axis((["x"], {"a1": ["1"]}))}})
    total, exact = count_trials(spec)
    assert total > 100_000
    assert not exact


_WHENS = st.dictionaries(
    st.sampled_from(["a", "b"]), st.lists(st.sampled_from("123"), min_size=1, max_size=2), max_size=1
)
_GROUPS = st.tuples(st.lists(st.sampled_from("123"), min_size=1, max_size=3, unique=True), _WHENS)
_AXES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(_GROUPS, min_size=1, max_size=2), max_size=3)


@given(_AXES, _AXES, st.integers(0, 40))
def test_a_cover_holds_every_alternative_that_some_point_holds(compare: Any, tune: Any, most: int) -> None:
    spec = Spec(
        name="s", recipe={}, compare={name: axis(*groups) for name, groups in compare.items()},
        tune={f"t{name}": axis(*groups) for name, groups in tune.items()},
    )  # fmt: skip
    every = [(cell, one) for cell in points(spec.compare, {}) for one in points(spec.tune, cell.labels)]
    covered = list(cover(spec, most))
    held = {item for cell, one in covered for item in {**cell.labels, **one.labels}.items()}
    possible = {(tuple(cell.labels.items()), tuple(one.labels.items())) for cell, one in every}
    assert all((tuple(cell.labels.items()), tuple(one.labels.items())) in possible for cell, one in covered)
    if len(every) <= most:
        assert len(covered) == len(every)
    if not any(groups_when for groups in (*compare.values(), *tune.values()) for _, groups_when in groups):
        assert held == {item for cell, one in every for item in {**cell.labels, **one.labels}.items()}


def test_a_cover_of_many_lets_every_two_alternatives_meet(small: Callable[..., Any], checked: Any) -> None:
    posted = small(
        compare={"embedding": list(range(1, 31)), "optimizer.lr": [at / 100 for at in range(1, 31)]},
        tune={"loss.margin": [at / 10 for at in range(1, 13)]},
    )
    spec = checked(posted)
    met = {(cell.labels["embedding"], one.labels["loss.margin"]) for cell, one in cover(spec, 3000)}
    assert len(met) == 30 * 12


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


def test_requested_candidates_keep_their_trainings(design: Any, catalog: Catalog) -> None:
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


def test_more_than_finite_learning_rates_make_is_refused(small: Small, told: Told) -> None:
    vast = {"recipe.optimizer": {"name": "adam", "lr": 1e308}}
    for changes, budget, most in (({}, 30, 21), (vast, 21, 11)):
        found = told(small(**changes, select={"budget": budget}))
        message = f"expected at most {most}, found {budget}: the only cell has 1 candidate"
        assert found == [("select.budget", f"{message}, which 21 learning rates each make {most}")], changes


def test_an_adaptive_search_has_its_own_budget(small: Small, told: Told) -> None:
    document = small(
        tune={"optimizer.lr": {"low": 1e-4, "high": 1e-2}}, search={"name": "tpe", "trials": 5}, select={"budget": 5}
    )
    message = "search 'tpe' gives every cell a budget already, by `search.trials`; leave one of them out"
    assert told(document) == [("select.budget", message)]


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


def test_beside_needs_selection_on_validation(small: Small, told: Told, catalog: Catalog) -> None:
    message = "is only for `split: validation`, but split is 'test'; leave it out"
    assert told(small(select={"split": "test", "beside": "test"})) == [("select.beside", message)]
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


def read(axis: str, posted: Any) -> tuple[Axis, list[tuple[str, str]]]:
    problems: list[Problem] = []
    compare = {} if axis == "loss" else {"loss": ["triplet", "proxy_anchor"]}
    document = {"version": 1, "name": "x", "recipe": {}, "compare": compare, "tune": {axis: posted}}
    found = read_spec(document, problems).spec.tune.get(axis, [])
    return found, [(problem.path, problem.message) for problem in problems]


def labels(axis: str, *values: Any) -> list[str]:
    found, problems = read(axis, list(values))
    assert problems == []
    return [choice.label for group in found for choice in group.choices]


def test_labels_are_values_as_text_and_of_an_inline_part_what_sets_it_apart() -> None:
    assert labels("backbone.bias", True, False, None) == ["true", "false", "null"]
    assert labels("schedule.at", [100, 200], [150]) == ["[100, 200]", "[150]"]
    assert labels("loss", {"name": "pa", "alpha": 16}, "triplet") == ["pa", "triplet"]
    assert labels("loss", "pa", {"name": "pa", "alpha": 16}) == ["pa", "pa alpha=16"]
    pairs = [{"name": "pa", "alpha": alpha, "margin": 0.1} for alpha in (16, 32)]
    assert labels("loss", *pairs) == ["pa alpha=16", "pa alpha=32"]


def test_says_what_is_wrong_and_where() -> None:
    cases: list[tuple[str, Any, str, str]] = [
        ("loss", [], "", "the list is empty"),
        ("loss", "triplet", "", "expected a list of alternatives, such as [triplet]"),
        ("los", ["triplet"], "", "a recipe has no field 'los'; did you mean 'loss'? (An axis of another name needs"),
        ("iterations.x", [1], "", "'iterations' is a plain value and has nothing within it"),
        ("loss.a.b.c", [1], "", "'loss.a.b.c' is no path"),
        ("loss.name", ["triplet"], "", "write 'loss' for the part that 'loss.name' would name"),
        ("select.metric", ["nmi"], "", "`select` stands at the top of the spec"),
        ("loss", ["triplet", "triplet"], "[1]", "'triplet' stands twice; first at tune.loss[0]"),
        ("loss.alpha", [1, 1.0], "[1]", "'1.0' changes nothing else than tune.loss.alpha[0] does"),
        ("loss.alpha", {"low": 1, "high": 2}, "", "search 'grid' needs values; a range (`low`, `high`) is for"),
        ("loss.alpha", [{"low": 1, "high": 2, "log": True}], "[0]", "search 'grid' needs values"),
        ("loss.alpha", [{"values": [1]}, 3], "[1]", "an alternative stands next to groups"),
        ("loss.alpha", [{"values": []}], "[0].values", "expected a list of at least one alternative, found []"),
        ("loss.alpha", [{"values": [1], "wen": {}}], "[0].wen", "there is no key 'wen' here; did you mean 'when'?"),
        ("loss.alpha", [{"values": [1], "when": {}}], "[0].when", "expected a mapping from an axis to"),
        ("loss.alpha", [{"values": [1], "when": {"los": "x"}}], "[0].when", "no axis 'los' is applied before this"),
        (
            "loss.alpha", [{"values": [1], "when": {"loss": ["triplett"]}}], "[0].when.loss",
            "axis 'loss' has no alternative 'triplett'; did you mean 'triplet'?",
        ),
        ("loss", [None], "[0]", "expected the name of a loss, or a mapping with its `name`; found null"),
        ("loss", [3], "[0]", "expected the name of a loss"),
        ("iterations", [{"a": 1}], "[0]", "expected a value, or an alternative with `label` and `patch`"),
        ("loss", [{"label": "x"}], "[0].patch", "expected a mapping from paths to values, found nothing"),
        ("loss", [{"patch": {"loss": "x"}}], "[0].label", "expected a text that names the alternative"),
        ("loss", [{"label": " ", "patch": {"loss": "x"}}], "[0].label", "expected a label of 1 to 100 printable"),
        ("loss", [{"label": "a", "patch": {"los": "x"}}], "[0].patch.los", "a recipe has no field 'los'; did you"),
        (
            "loss", [{"label": "a", "name": "x"}], "[0]",
            "a part has no `label`; write {label: a, patch: {loss: {name: x",
        ),
        (
            "loss", [{"label": "a", "patch": {"loss": {"name": "x", "b": 1}, "loss.b": 2}}], "[0].patch.loss.b",
            "'loss.b' is set twice in this patch",
        ),
    ]  # fmt: skip
    found = [(f"tune.{axis}{path}", message, read(axis, posted)[1]) for axis, posted, path, message in cases]
    assert [one for one in found if [(one[0], one[1])] != [(at, said[: len(one[1])]) for at, said in one[2]]] == []


def test_groups_that_meet_share_no_label() -> None:
    apart = [{"values": [1], "when": {"loss": "triplet"}}, {"values": [1], "when": {"loss": "proxy_anchor"}}]
    assert read("regularizer.eta", apart)[1] == []
    _, problems = read("regularizer.eta", [apart[0], {"values": [1]}])
    assert problems == [
        (
            "tune.regularizer.eta[1].values[0]",
            "'1' stands in tune.regularizer.eta[0] too, and both groups can apply in one cell",
        )
    ]
