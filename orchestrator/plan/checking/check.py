"""Checks a posted document: a spec, or every problem at once."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from orchestrator.plan import budget
from orchestrator.plan.checking import extent, rivals
from orchestrator.plan.checking.cover import MOST_CHECKED
from orchestrator.plan.checking.leftover import Leftover
from orchestrator.plan.checking.soundness import Soundness
from orchestrator.plan.problems import effort
from orchestrator.plan.problems.findings import Findings
from orchestrator.plan.reading.computed import tasks
from orchestrator.plan.reading.entries import Nameable
from orchestrator.plan.reading.figure_layout import read_figures
from orchestrator.plan.reading.layout import read_tables
from orchestrator.plan.reading.points import MOST_TRIALS, count_trials
from orchestrator.plan.reading.reader import KEYS, SpecDraft, as_meant, read
from orchestrator.plan.reading.subset import narrowed
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog, Problem, selected, shown

FEWEST_CHECKED: Final = 500
"""Combinations that are looked at where there are too many trials, which is the first thing to be mended."""


def check(
    document: Any, catalog: Catalog, notes: list[str] | None = None, published: Collection[str] | None = None
) -> Spec:
    """The spec that a document means; raises InvalidSpecError with every problem that it has.

    `notes` gets a sentence for each thing that the subset which `only` and `without` take can no longer show or do.
    `published` are the printed tables that a table may name; without them it may name any.
    """
    if not isinstance(document, Mapping):
        expected = "a spec is a mapping with at least `version`, `name` and `recipe`"
        raise InvalidSpecError([Problem("", f"{expected}; found {shown(document)}")])
    with effort.limited():
        spec = _checked(document, catalog, notes, published)
    return Spec.model_validate(spec.model_dump(mode="json"))  # without the places of the document


def _checked(
    document: Mapping[str, Any], catalog: Catalog, notes: list[str] | None, published: Collection[str] | None
) -> Spec:
    problems = Findings()
    whole = read(document, problems)
    document = as_meant(document)
    whole = replace(whole, spec=_selecting(whole.spec, catalog))
    too_many = _too_many(whole)
    problems += too_many
    subset = whole if too_many else replace(whole, spec=narrowed(whole.spec, problems))
    soundness = Soundness(subset, catalog, FEWEST_CHECKED if too_many else MOST_CHECKED)
    if isinstance(document.get("recipe"), Mapping):
        problems += soundness.problems()
    nameable = Nameable(list(soundness.datasets), catalog, published)
    tables = read_tables(whole, nameable, problems)
    figures = read_figures(document.get("figures"), whole, nameable, problems)
    if not too_many:
        problems += budget.problems(subset.spec, catalog, sound=not problems)
        problems += [] if problems else rivals.problems(whole.spec, catalog)
        problems += [] if problems else extent.problems(subset.spec, catalog)
    if problems:
        raise InvalidSpecError(problems.told(_rank))
    if subset.spec is whole.spec:
        return subset.spec.model_copy(update={"tables": tables, "figures": figures})
    leftover = Leftover(whole.spec, subset, nameable)
    spec = leftover.spec(tables, figures)
    if notes is not None:
        notes += leftover.notes
    return spec


def _selecting(spec: Spec, catalog: Catalog) -> Spec:
    """The spec with the metric and the split of its task where `select` does not say them."""
    named = tasks(spec, catalog)
    return spec.model_copy(update={"select": selected(spec.select, named[0])}) if named else spec


def _too_many(draft: SpecDraft) -> list[Problem]:
    trials, exact = count_trials(draft.spec)
    if trials <= MOST_TRIALS:
        return []
    asked = f"{trials:,}" if exact else f"more than {MOST_TRIALS:,}"
    return [Problem("", f"the spec asks for {asked} trials; at most {MOST_TRIALS:,} are allowed")]


_ORDER: Final = {key: at for at, key in enumerate(KEYS)}


def _rank(problem: Problem) -> int:
    """Where the key of a problem stands among those of a spec."""
    return _ORDER.get(problem.path.partition(".")[0].partition("[")[0], -1)
