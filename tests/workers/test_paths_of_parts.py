"""A path of a built-in part is below the data root, and what leaves it is a problem of the recipe."""

from workers.catalog import load, problems
from workers.catalog.recipe import PATHS

CATALOG = load()
OUTSIDE = ("/srv/images", "..", "../images", "birds/../../images", "~/images", "~", "", "a\0b")
BELOW = ("birds", "birds/train", "a..b/c", "./birds", "birds ~", ".")


def found(kind: str, name: str, option: str, path: str) -> list[str]:
    recipe = {"dataset": "digits", "loss": "triplet", "backbone": "mlp", "sampler": "balanced", "iterations": 10}
    required = {"architecture": "resnet18"} if name == "timm_model" else {}
    recipe[kind] = {"name": name, option: path, **required}
    return [one.message for one in problems(recipe, CATALOG) if one.path == f"{kind}.{option}"]


def test_a_path_that_leaves_the_data_root_is_refused_at_its_place() -> None:
    options = [(entry.kind, entry.name, one.name) for entry in CATALOG.entries for one in entry.parameters]
    options = [one for one in options if one[2] in PATHS]
    assert {("dataset", "image_folder", "folder"), ("dataset", "packed", "file")} <= {*options}
    assert ("backbone", "resnet50", "weights") in options
    missed = [
        (*one, path) for one in options for path in OUTSIDE if "below the data root" not in str(found(*one, path))
    ]
    refused = [(*one, path) for one in options for path in BELOW if found(*one, path)]
    assert (missed, refused) == ([], [])


def test_every_text_that_is_no_path_is_known() -> None:
    texts = {one.name for entry in CATALOG.entries for one in entry.parameters if one.type in {"str", "strs"}}
    texts -= {one.name for entry in CATALOG.entries for one in entry.parameters if one.choices}
    assert texts - {*PATHS} == {"architecture", "content"}
