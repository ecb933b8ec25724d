"""Checks a posted spec whole, and narrows it to a subset of its trials."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.plan import grid
from orchestrator.plan.figures import check_figures
from orchestrator.plan.grid import Contents, Plan
from orchestrator.plan.layouts import Nameable, check_tables, tasks
from orchestrator.plan.points import MOST_TRIALS, count_trials, limited
from orchestrator.plan.read import KEYS, read, spec_document
from orchestrator.plan.soundness import MOST_CHECKED, Soundness
from orchestrator.plan.subset import Leftover, narrowed
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog, Document, Findings, PartSourceError, Problem, selected, shown

_FEWEST_CHECKED: Final = 500
"""Combinations that are checked if a spec has too many trials, which must be mended first."""


def check(
    document: Any, catalog: Catalog, notes: list[str] | None = None, published: Collection[str] | None = None
) -> Spec:
    """Validates a posted spec and returns it in normalized form; raises InvalidSpecError with every problem.

    `notes` gets a sentence for everything that the subset of `only` and `without` cannot show.
    `published` are the tables of papers that a table may name; None allows any name.
    """
    if not isinstance(document, Mapping):
        expected = "a spec is a mapping with at least `version`, `name` and `recipe`"
        raise InvalidSpecError([Problem("", f"{expected}; found {shown(document)}")])
    problems = Findings()
    with limited():
        whole = read(document, problems)
        if named := tasks(whole.spec, catalog):
            select = selected(whole.spec.select, named[0])  # the task says what `select` leaves out
            whole = replace(whole, spec=whole.spec.model_copy(update={"select": select}))
        trials, exact = count_trials(whole.spec)
        if too_many := trials > MOST_TRIALS:
            size = f"{trials:,}" if exact else f"more than {MOST_TRIALS:,}"
            problems.append(Problem("", f"the spec asks for {size} trials; at most {MOST_TRIALS:,} are allowed"))
        subset = whole
        if (whole.spec.only or whole.spec.without) and not too_many:
            subset = replace(whole, spec=narrowed(whole.spec, problems))
        soundness = Soundness(subset, catalog, _FEWEST_CHECKED if too_many else MOST_CHECKED)
        if whole.has_recipe:
            soundness.check(problems, None if too_many else whole.spec)
        nameable = Nameable(list(soundness.datasets), catalog, published)
        tables = check_tables(whole.tables, whole, nameable, problems)
        figures = check_figures(whole.figures, whole, nameable, problems) if whole.figures else {}
        if problems:
            raise InvalidSpecError(problems.report(_rank))
        if subset.spec is whole.spec:
            spec = subset.spec.model_copy(update={"tables": tables, "figures": figures})
        else:
            leftover = Leftover(whole.spec, subset, nameable)
            spec = leftover.spec(tables, figures)
            if notes is not None:
                notes += leftover.notes
    return Spec.model_validate(spec.model_dump(mode="json"))  # without the places of the document


def _rank(problem: Problem) -> int:
    """The position of the key of a problem among the keys of a spec."""
    key = problem.path.partition(".")[0].partition("[")[0]
    return KEYS.index(key) if key in KEYS else -1


@dataclass(frozen=True, slots=True)
class Checked:
    """A spec without problems, with the cells, candidates and trials that it expands to."""

    spec: Spec
    plan: Plan
    notes: tuple[str, ...] = ()
    """What the subset of the spec cannot show, in sentences."""


def refresh(catalog: Catalog) -> None:
    """Reload the user's own parts whose files have changed; raises InvalidSpecError if a file cannot be read."""
    try:
        catalog.refresh()
    except PartSourceError as error:
        raise InvalidSpecError([Problem("", f"the folder of your own parts cannot be read: {error}")]) from error


@contextmanager
def located(text: bytes) -> Iterator[Document]:
    """Parse a posted text as `spec_document`; InvalidSpecErrors that the block raises get its line numbers."""
    document = spec_document(text)
    try:
        yield document
    except InvalidSpecError as error:
        problems = [replace(one, line=one.line or document.line(one.path)) for one in error.problems]
        raise InvalidSpecError(problems) from None


def read_spec(
    body: bytes,
    catalog: Catalog,
    published: Collection[str],
    contents: Contents = Contents(),  # noqa: B008 - it is frozen
) -> Checked:
    """Parses, checks and expands the posted spec `body`; `published` are the printed tables that its tables may name.

    Raises InvalidSpecError with every problem and its line, or TooLargeError.
    """
    notes: list[str] = []
    with located(body) as document:
        spec = check(document.value, catalog, notes, published)
        return Checked(spec, grid.expand(spec, catalog, contents), tuple(notes))
