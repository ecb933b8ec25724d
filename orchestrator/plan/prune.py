"""Early stopping within a cell: its rules, their options, and how a posted one is read."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from orchestrator.errors import Problem
from orchestrator.plan.wording import meant, sentences, shown
from workers.contract import Frozen

Count = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[int, Field(ge=2, le=100)]


class Median(Frozen):
    """Stops what at its best is worse than the median of the finished peers at the same evaluation."""

    name: Literal["median"]
    startup: Count = 5
    """Peers that must have finished before anything is stopped."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Evaluations of a training before its first verdict."""


class Asha(Frozen):
    """Asynchronous successive halving: of those that reach a rung only the best go on."""

    name: Literal["asha"]
    min_evaluations: Count = 1
    """The first rung; each further one is `reduction` times as high."""
    reduction: Factor = 4
    """One in so many goes on."""


class Hyperband(Frozen):
    """Successive halving in brackets, of which some judge later than others."""

    name: Literal["hyperband"]
    min_evaluations: Count = 1
    """The first rung of the first bracket."""
    max_evaluations: Count | None = None
    """The last rung; none: as many as a training has."""
    reduction: Factor = 3
    """One in so many goes on."""

    @model_validator(mode="after")
    def _room(self) -> "Hyperband":
        if self.max_evaluations is not None and self.max_evaluations < self.min_evaluations:
            low, high = self.min_evaluations, self.max_evaluations
            raise ValueError(f"max_evaluations is {high}; expected at least min_evaluations, which is {low}")
        return self


class Wilcoxon(Frozen):
    """Starts no further repeat of what by a signed-rank test over the repeats is worse than the best candidate."""

    name: Literal["wilcoxon"]
    p: float = Field(default=0.1, gt=0, lt=1)
    """What the p-value must be below."""
    startup: Count = 2
    """Repeats that both must have finished before anything is stopped."""


Prune = Annotated[Median | Hyperband | Asha | Wilcoxon, Field(discriminator="name")]

PRUNES: Final[Mapping[str, type[Median | Hyperband | Asha | Wilcoxon]]] = {
    "median": Median,
    "hyperband": Hyperband,
    "asha": Asha,
    "wilcoxon": Wilcoxon,
}


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
