"""A proxy in front of an object store that lies as stores may: about what there is, and by breaking what it carries."""

import http.client
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.ports import Quiet, running

_CONTENTS: Final = re.compile(r"<Contents>.*?</Contents>", re.DOTALL)
_MORE: Final = re.compile(r"<IsTruncated>true</IsTruncated>|<NextContinuationToken>.*?</NextContinuationToken>")


@dataclass
class Lies:
    """What the proxy does to what passes. Keys are looked for as parts of what they are in full."""

    hides: Callable[[str], bool] = lambda key: False
    """Of a listing: what it lacks, as one that is late."""
    remembers: bool = False
    """Of a listing: whether it still shows all that it ever showed."""
    page: int | None = None
    """Of a listing: after so many it ends, and says that there is no more."""
    cuts: Callable[[str, str], bool] = lambda method, path: False
    """Of an object: whether the connection breaks in the middle of it."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """The requests, as method and path with its query."""
    shown: dict[str, str] = field(default_factory=dict)

    def listing(self, prefix: str, text: str) -> str:
        """A listing as the store reports it."""
        there = {_key(one): one for one in _CONTENTS.findall(text)}
        self.shown |= there
        if self.remembers:
            there |= {key: one for key, one in self.shown.items() if key.startswith(prefix)}
        told = [one for key, one in sorted(there.items()) if not self.hides(key)]
        if self.page is not None and len(told) > self.page:
            told = told[: self.page]
            text = _MORE.sub("", text)
        bare = _CONTENTS.sub("", text)
        return bare.replace("</ListBucketResult>", "".join(told) + "</ListBucketResult>")


def _key(contents: str) -> str:
    found = re.search(r"<Key>(.*?)</Key>", contents)
    return found[1] if found else ""


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lies: Lies
    port: int

    def _pass_on(self) -> None:
        body = self._body()
        self.lies.seen.append((self.command, self.path))
        broken = self.lies.cuts(self.command, self.path)
        if broken and body:  # on the way up: the store never hears of it
            self.close_connection = True
            return
        with _connected(self.port) as store:
            store.request(self.command, self.path, body or None, dict(self.headers.items()))
            answer = store.getresponse()
            content = answer.read()
        asked = parse_qs(urlsplit(self.path).query)
        if "list-type" in asked and answer.status == 200:
            content = self.lies.listing(asked.get("prefix", [""])[0], content.decode()).encode()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        told = answer.getheader("content-length") if self.command == "HEAD" else str(len(content))
        self.send_header("content-length", told or "0")
        self.end_headers()
        if broken:  # on the way down: half of what was promised
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815  http.server's names

    def _body(self) -> bytes:
        if self.headers.get("expect", "").lower() == "100-continue":
            self.headers.replace_header("expect", "")
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        del self.headers["transfer-encoding"]
        return whole


@contextmanager
def _connected(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def lying(port: int, lies: Lies) -> Iterator[int]:
    """The port of a proxy in front of the store at `port`."""
    handler = type("Handler", (_Handler,), {"lies": lies, "port": port})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with running(server):
        yield server.server_port
