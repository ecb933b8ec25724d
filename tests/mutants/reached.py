"""Which functions of the product each test reaches, in its own process and in those that it starts.

`python -m tests.mutants map` runs the whole suite with it. A process appends `test<TAB>function` to a file of its own
in the folder $MUTANTS_REACHED, the first time that it enters a function during a test.
"""

import functools
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

ROOT: Final = Path(__file__).parents[2]
_PRODUCT: Final = tuple(f"{ROOT / folder}{os.sep}" for folder in ("api", "dashboards", "orchestrator", "workers"))
_OUTSIDE: Final = "(outside of tests)"


class Recorder:
    """Notes the functions that this process enters, each once a test; needs Python 3.12's `sys.monitoring`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, TextIO] = {}
        self.test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0] or _OUTSIDE
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutants")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, self._entered)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START)

    def begin(self, test: str) -> None:
        """Begin a test: note again every function that is entered."""
        self.test = test
        sys.monitoring.restart_events()  # type: ignore[attr-defined]

    def write(self, kind: str, left: str, right: str) -> None:
        """Add a line to this process's file of a kind; a forked process has files of its own."""
        name = f"{kind}-{os.getpid()}"
        if name not in self._files:
            self._files[name] = (self._folder / name).open("a", encoding="utf-8", buffering=1)
        self._files[name].write(f"{left}\t{right}\n")

    def _entered(self, code: CodeType, offset: int) -> Any:
        if code.co_filename.startswith(_PRODUCT) and not code.co_name.startswith("<"):
            module = ".".join(Path(code.co_filename).relative_to(ROOT).with_suffix("").parts)
            name = code.co_qualname.partition(".<locals>")[0]  # type: ignore[attr-defined]
            self.write("reached", self.test, f"{module}:{name}")
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]


@functools.cache
def recorder() -> Recorder | None:
    """The recorder of this process; None unless the map is being made."""
    folder = os.environ.get("MUTANTS_REACHED")
    return Recorder(Path(folder)) if folder else None


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """A test begins."""
    recording = recorder()
    if recording is not None:
        recording.begin(nodeid)


def pytest_runtest_logreport(report: "pytest.TestReport") -> None:
    """Note how long each phase of a test took; a process of pytest-xdist notes those that it ran itself."""
    recording = recorder()
    if recording is not None and not hasattr(report, "node"):
        recording.write("seconds", report.nodeid, f"{report.duration:.3f}")


def read(folder: Path) -> "tuple[Mapping[str, set[str]], Mapping[str, float]]":
    """The tests that reach each function, and the seconds that each test takes."""
    tests: defaultdict[str, set[str]] = defaultdict(set)
    seconds: defaultdict[str, float] = defaultdict(float)
    for test, function in _rows(folder, "reached-*"):
        if test != _OUTSIDE:
            tests[function].add(test)
    for test, duration in _rows(folder, "seconds-*"):
        seconds[test] += float(duration)
    return tests, seconds


def _rows(folder: Path, pattern: str) -> "Iterator[tuple[str, str]]":
    for path in sorted(folder.glob(pattern)):
        for line in path.read_text(encoding="utf-8").splitlines():
            left, tab, right = line.rpartition("\t")
            if tab and right:  # a process that was killed may leave half a line
                yield left, right
