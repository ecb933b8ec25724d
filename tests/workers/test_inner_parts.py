"""Parts within parts: what is wrong with them is said at their place, and their versions and weights are hashed."""

from typing import Any

import pytest

from tests.workers.recipes import DIGITS
from workers.catalog import Catalog, changes, complete, load, need_of, problems, stamp
from workers.contract import Recipe

CATALOG = load()
OF = {"name": "mobilenet_v1", "width": 0.25, "weights": "mobilenet_v1_0.25_128_qat.pt"}


def written(of: Any = OF, **more: Any) -> dict[str, Any]:
    return {**DIGITS, "backbone": {"name": "frozen", "of": of}, **more}


def said(of: Any = OF, **more: Any) -> dict[str, str]:
    return {one.path: one.message for one in problems(written(of, **more), CATALOG)}


def completed(of: Any = OF, catalog: Catalog = CATALOG, **more: Any) -> Recipe:
    return complete(Recipe.model_validate(written(of, **more)), catalog)


def with_version(name: str, version: int) -> Catalog:
    """The catalog in which a backbone has another version."""
    entries = [one.model_copy(update={"version": version}) if one.name == name else one for one in CATALOG.entries]
    return Catalog(entries=entries)


def test_a_sound_one_is_filled_in() -> None:
    assert said() == {}
    found = completed()
    of = found.part("backbone").options["of"]
    assert isinstance(of, dict)
    assert of == {**OF, "pool": "avg", "freeze_bn": False, "resize": None}
    assert found.pins.versions["backbone"] == found.pins.versions["backbone.of"] == 1
    assert str(found.pins.weights).startswith("sha256:95784845")
    assert complete(found, CATALOG) == found
    assert completed({**OF, "width": 0.25, "pool": "avg"}).fingerprint == found.fingerprint


def test_its_version_and_weights_are_part_of_the_fingerprint() -> None:
    found = completed()
    assert completed(catalog=with_version("mobilenet_v1", 2)).fingerprint != found.fingerprint
    assert completed(catalog=with_version("resnet18", 2)).fingerprint == found.fingerprint
    assert completed({**OF, "weights": "other.pt"}).pins.weights is None
    assert completed({**OF, "weights": "other.pt"}).fingerprint != found.fingerprint


def test_a_new_version_outdates_what_was_trained() -> None:
    stamped = stamp(completed().model_dump(mode="json"))
    assert changes(stamped, CATALOG) == ()
    (change,) = changes(stamped, with_version("mobilenet_v1", 2))
    assert str(change) == "backbone 'mobilenet_v1' (version 1, now 2)"


def test_its_weights_are_what_a_training_needs() -> None:
    need = need_of(completed().dataset, completed().backbone, CATALOG)
    assert need is not None
    assert need.weights == OF["weights"]
    pretrained = completed({"name": "resnet18", "pretrained": True})
    assert str(need_of(pretrained.dataset, pretrained.backbone, CATALOG)) == "pretrained resnet18"


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
def test_what_is_wrong_is_said_at_its_place(of: Any, more: dict[str, Any], path: str, message: str) -> None:
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
        ({"name": "resnet18\x1b[2J"}, "backbone.of", "its hyper-parameters; found {\"name\": \"resnet18\\u001b[2J\"}"),
    ],
)  # fmt: skip
def test_what_is_hostile_is_refused_in_a_short_sentence(of: Any, path: str, message: str) -> None:
    ((place, found),) = said(of).items()
    assert place.startswith(path)
    assert message in found
    assert len(found) < 500


def test_a_task_that_looks_again_is_refused() -> None:
    for task, looks in (("self_supervised", "2 views"), ("counting", "tiles")):
        found = said(task=task, dataset="digits_halves")
        assert f"looks at {looks} of each image, and backbone 'frozen' takes features of the whole one" in found["task"]
