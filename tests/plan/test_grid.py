from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand, fingerprints_by_seed
from orchestrator.plan.points import count, count_trials, points
from orchestrator.plan.soundness import cover
from orchestrator.spec.axes import Axis, Choice, Group
from orchestrator.spec.spec import Spec
from orchestrator.views.runs import PlannedTrial
from tests.plan.conftest import Small
from workers.catalog import Catalog, complete
from workers.contract import Recipe, fingerprint_of


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


def test_a_seed_of_a_part_is_not_taken_for_the_recipes() -> None:
    for recipe in ({"a": 1, "z": {"seed": None}}, {"loss": {"seed": None}, "seed": 3}, {"b": '"seed":null', "seed": 1}):
        for seed in (0, 7, -1, 2**63):
            assert fingerprints_by_seed(recipe)(seed) == fingerprint_of({**recipe, "seed": seed})


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
