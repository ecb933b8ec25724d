"""A completed recipe says everything, parts within parts too, and equal meanings have equal fingerprints."""

from typing import Any

import pytest

from tests.workers.recipes import DIGITS
from tests.workers.specimens import CATALOG, RECIPE
from workers.catalog import Catalog, Parameter, changes, complete, defaults_for, load, need_of, problems, stamp
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


def test_the_defaults_of_a_recipe_are_those_of_its_own_parts() -> None:
    recipe = completed(loss={"name": "triplet", "margin": 0.7}, evaluate_every=7, seed=3)
    default = defaults_for(recipe, CATALOG)
    assert "name" not in default["loss"], "a recipe must choose a loss"
    assert default["loss"]["margin"] == completed(loss="triplet").loss.options["margin"]
    assert (default["seed"], default["evaluate_every"], default["head"]["name"]) == (0, 30, "fc")
    assert default["select"] == recipe.select.model_dump(mode="json")


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
    {"select": {}}, {"select": {"beside": None}}, {"pins": {"versions": {"loss": 99}, "manifest": "another"}},
]  # fmt: skip
OTHERS: list[dict[str, Any]] = [
    {"loss": {"name": "triplet", "margin": 0.3}}, {"loss": {"name": "triplet", "cap": 1}}, {"seed": 1},
    {"evaluate_every": 31}, {"validation": {"name": "class_holdout", "folds": 3, "fold": 1}},
    {"select": {"metric": "recall@1"}}, {"select": {"beside": "test"}},
    {"eta_schedule": "linear"}, {"precision": "bf16"}, {"warmup": 1},
    {"validation": {"name": "cross_validation", "folds": 3}}, {"pins": {"weights": "sha256:11"}},
]  # fmt: skip


def test_equal_meanings_have_equal_fingerprints_and_others_have_others() -> None:
    known = completed().fingerprint
    assert [changes for changes in SAME if completed(**changes).fingerprint != known] == []
    assert len({known, *(completed(**changes).fingerprint for changes in OTHERS)}) == 1 + len(OTHERS)

    assert complete(Recipe.model_validate(dict(reversed(RECIPE.items()))), CATALOG).fingerprint == known


def revised(*names: str, of: Catalog = CATALOG, **update: Any) -> Catalog:
    """The catalog in which parts of these names, or of these kinds, are others."""
    entries = [one.model_copy(update=update) if {one.kind, one.name} & {*names} else one for one in of.entries]
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


PARTS = load()
OF = {"name": "mobilenet_v1", "width": 0.25, "weights": "mobilenet_v1_0.25_128_qat.pt"}


def written(of: Any = OF, **more: Any) -> dict[str, Any]:
    return {**DIGITS, "backbone": {"name": "frozen", "of": of}, **more}


def said(of: Any = OF, **more: Any) -> dict[str, str]:
    return {one.path: one.message for one in problems(written(of, **more), PARTS)}


def with_inner(of: Any = OF, catalog: Catalog = PARTS, **more: Any) -> Recipe:
    return complete(Recipe.model_validate(written(of, **more)), catalog)


def test_a_sound_one_is_filled_in() -> None:
    assert said() == {}
    found = with_inner()
    of = found.part("backbone").options["of"]
    assert isinstance(of, dict)
    assert of == {**OF, "pool": "avg", "freeze_bn": False, "resize": None}
    assert found.pins.versions["backbone"] == found.pins.versions["backbone.of"] == 1
    assert str(found.pins.weights).startswith("sha256:95784845")
    assert complete(found, PARTS) == found
    assert with_inner({**OF, "width": 0.25, "pool": "avg"}).fingerprint == found.fingerprint


def test_its_version_and_weights_are_part_of_the_fingerprint() -> None:
    found = with_inner()
    assert with_inner(catalog=revised("mobilenet_v1", of=PARTS, version=2)).fingerprint != found.fingerprint
    assert with_inner(catalog=revised("resnet18", of=PARTS, version=2)).fingerprint == found.fingerprint
    assert with_inner({**OF, "weights": "other.pt"}).pins.weights is None
    assert with_inner({**OF, "weights": "other.pt"}).fingerprint != found.fingerprint


