"""A number outside of its range, or a path that leaves the data root, is refused at submit and at building."""

from pathlib import Path
from typing import Any

import pytest
import torch

from workers import registry
from workers.catalog import Entry, Parameter, PartSourceError, load, problems
from workers.catalog.recipe import PATHS
from workers.contract import Part

CATALOG = load()
NUMBERS = {"int", "float", "ints", "floats"}
ANY = {
    ("loss", "multi_similarity", "base"),
    ("loss", "proxy_anchor", "delta"),
    ("loss", "proxy_isa", "delta"),
    ("loss", "proxy_isa", "tau"),
    ("loss", "soft_triple", "delta"),
    ("backbone", "bn_inception", "mean"),
}
"""The hyper-parameters that may be any finite number."""
OFFERS: dict[str, Any] = {
    "dim": 8, "classes": 5, "images": 40, "features": 8, "channels": 3, "side": 64, "total": 10, "unit": 1, "epoch": 2,
    "eta": 1.0, "labels": torch.arange(40) % 5, "generator": torch.Generator(),
}  # fmt: skip
HEAVY = {"backbone", "dataset", "task"}
"""Kinds whose parts are too large, or need too much, to be built at each edge here."""


OURS = [entry for entry in CATALOG.entries if not entry.kind.startswith("pml_")]
"""The parts without those of pytorch-metric-learning, which states no ranges."""


def numeric() -> list[tuple[Entry, Parameter]]:
    return [(entry, one) for entry in OURS for one in entry.parameters if one.type in NUMBERS]


def outside(parameter: Parameter) -> list[float]:
    """The nearest values that the range excludes."""
    step = 1 if parameter.type in {"int", "ints"} else 1e-6
    limits = parameter.limits
    ends = [(limits.gt, 0), (limits.ge, -step), (limits.lt, 0), (limits.le, step)]
    return [end + past for end, past in ends if end is not None]


def edges(parameter: Parameter) -> list[float]:
    """The ends that belong to the range."""
    return [end for end in (parameter.limits.ge, parameter.limits.le) if end is not None]


def written(parameter: Parameter, value: float) -> Any:
    whole = int(value) if parameter.type in {"int", "ints"} else value
    return [whole] if parameter.type in {"ints", "floats"} else whole


def required(entry: Entry) -> dict[str, Any]:
    """A value of each hyper-parameter without default."""

    def value(one: Parameter) -> Any:
        parts = {"backbone": "mlp", "pml_loss": "ContrastiveLoss"}
        return (one.choices or [{"str": "some", "part": parts.get(one.kind)}.get(one.type, 1)])[0]

    return {one.name: value(one) for one in entry.parameters if one.required}


def test_every_number_has_a_range_or_is_listed_here() -> None:
    bare = {(entry.kind, entry.name, one.name) for entry, one in numeric() if not one.bounds}
    assert bare == ANY


def test_no_part_is_built_with_a_value_outside() -> None:
    built = []
    for entry, parameter in numeric():
        for value in outside(parameter):
            options = {**required(entry), parameter.name: written(parameter, value)}
            part = Part.model_validate({"name": entry.name, **options})
            try:
                registry.build(entry.kind, part, **dict.fromkeys(entry.inputs))
            except ValueError as error:
                if parameter.name in str(error) and "expected" in str(error):
                    continue
            built.append((entry.kind, entry.name, parameter.name, value))
    assert built == []


def test_every_part_is_built_with_a_value_at_the_edge() -> None:
    refused = []
    for entry, parameter in numeric():
        only_where = entry.facts.get("only_where") or {}
        for value in edges(parameter):
            options = {**required(entry), **only_where.get(parameter.name, {})}  # type: ignore[union-attr]
            options[parameter.name] = written(parameter, value)
            try:
                if entry.kind in HEAVY:
                    entry.filled(options)
                else:
                    groups = [{"params": [torch.nn.Parameter(torch.ones(2))]}]
                    part = Part.model_validate({"name": entry.name, **options})
                    registry.build(entry.kind, part, groups=groups, **OFFERS)
            except (ValueError, TypeError) as error:
                refused.append((entry.kind, entry.name, parameter.name, value, str(error)))
    assert refused == []


