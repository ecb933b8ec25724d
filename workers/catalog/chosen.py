"""A part that a recipe has chosen: its hyper-parameters, and what of them does not fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from workers.catalog.signature import Entry
from workers.catalog.wording import Problem, shown


@dataclass(frozen=True)
class Chosen:
    """A part that exists, and its hyper-parameters with the defaults filled in."""

    entry: Entry
    options: Mapping[str, JsonValue]

    def __str__(self) -> str:
        return f"{self.entry.kind} {self.entry.name!r}"

    def fact(self, name: str) -> JsonValue:
        """A fact of the part; None where it states none."""
        return self.entry.facts.get(name)


def misfits(parts: Mapping[str, Chosen]) -> Iterator[Problem]:
    """A hyper-parameter is given only where another has the value that the part's fact `only_where` asks for."""
    for kind, part in parts.items():
        rules = part.fact("only_where")
        for name, rule in rules.items() if isinstance(rules, dict) else ():
            for other, wanted in rule.items() if isinstance(rule, dict) else ():
                if part.options.get(name) is not None and part.options.get(other) != wanted:
                    found = f"`{other}: {wanted}`, but {other} is {shown(part.options.get(other))}"
                    yield Problem(path=f"{kind}.{name}", message=f"is only for {found}; leave one of them out")
