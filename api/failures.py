"""How asking a server can fail: it refuses, or none of ours answers."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """What the server refused, as its problem document says it."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = dict(problem)
        self.status = int(problem.get("status", 500))
        self.detail = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
        found = problem.get("problems") or []
        self.problems = [(str(one.get("path", "")), str(one.get("message", ""))) for one in found]
        super().__init__("\n".join([self.detail, *(f"  {path}  {message}" for path, message in self.problems)]))


class Unreachable(Exception):  # noqa: N818 - says what happened
    """No metricsweep answers at the address, or none that is ours."""


class NewConnection(Exception):  # noqa: N818 - says what happened
    """The connection on which the server had proven itself is gone; raised before anything was sent on another."""
