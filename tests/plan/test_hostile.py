"""Whatever 1 MiB holds, its check is bounded in work, memory and words."""

import ctypes
import gc
import re
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan import problems
from orchestrator.plan.check import check
from orchestrator.plan.problems import MOST_TOLD
from orchestrator.plan.validated import read
from orchestrator.plan.yaml import parse
from orchestrator.views.errors import Deadline, GoneError, InvalidSpecError, within
from tests.plan.hostile_bodies import BODIES, LARGE, SMALL
from workers.catalog import Catalog, Problem, shown

MOST_MEGABYTES = 70
"""Promised are 100: what a process had let go of before is taken again unseen. The greatest body takes 35."""
MOST_CHARACTERS = 250_000
"""Of all that is told of one spec; usual ones have a hundredth of it."""
HANG_SECONDS = 60
RESET = Path("/proc/self/clear_refs")
"""Written to, it has the kernel begin anew with the most memory that this process held."""


@contextmanager
def ended() -> Iterator[None]:
    """Against what computes without end, by the processor's seconds: those of the clock tell of the machine."""
    before = signal.signal(signal.SIGPROF, lambda *_: pytest.fail("the check hangs"))
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def little_memory() -> Iterator[None]:
    """Little memory is taken meanwhile, by what the kernel counts: Python's own count takes five times as long.

    What this process had let go of and could not give back may be taken again, unseen.
    """
    if not RESET.exists():  # only Linux has it
        yield
        return
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    before = _kilobytes("VmRSS")
    yield
    assert (_kilobytes("VmHWM") - before) / 1_024 < MOST_MEGABYTES


def _kilobytes(name: str) -> int:
    return int(re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.soak) for name in LARGE)])
def test_a_hostile_body_costs_little(name: str, catalog: Catalog) -> None:
    body = BODIES[name]()
    with ended(), pytest.MonkeyPatch.context() as patched, little_memory():
        counted = problems.Effort()
        patched.setattr(problems, "Effort", lambda: counted)
        told: tuple[Problem, ...] = ()
        try:
            read(body, catalog, ())
        except InvalidSpecError as refused:
            told = refused.problems
    assert len(told) <= MOST_TOLD + 1
    assert sum(len(str(problem)) for problem in told) < MOST_CHARACTERS
    # A step is counted before it is done, so that the last one is refused and not done.
    assert counted.steps <= problems.MOST_STEPS + 100_000


def test_a_value_is_cut_before_it_is_written_out() -> None:
    long = "x" * 100_000
    deep: Any = 1
    for _ in range(30):
        deep = [deep, {"k": deep}]  # 2**30 values, written out
    for value in (long, [long] * 50_000, {long: long}, deep, {"a": [[long] * 1_000] * 1_000}):
        tracemalloc.start()
        found = shown(value)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(found) <= 80
        assert most < 2**17
    assert shown([1, "a", {"b": None}]) == '[1, "a", {"b": null}]'
    assert shown("x" * 200) == f"'{'x' * 76}..."


def test_problems_beyond_the_first_are_counted(catalog: Catalog) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        check({"version": 1, "name": "x", "recipe": {}, **{f"key{number}": 1 for number in range(5_000)}}, catalog)
    assert len(refused.value.problems) == MOST_TOLD + 1
    assert re.fullmatch(r"and 4,8\d\d more problems", refused.value.problems[-1].message)


def test_texts_have_a_limit(catalog: Catalog) -> None:
    backbone, schedule = {"name": "resnet50", "weights": "x" * 1_001}, {"name": "step", "at": [1] * 1_001}
    with pytest.raises(InvalidSpecError) as refused:
        check({"version": 1, "name": "x", "recipe": {"backbone": backbone, "schedule": schedule}}, catalog)
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told["recipe.backbone.weights"] == "expected a text of at most 1,000 characters, found 1,001"
    assert told["recipe.schedule.at"] == "expected at most 1,000 numbers, found 1,001"


def test_rows_that_would_fill_the_disk_are_refused(small: Any, catalog: Catalog) -> None:
    weights = {"name": "resnet50", "weights": "é" * 1_000}  # six bytes each in the database
    values = [{"label": f"{'é' * 90}{number}", "patch": {"iterations": number}} for number in range(1, 301)]
    document = small(compare={"x": values, "embedding": list(range(1, 301))}, **{"recipe.backbone": weights})
    with pytest.raises(InvalidSpecError, match=r"the rows of 90,000 trials would take up to \d+ MiB; at most 512"):
        check(document, catalog)


def test_labels_are_counted_over_all_cells(small: Any, catalog: Catalog) -> None:
    single: dict[str, Any] = {
        "warmup": 0, "patience": 1, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": 1.0,
        "clip_norm": 1.0, "precision": "none", "channels_last": False, "compile": False,
    }  # fmt: skip
    single = {field: [value] for field, value in single.items()}
    document = small(compare={"embedding": list(range(1, 301)), "iterations": list(range(1, 301)), **single})
    with pytest.raises(InvalidSpecError, match="90,000 cells with a label on each of 12 axes are more than 1,000,000"):
        check(document, catalog)


def test_a_check_stops_when_nobody_waits(catalog: Catalog) -> None:
    deadline = Deadline(3_600)
    deadline.end()
    with within(deadline), pytest.raises(GoneError):
        read(BODIES["ninety thousand cells"](), catalog, ())


def test_aliases_count_as_what_they_stand_for() -> None:
    assert parse(b"a: &a xx\nb: [*a, *a]") == {"a": "xx", "b": ["xx", "xx"]}
    with pytest.raises(InvalidSpecError, match="more than 1,048,576 characters, an alias counted as what"):
        parse(BODIES["alias of a long text"]())
    with pytest.raises(InvalidSpecError, match=r"the key 'x{37}\.\.\.' has 201 characters; at most 200 are allowed"):
        parse(b"x" * 201 + b": 1")
