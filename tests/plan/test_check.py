import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.read import spec_document
from orchestrator.spec.spec import Spec, apply
from orchestrator.views.errors import InvalidSpecError
from tests.plan.conftest import DESIGN, Checked, Small, Told
from workers.catalog import Catalog
from workers.contract import Recipe


def test_a_spec_is_stored_and_read_again(design: Any, checked: Checked) -> None:
    spec = checked(design)
    stored = json.dumps(spec.model_dump(mode="json"))
    assert Spec.model_validate(json.loads(stored)) == spec
    assert "source" not in stored


def test_errors_have_the_wording_of_the_design(design: Any, told: Told) -> None:
    design["compare"]["loss"][3] = "multi_similarty"
    design["tune"] = {"regularizer.eta": [0.1, 1.0]}
    assert told(design) == [
        ("compare.loss[3]", "no loss named 'multi_similarty'; did you mean 'multi_similarity'?"),
        (
            "tune.regularizer.eta",
            "regularizer 'none' has no hyper-parameter 'eta'; add `when: {regularizer: [l2, sec, svmax]}`",
        ),
    ]


def test_tells_problems_of_every_kind_at_once(design: Any, told: Told) -> None:
    design["halt"] = True
    design["recipe"]["optimizer"] |= {"lr": "fast", "moment": 3}
    design["recipe"]["sampler"]["classes"] = 8
    design["tune"]["regularizer.eta"][1]["when"]["regularizer"] = ["sec", "svmaxx"]
    design["repeat"]["seed"] = [0, 0]
    design["slot"] = {"cpu": 1}
    design["tables"]["main"]["metrics"] = ["nmi", "recal@1"]
    assert [path for path, _ in told(design)] == [
        "halt", "recipe.optimizer.lr", "recipe.sampler.classes", "recipe.optimizer.moment",
        "tune.regularizer.eta[1].when.regularizer", "repeat.seed[1]", "slot.cpu", "tables.main.metrics[1]",
    ]  # fmt: skip


def test_what_is_no_mapping_is_refused(told: Told) -> None:
    for document in (None, 3, "text", [], [{"version": 1}]):
        assert told(document)[0][1].startswith(
            "a spec is a mapping with at least `version`, `name` and `recipe`; found"
        )


def test_each_block_of_the_wrong_form_is_reported(told: Told) -> None:
    keys = (
        "version", "name", "description", "recipe", "compare", "tune", "repeat", "rules", "select", "slot", "search",
    )  # fmt: skip
    document = dict.fromkeys((*keys, "tables", "fresh"), 4.5)
    assert [path for path, _ in told(document)] == list(document)


def test_an_empty_spec_is_refused_with_the_required_keys(told: Told) -> None:
    assert [path for path, _ in told({})] == ["version", "name", "recipe"]
    assert {path for path, _ in told({"version": 1, "name": "x", "recipe": {"dataset": "digits"}})} == {
        "recipe.backbone", "recipe.loss", "recipe.sampler", "recipe.iterations", "select.split",
    }  # fmt: skip


def test_a_length_is_in_iterations_or_in_epochs(small: Small, told: Told) -> None:
    both = small(**{"recipe.epochs": 3})
    assert "leave out one of them" in told(both)[0][1]
    with pytest.raises(ValidationError, match="one of them, not both"):
        Recipe.model_validate(both["recipe"])


def test_names_are_one_printable_line(small: Small, told: Told) -> None:
    for name in ("", "  ", "x" * 101, "two\nlines", 3, None):
        assert [path for path, _ in told(small(name=name))] == ["name"], name


def test_empty_blocks_count_as_left_out(small: Small, checked: Checked) -> None:
    keys = ("description", "compare", "tune", "repeat", "rules", "select", "slot", "search", "tables", "fresh")
    assert checked(small(**dict.fromkeys(keys))) == checked(small())


