"""What a proxy says of its client: believed from the proxies that the settings name, and hearsay from all others."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from api.http.middleware import PEER
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import BEARER, URL

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
    told = subprocess.run(["nginx", "-t", "-p", tmp_path, "-c", main], check=False, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "warn" not in told.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs caddy")
def test_caddy_takes_the_file(tmp_path: Path) -> None:
    named = {**os.environ, "METRICSWEEP_DOMAIN": "sweeps.example.org", "HOME": str(tmp_path)}
    command = ["caddy", "adapt", "--adapter", "caddyfile", "--validate", "--config", PROXY / "Caddyfile"]
    told = subprocess.run(command, check=False, env=named, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr


def test_both_files_say_who_asks_and_for_nobody_else() -> None:
    nginx, caddy = (PROXY / "nginx.conf").read_text(), (PROXY / "Caddyfile").read_text()
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in nginx, "not what the client said, and this behind it"
    assert 'proxy_set_header X-Actor "";' in nginx
    assert "header_up -X-Actor" in caddy
