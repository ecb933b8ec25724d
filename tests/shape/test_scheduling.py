"""`make test` begins with what takes longest, and lets what computes run beside what waits."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.scheduling import LONG, TOGETHER, group, longest_first

ROOT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def ordered() -> list[str]:
    """The groups of all files, of two tests each, as they would begin."""
    items: list[Any] = [SimpleNamespace(nodeid=f"{file}::test_{number}") for number in (1, 2) for file in FILES]
    before = {item.nodeid for item in items}
    longest_first(items)
    assert {item.nodeid for item in items} == before
    names = [group(item.nodeid) for item in items]
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]


def test_a_group_begins_once_and_every_one_has_tests() -> None:
    found = ordered()
    assert len(found) == len(set(found))
    assert TOGETHER.keys() <= set(found)


def test_long_files_are_files_of_their_own() -> None:
    assert set(LONG) <= set(FILES)
    assert [group(file) for file in LONG] == list(LONG)


def test_what_computes_runs_beside_what_waits() -> None:
    found = ordered()
    groups = [at for at, name in enumerate(found) if name in TOGETHER]
    assert [found[at] for at in groups] == list(TOGETHER)
    assert groups[:3] == [0, 1, 2]
    assert all(later - earlier > 1 for earlier, later in pairwise(groups[2:]))
    assert groups[-1] < len(found) / 3
    assert max(found.index(file) for file in LONG) < groups[-1]