def test_a_wrong_name_of_an_axis_hides_no_other_axis(small: Small, told: Told) -> None:
    document = small(compare={"a\nb": [{"label": 1, "patch": {"embedding": 8}}], "loss": ["tripplet"]})
    assert {path for path, _ in told(document)} == {"compare.a\nb", "compare.loss[0]"}


def test_one_typo_is_one_problem(design: Any, told: Told) -> None:
    design["recipe"]["iteration"] = design["recipe"].pop("iterations")
    assert told(design) == [("recipe.iteration", "a recipe has no field 'iteration'; did you mean 'iterations'?")]
    design["recipe"]["iterations"] = design["recipe"].pop("iteration")
    design["compare"]["los"] = design["compare"].pop("loss")
    assert [path for path, _ in told(design)] == ["compare.los"]


def test_a_typo_of_a_field_hides_no_wrong_name_on_its_axis_and_makes_no_option_wrong(small: Small, told: Told) -> None:
    los = small(compare={"loss": ["tripplet", "npair"]}, **{"recipe.los": "triplet"})
    assert [path for path, _ in told(los)] == ["recipe.los", "compare.loss[0]"]
    regularizr = small(tune={"regularizer.eta": [0.5, 1.0]}, **{"recipe.regularizr": "sec"})
    assert [path for path, _ in told(regularizr)] == ["recipe.regularizr"]


def test_an_alternative_is_blamed_for_what_it_sets(small: Small, told: Told) -> None:
    labelled = {"label": "X", "patch": {"loss": {"name": "triplet", "margn": 1}, "iterations": 0}}
    document = small(compare={"loss": ["triplet", {"name": "triplet", "margin": "a"}, labelled]})
    assert told(document) == [
        ("compare.loss[1].margin", "expected a number, found 'a'"),
        ("compare.loss[2].patch.iterations", "expected at least 1, found 0"),
        ("compare.loss[2].patch.loss.margn", "loss 'triplet' has no hyper-parameter 'margn'; did you mean 'margin'?"),
    ]


def test_a_problem_of_some_cells_says_which(small: Small, told: Told) -> None:
    document = small(
        compare={"loss": ["triplet", "normalized_npair"], "embedding": [8, 16]},
        **{"recipe.sampler": {"name": "shuffle", "batch": 8}},
    )
    ((path, message),) = told(document)
    assert path == "recipe.sampler"
    assert message.endswith("(with loss 'normalized_npair')")


def test_every_part_that_lacks_a_hyper_parameter_is_named(small: Small, told: Told) -> None:
    document = small(
        compare={"regularizer": ["none", "svmax", "sec_ema"]},
        tune={"regularizer.rho": [0.1, 0.9]},
        rules=[{"when": {"regularizer": ["none", "svmax"]}, "patch": {"regularizer.eta": 0.5}}],
    )
    assert told(document) == [
        (
            "tune.regularizer.rho",
            "regularizers 'none', 'svmax' have no hyper-parameter 'rho'; add `when: {regularizer: sec_ema}`",
        ),
        (
            "rules[0].patch.regularizer.eta",
            "regularizer 'none' has no hyper-parameter 'eta'; narrow `when` to `{regularizer: svmax}`",
        ),
    ]


def test_a_misspelt_part_is_reported_also_where_an_axis_always_replaces_it(small: Small, told: Told) -> None:
    anchor = "no loss named 'proxy_ancor'; did you mean 'proxy_anchor'?"
    secc = "no regularizer named 'secc'; did you mean 'sec'?"
    cases: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
        ({"recipe.loss": "proxy_ancor"}, [("recipe.loss", anchor)]),
        ({"recipe.loss": "proxy_ancor", "compare.loss": ["triplet", "margin"]}, [("recipe.loss", anchor)]),
        (
            {"recipe.loss": {"name": "proxy_ancor", "alpha": 3}, "compare.loss": ["triplet", "margn"]},
            [("recipe.loss", anchor), ("compare.loss[1]", "no loss named 'margn'; did you mean 'margin'?")],
        ),
        (
            {"recipe.loss": "proxy_ancor", "compare.loss": ["triplet"], "compare.regularizer": ["none", "secc"]},
            [("recipe.loss", anchor), ("compare.regularizer[1]", secc)],
        ),
    ]
    found = [told(small(**changes)) for changes, _ in cases]
    assert found == [expected for _, expected in cases]


