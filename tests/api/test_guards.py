"""Host and Origin: from where one may ask."""

from fastapi.testclient import TestClient

from api.http.middleware import SECURITY_HEADERS
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import URL
from tests.api.played import SPEC, YAML


def test_every_answer_has_the_security_headers(http: TestClient) -> None:
    for path in ("/", "/v1/sweeps", "/healthz", "/v1/nothing", "/static/nothing"):
        headers = http.get(path).headers
        assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS, path
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "script-src 'self';" in headers["content-security-policy"]
        assert len(headers["x-request-id"]) == 32


def test_loopback_names_are_ours_and_foreign_hosts_are_refused(http: TestClient) -> None:
    for host in ("127.0.0.1", "localhost", "localhost:8787", "[::1]:8787", "LOCALHOST", "localhost."):
        assert http.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in (
        "evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1", "a@localhost.b", "a@localhost",
        "localhost/a?b", "localhost#", "[::1].evil", "[::1]x:80", "a[::1]", "evil.example\\@localhost", "localhost:a",
        "localhost:99999",
    ):  # fmt: skip
        answer = http.get("/v1/sweeps", headers={"Host": host})
        assert answer.status_code == 421, host
        assert answer.headers["content-type"] == "application/problem+json"


def test_configured_hosts_are_ours(service: Service, settings: Settings) -> None:
    open_to_all = {"host": "0.0.0.0", "url": "http://sweeps.lab:8787"}
    app = create_app(service, settings.model_copy(update=open_to_all))
    with TestClient(app, base_url=URL) as http:
        for host, status in {"sweeps.lab:8787": 200, "10.0.0.1:8787": 200, "evil.example": 421}.items():
            assert http.get("/healthz", headers={"Host": host}).status_code == status


def test_foreign_pages_change_nothing(http: TestClient) -> None:
    for path in ("/v1/sweeps", "/sweeps/1/cancel", "/sweeps/1/retry", "/login"):
        for headers in (
            {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:5000"},
            {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
        ):  # fmt: skip
            answer = http.post(path, content=SPEC, headers=YAML | headers)
            assert answer.status_code == 403, (path, headers)
    assert http.get("/v1/sweeps").json()["items"] == []


def test_our_own_pages_and_programs_may(http: TestClient) -> None:
    for headers in ({"Origin": URL, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
        assert http.post("/v1/sweeps", content=SPEC, headers=YAML | headers).status_code == 201


FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}


def test_a_link_may_be_followed_from_anywhere(http: TestClient) -> None:
    for site in ("cross-site", "same-site", "none", "same-origin"):
        for path in ("/", "/v1/catalog", "/static/style.css"):
            assert http.get(path, headers=FOLLOWED | {"Sec-Fetch-Site": site}).status_code == 200, (site, path)


def test_foreign_pages_load_nothing(http: TestClient) -> None:
    loads = [
        *({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": kind} for kind in ("image", "script", "empty")),
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": "https://evil.example"},
        *({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": kind} for kind in ("iframe", "object")),
        {**FOLLOWED, "Sec-Purpose": "prefetch;prerender"},
        {},
    ]
    for path in ("/", "/v1/sweeps/1/figures/main?format=png", "/v1/sweeps/1/bundle", "/healthz"):
        for headers in loads:
            for site in ("cross-site", "same-site"):
                answer = http.get(path, headers=headers | {"Sec-Fetch-Site": site})
                assert answer.status_code == 403, (path, headers, site)
                assert "may link to this server" in answer.json()["detail"]


def test_a_foreign_origin_reads_nothing_even_in_a_browser_that_says_no_more(http: TestClient) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:5000", "http://["):
        answer = http.get("/v1/sweeps", headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert "access-control-allow-origin" not in answer.headers


def test_our_own_pages_load_what_they_show(http: TestClient) -> None:
    loaded = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "same-origin"}
    for headers in (loaded, {"Origin": URL, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert http.get("/v1/sweeps", headers=headers).status_code == 200
