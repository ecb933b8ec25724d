"""All problems of a recipe are reported at once, each at its path, with what would be right."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from tests.workers import recipes
from tests.workers.specimens import CATALOG, RECIPE
from workers.catalog import Catalog, complete, problems
from workers.contract import Recipe


def said(**changes: Any) -> dict[str, str]:
    """The problems of the sound recipe with these fields changed; a field that is `...` is left out."""
    recipe = {name: value for name, value in {**RECIPE, **changes}.items() if value is not ...}
    found = problems(recipe, CATALOG)
    assert len({problem.path for problem in found}) == len(found)
    return {problem.path: problem.message for problem in found}


NO_HOLDOUT: dict[str, Any] = {"validation": {"name": "none"}, "select": {"split": "test"}}


def test_a_sound_recipe_has_no_problems() -> None:
    assert said() == {}
    assert said(**NO_HOLDOUT) == {}
    assert said(iterations=..., epochs=3, warmup=3) == {}
    assert said(iterations=None, epochs=3.0, backbone_rate=1, loss_rate=0.5, clip_value=10) == {}
    assert said(validation="class_holdout", sampler={"name": "balanced", "classes": 2}).keys() == {"validation.folds"}
    assert said(validation="none", select={"split": "test"}) == {}
    assert said(iterations=300.0, embedding=64.0, regularizer={"name": "sec", "eta": 1}) == {}


def test_all_problems_are_reported_at_once() -> None:
    found = said(
        loss="proxy_ancor",
        regularizer={"name": "none", "eta": 1},
        optimizer={"name": "adam", "lr": "abc"},
        iterations=0,
        validation={"name": "class_holdout", "folds": 3, "fold": 3},
        colour="red",
    )
    assert found == {
        "loss": "no loss named 'proxy_ancor'; did you mean 'proxy_anchor'?",
        "regularizer.eta": "regularizer 'none' has no hyper-parameter 'eta'; it has none",
        "optimizer.lr": "expected a number, found 'abc'",
        "iterations": "expected at least 1, found 0",
        "validation.fold": "fold 3 does not exist; with 3 folds it is 0 to 2",
        "colour": found["colour"],
    }
    assert found["colour"].startswith("a recipe has no field 'colour'; expected one of 'augment', ")


def test_the_empty_recipe_says_what_it_lacks() -> None:
    found = {problem.path: problem.message for problem in problems({}, CATALOG)}
    assert found["dataset"] == "is missing; expected one of 'digits', 'pair'"
    assert found["iterations"] == "is missing; expected a whole number of at least 1, or `epochs`"
    assert set(found) == {"dataset", "backbone", "loss", "sampler", "iterations", "select.split"}


NAME = "expected a name, or a mapping with `name`: "
SPLIT = "expected one of 'none', 'class_holdout', 'cross_validation', 'image_holdout', found "
HOLD_OUT = "expected a mapping such as {name: class_holdout} or {name: none}, found "
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"loss": "zzz"}, "loss", "no loss named 'zzz'; expected one of 'npair', 'proxy_anchor', 'triplet'"),
    ({"loss": None}, "loss", f"{NAME}'triplet', 'proxy_anchor', 'npair'; found null"),
    ({"backbone": {"width": 3}}, "backbone", NAME + "'mlp', 'pretrained'; found {\"width\": 3}"),
    ({"backbone": {"name": 3}}, "backbone", NAME + "'mlp', 'pretrained'; found {\"name\": 3}"),
    ({"loss": {"name": "triplet", "margn": 1}}, "loss.margn",
     "loss 'triplet' has no hyper-parameter 'margn'; did you mean 'margin'?"),
    ({"loss": {"name": "triplet", "mining": "x"}}, "loss.mining", "expected one of 'all', 'hard', found 'x'"),
    ({"regularizer": "sec"}, "regularizer.eta", "is missing; regularizer 'sec' needs `eta`, a number"),
    ({"optimizer": {"name": "adam", "lr": "1e-3"}}, "optimizer.lr",
     "expected a number, found '1e-3'; write it without quotes"),
    ({"optimizer": {"name": "adam", "lr": True}}, "optimizer.lr", "expected a number, found true"),
    ({"optimizer": {"name": "adam", "lr": None}}, "optimizer.lr", "expected a number, found null"),
    ({"optimizer": {"name": "adam", "lr": float("nan")}}, "optimizer.lr", "expected a number, found NaN"),
    ({"optimizer": {"name": "adam", "lr": float("inf")}}, "optimizer.lr", "expected a number, found Infinity"),
    ({"optimizer": {"name": "adam", "amsgrad": 1}}, "optimizer.amsgrad", "expected true or false, found 1"),
    ({"loss": {"name": "triplet", "cap": 3.5}}, "loss.cap", "expected a whole number, or null, found 3.5"),
    ({"loss": {"name": "triplet", "cap": False}}, "loss.cap", "expected a whole number, or null, found false"),
    ({"loss": {"name": "triplet", "mining": True}}, "loss.mining", "expected one of 'all', 'hard', found true"),
    ({"backbone": {"name": "pretrained", "weights": 1}}, "backbone.weights", "expected a text, or null, found 1"),
    ({"schedule": {"name": "step", "at": 3}}, "schedule.at", "expected a list of whole numbers, found 3"),
    ({"schedule": {"name": "step", "at": [1, "2"]}}, "schedule.at", "expected a list of whole numbers, found '2'"),
    ({"optimiser": "adam"}, "optimiser", "a recipe has no field 'optimiser'; did you mean 'optimizer'?"),
    ({"iterations": "300"}, "iterations", "expected a whole number, found '300'"),
    ({"iterations": 10**8}, "iterations", "expected at most 10,000,000, found 100000000"),
    ({"embedding": None}, "embedding", "expected a whole number, found null"),
    ({"seed": 2**31}, "seed", "expected less than 2,147,483,648, found 2147483648"),
    ({"version": 2}, "version", "expected 1, found 2"),
    ({"select": "recall@1"}, "select", "expected a mapping, found 'recall@1'"),
    ({"select": {"metrik": 1}}, "select.metrik", "`select` has no field 'metrik'; did you mean 'metric'?"),
    ({"select": {"metric": 1}}, "select.metric", "expected a text, found 1"),
    ({"select": {"split": "val"}}, "select.split", "expected 'validation', 'test' or 'last', found 'val'"),
    ({"validation": {"name": "holdout"}}, "validation", f"{SPLIT}'holdout'"),
    ({"validation": "cross_valdation"}, "validation", f"{SPLIT}'cross_valdation'"),
    ({"validation": {"folds": 3}}, "validation", HOLD_OUT + '{"folds": 3}'),
    ({"validation": None}, "validation", f"{HOLD_OUT}null"),
    ({"validation": {"name": "class_holdout", "folds": 1}}, "validation.folds", "expected at least 2, found 1"),
    ({"validation": {"name": "class_holdout", "foldz": 1}}, "validation.foldz",
     "`validation` has no field 'foldz'; did you mean 'fold'?"),
    ({"validation": {"name": "cross_validation", "fold": 1}}, "validation.fold",
     "`validation` has no field 'fold'; did you mean 'folds'?"),
    ({"epochs": 3}, "epochs", "`iterations` is given too; leave out one of them"),
    ({"epochs": 0}, "epochs", "expected at least 1, found 0"),
    ({"iterations": None}, "iterations", "is missing; expected a whole number of at least 1, or `epochs`"),
    ({"warmup": 301}, "warmup", "expected at most the 300 iterations of the training, found 301"),
    ({"iterations": ..., "epochs": 2, "warmup": 3}, "warmup",
     "expected at most the 2 epochs of the training, found 3"),
    ({"backbone_rate": -1}, "backbone_rate", "expected at least 0, found -1"),
    ({"loss_rate": True}, "loss_rate", "expected a number, found true"),
    ({"clip_value": 0}, "clip_value", "expected more than 0, found 0"),
    ({"clip_norm": float("nan")}, "clip_norm", "expected a finite number, found NaN"),
    ({"undecayed": "bias"}, "undecayed", "expected 'none', 'norm' or 'norm_and_bias', found 'bias'"),
    ({"precision": "fp8"}, "precision", "expected 'none', 'bf16' or 'fp16', found 'fp8'"),
    ({"compile": 1}, "compile", "expected true or false, found 1"),
    ({"augment": "x"}, "augment", "expected 'none', 'flip', 'crop_flip', 'proxy_anchor' or 'simclr', found 'x'"),
    ({"figures": "norms"}, "figures", "expected a list, found 'norms'"),
    ({"figures": ["norms", "norms"]}, "figures", "expected each figure once, found 'norms', 'norms'"),
    ({"figures": ["norms", "unit_circle"]}, "figures.1",
     "'unit_circle' shows embeddings in 2 dimensions, but `embedding` is 64"),
    ({"figures": [{"name": "panels", "depth": 0}]}, "figures.0.depth", "expected at least 1, found 0"),
    ({"figures": [{"name": "panels", "depht": 5}]}, "figures.0.depht",
     "figure 'panels' has no field 'depht'; did you mean 'depth'?"),
    ({"figures": [{"depth": 5}]}, "figures.0",
     'expected a figure such as {name: panels, depth: 5}, found {"depth": 5}'),
    ({"figures": [5]}, "figures.0", "expected a figure such as norms or {name: panels, depth: 5}, found 5"),
    ({"figures": ["direction_variation"]}, "figures.0",
     "'direction_variation' looks every 1,000 iterations, but the training has 300; set `every`"),
    ({"figures": [{"name": "norm_traces", "every": 1, "images": 10000}]}, "figures.0",
     "'norm_traces' 300 looks at 10,000 images are more than 1,000,000 values; look more seldom, or at fewer images"),
    ({"figures": [{"name": "norms", "split": "validation"}], **NO_HOLDOUT}, "figures.0.split",
     "no classes are held out; take split 'test' or 'train', or add `validation`"),
    ({"crop": 9}, "crop", "the images of dataset 'digits' have 8 pixels a side; found 9"),
    ({"eta_schedule": "liner"}, "eta_schedule", "no eta_schedule named 'liner'; did you mean 'linear'?"),
    ({"patience": 3, "select": {"split": "last"}}, "patience",
     "waits for a better score, but `select.split` 'last' keeps the last checkpoint whatever its score; leave it"
     " out, or select by 'validation' or 'test'"),
    ({"pins": {"weigths": ""}}, "pins.weigths", "`pins` has no field 'weigths'; did you mean 'weights'?"),
]  # fmt: skip
"""What is changed in a sound recipe, and the one problem that it then has."""


def test_a_value_that_does_not_fit() -> None:
    found = [(changes, said(**changes), {path: message}) for changes, path, message in CASES]
    assert [one for one in found if one[1] != one[2]] == []


class TestAgreement:
    def test_the_sampler_draws_more_classes_than_train(self) -> None:
        assert said(sampler={"name": "balanced", "classes": 8}) == {
            "sampler.classes": "the sampler draws 8 classes a batch, but only 4 of digits' 6 training classes remain"
            " after fold 0 of 3 is held out for validation"
        }
        assert said(sampler={"name": "balanced", "classes": 7}, **NO_HOLDOUT) == {
            "sampler.classes": "the sampler draws 7 classes a batch, but dataset 'digits' has only 6 training classes"
        }
        assert said(sampler={"name": "balanced", "classes": 6}, **NO_HOLDOUT) == {}

    def test_every_fold_of_a_cross_validation_is_judged(self) -> None:
        assert said(validation={"name": "cross_validation", "folds": 3}) == {}
        assert said(
            validation={"name": "cross_validation", "folds": 4}, sampler={"name": "balanced", "classes": 5}
        ) == {
            "validation.folds": "fold 0 of 4 holds out 1 of digits' 6 training classes, but validation needs at least"
            " 2; take fewer folds",
            "sampler.classes": "the sampler draws 5 classes a batch, but only 4 of digits' 6 training classes remain"
            " after fold 1 of 4 is held out for validation",
        }

    def test_a_training_has_two_classes(self) -> None:
        assert said(dataset="pair", sampler="shuffle", **NO_HOLDOUT) == {
            "dataset": "a training needs at least 2 classes, but dataset 'pair' has only 1 training class"
        }
        (one,) = (entry for entry in CATALOG.entries if entry.name == "pair")
        for count, held_out, expected in (
            (2, NO_HOLDOUT, []),
            (3, {"validation": {"name": "class_holdout", "folds": 3}}, ["validation.folds"]),  # two are left to train
        ):
            facts = {**one.facts, "classes": {"train": count, "test": 1}}
            few = Catalog(entries=[*CATALOG.entries, one.model_copy(update={"name": "few", "facts": facts})])
            found = problems({**RECIPE, "dataset": "few", "sampler": "shuffle", **held_out}, few)
            assert [problem.path for problem in found] == expected

    def test_a_loss_needs_its_layout(self) -> None:
        assert said(loss="npair") == {}
        assert said(loss="npair", sampler="shuffle") == {
            "sampler": "loss 'npair' takes batches laid out as 'class_blocks', but sampler 'shuffle' gives 'shuffled';"
            " samplers that fit: 'balanced'"
        }

    def test_a_regularizer_of_norms_needs_norms(self) -> None:
        assert said(head="unit_fc") == {}
        assert said(head="unit_fc", regularizer={"name": "sec", "eta": 1}) == {
            "regularizer": "regularizer 'sec' acts on the norms of embeddings, but with head 'unit_fc' every norm is 1;"
            " heads that fit: 'fc'"
        }

    def test_nothing_trains_supervised_under_simclrs_name(self) -> None:
        def found(**changes: Any) -> dict[str, str]:
            return recipes.problems({**RECIPE, "backbone": "mlp", **changes})

        assert found(loss="nt_xent", augment="simclr") == {
            "loss": "loss 'nt_xent' with `augment: simclr` means SimCLR, whose positives are two views of an image, but"
            " task 'retrieval' gives it the labels, so that it would train supervised under SimCLR's name; take another"
            " loss, or another `augment`"
        }
        assert found(loss="nt_xent", augment="none") == found(loss="triplet", augment="simclr") == {}

    def test_a_task_says_what_may_be_held_out(self) -> None:
        def found(**changes: Any) -> dict[str, str]:
            return recipes.problems({**RECIPE, "backbone": "mlp", **changes})

        images = {"name": "image_holdout", "folds": 5}
        assert found(validation=images) == {
            "validation": "task 'retrieval' does not validate by image_holdout; take {name: class_holdout},"
            " {name: cross_validation}, or none"
        }
        faces = {"task": "verification", "select": {"metric": "accuracy"}}
        assert found(**faces, validation=images) == {}
        assert found(**faces, validation={"name": "image_holdout", "fold": 10}) == {
            "validation.fold": "fold 10 does not exist; with 10 folds it is 0 to 9"
        }
        assert found(**faces, validation={"name": "image_holdout", "folds": 1000}) == {
            "validation.folds": "fold 0 of 1000 holds out 1 of digits' 1,083 training images, but validation needs at"
            " least 2; take fewer folds"
        }

    def test_selection_by_validation_needs_a_hold_out(self) -> None:
        for validation in (..., {"name": "none"}):
            assert said(validation=validation) == {
                "select.split": "no classes are held out to select by 'validation'; add `validation: {name:"
                " class_holdout}`, or select by 'test' or 'last'"
            }
            assert said(validation=validation, select={"split": "last"}) == {}

    def test_the_metric_that_selects(self) -> None:
        whole = "after the @ stands a whole number of at least 1, such as 'recall@1'"
        lacks, adds = "dataset 'digits' does not compute", "in the recipe adds it"
        messages = {
            "recal@1": "no metric named 'recal@1'; did you mean 'recall@1'?",
            "recall@0": f"no metric 'recall@0'; {whole}",
            "recall@": f"no metric 'recall@'; {whole}",
            "recall@01": f"no metric 'recall@01'; {whole}",
            "map@5": "no metric 'map@5'; expected 'map@r'",
            "nmi@2": "metric 'nmi' takes no k, found 'nmi@2'; write 'nmi'",
            "norm_var": "metric 'norm_var' has no better value to select by",
            "recall@2": f"{lacks} 'recall@2'; did you mean 'recall@1'? `metrics: [recall@2]` {adds}",
            "recall": f"{lacks} 'recall'; did you mean 'recall@1'? `metrics: [recall]` {adds}",
            "nmi": f"{lacks} 'nmi'; expected one of 'map@r', 'norm_var', 'recall@1'. `metrics: [nmi]` {adds}",
        }
        found = {metric: said(select={"metric": metric}) for metric in messages}
        assert found == {metric: {"select.metric": message} for metric, message in messages.items()}

    def test_a_rule_is_silent_where_what_it_needs_is_wrong_already(self) -> None:
        assert set(said(dataset="digit", sampler={"name": "balanced", "classes": 99})) == {"dataset"}
        assert set(said(validation={"name": "x"}, sampler={"name": "balanced", "classes": 99})) == {"validation"}
        assert set(said(sampler={"name": "balanced", "classes": "8"})) == {"sampler.classes"}
        assert set(said(loss={"name": "npair", "x": 1}, sampler="shuffle")) == {"loss.x"}
        assert set(said(validation={"name": "none"}, select={"split": 1})) == {"select.split"}


WORDS = some.sampled_from(
    ["name", "class_holdout", "none", "folds", "fold", "triplet", "npair", "sec", "eta", "lr", "metric", "recall@1"]
)
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text("aé1-{}", max_size=3) | WORDS,
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(WORDS | some.text("aé1-{}", max_size=3), inner, max_size=4)
    ),
    max_leaves=6,
)


@settings(database=None, max_examples=150)
@given(some.dictionaries(some.sampled_from([*Recipe.model_fields, "colour", ""]), VALUES, max_size=4))
def test_whatever_is_written_is_judged_and_what_passes_can_be_completed(changes: dict[str, Any]) -> None:
    recipe = {**RECIPE, **changes}
    if not problems(recipe, CATALOG):
        once = complete(Recipe.model_validate(recipe), CATALOG)
        assert complete(once, CATALOG) == once
        assert len(once.fingerprint) == 64


def real(**changes: Any) -> dict[str, str]:
    """The problems of a sound recipe of built-in parts with these fields changed."""
    recipe = {
        "dataset": "digits", "backbone": "small_cnn", "loss": "triplet", "iterations": 3, "crop": 8,
        "sampler": {"name": "balanced", "classes": 4, "per_class": 8}, "select": {"split": "last"},
    }  # fmt: skip
    return recipes.problems({**recipe, **changes})


def test_contrastive_pairs_images_four_by_four() -> None:
    for per_class, right in ((4, None), (8, None), (3, "take 4"), (6, "take 4 or 8"), (9, "take 8 or 12")):
        sampler = {"name": "balanced", "classes": 4, "per_class": per_class}
        assert real(sampler=sampler) == {}
        message = f"loss 'contrastive' pairs the images of a class 4 by 4, but the sampler draws {per_class}; {right}"
        assert real(sampler=sampler, loss="contrastive") == ({"sampler.per_class": message} if right else {})
    assert set(real(sampler="shuffle", loss="contrastive")) == {"sampler"}


def test_a_crop_fits_in_the_images_as_they_are_made() -> None:
    sides: list[tuple[Any, int]] = [
        ("digits", 8), ("cub200", 256), ({"name": "cub200", "side": 128}, 128), ({"name": "cub200", "side": 300}, 300),
        ({"name": "image_folder", "folder": "mine"}, 256), ({"name": "packed", "file": "mine.npz", "side": 64}, 64),
    ]  # fmt: skip
    for dataset, side in sides:
        assert real(dataset=dataset, crop=side) == {}
        found = real(dataset=dataset, crop=side + 1)
        assert list(found) == ["crop"]
        assert found["crop"].endswith(f"have {side} pixels a side; found {side + 1}")
    assert real(dataset={"name": "packed", "file": "mine.npz"}, crop=9999) == {}, "its side is its own"
