"""Pages of sweeps, trials and parts, the editor, the API reference, the guide, and static files."""

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import resources
from os import PathLike, stat_result
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import Scope

from api.dependencies import (
    AllSeeds,
    CellIndex,
    Cursor,
    Id,
    Limit,
    Name,
    ResolutionLimits,
    ServiceParameter,
    SweepTag,
    TableName,
    TestSplit,
    person,
    spec_body,
)
from api.http.middleware import BODY_BYTES, SECURITY_HEADERS
from api.http.turns import Expensive, ExpensiveSpec
from dashboards import catalog, rendering
from dashboards.catalog import Draft
from dashboards.sweeps import (
    MOST_TABLED,
    cell_page,
    classes_page,
    extension_page,
    statistics_page,
    sweep_page,
    sweeps_page,
    trial_page,
)
from orchestrator.cost.estimate import cost_in_words
from orchestrator.service.service import Service
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, InvalidSpecError, NumbersChangedError
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import AxisGroup, Heat, SweepView, axis_groups

LOG_CHARACTERS: Final = 65_536
"""How many characters from the end of a log the page of a trial reads."""

router = APIRouter(include_in_schema=False)
costly = APIRouter(include_in_schema=False, route_class=Expensive)
checking = APIRouter(include_in_schema=False, route_class=ExpensiveSpec)


