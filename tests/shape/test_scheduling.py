"""`make test` begins with what takes longest, and lets what computes run beside what waits."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.costs import MOST, MOST_OF_A_FILE, Cost, warned
from tests.scheduling import LONG, TOGETHER, by_group, group, longest_first

ROOT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
OUT_OF_THEIR_FILES = sorted(start for starts in TOGETHER.values() for start in starts if "::" in start)


def ordered() -> list[str]:
    """The groups of all files, of two tests each, as they would begin."""
    names = [*(f"{file}::test_{number}" for number in (1, 2) for file in FILES), *OUT_OF_THEIR_FILES]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
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


def test_a_test_may_leave_the_group_of_its_file() -> None:
    for start in OUT_OF_THEIR_FILES:
        file, _, name = start.partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
        assert group(f"{start}[v1]") in TOGETHER.keys() - {group(f"{file}::test_another")}


class Process:
    """What the scheduler knows of a process: what it has sent there."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.told: list[str] = []

    def send_runtest_some(self, at: list[int]) -> None:
        self.told += [TESTS[number] for number in at]

    def shutdown(self) -> None:
        self.shutting_down = True


SHORT = [f"tests/plan/test_{name}.py" for name in ("grid", "layout", "axis")]
TESTS = [f"{file}::test_{number}" for file in (LONG[0], *SHORT) for number in (1, 2, 3)]


def test_what_follows_a_long_group_is_the_least_and_is_told_late() -> None:
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=option, getvalue=lambda _: ["popen", "popen"])
    scheduler: Any = by_group(config, None)  # type: ignore[arg-type]
    long, other = processes = Process(), Process()
    for process in processes:
        scheduler.add_node(process)
    for process in processes:
        scheduler.add_node_collection(process, TESTS)
    scheduler.schedule()
    assert (long.told, other.told) == (TESTS[:3], TESTS[3:6])
    scheduler.mark_test_complete(long, 0)
    assert long.told == TESTS[:3], "the third is known, with which the second may begin"
    scheduler.mark_test_complete(long, 1)
    assert long.told == [*TESTS[:3], *TESTS[9:]], "what waits for the third is not what should have begun"
    scheduler.mark_test_complete(other, 3)
    scheduler.mark_test_complete(other, 4)
    assert other.told == TESTS[3:9]


def test_who_adds_tests_is_told_what_takes_too_much() -> None:
    known = [Cost(LONG[0], MOST_OF_A_FILE + 1, 1.0, 0.0), Cost("record", MOST_OF_A_FILE + 1, 1.0, 0.0)]
    assert list(warned(known)) == []
    (said,) = warned([*known, Cost(SHORT[0], MOST_OF_A_FILE + 1, 1.0, 0.0)])
    assert said.startswith(f"{SHORT[0]} took 16 s of CPU: ")
    (said,) = warned([*known, Cost(LONG[1], MOST, 1.0, 0.0)])
    assert said.startswith(f"BEYOND THE BUDGET: {MOST + 32:.0f} s of CPU")


def test_what_computes_runs_beside_what_waits() -> None:
    found = ordered()
    groups = [at for at, name in enumerate(found) if name in TOGETHER]
    assert [found[at] for at in groups] == list(TOGETHER)
    assert groups[:3] == [0, 1, 2]
    assert all(later - earlier > 1 for earlier, later in pairwise(groups[2:]))
    assert groups[-1] < len(found) / 3
    assert max(found.index(file) for file in LONG) < groups[-1]
