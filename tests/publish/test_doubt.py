"""Bold that may rest on noise: marked, with the test in words, and only where it was asked for."""

from collections.abc import Mapping

from orchestrator.publish.tables.cells import Contender, best, doubts

Values = Mapping[tuple[int, ...], list[float]]


def doubted(values: Values, texts: Mapping[tuple[int, ...], str]) -> dict[tuple[int, ...], str]:
    contenders = [Contender(place, "block", "higher", texts[place], True) for place in values]

    def runs(place: tuple[int, ...]) -> dict[frozenset[tuple[str, str]], float]:
        return {frozenset({("seed", str(seed))}): value for seed, value in enumerate(values[place])}

    return doubts(contenders, best(contenders), runs)


def test_a_lead_in_every_run_is_none() -> None:
    ahead = {(0,): [0.70, 0.71, 0.72, 0.705], (1,): [0.60, 0.615, 0.61, 0.612]}
    assert doubted(ahead, {(0,): "70.9", (1,): "60.9"}) == {}


def test_a_lead_that_comes_and_goes_is_told_with_its_p() -> None:
    near = {(0,): [0.70, 0.60, 0.72, 0.61], (1,): [0.60, 0.71, 0.61, 0.70], (2,): [0.1, 0.1, 0.1, 0.1]}
    found = doubted(near, {(0,): "65.8", (1,): "65.5", (2,): "10.0"})
    assert list(found) == [(0,)]
    assert "paired t-test over 4 runs, p = " in found[0,]


def test_too_few_runs_cannot_tell() -> None:
    few = {(0,): [0.70, 0.71], (1,): [0.60, 0.61]}
    assert "3 are needed" in doubted(few, {(0,): "70.5", (1,): "60.5"})[0,]
    single = {(0,): [0.70], (1,): [0.60]}
    assert "1 run that both have" in doubted(single, {(0,): "70.0", (1,): "60.0"})[0,]


def test_equals_are_doubted_both() -> None:
    tied = {(0,): [0.5, 0.5, 0.5], (1,): [0.5, 0.5, 0.5]}
    found = doubted(tied, {(0,): "50.0", (1,): "50.0"})
    assert set(found) == {(0,), (1,)}
    assert "does not differ" in found[0,]