def test_a_value_outside_is_a_problem_of_the_recipe_at_its_path() -> None:
    missed = []
    for entry, parameter in numeric():
        if entry.kind == "metric":
            continue  # `recall@0` is a metric's name
        for value in outside(parameter):
            part = {"name": entry.name, **required(entry), parameter.name: written(parameter, value)}
            recipe = {"dataset": "digits", "loss": "triplet", "iterations": 10, entry.kind: part}
            told = [one for one in problems(recipe, CATALOG) if one.path == f"{entry.kind}.{parameter.name}"]
            if not any(parameter.bounds.split(",")[0] in one.message for one in told):
                missed.append((entry.kind, entry.name, parameter.name, value, told))
    assert missed == []


OWN = '''"""A loss."""
import math
from typing import Annotated
from annotated_types import Ge, Gt, Le, Lt
class Mine:
    """A loss."""
    label = "Mine"
    order = "free"
    def __init__(self, *, {argument}) -> None: ...
'''


def own(folder: Path, argument: str) -> Path:
    (folder / "losses").mkdir(exist_ok=True)
    (folder / "losses" / "mine.py").write_text(OWN.replace("{argument}", argument))
    return folder


def test_an_own_part_states_its_ranges_likewise(tmp_path: Path) -> None:
    folder = own(tmp_path, "angle: Annotated[float, 'radians', Gt(-math.pi / 2), Le(math.pi)] | None = None")
    (parameter,) = load(folder).of("loss")[[one.name for one in load(folder).of("loss")].index("mine")].parameters
    assert (parameter.bounds, parameter.optional) == ("above -1.570796327, at most π", True)
    with pytest.raises(ValueError, match=r"above -1\.570796327 and at most π, or null; found 4"):
        registry.build("loss", Part.model_validate({"name": "mine", "angle": 4}), folder)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("t: Annotated[float, Gte(0)] = 1.0", r"hyper-parameter `t`: Gte\(0\) is not a range; expected Gt, Ge, Lt, Le"),
        ("t: Annotated[float, Ge(LEAST)] = 1.0", "the end of a range must be a number, .*; found LEAST"),
        ("t: Annotated[str, Ge(0)] = 'a'", "str is not a number, so it has no range"),
        ("t: Annotated[float | None, Ge(0)] = None", r"write it at the number itself: `Annotated\[int, Ge\(1\)\] \|"),
        ("t: Annotated[float, Ge(0)] = -1.0", "the default of `t`, -1.0: expected a number of at least 0; found -1.0"),
    ],
)
def test_a_range_that_cannot_be_read_is_refused_with_the_file(argument: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PartSourceError, match=rf"mine\.py: .*{message}"):
        load(own(tmp_path, argument))


OUTSIDE = ("/srv/images", "..", "../images", "birds/../../images", "~/images", "~", "", "a\0b")
BELOW = ("birds", "birds/train", "a..b/c", "./birds", "birds ~", ".")


def found(kind: str, name: str, option: str, path: str) -> list[str]:
    recipe = {"dataset": "digits", "loss": "triplet", "backbone": "mlp", "sampler": "balanced", "iterations": 10}
    required = {"architecture": "resnet18"} if name == "timm_model" else {}
    recipe[kind] = {"name": name, option: path, **required}
    return [one.message for one in problems(recipe, CATALOG) if one.path == f"{kind}.{option}"]


def test_a_path_that_leaves_the_data_root_is_refused_at_its_place() -> None:
    options = [(entry.kind, entry.name, one.name) for entry in OURS for one in entry.parameters]
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
    of_a_csv = {"label", "path", "train", "unused"}  # `split` and `test` are choices elsewhere
    assert texts - {*PATHS} == {"architecture", "content"} | of_a_csv
