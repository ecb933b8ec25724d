"""Certificates are read where something may be encrypted, and nowhere else: to read them takes a tenth of a command."""

import ssl

import pytest

from api.connection import ServerConnection


def test_certificates_are_read_where_something_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr("api.connection.httpx.Client", lambda **more: given.append(more["verify"]))
    for url, proxy, reads in (
        ("http://127.0.0.1:8787", "", False),
        ("http://127.0.0.1:8787", "https://proxy.example:3128", False),  # which is not for our own machine
        ("https://127.0.0.1:8787", "", True),
        ("https://sweeps.example", "", True),
        ("http://sweeps.example", "https://proxy.example:3128", True),
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        ServerConnection(url)
        known = given.pop()
        assert (known is True) is reads, url
        if not reads:
            assert isinstance(known, ssl.SSLContext)
            assert (known.get_ca_certs(), known.verify_mode, known.check_hostname) == ([], ssl.CERT_REQUIRED, True)
