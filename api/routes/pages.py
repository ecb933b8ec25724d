"""HTML pages of sweeps, trials and parts, the API reference, the guide, and static files."""

import hashlib
import pathlib
import uuid
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from api.dependencies import Asked, Cursor, Id, Limit, Name, SweepTag, person, spec_body
from api.http.middleware import BODY_BYTES, SECURITY_HEADERS
from api.http.turns import Expensive, ExpensiveSpec
from api.routes.sweeps import CellIndex
from dashboards import catalog, rendering
from dashboards.catalog import Draft
from dashboards.sweeps import (
    MOST_SQUARES,
    MOST_TABLED,
    BesideSweep,
    Surroundings,
    cell_page,
    sweep_page,
    sweeps_page,
    trial_page,
)
from orchestrator.cost.estimate import cost_in_words
from orchestrator.service.service import Service
from orchestrator.views.accounts import caller
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import Heat

LOG_CHARACTERS: Final = 65_536
"""How much of the end of a log the page of a trial reads."""

pages_router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
costly = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)


@pages_router.get("/")
def sweeps(
    service: Asked, state: str = "", name: Name = None, tag: SweepTag = None, cursor: Cursor = None, limit: Limit = 50
) -> HTMLResponse:
    """The sweeps, newest first; an empty field of the filter's form filters nothing."""
    wanted = next((one for one in SweepState if one.value == state), None)
    if state and wanted is None:
        raise HTTPException(404, f"no state {state!r}; there are {', '.join(SweepState)}")
    page = service.sweeps.page(wanted, name or None, cursor, limit, tag or None)
    return HTMLResponse(sweeps_page(page, state=wanted, name=name or None, tag=tag or None))


@costly.get("/sweeps/{id}")
def sweep(number: Id, service: Asked, heat: Heat = "metric") -> HTMLResponse:
    """One sweep with its tables, grid and problems; `heat`: by what the tables are coloured."""
    found = service.sweeps.get(number)
    small = found.counts.total <= MOST_TABLED
    tables = {name: service.tables.html(number, name, heat) if small else None for name in found.tables}
    grid, cells = service.sweeps.grid(number, MOST_SQUARES), service.sweeps.cell_count(number)
    cost = service.sweeps.left(found)
    left = list(cost_in_words(cost)) if cost and cost.trainings else []
    shown = BesideSweep(tables, heat, service.resolutions.latest(number), service.sweeps.allowed(number))
    return HTMLResponse(sweep_page(found, grid, shown, cells=cells, left=left))


@costly.get("/sweeps/{id}/cells/{index}")
def cell(number: Id, index: CellIndex, service: Asked) -> HTMLResponse:
    """What stands behind the numbers of one cell."""
    found = service.sweeps.cell(number, index)
    return HTMLResponse(cell_page(found, service.sweeps.cell_figure(found), service.sweeps.allowed(number)))


@costly.get("/trials/{id}")
def trial(number: Id, service: Asked) -> HTMLResponse:
    """One trial with its curves, recipe, error and log."""
    found = service.trials.get(number)
    log, files = service.trials.log(number, -LOG_CHARACTERS), service.trials.files(number)
    beside = Surroundings(
        service.trials.neighbours(number), service.trials.kept(number), service.sweeps.allowed(found.sweep)
    )
    return HTMLResponse(trial_page(found, service.trials.curves_figure(number), log, files, beside))


FormTrial = Annotated[int | None, Form(ge=1, le=2**31 - 1)]
FormCell = Annotated[int | None, Form(ge=0, le=2**31 - 1)]


@pages_router.post("/sweeps/{id}/cancel")
def cancel(
    number: Id, service: Asked, request: Request, trial: FormTrial = None, cell: FormCell = None
) -> RedirectResponse:
    """The button of a sweep's page, of a cell's or of one trial's."""
    service.commands.cancel(number, person(request), trial, cell)
    return RedirectResponse(_where(number, trial, cell), status_code=303)


@pages_router.post("/sweeps/{id}/retry")
def retry(
    number: Id,
    service: Asked,
    request: Request,
    trial: FormTrial = None,
    cell: FormCell = None,
    only: Annotated[Literal["failed"] | None, Form()] = None,
) -> RedirectResponse:
    """The button of a sweep's page, of a cell's or of one trial's; `only`: not those that were cancelled."""
    service.commands.retry(number, person(request), trial, cell, only or "")
    return RedirectResponse(_where(number, trial, cell), status_code=303)


def _where(sweep: int, trial: int | None, cell: int | None) -> str:
    """The page that a button leads back to."""
    if trial is not None:
        return f"/trials/{trial}"
    return f"/sweeps/{sweep}" if cell is None else f"/sweeps/{sweep}/cells/{cell}"


