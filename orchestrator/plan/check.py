"""Checks a posted document: a spec, or every problem at once."""

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.errors import InvalidSpecError, Problem
from orchestrator.plan import budget, rivals
from orchestrator.plan.figure_layout import read_figures
from orchestrator.plan.layout import read_tables
from orchestrator.plan.points import MOST_TRIALS, count_trials
from orchestrator.plan.reader import KEYS, Draft, read
from orchestrator.plan.soundness import Soundness
from orchestrator.plan.spec import Spec
from orchestrator.plan.wording import shown
from workers.catalog import Catalog

MOST_TOLD: Final = 200
"""Problems that are told; the rest is counted."""


def check(document: Any, catalog: Catalog) -> Spec:
    """The spec that a document means; raises InvalidSpecError with every problem that it has."""
    if not isinstance(document, Mapping):
        expected = "a spec is a mapping with at least `version`, `name` and `recipe`"
        raise InvalidSpecError([Problem("", f"{expected}; found {shown(document)}")])
    problems: list[Problem] = []
    draft = read(document, problems)
    soundness = Soundness(draft, catalog)
    if isinstance(document.get("recipe"), Mapping):
        problems += soundness.problems()
    tables = read_tables(draft, list(soundness.datasets), catalog, problems)
    figures = read_figures(document.get("figures"), draft, list(soundness.datasets), catalog, problems)
    problems += _too_many(draft) or budget.problems(draft.spec, catalog, sound=not problems)
    problems += [] if problems else rivals.problems(draft.spec)
    if problems:
        raise InvalidSpecError(_in_order(problems))
    spec = draft.spec.model_copy(update={"tables": tables, "figures": figures})
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