@router.get("/")
def sweeps(
    service: ServiceParameter,
    state: str = "",
    name: Name = None,
    tag: SweepTag = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HTMLResponse:
    """The sweeps, newest first; an empty field of the form does not filter."""
    if state and state not in list(SweepState):
        raise HTTPException(404, f"no state {state!r}; there are {', '.join(SweepState)}")
    page = service.sweeps.page(SweepState(state) if state else None, name or None, cursor, limit, tag or None)
    return HTMLResponse(sweeps_page(page, state=state or None, name=name or None, tag=tag or None))


@costly.get("/sweeps/{id}")
def sweep(number: Id, service: ServiceParameter, heat: Heat = "metric", compare: bool = False) -> HTMLResponse:
    """One sweep with its tables, grid and problems.

    `heat` is the colouring of the tables; `compare` adds how each cell compares with its baseline.
    """
    found = service.sweeps.get(number)
    small = found.counts.total <= MOST_TABLED
    tables = {name: service.tables.html(number, name, heat, compare) if small else None for name in found.tables}
    grid, cells = service.sweeps.grid(number, rendering.MOST_SQUARES), service.store.sweeps.cell_count(number)
    cost = service.sweeps.left(found)
    left = list(cost_in_words(cost)) if cost and cost.trainings else []
    page = sweep_page(
        found, grid, tables, heat=heat, compare=compare, answer=service.tables.answer(number) if small else "",
        resolution=service.resolutions.latest(number), may=service.store.accounts.allowed(number),
        cells=cells, left=left,
    )  # fmt: skip
    return HTMLResponse(page)


@costly.get("/sweeps/{id}/statistics")
def statistics(
    number: Id, service: ServiceParameter, allowed: ResolutionLimits, table: TableName = None, plan: bool = False
) -> HTMLResponse:
    """The comparisons of a table with its baselines, and seeds that would decide them; `plan` shows the first round."""
    found = service.sweeps.get(number)
    planned, refused = None, ""
    if plan:
        try:
            planned = service.resolutions.plan(number, allowed, table)
        except ConflictError as error:
            refused = str(error)
    verdicts = service.tables.verdicts(number, table) if found.tables else None
    page = statistics_page(
        found, verdicts, allowed, planned=planned, refused=refused, resolution=service.resolutions.latest(number),
        may=service.store.accounts.allowed(number),
    )  # fmt: skip
    return HTMLResponse(page)


@checking.get("/sweeps/{id}/extend")
def extension(number: Id, service: ServiceParameter, request: Request) -> HTMLResponse:
    """The form that adds seeds, losses and values to a sweep, and what they would train."""
    found, given = service.sweeps.get(number), request.query_params
    may = service.store.accounts.allowed(number)
    shown: dict[str, Any] = {}
    if may.steer and (added := _added(found, given)):
        try:
            text = service.commands.with_alternatives(number, added)
            planned = service.commands.preview_extension(number, text)
            size, *trained = planned.summary
            lines = [size, *planned.notes, *trained, *cost_in_words(planned.cost), *planned.warnings]
            shown = {"planned": lines, "text": text.decode()}
        except InvalidSpecError as error:
            shown = {"problems": error.problems}
        except (ConflictError, NumbersChangedError) as error:
            shown = {"refused": str(error)}
    return HTMLResponse(extension_page(found, given, may=may, **shown))


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a posted form."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


@checking.post("/sweeps/{id}/extend")
def _extend(
    number: Id, service: ServiceParameter, request: Request, form: Annotated[dict[str, str], Depends(_fields)]
) -> RedirectResponse:
    added = _added(service.sweeps.get(number), form)
    if not added:
        raise ConflictError("nothing is added; expected a seed, a loss or another value in a field of the form")
    service.commands.extend(number, service.commands.with_alternatives(number, added), person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


def _added(found: SweepView, given: Mapping[str, str]) -> dict[AxisGroup, str]:
    """The filled fields of the form."""
    return {group: text for group in axis_groups(found.spec) if (text := given.get(group.field, "").strip())}


@costly.get("/sweeps/{id}/cells/{index}")
def cell(number: Id, index: CellIndex, service: ServiceParameter) -> HTMLResponse:
    """One cell with its candidates and trials."""
    found = service.sweeps.cell(number, index)
    return HTMLResponse(cell_page(found, service.sweeps.cell_figure(found), service.store.accounts.allowed(number)))


@costly.get("/trials/{id}")
def trial(number: Id, service: ServiceParameter) -> HTMLResponse:
    """One trial with its curves, recipe, error and log."""
    found = service.trials.get(number)
    kept = service.store.artifacts.of_trial(number)
    page = trial_page(
        found,
        service.trials.curves_figure(number),
        service.store.logs.of(number, -LOG_CHARACTERS),
        files=service.files.listed(number),
        neighbours=service.store.trials.neighbours(number),
        kept=(kept.folder, kept.names) if kept else None,
        weights=kept is not None and kept.weights is not None and found.collected is None,
        usage=service.trials.usage_figure(number),
        defaults=service.trials.defaults(found),
        may=service.store.accounts.allowed(found.sweep),
    )
    return HTMLResponse(page)


@costly.get("/trials/{id}/classes")
def classes(number: Id, service: ServiceParameter, split: TestSplit = "test", seeds: AllSeeds = False) -> HTMLResponse:
    """Recall, precision and F1 of each class, as bars and as a table."""
    found = service.trials.classes(number, split, seeds=seeds)
    return HTMLResponse(
        classes_page(service.trials.get(number), found, service.trials.classes_figure(found), seeds=seeds)
    )


FormTrial = Annotated[int | None, Form(ge=1, le=2**31 - 1)]
FormCell = Annotated[int | None, Form(ge=0, le=2**31 - 1)]


@router.post("/sweeps/{id}/cancel")
def _cancel(
    number: Id, service: ServiceParameter, request: Request, trial: FormTrial = None, cell: FormCell = None
) -> RedirectResponse:
    service.commands.cancel(number, person(request), trial, cell)
    return RedirectResponse(_where(number, trial, cell), status_code=303)


@router.post("/sweeps/{id}/retry")
def _retry(
    number: Id,
    service: ServiceParameter,
    request: Request,
    trial: FormTrial = None,
    cell: FormCell = None,
    only: Annotated[Literal["failed"] | None, Form()] = None,
) -> RedirectResponse:
    """Handle the retry button of a sweep, a cell or a trial; `only=failed` leaves out cancelled trials."""
    service.commands.retry(number, person(request), trial, cell, only or "")
    return RedirectResponse(_where(number, trial, cell), status_code=303)


def _where(sweep: int, trial: int | None, cell: int | None) -> str:
    """The address of the page of a sweep, a cell or a trial."""
    if trial is not None:
        return f"/trials/{trial}"
    return f"/sweeps/{sweep}" if cell is None else f"/sweeps/{sweep}/cells/{cell}"


@router.post("/sweeps/{id}/pause")
def _pause(number: Id, service: ServiceParameter, request: Request) -> RedirectResponse:
    service.commands.pause(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/resume")
def _resume(number: Id, service: ServiceParameter, request: Request) -> RedirectResponse:
    service.commands.resume(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/priority")
def _priority(
    number: Id, service: ServiceParameter, request: Request, value: Annotated[int, Form(ge=-100, le=100)]
) -> RedirectResponse:
    service.commands.prioritize(number, value, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/delete")
def _delete(
    number: Id, service: ServiceParameter, request: Request, confirm: Annotated[str, Form(max_length=200)]
) -> RedirectResponse:
    """Handle the delete button of a sweep, and redirect to the list."""
    service.commands.delete(number, confirm, person(request))
    return RedirectResponse("/", status_code=303)


Word = Annotated[str, Path(max_length=100, pattern=r"^\w+$")]


@router.get("/catalog")
def parts(service: ServiceParameter) -> HTMLResponse:
    """Every part, by kind."""
    return HTMLResponse(catalog.catalog_page(service.catalog()))


@router.get("/catalog/{kind}/{name}")
def part(kind: Word, name: Word, service: ServiceParameter) -> HTMLResponse:
    """One part, with its formula and the sweeps that used it."""
    entry = service.catalog().get(kind, name)
    if entry is None:
        raise HTTPException(404, f"no {kind} named {name!r}")
    needs_files = kind in {"dataset", "backbone"}
    found = [finding for finding in service.data() if name in finding.data.split()] if needs_files else []
    return HTMLResponse(catalog.part_page(entry, service.sweeps.using(kind, name, catalog.USES), found))


FIRST: Final = "digits"
"""The preset that the editor shows by default."""


@router.get("/submit")
def opened(
    service: ServiceParameter,
    preset: Annotated[str, Query(max_length=100)] = FIRST,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> HTMLResponse:
    """The editor with a preset, or with the text of a sweep."""
    if sweep is not None:
        cloned = service.sweeps.get(sweep)
        return _page(service, Draft(cloned.text, f"the spec of sweep {sweep}"))
    found = catalog.preset(preset, service.catalog().folder)
    if found is None:
        raise HTTPException(404, f"no preset named {preset!r}")
    return _page(service, Draft(found.text, f"the preset {preset}"))


@router.get("/submit/words")
def words(service: ServiceParameter) -> JSONResponse:
    """The completions of the editor."""
    return JSONResponse(catalog.words(service.catalog(), service.json_schema()))


@checking.post("/submit/check")
def check(body: Annotated[bytes, Depends(spec_body)], service: ServiceParameter) -> JSONResponse:
    """The problems of the text in the editor, with their lines, or the sweep that it would become."""
    try:
        preview = service.submissions.preview(body)
    except InvalidSpecError as error:
        return JSONResponse({"problems": [asdict(problem) for problem in error.problems]})
    summary = [*preview.summary, *cost_in_words(preview.cost)]  # the lines of `metricsweep expand`
    return JSONResponse({"problems": [], "summary": summary, "warnings": preview.warnings, "notes": preview.notes})


@checking.post("/submit")
def submit(
    service: ServiceParameter,
    request: Request,
    spec: Annotated[str, Form(max_length=BODY_BYTES)],
    key: Annotated[str, Form(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")],
    priority: Annotated[int, Form(ge=-100, le=100)] = 0,
    project: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Submit the spec and redirect to the sweep's page; a refused spec is shown with its problems."""
    text = spec.replace("\r\n", "\n")  # browsers send line ends of this form
    try:
        submitted = service.submissions.submit(text.encode(), key, person(request), priority, project or None)
    except InvalidSpecError as error:
        draft = Draft(text, "what you sent", error.problems, priority, project)
        return _page(service, draft, status=422)
    return RedirectResponse(f"/sweeps/{submitted.id}", status_code=303)


def _page(service: Service, draft: Draft, status: int = 200) -> HTMLResponse:
    shelves = catalog.shelves(service.data(), service.catalog())
    projects = service.store.accounts.names_of(caller().steered)
    return HTMLResponse(catalog.editor_page(draft, shelves, projects), status_code=status)


@router.get("/static/{name}")
def static(name: Annotated[str, Path(max_length=100)], service: ServiceParameter, request: Request) -> Response:
    """A style sheet, script or icon, or a library; the pages load nothing from other servers."""
    if name == "vega.js":  # draws the figures
        content: bytes | None = service.vega()
    elif name in _SWAGGER:
        content = _swagger(_SWAGGER[name])
    else:
        content = rendering.static(name)
    if content is None:
        raise HTTPException(404, f"no file {name!r}")
    return _cached(request, content, mimetypes.guess_type(name)[0] or "application/octet-stream")


def _cached(request: Request, content: bytes, media_type: str) -> Response:
    """A file that browsers cache: for a year if its address names the version (`?v=`), else for a day."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    age = "max-age=31536000, immutable" if "v" in request.query_params else "max-age=86400"
    headers = {"ETag": tag, "Cache-Control": f"public, {age}"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


_SWAGGER: Final = {"swagger-ui.js": "swagger-ui-bundle.js", "swagger-ui.css": "swagger-ui.css"}
"""The files of Swagger UI, from the package fastapi-offline, whose own pages would allow any origin."""


@cache
def _swagger(name: str) -> bytes:
    return resources.files("fastapi_offline").joinpath("static", name).read_bytes()


POLICY: Final = "Content-Security-Policy"


@router.get("/docs")
def operations() -> HTMLResponse:
    """The API reference."""
    return HTMLResponse(rendering.render("reference.html"))


@router.get("/docs/guide")
def guide_root() -> RedirectResponse:
    """Redirect to the guide's first page, since its links are relative to the address with a slash."""
    return RedirectResponse("/docs/guide/", status_code=307)


class _Guide(StaticFiles):
    """The files of the guide. The policy of a page allows the scripts that it contains."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)
        answer.headers["Cache-Control"] = "no-cache"
        page = FilePath(full_path)
        if page.suffix == ".html":
            allowed = " ".join(["script-src 'self'", *catalog.script_hashes(page.read_bytes())])
            answer.headers[POLICY] = SECURITY_HEADERS[POLICY].replace("script-src 'self'", allowed)
        return answer


@router.get("/docs/guide/{address:path}")
async def guide_file(address: str, request: Request) -> Response:
    """A page or file of the guide."""
    if not catalog.guide_is_built():
        raise HTTPException(404, catalog.ABSENT)
    return await _Guide(directory=catalog.GUIDE_FOLDER, html=True).get_response(address or ".", request.scope)
