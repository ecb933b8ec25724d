"""Every quick twin says what it shows and what it does not."""

import pytest

from benchmarks.claims.claim import TWINS, Claim
from benchmarks.claims.twin import Twin

NAMES = sorted(file.stem for file in TWINS.glob("*.yaml"))


def test_there_are_twins() -> None:
    assert len(NAMES) == 42


@pytest.mark.parametrize("name", NAMES)
def test_its_claims_are_about_trials_that_it_has(name: str) -> None:
    twin = Twin(TWINS / f"{name}.yaml", [0])
    claims = [one for one in twin.claims if isinstance(one, Claim)]
    assert bool(twin.trials()) is bool(claims), "which raises where a claim is about none"
