"""A part is found by its file name and built from what it asks for."""

import sys
from pathlib import Path

import pytest

from workers.catalog import PartSourceError, load
from workers.contract import Part
from workers.registry import UnknownPart, build, find

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


def test_finds_a_built_in_part() -> None:
    found = find("schedule", "constant")
    assert found.__module__ == "workers.schedules.constant"


def test_finds_a_researchers_own_part_and_imports_it_once(parts: Path) -> None:
    found = find("schedule", "mine", parts)
    assert (found.__name__, found.__doc__) == ("Mine", "Mine.")
    assert find("schedule", "mine", parts) is found
    assert sys.modules[found.__module__].__file__ == str(parts / "schedules" / "mine.py")
    with pytest.raises(UnknownPart):
        find("schedule", "mine")


def test_an_edited_part_is_imported_again(parts: Path) -> None:
    before = find("schedule", "mine", parts)
    (parts / "schedules" / "mine.py").write_text(SCHEDULE.replace('"""Mine."""', '"""Mine, edited."""'))
    after = find("schedule", "mine", parts)
    assert after is not before
    assert after.__doc__ == "Mine, edited."


def test_a_part_that_fails_to_import_leaves_nothing_behind(parts: Path) -> None:
    (parts / "schedules" / "mine.py").write_text("class Mine: pass\nraise RuntimeError('no')")
    with pytest.raises(RuntimeError, match="no"):
        find("schedule", "mine", parts)
    assert "metricsweep_parts.schedules.mine" not in sys.modules


@pytest.mark.parametrize("source", ["X = 1", "class A: pass\nclass B: pass"])
def test_a_file_with_no_or_two_classes_is_refused(parts: Path, source: str) -> None:
    (parts / "schedules" / "mine.py").write_text(source)
    with pytest.raises(PartSourceError, match="exactly one public class"):
        find("schedule", "mine", parts)


def test_an_own_part_cannot_hide_a_built_in(parts: Path) -> None:
    (parts / "schedules" / "constant.py").write_text(SCHEDULE)
    with pytest.raises(PartSourceError, match="built-in schedule is named 'constant'"):
        find("schedule", "constant", parts)


def test_a_built_in_is_refused_once_an_own_part_takes_its_name(parts: Path) -> None:
    assert find("schedule", "constant", parts) is find("schedule", "constant")
    (parts / "schedules" / "constant.py").write_text(SCHEDULE)
    with pytest.raises(PartSourceError, match="rename this file"):
        build("schedule", Part(name="constant"), parts, total=1)
    assert find("schedule", "constant").__module__ == "workers.schedules.constant"


def test_a_folder_of_own_parts_that_is_gone_is_missed_for_a_built_in_too(tmp_path: Path) -> None:
    with pytest.raises(PartSourceError, match="does not exist"):
        build("schedule", Part(name="constant"), tmp_path / "gone", total=1)


def test_a_typo_gets_a_suggestion(parts: Path) -> None:
    with pytest.raises(UnknownPart, match="no schedule named 'cosin'; did you mean 'cosine'") as caught:
        find("schedule", "cosin")
    assert (caught.value.kind, caught.value.name) == ("schedule", "cosin")
    with pytest.raises(UnknownPart, match="did you mean 'mine'"):
        find("schedule", "mien", parts)


@pytest.mark.parametrize("name", ["", "../registry", "__init__", "constant.py", "os", "..registry"])
def test_only_a_part_is_a_part(name: str) -> None:
    with pytest.raises(UnknownPart):
        find("schedule", name)


class TestBuild:
    def test_passes_what_is_asked_for_and_the_options(self, parts: Path) -> None:
        built = build("schedule", Part.model_validate({"name": "mine", "power": 2}), parts, total=10, dim=3)
        assert (built.total, built.at, built.power) == (10, (1, 2), 2.0)
        assert isinstance(built.power, float)

    def test_a_list_of_options_arrives_as_a_tuple(self, parts: Path) -> None:
        assert build("schedule", Part.model_validate({"name": "mine", "at": [3]}), parts, total=1).at == (3,)

    def test_what_nobody_offers(self, parts: Path) -> None:
        with pytest.raises(TypeError, match="'mine' asks for total; on offer are dim"):
            build("schedule", Part(name="mine"), parts, dim=3)

    @pytest.mark.parametrize("options", [{"powr": 2}, {"power": "2"}, {"power": None}])
    def test_an_option_that_does_not_fit(self, parts: Path, options: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r"powr|expected a number"):
            build("schedule", Part.model_validate({"name": "mine", **options}), parts, total=1)

    @pytest.mark.parametrize("name", load().names("schedule"))
    def test_every_schedule_is_built(self, name: str) -> None:
        entry = load().get("schedule", name)
        assert entry is not None
        required = {one.name: [5] for one in entry.parameters if one.required and one.type == "ints"}
        schedule = build("schedule", Part.model_validate({"name": name, **required}), total=10, unit=1)
        assert 0 <= schedule(0) <= 1
