"""The page on which a sweep is submitted, the check of what is typed there, and the form itself."""

import uuid
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from api.dependencies import Asked, person, spec_body
from api.http.middleware import BODY_BYTES
from api.http.turns import ExpensiveSpec
from dashboards import editor, gallery
from dashboards.editor import Draft
from orchestrator.cost.words import cost_in_words
from orchestrator.service.service import Service
from orchestrator.views.callers import caller
from orchestrator.views.errors import InvalidSpecError

FIRST: Final = "digits"
"""The preset that stands in an editor which nothing else was asked for."""

router = APIRouter(include_in_schema=False)
checking = APIRouter(include_in_schema=False, route_class=ExpensiveSpec)


@router.get("/submit", response_class=HTMLResponse)
def opened(
    service: Asked,
    preset: Annotated[str, Query(max_length=100)] = FIRST,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> HTMLResponse:
    """The editor with a preset, or with the text of a sweep that is to be submitted once more, changed."""
    if sweep is not None:
        cloned = service.sweeps.get(sweep)
        return _page(service, Draft(cloned.text, _key(), f"the spec of sweep {sweep}"))
    found = gallery.preset(preset)
    if found is None:
        raise HTTPException(404, f"no preset named {preset!r}")
    return _page(service, Draft(found.text, _key(), f"the preset {preset}"))


@router.get("/submit/words")
def words(service: Asked) -> JSONResponse:
    """What the editor completes."""
    return JSONResponse(editor.words(service.catalog(), service.json_schema()))


@checking.post("/submit/check")
def check(body: Annotated[bytes, Depends(spec_body)], service: Asked) -> JSONResponse:
    """What is wrong with the text in the editor, at which line; or what it would become."""
    try:
        preview = service.submissions.preview(body)
    except InvalidSpecError as error:
        problems = _placed(service, body, error)
        return JSONResponse(
            {"problems": [dict(zip(("line", "path", "message"), one, strict=True)) for one in problems]}
        )
    said = [*preview.said, *cost_in_words(preview.cost)]  # as `metricsweep expand` has them
    told = {"said": said, "warnings": preview.warnings, "notes": preview.notes}
    return JSONResponse({"problems": [], **told})


@checking.post("/submit", response_class=HTMLResponse)
def submit(
    service: Asked,
    request: Request,
    spec: Annotated[str, Form(max_length=BODY_BYTES)],
    key: Annotated[str, Form(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")],
    priority: Annotated[int, Form(ge=-100, le=100)] = 0,
    project: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Queue the sweep and lead to its page; a refused spec comes back with its problems."""
    text = spec.replace("\r\n", "\n")  # as browsers send what is typed
    body = text.encode()
    try:
        submitted = service.submissions.submit(body, key, person(request), priority, project or None)
    except InvalidSpecError as error:
        draft = Draft(text, _key(), "what you sent", _placed(service, body, error), priority, project)
        return _page(service, draft, status=422)
    return RedirectResponse(f"/sweeps/{submitted.id}", status_code=303)


def _page(service: Service, draft: Draft, status: int = 200) -> HTMLResponse:
    shelves = gallery.shelves(service.data(), service.catalog())
    return HTMLResponse(editor.editor_page(draft, shelves, service.accounts.view(caller()).steers), status_code=status)


def _key() -> str:
    return uuid.uuid4().hex


def _placed(service: Service, body: bytes, error: InvalidSpecError) -> list[tuple[int | None, str, str]]:
    found = service.submissions.lines(body, error.problems)
    return [(line, one.path, one.message) for line, one in zip(found, error.problems, strict=True)]
