"""Routes of tables, figures, reproductions and published tables."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import HTMLResponse

from api.dependencies import Id, Named, ServiceParameter, TableName
from api.http.turns import Expensive
from api.problems import Responses, documented, shown
from dashboards.lists import STATUSES, reproduction_page
from dashboards.rendering import render
from orchestrator.service import offline
from orchestrator.views.evidence import OptimismView, PublishedSummary, PublishedView, ReproductionSummary, VerdictsView
from orchestrator.views.pages import FigureFile, FigureView, Rendered

tables_router = APIRouter(
    prefix="/v1", tags=["tables"], route_class=Expensive, responses=documented(401, 404, 409, 421, 422, 500, 503)
)
figures_router = APIRouter(prefix="/v1", tags=["figures"], route_class=Expensive, responses=tables_router.responses)

TableFormat = Annotated[
    str, Query(alias="format", pattern="^[a-z0-9_]{1,32}$", description="latex, markdown, html, csv or json.")
]
Known = Annotated[str | None, Header(alias="if-none-match", max_length=1000)]
_UNCHANGED: Final[Responses] = {304: {"description": "It has not changed since `If-None-Match`."}}


def _file(description: str, examples: Mapping[str, Any], *problems: int) -> dict[str, Any]:
    """The arguments of a route that answers with a file, or with these problems; `examples` by media type."""
    content = {kind: {"example": file} for kind, file in examples.items()}
    responses = documented(*problems) | _UNCHANGED | {200: {"description": description, "content": content}}
    return {"response_class": Response, "responses": responses}


@tables_router.get(
    "/sweeps/{id}/tables/{name}",
    summary="A table of a sweep",
    **_file(
        "The table with the results so far: cells that have not ended, failed or diverged are marked.",
        {
            "text/x-tex": "\\begin{tabular}{llrr}\n\\toprule\n ... \\bottomrule\n\\end{tabular}\n",
            "text/markdown": "| Loss | Regularizer | R@1 |\n| --- | --- | --- |\n",
            "text/html": "<table>...</table>",
            "text/csv": "loss,regularizer,recall@1\n",
            "application/json": {"name": "main"},
        },
    ),
)
def table(
    number: Id,
    name: Named,
    service: ServiceParameter,
    file_format: TableFormat = "json",
    tuned: Annotated[
        bool | None, Query(description="Show the selected value of each tuned axis; by default as in the spec.")
    ] = None,
    numbers: Annotated[
        Literal["own", "published", "difference", "both", "verdict"],
        Query(
            description="`own`: the sweep's numbers; `published`: the printed numbers; `difference`: own - published; "
            "`both`: side by side; `verdict`: own numbers with a word. Answers 409 if the table names no printed table."
        ),
    ] = "own",
    known: Known = None,
) -> Response:
    """Computed from the trials at each request, so a running sweep gives a partial table."""
    return _as_file(service.tables.render(number, name, file_format, tuned, numbers), known)


@tables_router.get("/sweeps/{id}/verdicts", summary="Whether cells are better than their baselines")
def verdicts(
    number: Id,
    service: ServiceParameter,
    table: TableName = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        Query(
            description="What intervals and verdicts hold for: other seeds, other test queries, or both; "
            "by default as in the spec."
        ),
    ] = None,
) -> VerdictsView:
    """Each comparison that the table declares: better, worse, equivalent, no clear difference, or why untested."""
    return service.tables.verdicts(number, table, covers)


@tables_router.get("/sweeps/{id}/optimism", summary="How optimistic the best of several candidates is")
def optimism(number: Id, service: ServiceParameter) -> OptimismView:
    """How much better the best candidate of each cell looks than it is, and the expected best of fewer candidates."""
    return service.tables.optimism(number)


def _as_file(rendered: Rendered, known: str | None) -> Response:
    """A rendered file with its name and an ETag; 304 if the ETags in `known` contain it."""
    tag = f'"{hashlib.sha256(rendered.content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if known and tag in (other.strip().removeprefix("W/") for other in known.split(",")):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = f"inline; filename*=UTF-8''{quote(rendered.filename)}"
    return Response(rendered.content, media_type=rendered.media_type, headers=headers)


@tables_router.get(
    "/tables",
    summary="A table of several sweeps",
    **_file(
        "The table; its caption says which number is from which sweep, and how these differ.",
        {
            "application/json": {"table": "main"},
            "text/markdown": "| Loss | R@1 |",
            "text/x-tex": "\\begin{tabular}{lr}",
        },
    ),
)
def compare(
    sweeps: Annotated[
        str,
        Query(
            pattern=r"^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8}){1,9}$",
            description="The sweeps' numbers; a cell shows the numbers of the first sweep that has it.",
            examples=["7,9"],
        ),
    ],
    service: ServiceParameter,
    table: TableName = None,
    view: Annotated[
        Literal["merge", "difference"],
        Query(description="`merge`: all cells; `difference`: two sweeps side by side, and the first minus the second."),
    ] = "merge",
    file_format: TableFormat = "json",
    known: Known = None,
) -> Response:
    """In the layout of the first sweep's table; 409 if the sweeps cannot be compared."""
    numbers = [int(number) for number in sweeps.split(",")]
    return _as_file(service.tables.compare(numbers, table, view, file_format), known)


