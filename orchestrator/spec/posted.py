"""What only a posted value is held to, and a stored one is not."""

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class Posted:
    """Narrows the type that it annotates to a form, or by limits of `pydantic.Field`, where validation is strict.

    The plan reads what is posted strictly. What is stored was within the limits of the release that stored it, which
    may have been wider, or have known more words: it is read as it is.
    """

    def __init__(self, form: Any = None, **limits: Any) -> None:
        self._form, self._limits = form, limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = Annotated[source, Field(**self._limits)] if self._form is None else self._form
        return core_schema.lax_or_strict_schema(handler(source), handler.generate_schema(form))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["strict_schema"])


Text = Annotated[str, Posted(max_length=200)]
"""A short text, or the name of an axis."""
