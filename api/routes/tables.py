"""Routes of tables and figures."""

import hashlib
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import HTMLResponse

from api.dependencies import Asked, Id, Named, TableName
from api.http.turns import Expensive
from api.problems import documented, shown
from dashboards import lists as ledger_pages
from orchestrator.views.evidence import LedgerSummary, OptimismView, PublishedSummary, PublishedView, VerdictsView
from orchestrator.views.pages import FigureFile, FigureView, Rendered

tables_router = APIRouter(
    prefix="/v1/sweeps",
    tags=["tables"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)

TableFormat = Annotated[
    str, Query(alias="format", pattern="^[a-z0-9_]{1,32}$", description="latex, markdown, html, csv or json.")
]
_EXAMPLES = {
    "text/x-tex": "\\begin{tabular}{llrr}\n\\toprule\n ... \\bottomrule\n\\end{tabular}\n",
    "text/markdown": "| Loss | Regularizer | R@1 |\n| --- | --- | --- |\n",
    "text/html": "<table>...</table>",
    "text/csv": "loss,regularizer,recall@1\n",
    "application/json": {"name": "main"},
}


@tables_router.get(
    "/{id}/tables/{name}",
    summary="A table of a sweep",
    response_class=Response,
    responses={
        200: {
            "description": "The table as it stands: cells that have not ended, failed or diverged are marked as such.",
            "content": {kind: {"example": example} for kind, example in _EXAMPLES.items()},
        },
        304: {"description": "The table has not changed since `If-None-Match`."},
    },
)
def table(
    number: Id,
    name: Named,
    service: Asked,
    file_format: TableFormat = "json",
    tuned: Annotated[bool | None, Query(description="Show the selected candidate; else as the spec says.")] = None,
    numbers: Annotated[
        Literal["own", "published", "difference", "both", "verdict"],
        Query(
            description="The sweep's own numbers, those of the published table that the table names, own - published, "
            "both side by side, or own ones with a verdict; 409 where it names no published table."
        ),
    ] = "own",
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Computed from the trials each time it is read, so that a running sweep gives a partial table."""
    return as_file(service.tables.render(number, name, file_format, tuned, numbers), if_none_match)


@tables_router.get("/{id}/verdicts", summary="Whether cells are better than their baselines")
def verdicts(
    number: Id,
    service: Asked,
    table: TableName = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        Query(
            description="What intervals and words cover: other seeds, other test queries of these trainings, or both; "
            "by default what the table's spec says."
        ),
    ] = None,
) -> VerdictsView:
    """Each comparison that the table declares: better, worse, equivalent or unresolved, or why it is untested."""
    return service.tables.verdicts(number, table, covers)


@tables_router.get("/{id}/optimism", summary="How optimistic the best of several candidates is")
def optimism(number: Id, service: Asked) -> OptimismView:
    """By how much the best candidate of each cell looks better than it is, and the expected best of fewer."""
    return service.tables.optimism(number)


def as_file(rendered: Rendered, known: str | None = None) -> Response:
    """A rendered file with its name and an ETag; 304 where the client has it already."""
    tag = f'"{hashlib.sha256(rendered.content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if known and tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = f"inline; filename*=UTF-8''{quote(rendered.filename)}"
    return Response(rendered.content, media_type=rendered.media_type, headers=headers)


comparisons_router = APIRouter(
    prefix="/v1/tables",
    tags=["tables"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)


@comparisons_router.get(
    "",
    summary="A table of several sweeps",
    response_class=Response,
    responses={
        200: {
            "description": "The table; its caption says which number is from which sweep, and how these differ.",
            "content": {
                "application/json": {"example": {"table": "main"}},
                "text/markdown": {"example": "| Loss | R@1 |"},
                "text/x-tex": {"example": "\\begin{tabular}{lr}"},
            },
        },
        304: {"description": "The table has not changed since `If-None-Match`."},
    },
)
def compare(
    sweeps: Annotated[
        str,
        Query(
            pattern=r"^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8}){1,9}$",
            description="The sweeps' numbers; where several have a cell the first named one's numbers stand.",
            examples=["7,9"],
        ),
    ],
    service: Asked,
    table: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the first sweep; by default its first."),
    ] = None,
    view: Annotated[
        Literal["merge", "difference"],
        Query(description="One table of all cells, or two sweeps' numbers side by side with own - other."),
    ] = "merge",
    file_format: TableFormat = "json",
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """In the layout of the first sweep's table; 409 where the sweeps do not compare."""
    numbers = [int(one) for one in sweeps.split(",")]
    return as_file(service.tables.compare(numbers, table, view, file_format), if_none_match)


drift_router = APIRouter(
    prefix="/v1/drift", tags=["tables"], route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)  # fmt: skip

_SIDE = "A sweep's number, or it at a time (UTC unless it says otherwise)."


@drift_router.get(
    "",
    summary="What changed between two tables",
    response_class=Response,
    responses={
        200: {
            "description": "Every number that is not as it was, by what, and whether by more than noise.",
            "content": {
                "application/json": {"example": {"table": "main", "unchanged": 23, "cells": []}},
                "text/plain": {"example": "From sweep 7 at 2026-11-20 12:00 UTC to sweep 7: ..."},
            },
        }
    },
)
def drift(
    before: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7@2026-11-20T12:00"])],
    after: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7"])],
    service: Asked,
    table: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of both; by default the first."),
    ] = None,
    file_format: Annotated[str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json or text.")] = "json",
) -> Response:
    """Cells are matched by their labels; a sweep at a time counts what had ended by then."""
    return as_file(service.drifts.render(before, after, table, file_format))


papers_router = APIRouter(
    prefix="/v1/sweeps", tags=["tables"], route_class=Expensive, responses=documented(401, 404, 421, 422, 500, 503)
)


@papers_router.get(
    "/{id}/tables/{name}/macros",
    summary="A table as macros of LaTeX",
    response_class=Response,
    responses=documented(409)
    | {
        200: {
            "description": "One macro for each number.",
            "content": {
                "application/x-tex": {"example": "\\ms@number{msMainTripletRecallAtOne}{60.82}"},
                "application/json": {"example": {"sweep": 7, "table": "main", "numbers": []}},
            },
        }
    },
)
def macros(
    number: Id,
    name: Named,
    service: Asked,
    file_format: Annotated[
        Literal["latex", "json"],
        Query(alias="format", description="latex or json."),
    ] = "latex",
    prefix: Annotated[
        str, Query(pattern=r"^[A-Za-z]{1,20}$", description="With what the macros begin: letters from a to z.")
    ] = "ms",
) -> Response:
    """Each has value, interval, standard deviation and number of runs, as the table prints them."""
    return as_file(service.papers.render(number, name, file_format, prefix))


ledgers_router = APIRouter(
    prefix="/v1/ledgers", tags=["published"], route_class=Expensive, responses=documented(401, 421, 500, 503)
)

PaperName = Annotated[
    str,
    Path(
        alias="paper",
        max_length=100,
        pattern=r"^[^\x00/]+$",
        description="As the list has it, in any case.",
        examples=["SEC"],
    ),
]
Within = Annotated[
    float,
    Query(ge=0.01, le=50, description="Points of percent that count as the same."),
]
_LEDGERS = [
    {
        "paper": "SEC", "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020",
        "counts": {"reproduced": 2, "not_reproduced": 1, "underpowered": 9, "not_run": 952},
    }
]  # fmt: skip


@ledgers_router.get(
    "",
    summary="The ledgers of the papers",
    responses=shown(_LEDGERS, "Each paper with how many of its numbers stand how."),
)
def ledgers(service: Asked) -> list[LedgerSummary]:
    """How many numbers of each paper are reproduced, not reproduced, underpowered or not run, over all sweeps."""
    return service.ledgers.summaries()


@ledgers_router.get(
    "/{paper}",
    summary="The ledger of a paper",
    response_class=Response,
    responses=documented(404, 422)
    | {
        200: {
            "description": "Every printed number with how it stands, by which runs, and how these differ.",
            "content": {
                "application/json": {"example": _LEDGERS[0]},
                "text/csv": {"example": "table,row,metric\n"},
                "text/markdown": {"example": "| table | reproduced |"},
                "application/x-tex": {"example": "\\begin{longtable}"},
            },
        },
        304: {"description": "It has not changed since `If-None-Match`."},
    },
)
def ledger(
    paper: PaperName,
    service: Asked,
    file_format: Annotated[
        str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json, csv, markdown or latex.")
    ] = "json",
    within: Within = 1.0,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Computed from all sweeps whose tables name one of the paper's; a running sweep counts with what has ended."""
    return as_file(service.ledgers.render(paper, file_format, within), if_none_match)


costly_ledgers = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)


@costly_ledgers.get("/ledger")
def papers(service: Asked) -> HTMLResponse:
    """The papers with how many of their numbers stand how."""
    return HTMLResponse(ledger_pages.papers_page(service.ledgers.summaries()))


@costly_ledgers.get("/ledger/{paper}")
def paper(
    paper: PaperName,
    service: Asked,
    within: Within = 1.0,
    standing: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    """One paper's ledger; `standing` shows only numbers that stand so."""
    return HTMLResponse(ledger_pages.ledger_page(service.ledgers.of(paper, within), standing))


PUBLISHED_SUMMARY: Final[dict[str, Any]] = {
    "id": "SEC-T2",
    "paper": "SEC",
    "title": "The weight of SEC: triplet loss on Cars196",
    "axes": ["dataset", "loss", "regularizer", "regularizer.eta"],
    "metrics": ["nmi", "f1", "recall@1", "recall@2", "recall@4", "recall@8"],
    "count": 30,
}

PUBLISHED: Final = [PUBLISHED_SUMMARY]

PUBLISHED_TABLE: Final = PUBLISHED_SUMMARY | {
    "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020, and its appendix",
    "note": "The first row is printed as eta = 0.",
    "conflicts": {"C7": "The triplet baseline on Cars is printed with two values: two runs."},
    "numbers": [
        {
            "labels": {"dataset": "cars196", "loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.5"},
            "tuned": {},
            "metric": "recall@1",
            "printed": "67.89",
            "value": 0.6789,
            "std": None,
            "bold": True,
            "unit": "percent",
            "std_unit": "percent",
            "source": None,
        }
    ],
}

published_router = APIRouter(prefix="/v1/published", tags=["published"], responses=documented(401, 421, 500))

PublishedId = Annotated[
    str,
    Path(
        alias="id",
        max_length=100,
        pattern=r"^[^\x00/]+$",
        description="As the list has it, in any case: paper and table.",
        examples=["SEC-T3"],
    ),
]


@published_router.get(
    "",
    summary="The published tables",
    responses=shown(PUBLISHED, "Each with its axes, metrics and how many numbers it has."),
)
def published(service: Asked) -> list[PublishedSummary]:
    """The papers' results tables that own numbers can be compared with, paper by paper."""
    return service.published()


@published_router.get(
    "/{id}",
    summary="A published table",
    responses=documented(404, 422) | shown(PUBLISHED_TABLE, "All its numbers, as printed and as fractions."),
)
def published_table(table_id: PublishedId, service: Asked) -> PublishedView:
    """Every printed number with its place, and what is known to be contradictory about the table."""
    return service.published_table(table_id)


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

figures_router = APIRouter(
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


@figures_router.get(
    "/sweeps/{id}/figures",
    summary="A sweep's figures",
    responses=shown(FIGURES, "Each figure of the spec with its formats."),
)
def figures(number: Id, service: Asked) -> list[FigureView]:
    """The figures that the spec asks for, whether there is something to draw or not."""
    return service.figures.listed(number)


@figures_router.get(
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


@figures_router.get(
    "/trials/{id}/figures",
    summary="A trial's figure files",
    responses=shown(FIGURE_FILES, "Each file that is in the storage; none before the training has finished."),
)
def files(number: Id, service: Asked) -> list[FigureFile]:
    """What the training kept because its recipe asks for `figures`: arrays as `.npz`, and pictures."""
    return service.trials.files(number)


@figures_router.get(
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
