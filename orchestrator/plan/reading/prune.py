"""Reads a posted rule of early stopping."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from orchestrator.plan.problems.sentences import sentences
from orchestrator.spec.prune import PRUNES, Prune
from workers.catalog import Problem, meant, shown


def read_prune(posted: Any, problems: list[Problem]) -> Prune | None:
    """The rule that was posted, a name or a mapping; none where there is none, or where it cannot be read."""
    if posted is None:
        return None
    given = {"name": posted} if isinstance(posted, str) else posted
    if not isinstance(given, Mapping):
        problems.append(Problem("prune", f"expected a name or a mapping with `name`, found {shown(posted)}"))
        return None
    name = given.get("name")
    if name is None:
        problems.append(Problem("prune.name", f"is missing; {meant('', PRUNES)}"))
        return None
    if not isinstance(name, str) or name not in PRUNES:
        problems.append(Problem("prune.name", f"there is no rule {shown(name)}; {meant(str(name), PRUNES)}"))
        return None
    rule = PRUNES[name]
    problems += _misplaced(name, given)
    try:
        return rule.model_validate({key: one for key, one in given.items() if key in rule.model_fields}, strict=True)
    except ValidationError as error:
        problems += sentences(error, "prune", rule)
        return None


def _misplaced(name: str, given: Iterable[str]) -> list[Problem]:
    """The options that another rule takes, or none."""
    known = PRUNES[name].model_fields
    takes = ", ".join(f"`{one}`" for one in known if one != "name")
    found = []
    for key in given:
        if key in known:
            continue
        owners = [other for other, rule in PRUNES.items() if key in rule.model_fields]
        whose = f"is an option of {' and '.join(owners)}" if owners else f"is not known here; {meant(key, known)}"
        found.append(Problem(f"prune.{key}", f"{whose}; '{name}' takes {takes}"))
    return found
