"""Opaque cursors: where the next page of a list begins."""

import base64
import binascii

from orchestrator.views.errors import NotFoundError


def encode(last: int) -> str:
    """The cursor after the row `last`."""
    return base64.urlsafe_b64encode(str(last).encode()).decode().rstrip("=")


def decode(cursor: str) -> int:
    """The row that a cursor stands after; raises NotFoundError for what is not a cursor of ours."""
    try:
        last = int(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii"))
        if not 0 <= last < 2**63:
            raise ValueError("no row has this number")
        return last
    except (binascii.Error, ValueError) as error:
        raise NotFoundError(f"no page at cursor {cursor!r}: pass `next_cursor` of the page before") from error
