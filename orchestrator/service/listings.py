"""Listings as clients ask for them: texts into what is sought, and the columns that a listing shows by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.record.reads.listed_rows import Sought
from orchestrator.record.store import Store
from orchestrator.views import filters
from orchestrator.views.listings import Listed, ListedColumn, Listing

_USUAL: Final = ("map@r", "recall@1", "nmi", "f1", "norm_var")
"""Metrics that are shown of several sweeps, where these have them and nobody says which."""
MOST_USUAL: Final = 6


@dataclass(frozen=True, slots=True)
class ListingWish:
    """Which rows a client asks for."""

    where: str = ""
    of: Listed = "trials"
    sweep: int | None = None

    def sought(self, *names: str, path: str = "sort") -> Sought:
        """The same for the store; raises InvalidFilterError."""
        return Sought(where=filters.parse(self.where), kind=self.of, sweep=self.sweep, names=names, path=path)


class ListingQueries:
    """Answers with listings."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def columns(self, sweep: int | None = None) -> list[ListedColumn]:
        """What the trials of a sweep, or of all, may be filtered by, sorted by and drawn over."""
        return self._store.listings.columns(sweep)

    def page(
        self,
        wish: ListingWish,
        sort: str,
        columns: Sequence[str] | None,
        cursor: str | None,
        limit: int,
        *,
        count: bool,
    ) -> Listing:
        """A page of trials or candidates; raises InvalidFilterError."""
        shown = self.usual(wish.sweep) if columns is None else list(dict.fromkeys(columns))
        return self._store.listings.page(wish.sought(), sort, shown, cursor, limit, count=count)

    def usual(self, sweep: int | None) -> list[str]:
        """The metrics that are shown where nobody says which: those of a sweep's tables."""
        known = {column.name for column in self.columns(sweep) if column.role == "metric"}
        wanted: list[str] = []
        if sweep is not None:
            for table in self._store.listings.tables(sweep):
                wanted += [one if isinstance(one, str) else str(one.get("metric")) for one in table.get("metrics", [])]
        return [name for name in dict.fromkeys([*wanted, *_USUAL]) if name in known][:MOST_USUAL]
