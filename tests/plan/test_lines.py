"""The line of a spec's text that a problem is of."""

import pytest

from orchestrator.plan.yaml import MOST_BYTES, lines
from workers.catalog import Problem

TEXT = b"""\
version: 1
recipe:
  dataset: {name: digits, sides: 3}
compare:
  loss:
    - triplet
    - {label: other, patch: {loss: npair}}
tune:
  regularizer.eta:
    - {values: [1, 2], when: {regularizer: sec}}
  regularizer.eta.max: [3]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("version", 1), ("recipe.dataset", 3), ("recipe.dataset.sides", 3), ("recipe.missing", 2),
        ("compare.loss[1]", 7), ("compare.loss[9]", 5), ("compare.loss[1].patch.loss", 7),
        ("tune.regularizer.eta[0].when.regularizer", 10), ("tune.regularizer.eta", 9),
        ("tune.regularizer.eta.max[0]", 11), ("nothing.of.it", 1),
    ],
)  # fmt: skip
def test_a_path_leads_to_its_line_or_to_that_of_the_block_that_lacks_it(path: str, line: int) -> None:
    assert lines(TEXT, [Problem(path=path, message="")]) == [line]


def test_what_cannot_be_read_says_its_line_itself() -> None:
    problem = Problem(path="", message="line 4, column 7: expected a value")
    assert lines(b"a: [1\nb: }", [problem, Problem(path="", message="odd")]) == [4, None]


def test_of_a_long_text_no_line_is_told() -> None:
    assert lines(TEXT + b"#" * MOST_BYTES, [Problem(path="version", message="")]) == [None]
