"""The connection to one server: authentication, retries and errors."""

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from orchestrator.host.checks import is_loopback, proxy_fault, proxy_variable
from orchestrator.views.pages import Page, Rendered, each
from workers.catalog import Problem


class ApiError(Exception):
    """The server refused a request; the attributes are from its problem document."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = dict(problem)
        self.status = int(problem.get("status", 500))
        self.detail = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
        self.problems = [
            Problem(str(fault.get("path", "")), str(fault.get("message", "")), fault.get("line"))
            for fault in problem.get("problems") or []
        ]
        super().__init__("\n".join([self.detail, *(f"  {problem}" for problem in self.problems)]))


class Unreachable(Exception):  # noqa: N818 - says what happened
    """No metricsweep server answers at the address, or not the expected server."""


class NewConnection(Exception):  # noqa: N818 - says what happened
    """The connection on which the server proved its identity is gone; raised before anything is sent on a new one."""


Answer = TypeVar("Answer")
Item = TypeVar("Item")
Query = Mapping[str, str | float | bool | Sequence[str] | None]
SECONDS: Final = 60.0  # a first PNG takes seconds on a busy machine
LONGEST_PAUSE: Final = 15
"""The longest `Retry-After`, in seconds, after which a request is repeated; a longer one is an error."""
_TRIES: Final = 9


class ServerConnection:
    """Sends requests to a server and reads its answers.

    Raises ApiError if the server refuses a request, and Unreachable if no metricsweep answers.
    """

    def __init__(self, url: str, token: str | None = None, auth: httpx.Auth | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"X-Actor": _actor()} | ({"Authorization": f"Bearer {token}"} if token else {})
        proxied = not _is_local(self.url)  # requests to this machine use no proxy
        if proxied and (fault := proxy_fault()):
            raise Unreachable(f"no request can be sent to {self.url}: {fault}")
        self._http = httpx.Client(headers=headers, timeout=SECONDS, trust_env=proxied, auth=auth)

    def close(self) -> None:
        """Close the connections to the server."""
        self._http.close()

    def fetch(self, shape: type[Answer], method: str, path: str, query: Query | None = None, **more: Any) -> Answer:
        """Send a request and return the answer as a view."""
        return self.read(shape, self.send(method, path, query, **more))

    def send(self, method: str, path: str, query: Query | None = None, **more: Any) -> httpx.Response:
        """Send a request and return the answer."""
        with self._answered(method, path, query, **more) as response:
            response.read()
            return response

    @contextmanager
    def streamed(self, path: str, seconds: float, query: Query | None = None) -> Iterator[Iterator[bytes]]:
        """Download the body of an answer in pieces; the server may take `seconds` for each."""
        with self._answered("GET", path, query, timeout=seconds) as response:
            yield response.iter_bytes()

    @contextmanager
    def _answered(self, method: str, path: str, query: Query | None, **more: Any) -> Iterator[httpx.Response]:
        """The answer to a request before its body is read; waits and repeats the request if the server asks for it."""
        params = {name: value for name, value in (query or {}).items() if value is not None}
        for tries_left in reversed(range(_TRIES)):
            stream = self._http.stream(method, f"{self.url}{path}", params=params, **more)
            # An idle connection may be closed at the moment it is used.
            with self._reached(), suppress(NewConnection), stream as response:
                seconds = _retry_after(response) if tries_left else None
                if seconds is None:
                    yield self._accepted(response)
                    return
                sleep(seconds)
        raise self._unreachable("it closes every connection")

    def read(self, shape: type[Answer], response: httpx.Response) -> Answer:
        """The body of an answer as a view."""
        try:
            return TypeAdapter(shape).validate_json(response.content)
        except ValidationError as error:
            raise self.stranger(response) from error

    def pages(self, path: str, query: Query, shape: type[Page[Item]]) -> Iterator[Item]:
        """The items of a list; pages are fetched as they are needed."""
        return each(lambda cursor: self.fetch(shape, "GET", path, {**query, "cursor": cursor, "limit": 200}))

    def file(self, path: str, query: Query | None = None) -> Rendered:
        """Download the file at a path; returns it with its name."""
        response = self.send("GET", path, query)
        disposition = response.headers.get("content-disposition", "")
        filename = unquote(disposition.rpartition("''")[2]) or path.rpartition("/")[2]
        kind = response.headers.get("content-type", "")
        return Rendered(content=response.content, media_type=kind, filename=filename)

    def stranger(self, response: httpx.Response) -> Unreachable:
        """The error if something other than metricsweep answers."""
        kind = response.headers.get("content-type", "nothing")
        return self._unreachable(f"something answers there with {response.status_code} and {kind}")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._unreachable(str(error) or type(error).__name__) from error

    def _unreachable(self, reason: str) -> Unreachable:
        if variable := proxy_variable(self.url):
            return Unreachable(
                f"no metricsweep at {self.url}, asked through the proxy that {variable} names ({reason}); "
                "if it can be reached without, name its host in no_proxy; else set METRICSWEEP_URL to the right address"
            )
        return Unreachable(
            f"no metricsweep at {self.url} ({reason}); start one with `metricsweep serve`, or set METRICSWEEP_URL"
        )

    def _accepted(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        if response.headers.get("content-type", "").partition(";")[0] != "application/problem+json":
            raise self.stranger(response)
        response.read()
        raise ApiError(response.json())


def api_path(*steps: str | int) -> str:
    """A path of the API; each step is percent-encoded."""
    return "/v1/" + "/".join(quote(str(step), safe="") for step in steps)


def _retry_after(response: httpx.Response) -> int | None:
    """In how many seconds the request may be repeated; `None` means that this is the answer."""
    seconds = response.headers.get("retry-after", "")
    waits = response.status_code == 429 and seconds.isdecimal() and int(seconds) <= LONGEST_PAUSE
    return int(seconds) if waits else None


def _actor() -> str:
    """The account that runs the command, and the machine, as visible ASCII."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode("ascii", "replace").decode()[:100]


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:  # not an address; the first request reports it
        return False