def test_two_axes_of_one_role_may_not_set_one_path(small: Small, told: Told, checked: Checked) -> None:
    large = {"label": "large", "patch": {"backbone": "mlp", "embedding": 256}}
    document = small(compare={"backbone": ["mlp", large], "embedding": [32, 64]})
    assert told(document) == [
        (
            "compare.backbone[1].patch.embedding",
            "sets 'embedding', as compare.embedding does; only one of them may in one cell",
        )
    ]
    document["compare"]["embedding"] = [{"values": [32, 64], "when": {"backbone": "mlp"}}]
    assert len(checked(document).compare) == 2


def test_two_rules_may_not_set_one_path(small: Small, told: Told) -> None:
    rules = [{"when": {"loss": loss}, "patch": {"iterations": 5}} for loss in ("triplet", ["triplet", "semihard"])]
    document = small(compare={"loss": ["triplet", "semihard"]}, rules=rules)
    message = "sets 'iterations', as rules[0] does; only one of them may in one cell (with loss 'triplet')"
    assert told(document) == [("rules[1].patch.iterations", message)]


def test_an_axis_has_one_role(small: Small, told: Told) -> None:
    document = small(compare={"embedding": [8]}, tune={"embedding": [16]})
    assert told(document) == [("tune.embedding", "'embedding' is an axis of `compare` already; an axis has one role")]


def test_when_names_what_is_applied_before(small: Small, told: Told, checked: Checked) -> None:
    margin = [{"values": [0.1, 0.2], "when": {"loss": "triplet"}}]
    assert checked(small(compare={"loss": ["triplet", "semihard"], "loss.margin": margin}))
    assert told(small(compare={"loss.margin": margin, "loss": ["triplet"]})) == [
        ("compare.loss.margin[0].when", "no axis 'loss' is applied before this; no axis is")
    ]
    document = small(tune={"embedding": [8, 16]}, rules=[{"when": {"embedding": 8}, "patch": {"iterations": 5}}])
    assert [path for path, _ in told(document)] == ["rules[0].when"]


def test_repeats_are_looked_at_too(small: Small, told: Told) -> None:
    document = small(repeat={"seed": [0, -1, "a"], "validation.fold": [0, 3]})
    assert told(document) == [
        ("repeat.seed[1]", "expected at least 0, found -1"),
        ("repeat.seed[2]", "expected a whole number, found 'a'"),
        ("repeat.validation.fold[1]", "fold 3 does not exist; with 3 folds it is 0 to 2"),
    ]


def test_what_a_spec_selects_by_exists(small: Small, told: Told) -> None:
    assert told(small(select={"metric": "map@rr"}))[0][0] == "select.metric"
    assert told(small(select={"metric": "norm_var"}))[0][0] == "select.metric"
    assert told(small(select={"split": "train"})) == [
        ("select.split", "expected 'validation', 'test' or 'last', found 'train'")
    ]
    assert told(small(**{"recipe.validation": "none"}))[0][0] == "select.split"


def test_shares_of_a_gpu(small: Small, checked: Checked, told: Told) -> None:
    for gpus in (0, 1, 8, 0.5, 0.25, 0.33, 1 / 3, 0.1, "auto"):
        assert checked(small(slot={"gpus": gpus})).slot.gpus == (1 / 3 if gpus == 0.33 else gpus)
    for gpus in (-1, 1.5, 0.3, 0.7, 0.00001, 1e300, "all", True, None, [1]):
        assert [path for path, _ in told(small(slot={"gpus": gpus}))] == ["slot.gpus"], gpus


