"""What each group of tests took, told after a run that asks for durations, so that its growth is seen in CI's log."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from tests.scheduling import group, lasts

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from xdist.workermanage import WorkerController

_TOLD: Final = 20
"""How many groups have a line of their own."""
MOST: Final = 1_440.0
"""Seconds of CPU that a whole run may take: at four fifths of two busy cores they are 15 minutes."""
MOST_OF_A_FILE: Final = 15.0
"""Seconds of CPU that a file may take of which `tests/scheduling.py` does not know that it lasts."""
EVERY_GROUP: Final = Path(__file__).parents[1] / "build" / "test-costs.txt"
_COLLECTING: Final = "collecting the tests"
_KEY: Final = "costs"


class Cost(NamedTuple):
    """A group's seconds of CPU and by the clock, when it began after the process did, and in which process."""

    group: str
    cpu: float
    wall: float
    began: float
    process: str = ""


def spent() -> float:
    """The seconds of CPU of this process and of those below it, ended or not; what left its parent counts no more."""
    try:
        import psutil
    except ImportError:  # where only workers are tested
        return sum(os.times()[:4])
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.Error):  # one that has just ended is in its parent's sum
            total += sum(process.cpu_times()[:4])
    return total


def busy() -> tuple[float, float]:
    """The seconds of CPU that this machine has spent since it began, whoever spent them, and those that it had."""
    try:
        import psutil
    except ImportError:  # where only workers are tested
        return 0.0, 0.0
    times = psutil.cpu_times()
    had = sum(times[:8])  # not a guest's, which are in the user's
    return had - times.idle - getattr(times, "iowait", 0.0), had


class Costs:
    """A pytest plugin, in each process that runs tests and in the one that tells of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._found: list[Cost] = []
        self._group, self._start = _COLLECTING, time.monotonic()
        self._cpu, self._since = 0.0, self._start
        self._machine = busy()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if (name := group(item.nodeid)) != self._group:
            self._next(name)

    def pytest_sessionfinish(self) -> None:
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            self._next("")
            output[_KEY] = [list(cost) for cost in self._found]
        elif self._group != _COLLECTING:
            self._next("")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: "WorkerController") -> None:
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        self._found += [Cost(*cost)._replace(process=node.gateway.id) for cost in output.get(_KEY, [])]

    def pytest_terminal_summary(self, terminalreporter: "TerminalReporter") -> None:
        if self._config.getoption("durations") is not None and self._found:
            terminalreporter.section(f"{_TOLD} dearest groups of tests")
            for line in (*told(self._found), *warned(self._found)):
                terminalreporter.write_line(line)
            EVERY_GROUP.parent.mkdir(exist_ok=True)
            EVERY_GROUP.write_text("\n".join(told(self._found, len(self._found))) + "\n", encoding="utf-8")
            terminalreporter.write_line(f"all groups are in {EVERY_GROUP.relative_to(EVERY_GROUP.parents[1])}")
            used, had = (now - before for now, before in zip(busy(), self._machine, strict=True))
            terminalreporter.write_line(f"the machine, with all else that ran: {used:.0f} of {had:.0f} s of CPU in use")

    def _next(self, name: str) -> None:
        cpu, now = spent(), time.monotonic()
        cost = Cost(self._group, cpu - self._cpu, now - self._since, self._since - self._start)
        self._found.append(cost)
        self._group, self._cpu, self._since = name, cpu, now


def warned(costs: Iterable[Cost]) -> Iterator[str]:
    """What to do before the next test is added; a busy machine counts up to half more, so that nothing fails by it."""
    every = list(costs)
    if (total := sum(cost.cpu for cost in every)) > MOST:
        yield f"BEYOND THE BUDGET: {total:.0f} s of CPU; {MOST:.0f} are 15 minutes on two cores; see CONTRIBUTING.md"
    for cost in every:
        if cost.cpu > MOST_OF_A_FILE and cost.group != _COLLECTING and not lasts(cost.group):
            yield f"{cost.group} took {cost.cpu:.0f} s of CPU: make it cheaper, or name it in LONG of scheduling.py"


def told(costs: Iterable[Cost], most: int = _TOLD) -> Iterator[str]:
    """A table of the dearest by CPU, collecting in every process as one, and the sums of each process."""
    every = sorted(costs, key=lambda cost: -cost.cpu)
    groups = [cost for cost in every if cost.group != _COLLECTING]
    yield f"{'CPU s':>7} {'wall s':>7} {'began':>7}  group"
    for cost in groups[:most]:
        yield f"{cost.cpu:7.1f} {cost.wall:7.1f} {cost.began:7.1f}  {cost.group}{cost.process and f' [{cost.process}]'}"
    rest = groups[most:]
    yield f"{sum(cost.cpu for cost in rest):7.1f} {sum(cost.wall for cost in rest):7.1f} {'':7}  {len(rest)} others"
    for process in sorted({cost.process for cost in every}):
        mine = [cost for cost in every if cost.process == process]
        collected = sum(cost.cpu for cost in mine if cost.group == _COLLECTING)
        cpu, wall = (sum(cost[column] for cost in mine) for column in (1, 2))
        yield f"{cpu:7.1f} {wall:7.1f} {'':7}  all{process and f' of {process}'}, {collected:.1f} s of it {_COLLECTING}"
