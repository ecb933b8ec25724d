"""The connection to one server: authentication, retries and errors."""

import getpass
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from orchestrator.host.checks import is_loopback
from orchestrator.host.proxies import proxy_fault, proxy_variable
from orchestrator.views.pages import Page, Rendered, each


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


Answer = TypeVar("Answer")
Item = TypeVar("Item")
Query = Mapping[str, str | float | bool | Sequence[str] | None]
SECONDS: Final = 60.0  # a first PNG takes seconds on a busy machine
LONGEST_PAUSE: Final = 15
"""Seconds: who is to come back later than that is told."""
_PAUSES: Final = 8
_TRIES: Final = 3  # an idle connection may be closed at the moment it is used


class ServerConnection:
    """Sends requests and reads answers.

    Raises ApiError for what the server refused, Unreachable where none of ours answers.
    """

    def __init__(self, url: str, token: str | None = None, auth: httpx.Auth | None = None) -> None:
        self.url = url.rstrip("/")
        self._token, self._auth = token, auth
        self._sleep: Callable[[float], None] = time.sleep
        headers = {"X-Actor": _actor()} | ({"Authorization": f"Bearer {token}"} if token else {})
        # A proxy of the environment has no business between us and our own machine.
        proxied = not _is_ours(self.url)
        # To read the system's certificates takes .02 to .04 s; with none, whatever is encrypted is refused.
        plain = self.url.startswith("http://") and not proxied
        known: ssl.SSLContext | bool = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True
        if proxied and (fault := proxy_fault()):
            raise Unreachable(f"{self.url} cannot be asked: {fault}")
        self._http = httpx.Client(headers=headers, timeout=SECONDS, trust_env=proxied, auth=auth, verify=known)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def another(self) -> "ServerConnection":
        """One of its own to the same server, for what lasts: on this one a proof holds for one request at a time."""
        return ServerConnection(self.url, self._token, self._auth)

    def ask(self, shape: type[Answer], method: str, path: str, query: Query | None = None, **more: Any) -> Answer:
        """What the server answers, as the view that it is."""
        return self.read(shape, self.send(method, path, query, **more))

    def send(self, method: str, path: str, query: Query | None = None, **more: Any) -> httpx.Response:
        """The answer as it comes, once it is one."""
        params = {name: value for name, value in (query or {}).items() if value is not None}
        for _ in range(_TRIES):
            with self._reached(), suppress(NewConnection):
                return self._accepted(self._unhurried(method, path, params=params, **more))
        raise self._silent("it closes every connection")

    def _unhurried(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The answer; where the server wants us to come back later, as it did nothing yet, that of then."""
        for _ in range(_PAUSES):
            response = self._http.request(method, f"{self.url}{path}", **more)
            later = _later(response)
            if later is None:
                return response
            self._sleep(later)
        return self._http.request(method, f"{self.url}{path}", **more)

    def read(self, shape: type[Answer], response: httpx.Response) -> Answer:
        """An answer's body as the view that it is."""
        try:
            return TypeAdapter(shape).validate_json(response.content)
        except ValidationError as error:
            raise self.stranger(response) from error

    def pages(self, path: str, query: Query, shape: type[Page[Item]]) -> Iterator[Item]:
        """What a list has; pages are fetched as they are needed."""
        return each(lambda cursor: self.ask(shape, "GET", path, {**query, "cursor": cursor, "limit": 200}))

    def file(self, path: str, query: Query | None = None) -> Rendered:
        """What lies at a path as a file with its name."""
        response = self.send("GET", path, query)
        disposition = response.headers.get("content-disposition", "")
        filename = unquote(disposition.rpartition("''")[2]) or path.rpartition("/")[2]
        kind = response.headers.get("content-type", "")
        return Rendered(content=response.content, media_type=kind, filename=filename)

    @contextmanager
    def streamed(
        self, path: str, seconds: float, query: Query | None = None, *, patient: bool = True, **more: Any
    ) -> Iterator[Iterator[bytes]]:
        """The body of an answer piece by piece, for each of which the server may take so long.

        `patient`: a server that wants us to come back later is asked again, as by `send`.
        """
        params = {name: value for name, value in (query or {}).items() if value is not None}
        for tries_left in reversed(range(_PAUSES + 1 if patient else 1)):
            asked = self._http.stream("GET", f"{self.url}{path}", params=params, timeout=seconds, **more)
            with self._reached(), asked as response:
                later = _later(response) if tries_left else None
                if later is None:
                    if not response.is_success:
                        response.read()
                    yield self._accepted(response).iter_bytes()
                    return
            self._sleep(later)

    def stranger(self, response: httpx.Response) -> Unreachable:
        """That something else answers there."""
        kind = response.headers.get("content-type", "nothing")
        return self._silent(f"something answers there with {response.status_code} and {kind}")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL, NewConnection) as error:
            raise self._silent(str(error) or type(error).__name__) from error

    def _silent(self, reason: str) -> Unreachable:
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
        raise ApiError(response.json())


