"""Host and Origin: from where one may ask."""

import pytest
from fastapi.testclient import TestClient

from api.http.middleware import SECURITY_HEADERS
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import URL
from tests.api.played import SPEC, YAML


@pytest.mark.parametrize("path", ["/", "/v1/sweeps", "/healthz", "/v1/nothing", "/static/nothing"])
def test_every_answer_has_the_security_headers(http: TestClient, path: str) -> None:
    answer = http.get(path)
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert len(answer.headers["x-request-id"]) == 32


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8787", "[::1]:8787", "LOCALHOST", "localhost."])
def test_loopback_names_are_ours(http: TestClient, host: str) -> None:
    assert http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", [
    "evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1", "a@localhost.b", "a@localhost", "localhost/a?b",
    "localhost#", "[::1].evil", "[::1]x:80", "a[::1]", "evil.example\\@localhost", "localhost:a", "localhost:99999",
])  # fmt: skip
def test_foreign_hosts_are_refused(http: TestClient, host: str) -> None:
    answer = http.get("/v1/sweeps", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"


def test_configured_hosts_are_ours(service: Service, settings: Settings) -> None:
    open_to_all = {"host": "0.0.0.0", "url": "http://sweeps.lab:8787"}
    app = create_app(service, settings.model_copy(update=open_to_all))
    with TestClient(app, base_url=URL) as http:
        for host, status in {"sweeps.lab:8787": 200, "10.0.0.1:8787": 200, "evil.example": 421}.items():
            assert http.get("/healthz", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:5000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/sweeps", "/sweeps/1/cancel", "/sweeps/1/retry", "/login"])
def test_foreign_pages_change_nothing(http: TestClient, headers: dict[str, str], path: str) -> None:
    answer = http.post(path, content=SPEC, headers=YAML | headers)
    assert answer.status_code == 403
    assert http.get("/v1/sweeps").json()["items"] == []


def test_our_own_pages_and_programs_may(http: TestClient) -> None:
    for headers in ({"Origin": URL, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
        assert http.post("/v1/sweeps", content=SPEC, headers=YAML | headers).status_code == 201


FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "same-origin"])
@pytest.mark.parametrize("path", ["/", "/v1/catalog", "/static/style.css"])
def test_a_link_may_be_followed_from_anywhere(http: TestClient, site: str, path: str) -> None:
    assert http.get(path, headers=FOLLOWED | {"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": "https://evil.example"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "object"},
        {**FOLLOWED, "Sec-Purpose": "prefetch;prerender"},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/", "/v1/sweeps/1/figures/main?format=png", "/v1/sweeps/1/bundle", "/healthz"])
def test_foreign_pages_load_nothing(http: TestClient, headers: dict[str, str], site: str, path: str) -> None:
    answer = http.get(path, headers=headers | {"Sec-Fetch-Site": site})
    assert answer.status_code == 403
    assert "may link to this server" in answer.json()["detail"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:5000", "http://["])
def test_a_foreign_origin_reads_nothing_even_in_a_browser_that_says_no_more(http: TestClient, origin: str) -> None:
    answer = http.get("/v1/sweeps", headers={"Origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_our_own_pages_load_what_they_show(http: TestClient) -> None:
    loaded = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "same-origin"}
    for headers in (loaded, {"Origin": URL, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert http.get("/v1/sweeps", headers=headers).status_code == 200
