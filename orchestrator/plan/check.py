"""Checks a posted document: a spec, or every problem at once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from orchestrator.errors import InvalidSpecError, Problem
from orchestrator.plan import budget, rivals
from orchestrator.plan.figure_layout import read_figures
from orchestrator.plan.layout import read_tables
from orchestrator.plan.leftover import Leftover
from orchestrator.plan.points import MOST_TRIALS, count_trials
from orchestrator.plan.reader import KEYS, Draft, read
from orchestrator.plan.soundness import Soundness
from orchestrator.plan.spec import Spec
from orchestrator.plan.subset import narrowed
from orchestrator.plan.wording import shown
from workers.catalog import Catalog

MOST_TOLD: Final = 200
"""Problems that are told; the rest is counted."""


def check(document: Any, catalog: Catalog, notes: list[str] | None = None) -> Spec:
    """The spec that a document means; raises InvalidSpecError with every problem that it has.

    `notes` gets a sentence for each thing that the subset which `only` and `without` take can no longer show or do.
    """
    if not isinstance(document, Mapping):
        expected = "a spec is a mapping with at least `version`, `name` and `recipe`"
        raise InvalidSpecError([Problem("", f"{expected}; found {shown(document)}")])
    problems: list[Problem] = []
    whole = read(document, problems)
    too_many = _too_many(whole)
    subset = whole if too_many else replace(whole, spec=narrowed(whole.spec, problems))
    soundness = Soundness(subset, catalog)
    if isinstance(document.get("recipe"), Mapping):
        problems += soundness.problems()
    datasets = list(soundness.datasets)
    tables = read_tables(whole, datasets, catalog, problems)
    figures = read_figures(document.get("figures"), whole, datasets, catalog, problems)
    problems += too_many or budget.problems(subset.spec, catalog, sound=not problems)
    problems += [] if problems else rivals.problems(whole.spec)
    if problems:
        raise InvalidSpecError(_in_order(problems))
    spec = subset.spec.model_copy(update={"tables": tables, "figures": figures})
    if subset.spec is not whole.spec:
        leftover = Leftover(whole.spec, subset, datasets, catalog)
        spec = leftover.spec(tables, figures)
        if notes is not None:
            notes += leftover.notes
    return Spec.model_validate(spec.model_dump(mode="json"))  # without the places of the document


def _too_many(draft: Draft) -> list[Problem]:
    trials, exact = count_trials(draft.spec)
    if trials <= MOST_TRIALS:
        return []
    asked = f"{trials:,}" if exact else f"more than {MOST_TRIALS:,}"
    return [Problem("", f"the spec asks for {asked} trials; at most {MOST_TRIALS:,} are allowed")]


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Each problem once, in the order of a spec's keys."""
    rank = {key: at for at, key in enumerate(KEYS)}
    unlike = list(dict.fromkeys(problems))
    ordered = sorted(unlike, key=lambda one: rank.get(one.path.partition(".")[0].partition("[")[0], -1))
    if len(ordered) <= MOST_TOLD:
        return ordered
    return [*ordered[:MOST_TOLD], Problem("", f"and {len(ordered) - MOST_TOLD:,} more problems")]
