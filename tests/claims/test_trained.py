"""Four twins trained for real: what their files claim is what comes out. `make claims` trains all of them."""

import pytest

from benchmarks.claims.assertion import asserted
from benchmarks.claims.claim import TWINS, Claim
from benchmarks.claims.trainings import Trainings
from benchmarks.claims.twin import Twin

pytestmark = pytest.mark.soak

SEEDS = (1, 2)
"""The bounds were set with 0 to 4; each seed is judged by itself, since two have no useful interval."""


@pytest.mark.parametrize("name", ["reb_text", "reb_t2", "sec_t9", "svmax_f15"])
def test_a_twin_shows_what_it_claims(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    trainings = Trainings(tmp_path_factory.getbasetemp() / "claims")
    found = {}
    for seed in SEEDS:
        twin = Twin(TWINS / f"{name}.yaml", [seed])
        claims = [one for one in twin.claims if isinstance(one, Claim)]
        found |= {(seed, claim.says): asserted(claim, twin.pairs(claim, trainings)) for claim in claims}
    assert found
    assert {claim: one.weakest for claim, one in found.items() if not one.held} == {}
