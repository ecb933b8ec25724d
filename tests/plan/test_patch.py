from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.axes import clash, read_patch
from orchestrator.spec.patch import apply
from orchestrator.spec.recipe import base_recipe
from workers.contract import Recipe


def test_the_base_recipe_is_what_the_contract_defaults_to() -> None:
    least = {"dataset": "d", "backbone": "b", "loss": "l", "sampler": "s", "iterations": 1}
    assert Recipe.model_validate(base_recipe() | least) == Recipe.model_validate(least)


def test_a_name_replaces_and_others_merge() -> None:
    recipe = {"loss": {"name": "a", "alpha": 1, "beta": 2}, "iterations": 3}
    assert apply(recipe, [{"loss": {"name": "b"}}])["loss"] == {"name": "b"}
    assert apply(recipe, [{"loss.alpha": 5}])["loss"] == {"name": "a", "alpha": 5, "beta": 2}
    assert recipe == {"loss": {"name": "a", "alpha": 1, "beta": 2}, "iterations": 3}


def test_within_a_rank_replacements_come_first() -> None:
    both = [{"loss.alpha": 5}, {"loss": {"name": "b"}}]
    assert apply({}, both)["loss"] == apply({}, both[::-1])["loss"] == {"name": "b", "alpha": 5}


def test_two_patches_of_one_rank_may_not_set_one_path() -> None:
    assert clash([{"loss": {"name": "a"}}, {"loss.alpha": 1}]) is None
    assert clash([{"loss": {"name": "a", "alpha": 1}}, {"loss.alpha": 1}]) == ("loss.alpha", 0, 1)
    assert clash([{"x": 1}, {"y": 1}, {"x": 2}]) == ("x", 0, 2)


def test_reads_every_form_of_a_value() -> None:
    posted = {"loss": "a", "optimizer": {"lr": 0.1}, "sampler": {"name": "s", "classes": 2}, "validation": "none"}
    problems: list[Any] = []
    patch, sources = read_patch(posted, "recipe", problems)
    assert problems == []
    assert patch == {
        "loss": {"name": "a"}, "optimizer.lr": 0.1, "sampler": {"name": "s", "classes": 2},
        "validation": {"name": "none"},
    }  # fmt: skip
    assert sources == {
        "loss": "recipe.loss", "optimizer.lr": "recipe.optimizer.lr", "sampler": "recipe.sampler",
        "sampler.classes": "recipe.sampler.classes", "validation": "recipe.validation",
    }  # fmt: skip


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_PATHS = st.sampled_from(
    ["loss", "loss.a", "loss.b", "iterations", "optimizer", "optimizer.lr", "x", "a.b.c", "select"]
)


@given(st.dictionaries(_PATHS, _VALUES | st.dictionaries(st.sampled_from(["name", "a", "b"]), _VALUES)))
def test_anything_is_read_or_told(posted: dict[str, Any]) -> None:
    problems: list[Any] = []
    patch, sources = read_patch(posted, "p", problems)
    assert set(patch) - {path for path, value in patch.items() if isinstance(value, dict)} <= set(sources)
    assert bool(problems) or len(patch) >= len(posted)
    apply(base_recipe(), [patch])
