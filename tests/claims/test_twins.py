"""Every quick twin says what it shows and what it does not, and the page has the figures of each claim."""

import re
from functools import cache

import pytest

from benchmarks.claims import page
from benchmarks.claims.claim import TWINS, Claim, Unseen
from benchmarks.claims.twin import Twin

NAMES = sorted(file.stem for file in TWINS.glob("*.yaml"))
SHOWN = page.PAGE.read_text(encoding="utf-8")


@cache
def twin_of(name: str) -> Twin:
    return Twin(TWINS / f"{name}.yaml", [0])


def test_there_are_twins() -> None:
    assert len(NAMES) > 40, "each preset has one; tests/plan/test_presets.py counts them"


@pytest.mark.parametrize("name", NAMES)
def test_its_claims_are_about_trials_that_it_has(name: str) -> None:
    twin = twin_of(name)
    claims = [one for one in twin.claims if isinstance(one, Claim)]
    assert bool(twin.trials()) is bool(claims), "which raises where a claim is about none"
    for claim in claims:
        assert f"| `{name}` | {claim.says} |" in SHOWN, "make claims"
        assert f" {claim.bound.side} " in SHOWN
    for other in (one for one in twin.claims if isinstance(one, Unseen)):
        assert f"| `{name}` | {other.unseen} | {other.why} |" in SHOWN, "make claims"


def test_every_claim_of_the_page_is_held_and_stands_in_a_twin() -> None:
    rows = [line for line in SHOWN.splitlines() if line.startswith("| `")]
    claimed = sum(len(twin_of(name).claims) for name in NAMES)
    assert len(rows) == claimed, "make claims"
    assert [row for row in rows if row.endswith("| **no** |")] == []


def test_the_page_counts_the_trainings_of_all_claims() -> None:
    """Each once, whichever twins share it."""
    found = re.search(r"^(\d+) trainings with the seeds (\d+) to (\d+),", SHOWN, re.M)
    assert found, "make claims"
    count, first, last = map(int, found.groups())
    trainings = {trial.fingerprint for name in NAMES for trial in twin_of(name).trials()}
    assert count == len(trainings) * (last - first + 1), "make claims"
