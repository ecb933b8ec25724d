"""A completed recipe says everything, and equal meanings have equal fingerprints."""

from typing import Any

import pytest

from tests.workers.specimens import CATALOG, RECIPE
from workers.catalog import Catalog, Parameter, complete, problems
from workers.contract import Recipe


def completed(catalog: Catalog = CATALOG, **changes: Any) -> Recipe:
    return complete(Recipe.model_validate({**RECIPE, **changes}), catalog)


def test_defaults_and_pins_are_filled_in() -> None:
    recipe = completed(loss={"name": "triplet", "margin": 1}, optimizer={"name": "adam", "lr": 1})
    assert recipe.loss.options == {"margin": 1.0, "mining": "all", "cap": None}
    assert recipe.optimizer.options == {"lr": 1.0, "amsgrad": False}
    assert recipe.sampler.options == {"classes": 4}
    assert recipe.evaluate_every == 30
    assert recipe.pins.manifest == "sha256:00"
    assert recipe.pins.versions["optimizer"] == 3
    assert set(recipe.pins.versions) == {
        "task", "loss", "regularizer", "dataset", "backbone", "head", "sampler", "optimizer", "schedule",
        "eta_schedule",
    }  # fmt: skip


def test_a_tenth_of_the_iterations() -> None:
    for iterations, every in ((1, 1), (9, 1), (19, 1), (20, 2), (300, 30)):
        assert completed(iterations=iterations).evaluate_every == every
        assert completed(iterations=iterations, evaluate_every=7).evaluate_every == 7


def test_epochs_are_left_to_the_training_that_knows_its_images() -> None:
    recipe = completed(iterations=None, epochs=20)
    assert (recipe.iterations, recipe.epochs, recipe.evaluate_every) == (None, 20, 1)
    assert complete(recipe, CATALOG) == recipe
    assert problems(recipe.model_dump(mode="json"), CATALOG) == []
    with pytest.raises(ValueError, match="one of them, not both"):
        completed(epochs=20)
    with pytest.raises(ValueError, match="one of them, not both"):
        completed(iterations=None)


def test_completing_is_a_fixed_point() -> None:
    once = completed(schedule={"name": "step", "at": [3, 5.0], "factors": (1, 0.5)})
    assert complete(once, CATALOG) == once
    stored = once.model_dump(mode="json")
    assert problems(stored, CATALOG) == []
    again = complete(Recipe.model_validate(stored), CATALOG)
    assert again == once
    assert again.fingerprint == once.fingerprint
    assert Recipe.model_validate_json(once.model_dump_json()).fingerprint == once.fingerprint


SAME: list[dict[str, Any]] = [
    {"loss": {"name": "triplet"}}, {"loss": {"mining": "all", "margin": 2e-1, "name": "triplet"}},
    {"loss": {"name": "triplet", "cap": None}}, {"optimizer": {"name": "adam", "lr": 1e-3, "amsgrad": False}},
    {"backbone": {"name": "mlp", "width": 128.0}}, {"iterations": 300.0, "evaluate_every": 30},
    {"head": "fc", "task": {"name": "retrieval"}, "seed": 0, "version": 1},
    {"validation": {"folds": 3, "name": "class_holdout"}}, {"select": {"split": "validation", "metric": "map@r"}},
    {"select": {}}, {"pins": {"versions": {"loss": 99}, "manifest": "another"}},
]  # fmt: skip
OTHERS: list[dict[str, Any]] = [
    {"loss": {"name": "triplet", "margin": 0.3}}, {"loss": {"name": "triplet", "cap": 1}}, {"seed": 1},
    {"evaluate_every": 31}, {"validation": {"name": "class_holdout", "folds": 3, "fold": 1}},
    {"select": {"metric": "recall@1"}}, {"eta_schedule": "linear"}, {"precision": "bf16"}, {"warmup": 1},
    {"validation": {"name": "cross_validation", "folds": 3}}, {"pins": {"weights": "sha256:11"}},
]  # fmt: skip


def test_equal_meanings_have_equal_fingerprints_and_others_have_others() -> None:
    known = completed().fingerprint
    assert [changes for changes in SAME if completed(**changes).fingerprint != known] == []
    assert len({known, *(completed(**changes).fingerprint for changes in OTHERS)}) == 1 + len(OTHERS)

    assert complete(Recipe.model_validate(dict(reversed(RECIPE.items()))), CATALOG).fingerprint == known


def revised(*names: str, **update: Any) -> Catalog:
    """The catalog in which parts of these names, or of these kinds, are others."""
    entries = [one.model_copy(update=update) if {one.kind, one.name} & {*names} else one for one in CATALOG.entries]
    return Catalog(entries=entries)


def test_a_new_version_and_new_content_change_the_fingerprint() -> None:
    facts = {**CATALOG.of("dataset")[0].facts, "manifest": "sha256:01"}
    others = [revised("loss", version=2), revised("dataset", version=2), revised("digits", facts=facts)]
    assert len({completed().fingerprint, *(completed(other).fingerprint for other in others)}) == 4


def test_a_new_version_of_a_metric_that_is_computed_changes_the_fingerprint() -> None:
    # A first version is not written down, so that what was trained before metrics were pinned stays known.
    assert not any(name.startswith("metric.") for name in completed().pins.versions)
    assert completed(revised("nmi", version=2)).fingerprint == completed().fingerprint  # digits here compute no nmi
    recipe = completed(revised("map", "nmi", version=2))
    assert recipe.pins.versions["metric.map"] == 2
    assert recipe.fingerprint != completed().fingerprint
    assert completed(revised("map", version=3)).fingerprint not in {recipe.fingerprint, completed().fingerprint}
    assert complete(recipe, revised("map", version=2)) == recipe
    assert complete(recipe, CATALOG) == completed()


def test_an_option_added_later_changes_fingerprints_only_where_it_is_used() -> None:
    parameters = [*CATALOG.of("loss")[0].parameters, Parameter(name="unit", type="float", default=1.0)]
    catalog, before = revised("triplet", parameters=parameters, facts={"added": ["unit"]}), completed()
    assert completed(catalog) == before
    assert completed(catalog, loss={"name": "triplet", "unit": 1}).fingerprint == before.fingerprint
    used = completed(catalog, loss={"name": "triplet", "unit": 2})
    assert used.loss.options["unit"] == 2.0
    assert used.fingerprint != before.fingerprint
    assert complete(used, catalog) == used
    assert completed(revised("triplet", parameters=parameters)).fingerprint != before.fingerprint
