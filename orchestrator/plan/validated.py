"""A posted spec, checked and expanded."""

from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.plan import check, grid, yaml
from orchestrator.plan.grid import Contents, Plan
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog, PartSourceError, Problem


@dataclass(frozen=True, slots=True)
class Checked:
    """A spec without problems and what it expands to."""

    spec: Spec
    plan: Plan
    notes: tuple[str, ...] = ()
    """What the subset that was taken of the spec can no longer show, a sentence each."""


def refresh(catalog: Catalog) -> None:
    """Read what changed of the own parts; raises InvalidSpecError where one of them cannot be read."""
    try:
        catalog.refresh()
    except PartSourceError as error:
        raise InvalidSpecError([Problem("", f"the folder of own parts cannot be read: {error}")]) from error


def read(
    body: bytes,
    catalog: Catalog,
    published: Collection[str],
    contents: Contents = Contents(),  # noqa: B008 - it is frozen
) -> Checked:
    """The spec in `body`, checked and expanded; `published` are the printed tables that its tables may name.

    Raises InvalidSpecError with every problem, or TooLargeError.
    """
    notes: list[str] = []
    spec = check.check(yaml.parse(body), catalog, notes, published)
    return Checked(spec, grid.expand(spec, catalog, contents), tuple(notes))
