"""Parts are found by file name and built from what they ask for; own parts count by their source."""

import sys
from pathlib import Path

import pytest

from workers.catalog import Catalog, PartSourceError, complete, load, own_code
from workers.catalog.source import OFFERED
from workers.contract import FOLDERS, KINDS, CodeChangedError, Part, Recipe
from workers.registry import UnknownPart, build, find, unchanged
from workers.training import session

SCHEDULE = '''
from typing import NamedTuple

class _Pair(NamedTuple):
    a: int

class Mine:
    """Mine."""

    def __init__(self, total: int, *, at: tuple[int, ...] = (1, 2), power: float = 1.0) -> None:
        self.total, self.at, self.power = total, at, power
'''


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "mine.py").write_text(SCHEDULE)
    return tmp_path


def test_a_researchers_own_part_is_imported_from_its_file(parts: Path) -> None:
    """That an edited one is imported again, a test below shows."""
    found = find("schedule", "mine", parts)
    assert (found.__name__, found.__doc__) == ("Mine", "Mine.")
    assert sys.modules[found.__module__].__file__ == str(parts / "schedules" / "mine.py")
    (parts / "schedules" / "mine.py").write_text("class Mine: pass\nraise RuntimeError('no')")
    with pytest.raises(RuntimeError, match="no"):
        find("schedule", "mine", parts)
    assert "metricsweep_parts.schedules.mine" not in sys.modules, "nothing is left of an import that failed"


def test_a_built_in_is_refused_once_an_own_part_takes_its_name(parts: Path) -> None:
    (parts / "schedules" / "constant.py").write_text(SCHEDULE)
    with pytest.raises(PartSourceError, match="rename this file"):
        build("schedule", Part(name="constant"), parts, total=1)
    with pytest.raises(PartSourceError, match="does not exist"):
        build("schedule", Part(name="constant"), parts / "gone", total=1)


def test_only_a_part_is_a_part(parts: Path) -> None:
    with pytest.raises(UnknownPart, match="no schedule named 'cosin'; did you mean 'cosine'"):
        find("schedule", "cosin")
    with pytest.raises(UnknownPart, match="did you mean 'mine'"):
        find("schedule", "mien", parts)
    for name in ("", "../registry", "__init__", "constant.py", "os", "..registry", "mine"):
        with pytest.raises(UnknownPart):
            find("schedule", name)


class TestBuild:
    def test_passes_the_requested_values_and_the_options(self, parts: Path) -> None:
        built = build("schedule", Part.model_validate({"name": "mine", "power": 2}), parts, total=10, dim=3)
        assert (built.total, built.at, built.power) == (10, (1, 2), 2.0)
        assert isinstance(built.power, float)
        assert build("schedule", Part.model_validate({"name": "mine", "at": [3]}), parts, total=1).at == (3,)

    def test_missing_offers_and_options_that_do_not_fit(self, parts: Path) -> None:
        with pytest.raises(TypeError, match="'mine' asks for total; on offer are dim"):
            build("schedule", Part(name="mine"), parts, dim=3)
        for options in ({"powr": 2}, {"power": "2"}, {"power": None}):
            with pytest.raises(ValueError, match=r"powr|expected a number"):
                build("schedule", Part.model_validate({"name": "mine", **options}), parts, total=1)


PART = 'class Mine:\n    """A part."""\n\n    def __init__(self, {arguments}) -> None: ...\n'


def write(folder: Path, file: str, arguments: str = "*, margin: float = 0.2") -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PART.replace("{arguments}", arguments))
    return folder


def test_what_is_offered_is_known_of_every_kind_and_is_all_that_parts_ask_for() -> None:
    assert set(OFFERED) == set(KINDS)
    asked = {kind: {ask for entry in load().of(kind) for ask in entry.inputs} for kind in KINDS}
    assert {kind: inputs - {*OFFERED[kind]} for kind, inputs in asked.items()} == {kind: set() for kind in KINDS}


def test_a_hyper_parameter_before_the_star_is_named_with_its_file(tmp_path: Path) -> None:
    wrong = {}
    for kind in KINDS:
        folder = write(tmp_path / kind, f"{FOLDERS[kind]}/mine.py", "margin: float = 0.2, *, other: int = 1")
        with pytest.raises(PartSourceError) as caught:
            load(folder)
        where = f"{folder}/{FOLDERS[kind]}/mine.py: `margin` stands before the `*`"
        right = "a hyper-parameter stands behind the `*`: `def __init__(self, *, margin: ...)`"
        if not str(caught.value).startswith(where) or right not in str(caught.value):
            wrong[kind] = str(caught.value)
    assert wrong == {}
    with pytest.raises(PartSourceError, match=r"`margin` stands .*`def __init__\(self, dim, \*, margin: ...\)`"):
        load(write(tmp_path, "losses/mine.py", "dim: int, margin: float = 0.2"))


MISSPELT = {
    "loss": "losses", "lossses": "losses", "Losses": "losses", "dataset": "datasets", "data": "datasets",
    "regulariser": "regularizers", "backbone": "backbones", "metric": "metrics", "eta_schedule": "eta_schedules",
}  # fmt: skip


