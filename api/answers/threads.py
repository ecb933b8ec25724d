"""Routes whose function works in one thread: FastAPI has a second one look at what it gave, and each hop costs."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute


class InOneThread(APIRoute):
    """A route whose answer is looked at where it is sent: a view of ours is known to be one without being read."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, _in_thread(endpoint), **given)


def _in_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine that has a function work in a thread, with its signature; a coroutine stays as it is."""
    if inspect.iscoroutinefunction(endpoint):
        return endpoint

    @functools.wraps(endpoint)
    async def threaded(*args: Any, **values: Any) -> Any:
        return await run_in_threadpool(endpoint, *args, **values)

    return threaded
