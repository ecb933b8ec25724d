"""A place of a document, and what is wrong there."""

from dataclasses import dataclass

from workers.catalog import Problem


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where something is read, such as `tables.main`, and the list of all problems."""

    path: str
    problems: list[Problem]

    def note(self, field: str, message: str) -> None:
        """Note what is wrong at a field of it; at itself where that is ""."""
        self.problems.append(Problem(f"{self.path}.{field}" if field else self.path, message))