def _later(response: httpx.Response) -> int | None:
    """In how many seconds the server wants to be asked again, as it did nothing yet; none: this is its answer."""
    later = response.headers.get("retry-after", "")
    waits = response.status_code == 429 and later.isdecimal() and int(later) <= LONGEST_PAUSE
    return int(later) if waits else None


def _actor() -> str:
    """Who runs the command, as visible ASCII."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode("ascii", "replace").decode()[:100]


def _is_ours(url: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:  # no address at all, which the first request says
        return False


IDLE_SECONDS: Final = 15.0
"""Between two looks at a sweep of which nothing is told: the time that is left goes on."""
SILENT_SECONDS: Final = 60.0
"""A stream says something every quarter of a minute; one that was silent for so long is gone."""
AGAIN_SECONDS: Final = 3.0
REFUSED_SECONDS: Final = 60.0
"""After a refusal: there are as many streams as there may be, or the server is older and has none."""


class SweepChanges:
    """Listens in a thread while it is entered, from the last event that it heard on; without a stream all is news."""

    def __init__(self, connection: ServerConnection, sweep: int) -> None:
        self._connection, self._path = connection, f"/v1/sweeps/{sweep}/events"
        self._last = ""  # the id of the last event
        self._live, self._told = False, True
        self._looked = float("-inf")
        self._end = threading.Event()

    def __enter__(self) -> "SweepChanges":
        threading.Thread(target=self._listen, name="events", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()  # the thread ends with the next thing that it hears

    @property
    def live(self) -> bool:
        """Whether the server tells what changes, so that looking often costs it nothing."""
        return self._live

    def due(self) -> bool:
        """Whether to look at the sweep now: something was told since the last time, or nothing can be told."""
        now = time.monotonic()
        if self._live and not self._told and now - self._looked < IDLE_SECONDS:
            return False
        self._told, self._looked = False, now  # before the look, so that what changes meanwhile is news again
        return True

    def _listen(self) -> None:
        try:
            while not self._end.is_set():
                pause = AGAIN_SECONDS
                try:
                    self._hear()
                except ApiError:
                    pause = REFUSED_SECONDS
                except Unreachable:
                    pass
                self._live = False
                self._end.wait(pause)
        finally:
            self._live = False
            self._connection.close()

    def _hear(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        with self._connection.streamed(self._path, SILENT_SECONDS, patient=False, headers=headers) as pieces:
            rest = b""
            for piece in pieces:
                if self._end.is_set():
                    return
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    self._note(event)

    def _note(self, event: bytes) -> None:
        """Whatever it is about: `hello` may follow on what was missed, and `reset` does. A comment is no event."""
        for line in event.splitlines():
            if line.startswith(b"id:"):
                self._last = line[3:].strip().decode("ascii", "replace")
                self._told = self._live = True