def test_a_search_is_a_name_or_a_mapping(small: Small, told: Told, checked: Checked) -> None:
    assert checked(small(search="grid")) == checked(small(search={"name": "grid"})) == checked(small())
    assert checked(small(search={"name": "tpe", "trials": 50})).search.trials == 50
    assert [path for path, _ in told(small(search="tpe"))] == ["search.trials"]
    assert told(small(search="tpee"))[0] == ("search.name", "there is no search 'tpee'; did you mean 'tpe'?")
    assert [path for path, _ in told(small(search=3))] == ["search"]
    assert [path for path, _ in told(small(search={"trials": 50}))] == ["search.trials"]


def test_trials_are_limited(small: Small, told: Told, checked: Checked) -> None:
    many = {"optimizer.lr": [at / 1e4 for at in range(1, 401)]}
    assert checked(small(tune=many, repeat={"seed": list(range(250))}))
    assert told(small(tune=many, repeat={"seed": list(range(251))})) == [
        ("", "the spec asks for 100,400 trials; at most 100,000 are allowed")
    ]


def test_a_product_beyond_all_bounds_is_refused_without_making_it(small: Small, told: Told) -> None:
    compare = {
        f"axis {at}": [{"label": f"{label}", "patch": {"iterations": label}} for label in range(1, 50)]
        for at in range(30)
    }
    assert ("", f"the spec asks for {49**30:,} trials; at most 100,000 are allowed") in told(small(compare=compare))
    compare["embedding"] = [{"values": [1], "when": {"axis 0": "1"}}]
    assert ("", "the spec asks for more than 100,000 trials; at most 100,000 are allowed") in told(
        small(compare=compare)
    )


def test_axes_are_limited(small: Small, told: Told) -> None:
    compare = {f"axis {at}": [{"label": "a", "patch": {"iterations": 1}}] for at in range(5000)}
    assert ("compare", "there are 5,000 axes; at most 40 are allowed") in told(small(compare=compare))
    forty = {name: compare[name] for name in [*compare][:40]}
    assert "compare" not in dict(told(small(compare=forty)))


def test_tables_are_limited(small: Small, told: Told, checked: Checked) -> None:
    tables: dict[str, Any] = {f"t{at}": {} for at in range(101)}
    assert told(small(tables=tables)) == [("tables", "there are 101 tables; at most 100 are allowed")]
    del tables["t0"]
    assert len(checked(small(tables=tables)).tables) == 100


def test_each_of_some_thousand_combinations_is_checked(small: Small, told: Told) -> None:
    """A warmup of 51 fits in all lengths but one."""
    lengths, warmups = [*range(1000, 1059), 50], [*range(50), 51]
    found = told(small(compare={"iterations": lengths}, tune={"warmup": warmups}))
    assert [message.partition(" (")[0] for _, message in found] == [
        "expected at most the 50 iterations of the training, found 51"
    ]


_WORDS = ["loss", "triplet", "l2", "none", "grid", "main", "dataset", "digits", "regularizer", "x", ""]
_KEYS = ["name", "label", "patch", "values", "when", "loss", "loss.margin", "regularizer", "low", "rows", "metric"]
_NUMBERS = st.integers(-3, 10**6) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_of_a_valid_spec_is_valid_or_reported(data: st.DataObject, catalog: Catalog) -> None:
    document = deepcopy(spec_document(DESIGN).value)
    for _ in range(data.draw(st.integers(1, 2))):
        *above, key = data.draw(st.sampled_from([place for place in places(document) if place]))
        target = document
        for step in above:
            target = target[step]
        target[key] = data.draw(_JSON)
    try:
        spec = check(document, catalog)
    except InvalidSpecError as error:
        assert all(problem.message for problem in error.problems)  # noqa: PT017
        return
    plan = expand(spec, catalog)
    assert sum(1 for _ in plan.trials()) == plan.trial_count