def test_a_misspelt_folder_of_parts_is_named_with_the_right_one(tmp_path: Path) -> None:
    for name, right in MISSPELT.items():
        for arguments in ("*, margin: float = 0.2", "margin: float = 0.2"):
            folder = write(tmp_path / name / str(len(arguments)), f"{name}/mine.py", arguments)
            with pytest.raises(PartSourceError, match=rf"{folder}/{name}: .*did you mean '{right}'\?"):
                load(folder)


def test_the_folder_of_one_kind_is_not_that_of_own_parts(tmp_path: Path) -> None:
    write(tmp_path, "losses/mine.py")
    with pytest.raises(PartSourceError, match=f"name the one above, {tmp_path}"):
        load(tmp_path / "losses")


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "losses/mine.py")
    write(tmp_path, "_data/mine.py")
    write(tmp_path, "tests/test_mine.py")
    write(tmp_path, "common/mine.py")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "readers.py").write_text("def read(path):\n    return path\n")
    assert "mine" in load(tmp_path).names("loss")


CIRCLE = '''"""A loss."""

from torch import nn

from ._terms import SCALE


class Circle(nn.Module):
    version = 1
    order = "free"
    scale = SCALE

    def forward(self, embeddings, labels):
        return embeddings.mean() * SCALE
'''
OTHER = CIRCLE.replace("Circle", "Other").replace("from ._terms import SCALE", "SCALE = 1")
SPREAD = '''"""A metric."""


class Spread:
    version = 1
    better = "lower"

    def __call__(self, evaluation):
        return 0.0
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An own folder with a loss that imports a module of it, another loss, and a metric."""
    files = {
        "losses/circle.py": CIRCLE, "losses/other.py": OTHER, "metrics/spread.py": SPREAD,
        "losses/_terms.py": "from ..shared.numbers import ONE\n\nSCALE = ONE\n", "shared/numbers.py": "ONE = 1.0\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def recipe(catalog: Catalog, loss: str = "circle", *metrics: str) -> Recipe:
    own = {"dataset": "digits", "backbone": "mlp", "sampler": "balanced", "loss": loss}
    return complete(Recipe.model_validate({**own, "iterations": 10, "metrics": [*metrics]}), catalog)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_a_recipe_does_not_use_leaves_its_fingerprint_alone(own: Path) -> None:
    before = recipe(load(own), "other"), recipe(load(), "triplet")
    edit(own / "losses/circle.py", ".mean()", ".sum()")
    edit(own / "metrics/spread.py", "0.0", "1.0")
    after = recipe(load(own), "other"), recipe(load(), "triplet")
    assert [one.fingerprint for one in after] == [one.fingerprint for one in before]
    assert "code" not in after[1].model_dump(mode="json")["pins"], "built-in own have versions"


def test_an_edited_part_and_what_it_imports_give_another_fingerprint(own: Path) -> None:
    known = {recipe(load(own)).fingerprint}
    for name, old, new in (
        ("losses/circle.py", ".mean()", ".mean() * 0.0"),
        ("losses/_terms.py", "SCALE = ONE", "SCALE = 2 * ONE"),
        ("shared/numbers.py", "1.0", "3.0"),
    ):
        edit(own / name, old, new)
        found = recipe(load(own)).fingerprint
        assert found not in known, f"{name} was edited"
        known.add(found)


def test_metrics_and_parts_that_are_named_in_a_text_count(own: Path) -> None:
    first = recipe(load(own), "other", "spread")
    assert set(first.pins.code) == {"loss", "metric.spread"}
    edit(own / "metrics/spread.py", "0.0", "1.0")
    second = recipe(load(own), "other", "spread")
    assert second.pins.code["loss"] == first.pins.code["loss"]
    assert second.pins.code["metric.spread"] != first.pins.code["metric.spread"]
    edit(own / "losses/other.py", "SCALE = 1", "SCALE, INNER = 1, 'circle'")
    named = own_code.sources(own / "losses/other.py", own)
    assert list(named) == ["losses/_terms.py", "losses/circle.py", "losses/other.py", "shared/numbers.py"]


def test_a_worker_refuses_a_recipe_for_other_code(own: Path) -> None:
    planned = recipe(load(own))
    session.check(planned, own)
    edit(own / "losses/_terms.py", "SCALE = ONE", "SCALE = 2 * ONE")
    with pytest.raises(CodeChangedError, match=r"the code of own loss 'circle' is sha256:.* was edited since"):
        session.check(planned, own)


def test_an_edited_module_is_imported_anew_even_within_a_second_and_with_the_same_size(own: Path) -> None:
    first = find("loss", "circle", own)
    assert find("loss", "circle", own) is first
    for number in "2", "3", "4":
        edit(own / "shared/numbers.py", (own / "shared/numbers.py").read_text()[6], number)
        assert find("loss", "circle", own).scale == float(f"{number}.0")
    with unchanged(own):
        edit(own / "shared/numbers.py", "4.0", "5.0")
        assert find("loss", "circle", own).scale == 4.0, "a training ends with the code that it began with"
    assert first.scale == 1.0
