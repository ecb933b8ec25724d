"""The OpenAPI document: what it says of answers and problems, and how it is put together."""

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.problems import MEDIA_TYPE, ProblemDetails
from orchestrator.views.changes import ChangeView

OPENAPI_PATH: Final = "/v1/openapi.json"
Responses = dict[int | str, dict[str, Any]]


def shown(example: Any, description: str, status: int = 200) -> Responses:
    """The `responses` of a route that succeeds with JSON like the example."""
    return {status: {"description": description, "content": {"application/json": {"example": example}}}}


def documented(*statuses: int) -> Responses:
    """The `responses` of a route that may end in these problems; `openapi` adds the schema that they refer to."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def openapi(app: FastAPI) -> dict[str, Any]:
    """The whole document, computed once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (ProblemDetails, ChangeView):  # to which routes refer by name
            described = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= described.pop("$defs", {}) | {model.__name__: described}
        for path in app.state.access.open_paths & document["paths"].keys():
            for operation in document["paths"][path].values():  # the gate asks nobody there, whatever the router says
                operation.pop("security", None)
                operation["responses"].pop("401", None)
        app.openapi_schema = document
    return app.openapi_schema
