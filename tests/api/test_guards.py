"""Host, Origin, and what a proxy says of its client: from where one may ask."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from api.http.middleware import PEER, SECURITY_HEADERS
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import BEARER, URL
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


PROXY = Path(__file__).parents[2] / "docker" / "proxy"


def test_only_a_proxy_that_the_settings_name_speaks_for_others(service: Service, settings: Settings) -> None:
    app = create_app(service, settings.model_copy(update={"forwarding_proxies": "10.1.0.0/16,fd00::/8"}))

    @app.get("/static/asks")
    def asks(request: Request) -> list[str]:
        return [request.client.host, request.url.scheme, request.scope[PEER]]

    app.router.routes.insert(0, app.router.routes.pop())
    said = {"X-Forwarded-For": "203.0.113.9, 192.0.2.7", "X-Forwarded-Proto": "https"}
    expected = {
        "10.1.2.3": ["192.0.2.7", "https", "10.1.2.3"],
        "fd00::1": ["192.0.2.7", "https", "fd00::1"],
        "192.0.2.99": ["192.0.2.99", "http", "192.0.2.99"],
    }
    for peer, seen in expected.items():
        with TestClient(app, base_url=URL, client=(peer, 4711)) as http:
            assert http.get("/static/asks", headers=BEARER | said).json() == seen, peer


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_takes_the_file(tmp_path: Path) -> None:
    text = (PROXY / "nginx.conf").read_text()
    for name in ("fullchain", "privkey"):
        text = text.replace(f"/etc/letsencrypt/live/sweeps.example.org/{name}.pem", str(tmp_path / "both.pem"))
    made = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    both = tmp_path / "both.pem"
    subprocess.run([*made, "-subj", "/CN=x", "-keyout", both, "-out", tmp_path / "c"], check=True, capture_output=True)
    both.write_text(both.read_text() + (tmp_path / "c").read_text())
    main = tmp_path / "nginx.conf"
    (tmp_path / "ours.conf").write_text(text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)  # root's, else
    ours = f"{places} access_log off; include {tmp_path}/ours.conf;"
    main.write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ {ours} }}")
    result = subprocess.run(["nginx", "-t", "-p", tmp_path, "-c", main], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "warn" not in result.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs caddy")
def test_caddy_takes_the_file(tmp_path: Path) -> None:
    named = {**os.environ, "METRICSWEEP_DOMAIN": "sweeps.example.org", "HOME": str(tmp_path)}
    command = ["caddy", "adapt", "--adapter", "caddyfile", "--validate", "--config", PROXY / "Caddyfile"]
    result = subprocess.run(command, check=False, env=named, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_both_files_say_who_asks_and_for_nobody_else() -> None:
    nginx, caddy = (PROXY / "nginx.conf").read_text(), (PROXY / "Caddyfile").read_text()
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in nginx, "not what the client said, and this behind it"
    assert 'proxy_set_header X-Actor "";' in nginx
    assert "header_up -X-Actor" in caddy
