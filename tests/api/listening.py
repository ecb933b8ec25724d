"""A client of event streams, for tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.api.conftest import BEARER


@dataclass(frozen=True)
class Heard:
    """One event as it came."""

    id: int
    type: str
    data: dict[str, Any]


class Listener:
    """An open stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[Heard]:
        said: dict[str, str] = {}
        for line in self._lines:
            if not line and "data" in said:
                yield Heard(int(said["id"]), said["event"], json.loads(said["data"]))
            if not line:
                said = {}
            name, _, value = line.partition(": ")
            said[name] = value

    def next(self, *types: str) -> Heard:
        """The next event, of these types where any is named."""
        for heard in self:
            if not types or heard.type in types:
                return heard
        raise AssertionError("the stream has ended")


@contextmanager
def listening(url: str, path: str = "/v1/events", **headers: str) -> Iterator[Listener]:
    """Listen until the block ends."""
    sent = {**BEARER, **{name.replace("_", "-"): value for name, value in headers.items()}}
    with httpx.stream("GET", f"{url}{path}", headers=sent, trust_env=False, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        yield Listener(answer)
