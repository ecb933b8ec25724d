"""By what the runs behind a number differ from those behind another: candidate, seeds, recipe, data, code, versions."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from orchestrator.publish.aggregate import Repeat
from orchestrator.spec.label import label_of
from orchestrator.views.drift import CauseKind, DriftCause, RunFacts
from orchestrator.views.planned import Labels

_MOST: Final = 6
_PINS: Final = "pins"
_NOTHING: Final = "nothing"


def causes(
    candidates: tuple[Labels, Labels], repeats: tuple[Collection[Repeat], Collection[Repeat]],
    runs: tuple[Collection[RunFacts], Collection[RunFacts]],
) -> list[DriftCause]:  # fmt: skip
    """What is not the same; `runs` are those that differ, before and after. Never empty: at least *retrained*."""
    found = [*_selected(*candidates), *_seeds(*repeats)]
    if runs[0] and runs[1]:
        found += _recipes(*runs, candidates)
        found += _sets("data", "data set", *([one.data_hash for one in side] for side in runs))
        found += _sets("code", "commit", *([one.commit for one in side] for side in runs))
        found += _versions(*runs)
    return found or [DriftCause(kind="retrained", said="trained again by the same recipe, data and code")]


def _selected(before: Labels, after: Labels) -> Iterator[DriftCause]:
    if before != after:
        yield DriftCause(kind="selected candidate", said=f"{_named(before)} → {_named(after)}")


def _named(labels: Labels) -> str:
    return ", ".join(f"{axis} {label}" for axis, label in labels.items()) or "the only one"


def _seeds(before: Collection[Repeat], after: Collection[Repeat]) -> Iterator[DriftCause]:
    for word, runs in (("added", set(after) - set(before)), ("gone", set(before) - set(after))):
        if runs:
            said = sorted(" ".join(f"{axis} {label}" for axis, label in sorted(one)) for one in runs)
            yield DriftCause(kind="seeds", said=f"{len(runs)} {word}: {_few(said)}")


def _recipes(
    before: Collection[RunFacts], after: Collection[RunFacts], candidates: tuple[Labels, Labels]
) -> Iterator[DriftCause]:
    """The fields that differ, but for what the candidates set and what varies between runs of one side."""
    old, new = (_fields(one.recipe for one in side) for side in (before, after))
    told = {*candidates[0], *candidates[1]}
    changes = []
    for path in sorted({*old, *new}):
        sides = old.get(path, {_NOTHING}), new.get(path, {_NOTHING})
        if path not in told and sides[0] != sides[1] and max(map(len, sides)) == 1:
            changes.append(f"{path} {next(iter(sides[0]))} → {next(iter(sides[1]))}")
    if changes:
        yield DriftCause(kind="recipe", said=_few(changes))
    pins = _fields(_pinned(one) for one in before), _fields(_pinned(one) for one in after)
    parts = [
        f"{path} {_few(sorted(pins[0].get(path, {_NOTHING})))} → {_few(sorted(pins[1].get(path, {_NOTHING})))}"
        for path in sorted({*pins[0], *pins[1]}) if pins[0].get(path) != pins[1].get(path)
    ]  # fmt: skip
    if parts:
        yield DriftCause(kind="versions", said=f"of parts: {_few(parts)}")


def _pinned(run: RunFacts) -> Mapping[str, Any]:
    return (run.recipe.get(_PINS) or {}).get("versions") or {}


def _fields(recipes: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The values of each field over some recipes."""
    values: dict[str, set[str]] = {}
    for recipe in recipes:
        for path, value in _leaves(recipe):
            values.setdefault(path, set()).add(value)
    return values


def _leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, inside in value.items():
        if not before and key == _PINS:
            continue
        if isinstance(inside, Mapping):
            yield from _leaves(inside, f"{before}{key}.")
        else:
            yield f"{before}{key}", label_of(inside)


def _sets(
    kind: CauseKind, what: str, before: Collection[str | None], after: Collection[str | None]
) -> Iterator[DriftCause]:
    old, new = ({one for one in side if one} for side in (before, after))
    if old != new and old and new:
        sides = (_few(sorted(one.removeprefix("sha256:")[:12] for one in side)) for side in (old, new))
        yield DriftCause(kind=kind, said=f"{what} {' → '.join(sides)}")


def _versions(before: Collection[RunFacts], after: Collection[RunFacts]) -> Iterator[DriftCause]:
    old, new = (_fields(one.versions for one in side) for side in (before, after))
    moved = [
        f"{name} {_few(sorted(old[name]))} → {_few(sorted(new[name]))}"
        for name in sorted({*old} & {*new}) if old[name] != new[name]
    ]  # fmt: skip
    if moved:
        yield DriftCause(kind="versions", said=_few(moved))


def _few(texts: Collection[str]) -> str:
    shown = [*texts][:_MOST]
    more = [f"{len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return ", ".join([*shown, *more])
