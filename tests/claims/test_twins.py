"""Every quick twin says what it shows and what it does not, and the page has the figures of each claim."""

import re
from functools import cache

import pytest

from benchmarks.claims import page
from benchmarks.claims.claim import TWINS, Claim
from benchmarks.claims.twin import Twin

NAMES = sorted(file.stem for file in TWINS.glob("*.yaml"))
SHOWN = page.PAGE.read_text(encoding="utf-8")


@cache
def twin_of(name: str) -> Twin:
    return Twin(TWINS / f"{name}.yaml", [0])


def test_there_are_twins() -> None:
    assert len(NAMES) > 40, "each preset has one; tests/plan/test_presets.py counts them"


ROWS = [line for line in SHOWN.splitlines() if page.twins_of(line)]


@pytest.mark.parametrize("name", NAMES)
def test_its_claims_are_about_trials_that_it_has(name: str) -> None:
    twin = twin_of(name)
    claims = [one for one in twin.claims if isinstance(one, Claim)]
    assert bool(twin.trials()) is bool(claims), "which raises where a claim is about none"
    rows = [row for row in ROWS if name in page.twins_of(row)]
    shared = [row for row in rows if len(page.twins_of(row)) > 1]
    assert len(rows) == len(claims), "make claims"
    for claim in claims:
        own = f"| {claim.says} | `{claim.metric}" in "".join(rows)
        assert own or any(f"| `{claim.metric}" in row for row in shared), "make claims"


def test_the_page_links_the_twins_with_claims_that_they_do_not_show() -> None:
    assert "[sec_t3](../sweeps/quick/sec_t3.yaml)" in page.unseen()
    assert page.unseen() in SHOWN.splitlines(), "make claims"


def test_every_finding_of_the_page_is_held_and_stands_there_once() -> None:
    assert [row for row in ROWS if row.endswith("| **no** |")] == []
    numbers = [tuple(row.split(" | ")[2:6]) for row in ROWS if row.count(" | ") == 8]
    assert len(set(numbers)) == len(numbers), "make claims"
    claims = sum(len(page.twins_of(row)) for row in ROWS if row.count(" | ") == 8)
    assert f"{claims} claims, which are {len(numbers)} distinct findings:" in SHOWN


def test_the_page_counts_the_trainings_of_all_claims() -> None:
    """Each once, whichever twins share it."""
    found = re.search(r"^(\d+) trainings with the seeds (\d+) to (\d+),", SHOWN, re.M)
    assert found, "make claims"
    count, first, last = map(int, found.groups())
    trainings = {trial.fingerprint for name in NAMES for trial in twin_of(name).trials()}
    assert count == len(trainings) * (last - first + 1), "make claims"