@pages_router.post("/sweeps/{id}/pause")
def pause(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.pause(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@pages_router.post("/sweeps/{id}/resume")
def resume(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.resume(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@pages_router.post("/sweeps/{id}/priority")
def priority(
    number: Id,
    service: Asked,
    request: Request,
    value: Annotated[int, Form(ge=-100, le=100)],
) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.prioritize(number, value, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@pages_router.post("/sweeps/{id}/delete")
def delete(
    number: Id,
    service: Asked,
    request: Request,
    confirm: Annotated[str, Form(max_length=200)],
) -> RedirectResponse:
    """The button of a sweep's page; it leads to the list."""
    service.commands.delete(number, confirm, person(request))
    return RedirectResponse("/", status_code=303)


Word = Annotated[str, Path(max_length=100, pattern=r"^\w+$")]


@pages_router.get("/catalog")
def parts(service: Asked) -> HTMLResponse:
    """Every part, by kind."""
    return HTMLResponse(catalog.catalog_page(service.catalog()))


@pages_router.get("/catalog/{kind}/{name}")
def part(kind: Word, name: Word, service: Asked) -> HTMLResponse:
    """One part, with its formula and the sweeps that used it."""
    entry = next((one for one in service.catalog().of(kind) if one.name == name), None)
    if entry is None:
        raise HTTPException(404, f"no {kind} named {name!r}")
    found = [one for one in service.data() if name in one.data.split()] if kind in {"dataset", "backbone"} else []
    return HTMLResponse(catalog.part_page(entry, service.sweeps.using(kind, name, catalog.USES), found))


FIRST: Final = "digits"
"""The preset that stands in an editor which nothing else was asked for."""

submit_router = APIRouter(include_in_schema=False)
checking = APIRouter(include_in_schema=False, route_class=ExpensiveSpec)


@submit_router.get("/submit", response_class=HTMLResponse)
def opened(
    service: Asked,
    preset: Annotated[str, Query(max_length=100)] = FIRST,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> HTMLResponse:
    """The editor with a preset, or with the text of a sweep that is to be submitted once more, changed."""
    if sweep is not None:
        cloned = service.sweeps.get(sweep)
        return _page(service, Draft(cloned.text, _key(), f"the spec of sweep {sweep}"))
    found = catalog.preset(preset)
    if found is None:
        raise HTTPException(404, f"no preset named {preset!r}")
    return _page(service, Draft(found.text, _key(), f"the preset {preset}"))


@submit_router.get("/submit/words")
def words(service: Asked) -> JSONResponse:
    """What the editor completes."""
    return JSONResponse(catalog.words(service.catalog(), service.json_schema()))


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
    shelves = catalog.shelves(service.data(), service.catalog())
    return HTMLResponse(catalog.editor_page(draft, shelves, service.accounts.view(caller()).steers), status_code=status)


def _key() -> str:
    return uuid.uuid4().hex


def _placed(service: Service, body: bytes, error: InvalidSpecError) -> list[tuple[int | None, str, str]]:
    found = service.submissions.lines(body, error.problems)
    return [(line, one.path, one.message) for line, one in zip(found, error.problems, strict=True)]


static_router = APIRouter(include_in_schema=False)


@static_router.get("/static/vega.js")
def vega(service: Asked, request: Request) -> Response:
    """The library that draws the figures, from this server: the pages need no network."""
    return kept(request, service.vega(), "text/javascript; charset=utf-8")


@static_router.get("/static/{name}")
def static(name: Annotated[str, Path(max_length=100)], request: Request) -> Response:
    """A style sheet, script or icon."""
    content = rendering.static(name)
    if content is None:
        raise HTTPException(404, f"no file {name!r}")
    suffix = name.rpartition(".")[2]
    return kept(request, content, _MEDIA_TYPES.get(suffix, "application/octet-stream"))


_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
}


def kept(request: Request, content: bytes, media_type: str) -> Response:
    """A file that browsers keep: for a year under an address that names its version (`?v=`), else for a day."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    age = "max-age=31536000, immutable" if "v" in request.query_params else "max-age=86400"
    headers = {"ETag": tag, "Cache-Control": f"public, {age}"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


POLICY: Final = "Content-Security-Policy"

reference_router = APIRouter(include_in_schema=False)


@reference_router.get("/docs", response_class=HTMLResponse)
def operations() -> HTMLResponse:
    """Every operation of the API, to be read and tried."""
    return HTMLResponse(rendering.render("reference.html", None))


@reference_router.get("/static/swagger-ui.js")
def swagger_script(request: Request) -> Response:
    """Swagger UI's script, from this server."""
    return kept(request, _swagger("swagger-ui-bundle.js"), "text/javascript; charset=utf-8")


@reference_router.get("/static/swagger-ui.css")
def swagger_style(request: Request) -> Response:
    """Swagger UI's style, from this server."""
    return kept(request, _swagger("swagger-ui.css"), "text/css; charset=utf-8")


@cache
def _swagger(name: str) -> bytes:
    # fastapi-offline has the files, kept current with Swagger UI; its own pages are not used, which allow any origin.
    spec = find_spec("fastapi_offline")
    assert spec is not None
    assert spec.origin is not None
    return (pathlib.Path(spec.origin).parent / "static" / name).read_bytes()


@reference_router.get("/docs/guide")
def guide_root() -> RedirectResponse:
    """The guide's first page, below whose address its links lead."""
    return RedirectResponse("/docs/guide/", status_code=307)


@reference_router.get("/docs/guide/{address:path}")
def guide_file(address: str, request: Request) -> Response:
    """A page of the guide, or a file that stands beside it."""
    found = catalog.guide_file(address)
    if found is None:
        raise HTTPException(404, f"the guide has no page {address!r}" if catalog.guide_is_built() else catalog.ABSENT)
    answer = kept(request, found.content, found.media_type)
    # A page changes with the release; what names its content in the query (?v=) does not.
    if "v" not in request.query_params:
        answer.headers["Cache-Control"] = "no-cache"
    if found.scripts:
        hashes = " ".join(f"'{one}'" for one in found.scripts)
        answer.headers[POLICY] = SECURITY_HEADERS[POLICY].replace("script-src 'self'", f"script-src 'self' {hashes}")
    return answer
