"""When a claim holds: the whole interval over the seeds is beyond its bound, or the one value of one seed."""

from math import nan

import pytest

from benchmarks.claims import page
from benchmarks.claims.assertion import Assertion, asserted
from benchmarks.claims.claim import Claim
from benchmarks.claims.twin import Pair


def claim(**changes: object) -> Claim:
    raw = {
        "says": "It falls.",
        "metric": "train/norm_var",
        "of": {"a": "x"},
        "against": {"a": "y"},
        "ratio": "below 0.5",
    }
    return Claim.model_validate({key: value for key, value in (raw | changes).items() if value is not None})


def judged(what: Claim, *values: list[tuple[float, float]]) -> Assertion:
    return asserted(what, [Pair({"a": "x"}, {"a": "y"}, list(one)) for one in values])


def test_the_whole_interval_counts() -> None:
    near, far = [(0.2, 1.0), (0.45, 1.0), (0.3, 1.0)], [(0.2, 1.0), (0.25, 1.0), (0.22, 1.0)]
    assert not judged(claim(), near).held, "its mean is 0.3, and its interval reaches beyond 0.5"
    found = judged(claim(), far)
    (effect,) = found.effects
    assert found.held
    assert effect.mean == pytest.approx((0.2 * 0.25 * 0.22) ** (1 / 3)), "a ratio is averaged by its logarithm"
    assert effect.low < effect.mean < effect.high < 0.5
    assert effect.errors == pytest.approx(12.5, abs=0.1)


def test_every_pair_counts_or_their_mean() -> None:
    rising = claim(ratio=None, difference="above 0")
    pairs = [[(0.9, 0.8), (0.9, 0.79)], [(0.80, 0.81), (0.80, 0.80)]]
    assert not judged(rising, *pairs).held
    assert judged(rising, *pairs).weakest.mean == pytest.approx(-0.005)
    pooled = judged(rising.model_copy(update={"over": "pairs"}), *pairs).effects
    assert [(one.of, one.against, one.mean) for one in pooled] == [
        (pytest.approx(0.85), pytest.approx(0.80), pytest.approx(0.05))
    ]


def test_one_seed_is_judged_by_its_value() -> None:
    found = judged(claim(), [(0.4, 1.0)])
    assert (found.held, found.weakest.errors) == (True, None)
    assert not judged(claim(), [(0.6, 1.0)]).held


def test_a_training_that_diverged_holds_nothing() -> None:
    assert not judged(claim(), [(0.1, 1.0), (nan, 1.0)]).held


def test_a_row_says_what_was_found_beside_what_was_claimed() -> None:
    assert page.row("sec_f1", judged(claim(), [(0.2, 1.0)])) == (
        "| `sec_f1` | It falls. | `train/norm_var` | 0.2 | 1 | ×0.2 | below ×0.5 |  | yes |"
    )
    sinking = claim(ratio=None, difference="below 0", metric="test/recall@1", at=60)
    assert page.row("sec_f1", judged(sinking, [(0.2, 0.1), (0.21, 0.1)])) == (
        "| `sec_f1` | It falls. | `test/recall@1 at 60` | 0.205 | 0.1 | +0.105 [+0.0415, +0.169] | below 0 "
        "| -21.0 SE | **no** |"
    )


def test_twins_that_find_the_same_share_a_row() -> None:
    wide = judged(claim(), [(0.2, 1.0)])
    strict = judged(claim(ratio="below 0.3", says="It falls far."), [(0.2, 1.0)])
    other = judged(claim(metric="train/loss"), [(0.2, 1.0)])
    first = page.table({"sec_f1": [wide], "sec_f5": [strict, other]})
    rows = [line for line in first.splitlines() if page.twins_of(line)]
    assert rows == [
        "| `sec_f1`, `sec_f5` | It falls far. | `train/norm_var` | 0.2 | 1 | ×0.2 | below ×0.3 |  | yes |",
        "| `sec_f5` | It falls. | `train/loss` | 0.2 | 1 | ×0.2 | below ×0.5 |  | yes |",
    ]
    assert first.startswith("3 claims, which are 2 distinct findings:")
    # A later run of one twin leaves the rows of the others.
    again = page.table({"sec_f5": [other]}, page.put(f"{page.BEGIN}\n{page.END}", first))
    assert [page.twins_of(line) for line in again.splitlines() if page.twins_of(line)] == [["sec_f1"], ["sec_f5"]]


def test_the_page_keeps_what_stands_around_its_table() -> None:
    before = f"# A page\n\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    assert page.put(before, "new") == f"# A page\n\n{page.BEGIN}\n\nnew\n\n{page.END}\nafter\n"
    with pytest.raises(ValueError, match="lacks"):
        page.put("# A page\n", "new")