_SIDE = "A sweep's number, or a sweep at a time, such as 7@2026-11-20T12:00 (UTC by default)."


@tables_router.get(
    "/diff",
    summary="What changed between two tables",
    **_file(
        "Every number that changed, why, and whether by more than noise.",
        {
            "application/json": {"table": "main", "unchanged": 23, "cells": []},
            "text/plain": "From sweep 7 at 2026-11-20 12:00 UTC to sweep 7: ...",
        },
    ),
)
def diff(
    before: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7@2026-11-20T12:00"])],
    after: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7"])],
    service: ServiceParameter,
    table: TableName = None,
    file_format: Annotated[str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json or text.")] = "json",
    known: Known = None,
) -> Response:
    """Cells are matched by their labels; a sweep at a time counts the results until then."""
    return _as_file(service.tables.diff(before, after, table, file_format), known)


@tables_router.get(
    "/sweeps/{id}/tables/{name}/macros",
    summary="A table as LaTeX macros",
    **_file(
        "One macro for each number.",
        {
            "application/x-tex": "\\ms@number{msMainTripletRecallAtOne}{60.82}",
            "application/json": {"sweep": 7, "table": "main", "numbers": []},
        },
    ),
)
def macros(
    number: Id,
    name: Named,
    service: ServiceParameter,
    file_format: Annotated[Literal["latex", "json"], Query(alias="format", description="latex or json.")] = "latex",
    prefix: Annotated[str, Query(pattern=r"^[A-Za-z]{1,20}$", description="The prefix of the macros: letters.")] = "ms",
    known: Known = None,
) -> Response:
    """Each macro has value, interval, standard deviation and number of runs, as the table prints them."""
    return _as_file(service.tables.macros(number, name, file_format, prefix), known)


reproductions_router = APIRouter(
    prefix="/v1/reproductions", tags=["published"], route_class=Expensive, responses=documented(401, 421, 500, 503)
)

_listed = partial(Path, max_length=100, pattern=r"^[^\x00/]+$", description="As listed, in any case.")
PaperName = Annotated[str, _listed(alias="paper", examples=["SEC"])]
Within = Annotated[float, Query(ge=0.01, le=50, description="Percentage points that count as equal.")]
_REPRODUCTIONS = [
    {
        "paper": "SEC", "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020",
        "counts": {"reproduced": 2, "not_reproduced": 1, "underpowered": 9, "not_run": 952},
    }
]  # fmt: skip


@reproductions_router.get(
    "",
    summary="The reproductions of the papers",
    responses=shown(_REPRODUCTIONS, "Each paper with the number of its entries by status."),
)
def reproductions(service: ServiceParameter) -> list[ReproductionSummary]:
    """How many numbers of each paper are reproduced, not reproduced, underpowered or not run, over all sweeps."""
    return service.reproductions.summaries()


@reproductions_router.get(
    "/{paper}",
    summary="The reproduction of a paper",
    **_file(
        "Every printed number, whether it is reproduced, by which runs, and how their protocol differs.",
        {
            "application/json": _REPRODUCTIONS[0],
            "text/csv": "table,row,metric\n",
            "text/markdown": "| table | reproduced |",
            "application/x-tex": "\\begin{longtable}",
        },
        404,
        422,
    ),
)
def reproduction(
    paper: PaperName,
    service: ServiceParameter,
    file_format: Annotated[
        str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json, csv, markdown or latex.")
    ] = "json",
    within: Within = 1.0,
    known: Known = None,
) -> Response:
    """Computed from all sweeps with a table that names one of the paper's; running sweeps count with their results."""
    return _as_file(service.reproductions.render(paper, file_format, within), known)


reproduction_pages = APIRouter(include_in_schema=False, route_class=Expensive)


@reproduction_pages.get("/reproduction")
def papers(service: ServiceParameter) -> HTMLResponse:
    """The papers, with how many of their numbers are reproduced."""
    return HTMLResponse(render("reproductions.html", papers=service.reproductions.summaries(), statuses=STATUSES))


@reproduction_pages.get("/reproduction/{paper}")
def paper(
    paper: PaperName, service: ServiceParameter, within: Within = 1.0, status: Annotated[str, Query(max_length=20)] = ""
) -> HTMLResponse:
    """The reproduction of one paper; `status` filters its numbers."""
    return HTMLResponse(reproduction_page(service.reproductions.of(paper, within), status))


PUBLISHED_SUMMARY: Final[dict[str, Any]] = {
    "id": "SEC-T2", "paper": "SEC", "title": "The weight of SEC: triplet loss on Cars196",
    "axes": ["dataset", "loss", "regularizer", "regularizer.eta"],
    "metrics": ["nmi", "f1", "recall@1", "recall@2", "recall@4", "recall@8"], "count": 30,
}  # fmt: skip
PUBLISHED: Final = [PUBLISHED_SUMMARY]
PUBLISHED_TABLE: Final = PUBLISHED_SUMMARY | {
    "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020, and its appendix",
    "note": "The first row is printed as eta = 0.",
    "conflicts": {"C7": "The triplet baseline on Cars is printed with two values: two runs."},
    "numbers": [
        {
            "labels": {"dataset": "cars196", "loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.5"},
            "tuned": {}, "metric": "recall@1", "printed": "67.89", "value": 0.6789, "std": None, "bold": True,
            "unit": "percent", "std_unit": "percent", "source": None,
        }
    ],
}  # fmt: skip

published_router = APIRouter(prefix="/v1/published", tags=["published"], responses=documented(401, 421, 500))

PublishedId = Annotated[str, _listed(alias="id", examples=["SEC-T3"])]


@published_router.get(
    "",
    summary="The published tables",
    responses=shown(PUBLISHED, "Each with its axes, metrics and how many numbers it has."),
)
def published(service: ServiceParameter) -> list[PublishedSummary]:
    """The papers' results tables that own numbers can be compared with, paper by paper."""
    return offline.published_tables(service.catalog())


@published_router.get(
    "/{id}",
    summary="A published table",
    responses=documented(404, 422) | shown(PUBLISHED_TABLE, "All its numbers, as printed and as fractions."),
)
def published_table(table_id: PublishedId, service: ServiceParameter) -> PublishedView:
    """Every printed number with its place, and what is known to be contradictory about the table."""
    return service.published_table(table_id)


FIGURES: Final = [
    {
        "name": "norms", "kind": "distribution", "title": "Norms with and without SEC",
        "formats": ["json", "svg", "png", "pdf", "csv"], "url": "/v1/sweeps/7/figures/norms",
    }
]  # fmt: skip
FIGURE_FILES: Final = [
    {
        "name": "norms.npz", "media_type": "application/octet-stream", "size": 1482,
        "url": "/v1/trials/40/figures/norms.npz",
    }
]  # fmt: skip

_BINARY = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
_CONTENT = {
    "application/json": {"example": {"$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json"}},
    "image/svg+xml": {"example": "<svg xmlns='http://www.w3.org/2000/svg'/>"},
    "image/png": {"schema": {"type": "string", "contentMediaType": "image/png"}},
    "application/pdf": {"schema": {"type": "string", "contentMediaType": "application/pdf"}},
    "text/csv": {"example": "quantity,optimizer.lr,mean,low,high,n\n"},
}


FigureFormat = Annotated[
    str,
    Query(
        alias="format", pattern="^[a-z0-9_]{1,32}$", description="json (Vega-Lite), svg, png, pdf, or csv (its data)."
    ),
]
Heading = Annotated[
    bool, Query(description="With title and caption; without them, the figure says only what is missing.")
]


@figures_router.get(
    "/sweeps/{id}/figures",
    summary="A sweep's figures",
    responses=shown(FIGURES, "Each figure of the spec with its formats."),
)
def figures(number: Id, service: ServiceParameter) -> list[FigureView]:
    """The figures of the spec, whether there are results to draw or not."""
    return service.figures.listed(number)


@figures_router.get(
    "/sweeps/{id}/figures/{name}",
    summary="A figure of a sweep",
    response_class=Response,
    responses=_UNCHANGED
    | {200: {"description": "The figure with the results so far; it says what is missing.", "content": _CONTENT}},
)
def figure(
    number: Id,
    name: Named,
    service: ServiceParameter,
    file_format: FigureFormat = "json",
    heading: Heading = True,
    known: Known = None,
) -> Response:
    """Drawn each time it is read, so that a running sweep gives a partial figure, which says so."""
    return _as_file(service.figures.render(number, name, file_format, heading), known)


@figures_router.get(
    "/sweeps/{id}/figure",
    summary="A figure that is not in the spec",
    response_class=Response,
    responses=_UNCHANGED | {200: {"description": "The figure with the results so far.", "content": _CONTENT}},
)
def described_figure(
    number: Id,
    spec: Annotated[
        str,
        Query(
            min_length=1,
            max_length=8_000,
            description="The figure as it would stand under `figures` of a spec, as YAML or JSON.",
            examples=["{kind: bars, metric: recall@1, x: loss}"],
        ),
    ],
    service: ServiceParameter,
    file_format: FigureFormat = "json",
    heading: Heading = True,
    known: Known = None,
) -> Response:
    """Checked as the figures of a spec are; what is wrong with it is a 422."""
    return _as_file(service.figures.draw(number, spec.encode(), file_format, heading), known)


@figures_router.get(
    "/trials/{id}/figures",
    summary="A trial's figure files",
    responses=shown(FIGURE_FILES, "Each file that is in the storage; none before the training has finished."),
)
def files(number: Id, service: ServiceParameter) -> list[FigureFile]:
    """The files that the recipe's `figures` produced: arrays as `.npz`, and pictures."""
    return service.files.listed(number)


@figures_router.get(
    "/trials/{id}/figures/{file}",
    summary="A figure file of a trial",
    response_class=Response,
    responses=_UNCHANGED
    | {200: {"description": "The file.", "content": {"application/octet-stream": _BINARY, "image/png": _BINARY}}},
)
def file(
    number: Id,
    file: Annotated[
        str,
        Path(
            max_length=200, pattern=r"^[^\x00/]+$", description="The file's name in the list.", examples=["norms.npz"]
        ),
    ],
    service: ServiceParameter,
    known: Known = None,
) -> Response:
    """One of these files."""
    return _as_file(service.files.read(number, file), known)
