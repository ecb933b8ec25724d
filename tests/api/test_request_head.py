"""Which request heads are taken: each that is refused here was read in two ways by some pair of servers."""

import h11
import pytest

from api.protection.request_head import HEAD_BYTES, HEADERS, StrictReading

HOST = b"Host: localhost\r\n"
TAKEN = {
    "a page": b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a query": b"GET /v1/sweeps?name=%00&state=a%2Fb HTTP/1.1\r\n" + HOST + b"\r\n",
    "an old client": b"GET /healthz HTTP/1.0\r\n\r\n",
    "a body": b"POST /v1/sweeps HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n\r\nname",
    "chunks": b"POST /v1/sweeps HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "lists": b"GET / HTTP/1.1\r\n" + HOST + b"Accept: text/html\r\nAccept: */*\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n",
    "many": b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % n for n in range(HEADERS - 1)) + b"\r\n",
    "long": b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * (HEAD_BYTES - 60) + b"\r\n\r\n",
    "a body that looks like a head": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n\r\nA\nB\0",
}
REFUSED = {
    "both lengths": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "both, turned": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
    "two lengths": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n"),
    "one length twice": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\ncontent-length: 4\r\n\r\n"),
    "a list of lengths": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 4, 4\r\n\r\n"),
    "a signed length": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +4\r\n\r\n"),
    "an odd coding": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    "a hidden coding": (501, b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n"),
    "two codings": (
        400,
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    "an old client's chunks": (400, b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n"),
    "one host twice": (400, b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two tokens": (400, b"GET / HTTP/1.1\r\n" + HOST + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"),
    "a whole address": (400, b"GET http://evil.example/v1/sweeps HTTP/1.1\r\n" + HOST + b"\r\n"),
    "an authority": (400, b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n"),
    "an asterisk": (400, b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a NUL in a value": (400, b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n"),
    "a NUL in the path": (400, b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a bare LF": (400, b"GET / HTTP/1.1\n" + HOST + b"\r\n"),
    "bare LFs alone": (400, b"GET / HTTP/1.1\nHost: localhost\n\n"),
    "a bare CR": (400, b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rContent-Length: 4\r\n\r\n"),
    "a folded header": (400, b"POST / HTTP/1.1\r\n" + HOST + b"X: a\r\n Content-Length: 4\r\n\r\n"),
    "a folded first header": (400, b"GET / HTTP/1.1\r\n Host: evil.example\r\n" + HOST + b"\r\n"),
    "a blank before the colon": (400, b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length : 4\r\n\r\n"),
    "HTTP/2 without a word": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "TLS": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    "too many": (431, b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(HEADERS)) + HOST + b"\r\n"),
    "too long at once": (431, b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * HEAD_BYTES + b"\r\n\r\n"),
    "a long type": (431, b"POST / HTTP/1.1\r\n" + HOST + b'Content-Type: a/b; x="' + b";" * 300 + b"\r\n\r\n"),
    "too long without an end": (431, b"GET /" + b"a" * HEAD_BYTES),
}


def read(reading: StrictReading, sent: bytes, step: int) -> object:
    """The first event, from pieces of so many bytes."""
    event: object = h11.NEED_DATA
    for at in range(0, len(sent), step):
        reading.receive_data(sent[at : at + step])
        event = reading.next_event()
        if event is not h11.NEED_DATA:
            break
    return event


@pytest.mark.parametrize("sent", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("step", [7, 1_000_000])
def test_what_is_taken(sent: bytes, step: int) -> None:
    assert isinstance(read(StrictReading(), sent, step), h11.Request)


@pytest.mark.parametrize(("status", "sent"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("step", [7, 1_000_000])
def test_what_is_refused(status: int, sent: bytes, step: int) -> None:
    reading = StrictReading()
    with pytest.raises(h11.RemoteProtocolError):
        read(reading, sent, step)
    assert reading.refused is not None
    assert reading.refused.status == status
    assert reading.refused.detail


def test_the_second_request_is_read_as_strictly() -> None:
    reading = StrictReading()
    reading.receive_data(TAKEN["a body"] + b"GET / HTTP/1.1\n" + HOST + b"\n\n")
    assert isinstance(reading.next_event(), h11.Request)
    assert isinstance(reading.next_event(), h11.Data)
    assert isinstance(reading.next_event(), h11.EndOfMessage)
    for event in (h11.Response(status_code=200, headers=[("Content-Length", "0")]), h11.EndOfMessage()):
        reading.send(event)
    reading.start_next_cycle()
    with pytest.raises(h11.RemoteProtocolError):
        reading.next_event()
