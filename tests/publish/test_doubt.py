"""Bold that may rest on noise: marked, with the test in words, and only where it was asked for."""

from collections.abc import Mapping

from orchestrator.publish.tables.cells import Contender, best, doubts

Values = Mapping[tuple[int, ...], list[float]]


def doubted(values: Values, texts: Mapping[tuple[int, ...], str]) -> dict[tuple[int, ...], str]:
    contenders = [Contender(place, "block", "higher", texts[place], True) for place in values]

    def runs(place: tuple[int, ...]) -> dict[frozenset[tuple[str, str]], float]:
        return {frozenset({("seed", str(seed))}): value for seed, value in enumerate(values[place])}

    return doubts(contenders, best(contenders), runs)


def test_a_lead_is_doubted_unless_it_is_there_in_every_run() -> None:
    ahead = {(0,): [0.70, 0.71, 0.72, 0.705], (1,): [0.60, 0.615, 0.61, 0.612]}
    assert doubted(ahead, {(0,): "70.9", (1,): "60.9"}) == {}
    near = {(0,): [0.70, 0.60, 0.72, 0.61], (1,): [0.60, 0.71, 0.61, 0.70], (2,): [0.1, 0.1, 0.1, 0.1]}
    found = doubted(near, {(0,): "65.8", (1,): "65.5", (2,): "10.0"})
    assert list(found) == [(0,)]
    assert "paired t-test over 4 runs, p = " in found[0,]
    assert "3 are needed" in doubted({(0,): [0.70, 0.71], (1,): [0.60, 0.61]}, {(0,): "70.5", (1,): "60.5"})[0,]
    assert "1 run that both have" in doubted({(0,): [0.70], (1,): [0.60]}, {(0,): "70.0", (1,): "60.0"})[0,]
    tied = doubted({(0,): [0.5] * 3, (1,): [0.5] * 3}, {(0,): "50.0", (1,): "50.0"})
    assert set(tied) == {(0,), (1,)}
    assert "does not differ" in tied[0,]
