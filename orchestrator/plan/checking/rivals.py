"""Whether early stopping has anything to stop: rivals within a cell, scores on the way or repeats enough to judge."""

from orchestrator.plan.reading.computed import at_the_end, stated, tasks
from orchestrator.plan.reading.points import cells_of, count, count_candidates
from orchestrator.spec.prune import Race, Wilcoxon
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Problem


def problems(spec: Spec, catalog: Catalog) -> list[Problem]:
    """What is wrong with the `prune` of a spec that is sound otherwise."""
    if spec.prune is None:
        return []
    if all(count_candidates(spec, cell.labels, 1) <= 1 for cell in cells_of(spec)):
        message = "nothing competes: every cell has one candidate; add a `tune` axis with several, or leave `prune` out"
        return [Problem("prune", message)]
    if isinstance(spec.prune, Wilcoxon):
        return _tested(spec, spec.prune)
    if isinstance(spec.prune, Race):
        return _raced(spec, spec.prune)
    return _scored(spec, spec.prune.name, catalog)


def _scored(spec: Spec, rule: str, catalog: Catalog) -> list[Problem]:
    """The rules of evaluations have scores on the way, in the trainings of one task at least."""
    metric, trained = spec.select.metric, tasks(spec, catalog)
    if not at_the_end(metric, trained, catalog):
        return []
    watched = stated(trained, "watched")
    right = ["take 'wilcoxon', which judges by repeats", "leave `prune` out"]
    right = [f"select by {watched[0]!r}", *right] if watched else right
    reason = f"{rule!r} judges by scores on the way, and {metric!r} is measured at the end only"
    return [Problem("prune", f"{reason}; {', or '.join(right)}")]


def _tested(spec: Spec, rule: Wilcoxon) -> list[Problem]:
    repeats = max(count(spec.repeat, cell.labels, 1_000) for cell in cells_of(spec))
    # Where all n differences point one way, the one-sided p-value is 2^-n, and there is none smaller.
    needed = max(2, rule.startup)
    while 2.0**-needed >= rule.p:
        needed += 1
    if repeats > needed:
        return []
    so = f"'wilcoxon' with p {rule.p:g} can judge after {needed} repeats at the earliest, so that of {needed + 1} it"
    found = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return [Problem("prune", f"{so} may spare one; found {found}; add to `repeat`, or raise `p`")]


def _raced(spec: Spec, rule: Race) -> list[Problem]:
    if spec.search.adaptive:
        reason = f"'race' has all candidates of a cell run side by side, and {spec.search.name!r} proposes them in turn"
        return [Problem("prune", f"{reason}; take 'wilcoxon', or leave `search` out")]
    repeats = max(count(spec.repeat, cell.labels, 1_000) for cell in cells_of(spec))
    if repeats > rule.first:
        return []
    so = f"'race' judges after {rule.first} repeats at the earliest, so that of {rule.first + 1} it may spare one"
    found = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return [Problem("prune", f"{so}; found {found}; add to `repeat`")]
