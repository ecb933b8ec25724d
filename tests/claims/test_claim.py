"""What a twin's first comment may say of its claims, and what it may not."""

import pytest

from benchmarks.claims.claim import Bound, Claim, Unseen, claims_of

HEAD = "# What:  a twin.\n# Claims:\n{}#\n# yaml-language-server: $schema=x\nversion: 1\n"
WHOLE = """\
#   - says: SEC draws the norms together, to less than
#       a fifth.
#     metric: train/norm_var
#     of: {regularizer: sec, regularizer.eta: [0.5, 1.0e-3]}
#     against: {regularizer: none}
#     ratio: below 0.2
"""


def read(block: str) -> list[Claim | Unseen]:
    return claims_of(HEAD.format(block))


def test_a_claim_compares_the_trials_of_some_labels() -> None:
    (claim,) = read(WHOLE)
    assert isinstance(claim, Claim)
    assert claim.says == "SEC draws the norms together, to less than a fifth."
    assert claim.of == {"regularizer": ["sec"], "regularizer.eta": ["0.5", "0.001"]}, "labels as a spec spells them"
    assert (claim.against, claim.where, claim.over, claim.at) == ({"regularizer": ["none"]}, {}, "each", None)
    assert claim.bound == Bound(side="below", value=0.2)
    assert (claim.bound.met(0.19), claim.bound.met(0.2), claim.bound.met(float("nan"))) == (True, False, False)


def test_what_is_not_seen_says_why() -> None:
    (claim,) = read("#   - unseen: SEC raises R@1.\n#     why: It moves by less than its noise.\n")
    assert claim == Unseen(unseen="SEC raises R@1.", why="It moves by less than its noise.")


@pytest.mark.parametrize(
    ("block", "word"),
    [
        ("", "no list"),
        ("#   - unseen: SEC raises R@1.\n", "why"),
        (WHOLE.replace("below 0.2", "about 0.2"), "ratio"),
        (WHOLE + "#     difference: above 0\n", "one of them"),
        (WHOLE.replace("#     ratio: below 0.2\n", ""), "one of them"),
        (WHOLE.replace("train/norm_var", "norm_var"), "metric"),
        (WHOLE.replace("against", "than"), "against"),
    ],
)
def test_what_is_not_readable_is_refused(block: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        read(block)
