from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.points import count, count_trials, points
from orchestrator.plan.soundness import cover
from orchestrator.spec.axis import Axis, Choice, Group
from orchestrator.spec.spec import Spec


def axis(*groups: tuple[list[str], dict[str, list[str]]]) -> Axis:
    return [Group(when=when, choices=[Choice(label=label, patch={}) for label in labels]) for labels, when in groups]


def test_counting_stops_where_it_would_take_long() -> None:
    many = {f"a{at}": axis(([str(label) for label in range(100)], {})) for at in range(10)}
    assert count(many, {}, 5) == 100**10
    assert count(many | {"b": axis((["x"], {"a1": ["1"]}))}, {}, 5) > 5
    spec = Spec(name="s", recipe={}, compare=many, tune=many, repeat=many)
    assert count_trials(spec) == (100**30, True)
    spec = spec.model_copy(update={"repeat": {"b": axis((["x"], {"a1": ["1"]}))}})
    total, exact = count_trials(spec)
    assert total > 100_000
    assert not exact


_WHENS = st.dictionaries(
    st.sampled_from(["a", "b"]), st.lists(st.sampled_from("123"), min_size=1, max_size=2), max_size=1
)
_GROUPS = st.tuples(st.lists(st.sampled_from("123"), min_size=1, max_size=3, unique=True), _WHENS)
_AXES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(_GROUPS, min_size=1, max_size=2), max_size=3)


@given(_AXES, _AXES, st.integers(0, 40))
def test_a_cover_holds_every_alternative_that_some_point_holds(compare: Any, tune: Any, most: int) -> None:
    spec = Spec(
        name="s", recipe={}, compare={name: axis(*groups) for name, groups in compare.items()},
        tune={f"t{name}": axis(*groups) for name, groups in tune.items()},
    )  # fmt: skip
    every = [(cell, one) for cell in points(spec.compare, {}) for one in points(spec.tune, cell.labels)]
    covered = list(cover(spec, most))
    held = {item for cell, one in covered for item in {**cell.labels, **one.labels}.items()}
    possible = {(tuple(cell.labels.items()), tuple(one.labels.items())) for cell, one in every}
    assert all((tuple(cell.labels.items()), tuple(one.labels.items())) in possible for cell, one in covered)
    if len(every) <= most:
        assert len(covered) == len(every)
    if not any(groups_when for groups in (*compare.values(), *tune.values()) for _, groups_when in groups):
        assert held == {item for cell, one in every for item in {**cell.labels, **one.labels}.items()}


def test_a_cover_of_many_lets_every_two_alternatives_meet(small: Callable[..., Any], checked: Any) -> None:
    posted = small(
        compare={"embedding": list(range(1, 31)), "optimizer.lr": [at / 100 for at in range(1, 31)]},
        tune={"loss.margin": [at / 10 for at in range(1, 13)]},
    )
    spec = checked(posted)
    met = {(cell.labels["embedding"], one.labels["loss.margin"]) for cell, one in cover(spec, 3000)}
    assert len(met) == 30 * 12
