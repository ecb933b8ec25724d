"""What stands behind tables, asked of a server: the ledgers of the papers, and what changed."""

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from api.connection import ServerConnection
    from orchestrator.views.files import Rendered
    from orchestrator.views.ledger import LedgerSummary, LedgerView
    from orchestrator.views.macros import MacrosView
    from orchestrator.views.optimism import OptimismView


class EvidenceClient:
    """Asks a server for what numbers rest on; `Client.evidence` gives one."""

    def __init__(self, connection: "ServerConnection") -> None:
        self._connection = connection

    def ledgers(self) -> "list[LedgerSummary]":
        """Every paper with how many of its numbers stand how (docs/papers.md)."""
        from orchestrator.views.ledger import LedgerSummary

        return self._connection.ask(list[LedgerSummary], "GET", "/v1/ledgers")

    def ledger(self, paper: str, within: float = 1.0) -> "LedgerView":
        """What own runs say of each number of a paper; `within` points of percent count as the same."""
        from orchestrator.views.ledger import LedgerView

        return self._connection.ask(LedgerView, "GET", _ledger(paper), {"within": within})

    def ledger_file(self, paper: str, file_format: str, within: float = 1.0) -> "Rendered":
        """The same as a file: json, csv, markdown or latex."""
        return self._connection.file(_ledger(paper), {"format": file_format, "within": within})

    def drift(self, before: str, after: str, table: str | None = None, file_format: str = "json") -> "Rendered":
        """What changed between two tables as a file (docs/tables.md); a side is `7` or `7@2026-11-20T12:00`."""
        query = {"before": before, "after": after, "table": table, "format": file_format}
        return self._connection.file("/v1/drift", query)

    def macros(self, sweep: int, table: str, prefix: str = "ms") -> "MacrosView":
        """A table as macros of LaTeX (docs/papers.md)."""
        from orchestrator.views.macros import MacrosView

        query = {"format": "json", "prefix": prefix}
        return self._connection.ask(MacrosView, "GET", _macros(sweep, table), query)

    def macros_file(self, sweep: int, table: str, file_format: str = "latex", prefix: str = "ms") -> "Rendered":
        """The same as a file: latex or json."""
        return self._connection.file(_macros(sweep, table), {"format": file_format, "prefix": prefix})

    def optimism(self, sweep: int) -> "OptimismView":
        """By how much the best candidate of each cell looks better than it is (docs/statistics.md)."""
        from orchestrator.views.optimism import OptimismView

        return self._connection.ask(OptimismView, "GET", f"/v1/sweeps/{sweep}/optimism")


def _macros(sweep: int, table: str) -> str:
    return f"/v1/sweeps/{sweep}/tables/{quote(table, safe='')}/macros"


def _ledger(paper: str) -> str:
    return f"/v1/ledgers/{quote(paper, safe='')}"
