"""Pages of a list: the cursor and limit that a client sends, and the link to the next page."""

from typing import Annotated, TypeVar

from fastapi import Depends, Request, Response

from api.protection.limits import Cursor, Limit
from orchestrator.views.pages import Page

Item = TypeVar("Item")


class Paging:
    """Where a page of a list starts and how long it is."""

    def __init__(self, request: Request, response: Response, cursor: str | None, limit: int) -> None:
        self.cursor = cursor
        self.limit = limit
        self._url = request.url
        self._response = response

    def linked(self, page: Page[Item]) -> Page[Item]:
        """The page; a Link header (RFC 8288) leads to the next one, where there is one."""
        if page.next_cursor:
            url = self._url.include_query_params(cursor=page.next_cursor)
            self._response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return page


async def _paging(request: Request, response: Response, cursor: Cursor = None, limit: Limit = 50) -> Paging:
    return Paging(request, response, cursor, limit)


Paged = Annotated[Paging, Depends(_paging)]
