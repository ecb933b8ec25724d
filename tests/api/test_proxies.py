"""Proxy variables and certificates: what a client reads, and what it says of a proxy that cannot be used or failed."""

import ssl

import httpx
import pytest
from fastapi.testclient import TestClient

from api.client import Client
from api.connection import ServerConnection, Unreachable
from api.main import create_app
from orchestrator.conduct.webhook import Webhook
from orchestrator.host.proxies import proxy_fault, proxy_variable
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import URL

AWAY = "http://127.0.0.1:9"
FAULTS = {
    "all_proxy": ("socks5h://me:secret@127.0.0.1:9", "all_proxy names a SOCKS proxy, and only"),
    "HTTPS_PROXY": ("socks4://127.0.0.1:9", "HTTPS_PROXY names a SOCKS proxy, and only"),
    "http_proxy": ("ftp://127.0.0.1:9", "http_proxy names a proxy of the kind ftp://; expected http:// or https://"),
    "HTTP_PROXY": ("http://[::1", "HTTP_PROXY is no address of a proxy; expected one such as http://"),
    "ALL_PROXY": ("127.0.0.1:port", "ALL_PROXY is no address of a proxy; expected one such as http://"),
    "no_proxy": ("a.org, [::1]", "no_proxy has '[::1]'; write an IPv6 address without brackets: ::1"),
}


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_what_httpx_cannot_use_is_one_sentence_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (value, said) in FAULTS.items():
        with monkeypatch.context() as within:
            within.setenv(name, value)
            with pytest.raises(Unreachable) as caught:
                Client("http://sweeps.example.org", "a" * 16)
            assert said in str(caught.value)
            assert "secret" not in str(caught.value)
            Client("http://127.0.0.1:9", "a" * 16).close()  # between us and our own machine there is no proxy


def test_what_httpx_can_use_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("http://proxy.example.org:3128", "https://me:word@proxy.example.org", "proxy:3128", "[::1]:3128"):
        monkeypatch.setenv("HTTPS_PROXY", value)
        monkeypatch.setenv("no_proxy", "::1, localhost,10.0.0.0/8,.example.com,*.org")
        assert proxy_fault() is None
        httpx.Client().close()


def test_a_proxy_that_failed_is_said_to_have_been_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", AWAY)
    with (
        pytest.raises(Unreachable, match="asked through the proxy that HTTP_PROXY names"),
        Client("http://sweeps.example.org", "a" * 16) as client,
    ):
        client.sweep(1)


def test_the_proxy_is_that_of_the_scheme_else_of_all_and_none_of_excepted_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert proxy_variable("http://a.org") is None
    monkeypatch.setenv("ALL_PROXY", AWAY)
    monkeypatch.setenv("http_proxy", AWAY)
    monkeypatch.setenv("no_proxy", "b.org")
    found = {url: proxy_variable(url) for url in ("http://a.org", "https://a.org", "https://b.org", "http://[::1]:8")}
    assert [*found.values()] == ["http_proxy", "ALL_PROXY", None, None]


def test_a_login_provider_and_a_webhook_name_the_variable_too(
    monkeypatch: pytest.MonkeyPatch, service: Service, settings: Settings
) -> None:
    more = {"oidc_issuer": "https://login.example.org", "oidc_client_id": "metricsweep"}
    browser = TestClient(create_app(service, settings.model_copy(update=more)), base_url=URL)
    webhook = Webhook("https://hooks.example.org", lambda: (b"k" * 32,))
    for value, said in (("socks5://127.0.0.1:9", "https_proxy names a SOCKS proxy"), (AWAY, "that https_proxy names")):
        monkeypatch.setenv("https_proxy", value)
        assert said in webhook.post("msg_1", b"{}").said
        login = browser.get("/login/oidc")
        assert (login.status_code, said in login.text) == (503, True)


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