def test_a_new_version_outdates_what_was_trained() -> None:
    stamped = stamp(with_inner().model_dump(mode="json"))
    assert changes(stamped, PARTS) == ()
    (change,) = changes(stamped, revised("mobilenet_v1", of=PARTS, version=2))
    assert str(change) == "backbone 'mobilenet_v1' (version 1, now 2)"


def test_its_weights_are_what_a_training_needs() -> None:
    need = need_of(with_inner().dataset, with_inner().backbone, PARTS)
    assert need is not None
    assert need.weights == OF["weights"]
    pretrained = with_inner({"name": "resnet18", "pretrained": True})
    assert str(need_of(pretrained.dataset, pretrained.backbone, PARTS)) == "pretrained resnet18"


@pytest.mark.parametrize(
    ("of", "more", "path", "message"),
    [
        (OF | {"wdith": 1}, {}, "backbone.of.wdith", "no hyper-parameter 'wdith'; did you mean 'width'?"),
        (OF | {"width": "x"}, {}, "backbone.of.width", "expected a number, found 'x'"),
        ("mobilenet_v9", {}, "backbone.of", "no backbone named 'mobilenet_v9'; did you mean"),
        (3, {}, "backbone.of", "expected a backbone, found 3"),
        ({"width": 1}, {}, "backbone.of", "expected a backbone by its name, or a mapping with `name`"),
        ("frozen", {}, "backbone.of", "backbone 'frozen' holds a part itself; expected one of 'alexnet'"),
        ("timm_model", {}, "backbone.of.architecture", "is missing; backbone 'timm_model' needs `architecture`, a"),
        ("resnet18", {}, "backbone.of", "random weights here, and backbone 'frozen' never trains them; give it `weigh"),
        ("mobilenet_v1", {}, "backbone.of", "never trains them; give it `weights`"),
        ("small_cnn", {}, "backbone.of", "never trains them; backbones that can have others: 'alexnet', 'bn_incept"),
        (OF, {"augment": "crop_flip"}, "augment", "computed once, and draws no crops or flips; found 'crop_flip'; wri"),
        (OF, {"task": {"name": "verification", "flip": True}}, "task.flip", "adds the mirror image, and backbone 'fr"),
        (OF, {"figures": ["feature_maps"]}, "figures.0", "shows maps, but backbone 'frozen' makes none of an image"),
        (OF, {"figures": [{"name": "feature_maps"}]}, "figures.0", "makes none of an image"),
    ],
)
def test_problems_are_reported_at_their_path(of: Any, more: dict[str, Any], path: str, message: str) -> None:
    assert message in said(of, **more)[path]


def nested(depth: int, innermost: Any) -> Any:
    """A frozen network of a frozen network and so on."""
    for _ in range(depth):
        innermost = {"name": "frozen", "of": innermost}
    return innermost


@pytest.mark.parametrize(
    ("of", "path", "message"),
    [
        (nested(100_000, "resnet18"), "backbone.of", "expected a backbone by its name, or a mapping with `name` and"),
        (OF | {"weights": nested(100_000, 1)}, "backbone.of", "expected a backbone by its name, or a mapping with"),
        (nested(20, "resnet18"), "backbone.of", "backbone 'frozen' holds a part itself; expected one of 'alexnet'"),
        ("a" * 1_000_000, "backbone.of", "expected a backbone by its name, or a mapping with `name` and its hyper-"),
        (OF | {"a" * 1_000_000: 1}, f"backbone.of.{'a' * 68}", "backbone 'mobilenet_v1' has no hyper-parameter 'aaa"),
        (OF | {"weights": "a" * 1_000_000}, "backbone.of.weights", "expected a text of at most 1,000 characters"),
        ({"name": "resnet18\x1b[2J"}, "backbone.of", 'its hyper-parameters; found {"name": "resnet18\\u001b[2J"}'),
    ],
)
def test_what_is_hostile_is_refused_in_a_short_sentence(of: Any, path: str, message: str) -> None:
    ((place, found),) = said(of).items()
    assert place.startswith(path)
    assert message in found
    assert len(found) < 500


def test_a_task_that_looks_again_is_refused() -> None:
    for task, looks in (("self_supervised", "2 views"), ("counting", "tiles")):
        found = said(task=task, dataset="digits_halves")
        assert f"looks at {looks} of each image, and backbone 'frozen' takes features of the whole one" in found["task"]
