"""Routes of figures: a sweep's, drawn in every format, and the files that a trial's training kept for them."""

from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Query, Response

from api.dependencies import Asked, Id, Named
from api.http.turns import Expensive
from api.problems import documented, shown
from api.routes.tables import as_file
from orchestrator.views.pages import FigureFile, FigureView

FIGURES: Final = [
    {
        "name": "norms",
        "kind": "distribution",
        "title": "Norms with and without SEC",
        "formats": ["json", "svg", "png", "pdf", "csv"],
        "url": "/v1/sweeps/7/figures/norms",
    }
]

FIGURE_FILES: Final = [
    {
        "name": "norms.npz",
        "media_type": "application/octet-stream",
        "size": 1482,
        "url": "/v1/trials/40/figures/norms.npz",
    }
]

router = APIRouter(
    prefix="/v1", tags=["figures"], route_class=Expensive, responses=documented(401, 404, 409, 421, 422, 500, 503)
)

_BINARY = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
_CONTENT = {
    "application/json": {"example": {"$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json"}},
    "image/svg+xml": {"example": "<svg xmlns='http://www.w3.org/2000/svg'/>"},
    "image/png": {"schema": {"type": "string", "contentMediaType": "image/png"}},
    "application/pdf": {"schema": {"type": "string", "contentMediaType": "application/pdf"}},
    "text/csv": {"example": "quantity,optimizer.lr,mean,low,high,n\n"},
}
_UNCHANGED = {"description": "It has not changed since `If-None-Match`."}

Known = Annotated[str | None, Header(max_length=1000)]


@router.get(
    "/sweeps/{id}/figures",
    summary="A sweep's figures",
    responses=shown(FIGURES, "Each figure of the spec with its formats."),
)
def figures(number: Id, service: Asked) -> list[FigureView]:
    """The figures that the spec asks for, whether there is something to draw or not."""
    return service.figures.listed(number)


@router.get(
    "/sweeps/{id}/figures/{name}",
    summary="A figure of a sweep",
    response_class=Response,
    responses={
        200: {"description": "The figure as it stands: what is missing is said over it.", "content": _CONTENT},
        304: _UNCHANGED,
    },
)
def figure(
    number: Id,
    name: Named,
    service: Asked,
    file_format: Annotated[
        str,
        Query(
            alias="format",
            pattern="^[a-z0-9_]{1,32}$",
            description="json (Vega-Lite), svg, png, pdf, or csv (its data).",
        ),
    ] = "json",
    heading: Annotated[
        bool, Query(description="With title and caption; without, only what is missing is said, as a paper wants it.")
    ] = True,
    if_none_match: Known = None,
) -> Response:
    """Drawn each time it is read, so that a running sweep gives a partial figure that says so."""
    return as_file(service.figures.render(number, name, file_format, heading), if_none_match)


@router.get(
    "/trials/{id}/figures",
    summary="A trial's figure files",
    responses=shown(FIGURE_FILES, "Each file that is in the storage; none before the training has finished."),
)
def files(number: Id, service: Asked) -> list[FigureFile]:
    """What the training kept because its recipe asks for `figures`: arrays as `.npz`, and pictures."""
    return service.trials.files(number)


@router.get(
    "/trials/{id}/figures/{file}",
    summary="A figure file of a trial",
    response_class=Response,
    responses={
        200: {"description": "The file.", "content": {"application/octet-stream": _BINARY, "image/png": _BINARY}},
        304: _UNCHANGED,
    },
)
def file(
    number: Id,
    file: Annotated[
        str, Path(max_length=200, pattern=r"^[^\x00/]+$", description="As the list names it.", examples=["norms.npz"])
    ],
    service: Asked,
    if_none_match: Known = None,
) -> Response:
    """One of them, from this trial's own folder of the storage and nowhere else."""
    return as_file(service.trials.file(number, file), if_none_match)