def test_a_part_within_a_part_is_blamed_at_its_place(small: Small, told: Told, checked: Checked) -> None:
    network = {"name": "resnet18", "pretrained": True}
    recipe = small()["recipe"]
    wrong = {"name": "frozen", "of": {**network, "pol": "max"}}
    assert told(small(recipe={**recipe, "backbone": wrong})) == [
        ("recipe.backbone.of", "backbone 'resnet18' has no hyper-parameter 'pol'; did you mean 'pool'?")
    ]
    ((place, said),) = told(small(recipe={**recipe, "backbone": "frozen"}))
    assert (place, said) == ("recipe.backbone", "is missing; backbone 'frozen' needs `of`, a backbone")
    axis = {"backbone.of": [{"label": "18", "patch": {"backbone.of": network}}, "resnet50"]}
    frozen = {**recipe, "backbone": {"name": "frozen", "of": network}}
    ((place, said),) = told(small(recipe=frozen, compare=axis))
    assert place == "compare.backbone.of[1]"
    assert "backbone 'resnet50' has random weights here" in said
    assert checked(small(recipe=frozen, compare={"backbone.of": axis["backbone.of"][:1]})).compare


def test_options_of_a_part_within_a_part_are_axes(small: Small, told: Told, checked: Checked) -> None:
    """Also where an alternative of another axis names the inner part, whichever stands first."""
    loss = {"name": "pml", "of": "CircleLoss"}
    tuned = checked(small(recipe={**small()["recipe"], "loss": loss}, tune={"loss.of.m": [0.25, 0.4]}, compare={}))
    found = [apply(tuned.recipe, [choice.patch])["loss"] for choice in tuned.tune["loss.of.m"][0].choices]
    assert found == [{"name": "pml", "of": {"name": "CircleLoss", "m": m}} for m in (0.25, 0.4)]
    ranged = {"tune": {"loss.of.m": {"low": 0.1, "high": 0.5}}, "search": {"name": "tpe", "trials": 3}, "compare": {}}
    assert checked(small(recipe={**small()["recipe"], "loss": loss}, **ranged)).tune["loss.of.m"][0].span
    patches = [{"loss.of.margin": 0.3}, {"loss.of": "TripletMarginLoss"}, {"loss": loss}]
    assert apply({}, patches)["loss"] == {"name": "pml", "of": {"name": "TripletMarginLoss", "margin": 0.3}}
    for axis, place, message in (
        ("loss.of.width", "tune.loss.of.width[0]", "pml_loss 'CircleLoss' has no hyper-parameter 'width'"),
        ("loss.of.name", "tune.loss.of.name", "write 'loss.of' for the part"),
        ("loss.of.m.n", "tune.loss.of.m.n", "is no path; a path within a part is such as 'loss.alpha'"),
    ):
        recipe = {**small()["recipe"], "loss": loss}
        (problem, *_) = told(small(recipe=recipe, tune={axis: [1, 2]}, compare={}))
        assert problem[0] == place
        assert message in problem[1]


def test_a_name_that_is_usual_elsewhere_is_answered_with_ours(small: Small, told: Told) -> None:
    table = {"rows": ["loss"], "metrics": ["R@1"]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tables": {"main": table}}, "no metric named 'R@1'; did you mean 'recall@1'?"),
        ({"recipe.metrics": ["Recall@4"]}, "no metric named 'Recall@4'; did you mean 'recall@4'?"),
        ({"recipe.batch_size": 32}, "the batch is `sampler.classes` x `sampler.per_class`"),
        ({"tune": {"batch_size": [32, 64]}}, "the batch is `sampler.classes` x `sampler.per_class`"),
        ({"recipe.sampler": {"name": "balanced", "batch_size": 8}}, "the batch is `classes` x `per_class`"),
        ({"tune": {"eta": [0.1, 1]}}, "did you mean 'regularizer.eta'?"),
        ({"tune": {"lr": [0.1, 1]}}, "did you mean 'optimizer.lr'?"),
        ({"recipe.dataset": "image_folder"}, "is missing; dataset 'image_folder' needs `folder`, a text"),
    ]
    found = [(said, " ".join(message for _, message in told(small(**case)))) for case, said in cases]
    assert [one for one in found if one[0] not in one[1]] == []
