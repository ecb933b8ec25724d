"""What pydantic found wrong with a block of a spec, in sentences."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.plan.problems.findings import MOST_TOLD
from workers.catalog import Problem, meant, sentence, shown


def sentences(error: ValidationError, source: str, model: type[BaseModel]) -> Iterator[Problem]:
    """What pydantic found wrong with the block at `source`, one problem a field."""
    said: set[str] = set()
    for details in itertools.islice(error.errors(include_url=False), MOST_TOLD):
        field = str(details["loc"][0]) if details["loc"] else ""
        path = ".".join(part for part in (source, field) if part)
        if path not in said:  # the members of a union each complain
            said.add(path)
            yield Problem(path, _sentence(details, field, model))


def _sentence(details: ErrorDetails, field: str, model: type[BaseModel]) -> str:
    nested = len(details["loc"]) > 1 and field in _UNIONS
    if details["type"] == "extra_forbidden" and not nested:
        return f"there is no key {shown(field)} here; {meant(field, model.model_fields)}"
    if nested:
        return f"expected {_UNIONS[field]}"
    return sentence(details)


_UNIONS: Final[Mapping[str, str]] = {
    "gpus": "a share of a GPU such as 0.5, a whole number of GPUs, or 'auto'",
    "bold": "'none' or a list of axes",
    "rows": "a list of axes",
    "columns": "a list of axes",
    "quoted": "a list of rows such as `{of: {loss: jigsaw}, label: Jigsaw}`, where `of` has texts, and perhaps `bold`",
    "panels": "a list of mappings from a column axis to a list of its labels",
    "labels": "a mapping from an axis to a mapping from its labels to texts",
    "titles": "a mapping from an axis to a text, or to null for no headings",
    "split": "'test', 'test_separated', 'validation', 'train', or 'test_' with the name of a test set",
    "selections": "a list of 'validation' and 'test'",
    "std": "true, false or a mapping with `decimals` and `unit`",
}
"""What fields of several or of nested forms want, since pydantic speaks of each form by itself."""
