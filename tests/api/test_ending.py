"""A request that the server's end cuts off is told in one line, and is no error."""

import asyncio
import logging

import pytest
from starlette.types import Receive, Scope, Send

from api.__main__ import CutOff


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


async def nothing() -> dict[str, str]:
    return {}


async def unheard(message: object) -> None: ...


def test_it_is_told_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async def cut_off() -> None:
        request = asyncio.create_task(CutOff(endless)({"type": "http"}, nothing, unheard))
        await asyncio.sleep(0)
        request.cancel("timeout graceful shutdown exceeded")
        await request

    with caplog.at_level(logging.WARNING):
        asyncio.run(cut_off())
    assert caplog.messages == ["a request was cut off, since the server ends"]


def test_an_error_of_ours_stays_one() -> None:
    async def wrong(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(CutOff(wrong)({"type": "http"}, nothing, unheard))
