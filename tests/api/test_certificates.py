"""Certificates are read where something may be encrypted, and nowhere else: to read them takes a tenth of a command."""

import ssl

import pytest

from api.connection import ServerConnection


@pytest.mark.parametrize(
    ("url", "proxy", "reads"),
    [
        ("http://127.0.0.1:8787", "", False),
        ("http://127.0.0.1:8787", "https://proxy.example:3128", False),  # which is not for our own machine
        ("https://127.0.0.1:8787", "", True),
        ("https://sweeps.example", "", True),
        ("http://sweeps.example", "https://proxy.example:3128", True),
    ],
)
def test_certificates_are_read_where_something_is_encrypted(
    url: str, proxy: str, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr("api.connection.httpx.Client", lambda **more: given.append(more["verify"]))
    monkeypatch.setenv("HTTP_PROXY", proxy)
    ServerConnection(url)
    (known,) = given
    if reads:
        assert known is True
    else:
        assert isinstance(known, ssl.SSLContext)
        assert known.get_ca_certs() == []
        assert (known.verify_mode, known.check_hostname) == (ssl.CERT_REQUIRED, True)
