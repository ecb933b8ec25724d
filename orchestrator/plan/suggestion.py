"""The trials of candidates that an adaptive search suggests, one by one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from orchestrator.plan.axes import drawn
from orchestrator.plan.needs import Contents, Needs
from orchestrator.plan.parse import slot_of
from orchestrator.plan.points import Point, cells_of, count_candidates, points, recipe_of
from orchestrator.spec.axes import Choice, Span, applies, apply, label_of
from orchestrator.spec.spec import Spec
from orchestrator.views.runs import Candidate, Dimension, Labels, PlannedTrial
from workers.catalog import Catalog, complete, further_metrics
from workers.contract import Recipe


@dataclass(frozen=True, slots=True)
class Space:
    """What may be varied within one cell."""

    cell: int
    labels: Labels
    dimensions: tuple[Dimension, ...]
    candidates: int  # how many the search may try


def space(spec: Spec, cell: int) -> Space:
    """The space of a cell, counted as in the grid."""
    at = _cell(spec, cell)
    dimensions = [
        Dimension(
            axis=axis,
            name=axis if len(groups) == 1 else f"{axis} #{number}",
            when={other: tuple(labels) for other, labels in group.when.items() if other not in at.labels},
            labels=() if group.span else tuple(choice.label for choice in group.choices),
            low=group.span.low if group.span else 0.0,
            high=group.span.high if group.span else 0.0,
            log=bool(group.span and group.span.log),
            step=group.span.step if group.span else None,
            whole=bool(group.span and group.span.whole),
        )
        for axis, groups in spec.tune.items()
        for number, group in enumerate(groups)
        if all(at.labels[other] in labels for other, labels in group.when.items() if other in at.labels)
    ]
    return Space(cell, at.labels, tuple(dimensions), count_candidates(spec, at.labels))


def candidate(spec: Spec, cell: int, index: int, values: Mapping[str, str | float]) -> Candidate:
    """The candidate that a suggestion is: of each axis the label of an alternative, or the number drawn."""
    return Candidate(cell, index, _point(spec, _cell(spec, cell), values).labels)


def trials(
    spec: Spec,
    catalog: Catalog,
    one: Candidate,
    contents: Contents = Contents(),  # noqa: B008 - it is frozen
) -> Iterator[PlannedTrial]:
    """The trials of a suggested candidate: one for each repeat of its cell."""
    at = _cell(spec, one.cell)
    raw = recipe_of(spec, at, _point(spec, at, one.labels))
    slot, needs = slot_of(spec, {**at.labels, **one.labels}), Needs(catalog)
    for number, repeat in enumerate(points(spec.repeat, at.labels)):
        whole = complete(Recipe.model_validate(apply(raw, [choice.patch for choice in repeat.choices])), catalog)
        recipe = contents.pinned(whole, catalog)
        need = needs.of(recipe)
        further = further_metrics(recipe, recipe.fingerprint, catalog)
        yield PlannedTrial(
            one.cell, one.index, number, repeat.labels, recipe, recipe.fingerprint, slot, need=need, further=further
        )


def reproductions(spec: Spec, catalog: Catalog, planned: Sequence[PlannedTrial]) -> Iterator[PlannedTrial]:
    """Further trials of the best candidate, whose trials are `planned`: its first recipe with seeds not used yet."""
    first, used = planned[0], {one.recipe.seed for one in planned}
    fresh = (seed for seed in range(len(used) + spec.search.reproduce) if seed not in used)
    for number, seed in enumerate(islice(fresh, spec.search.reproduce)):
        recipe = first.recipe.model_copy(update={"seed": seed})
        labels = {**first.repeat_labels, "seed": str(seed)}
        at = len(planned) + number
        further = further_metrics(recipe, recipe.fingerprint, catalog)
        yield PlannedTrial(
            first.cell, first.candidate, at, labels, recipe, recipe.fingerprint, first.slot, need=first.need,
            further=further,
        )  # fmt: skip


def _cell(spec: Spec, cell: int) -> Point:
    return next(islice(cells_of(spec), cell, None))


def _point(spec: Spec, cell: Point, values: Mapping[str, str | float]) -> Point:
    labels: dict[str, str] = {}
    choices: list[Choice] = []
    for axis, groups in spec.tune.items():
        if axis not in values:
            continue
        for group in groups:
            if applies(group.when, {**cell.labels, **labels}):
                choice = _choice(axis, values[axis], group.span, group.choices)
                labels[axis] = choice.label
                choices.append(choice)
                break
    return Point(labels, tuple(choices))


def _choice(axis: str, value: str | float, span: Span | None, choices: Sequence[Choice]) -> Choice:
    if span is None:
        return next(choice for choice in choices if choice.label == value)
    number = drawn(span, float(value))
    return Choice(label=label_of(number), patch={axis: number})
