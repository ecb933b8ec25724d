"""The pages of the ledgers: the papers there are, and one of them number by number."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from api.dependencies import Asked
from api.http.turns import Expensive
from api.routes.ledgers import PaperName, Within
from dashboards import ledger

costly = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)


@costly.get("/ledger")
def papers(service: Asked) -> HTMLResponse:
    """The papers with how many of their numbers stand how."""
    return HTMLResponse(ledger.papers_page(service.ledgers.summaries()))


@costly.get("/ledger/{paper}")
def paper(
    paper: PaperName,
    service: Asked,
    within: Within = 1.0,
    standing: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    """One paper's ledger; `standing` shows only numbers that stand so."""
    return HTMLResponse(ledger.ledger_page(service.ledgers.of(paper, within), standing))
