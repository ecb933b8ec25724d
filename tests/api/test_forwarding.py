"""What a proxy says of its client: believed from the proxies that the settings name, and hearsay from all others."""

import asyncio
import os
import shutil
import subprocess
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from api.protection.forwarding import PEER, Forwarding

PROXY = Path(__file__).parents[2] / "docker" / "proxy"
NETWORKS = [ip_network("127.0.0.1"), ip_network("10.1.0.0/16"), ip_network("fd00::/8")]


def seen(peer: str, *headers: tuple[str, str]) -> tuple[str, str]:
    """The client and the scheme that the application sees."""
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope)

    scope = {
        "type": "http", "client": (peer, 4711), "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }  # fmt: skip
    asyncio.run(Forwarding(application, NETWORKS)(scope, None, None))  # type: ignore[arg-type]
    assert found[0][PEER] == peer
    return found[0]["client"][0], found[0]["scheme"]


def test_a_named_proxy_says_for_whom_it_asks() -> None:
    assert seen("127.0.0.1", ("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https")) == ("192.0.2.7", "https")
    assert seen("fd00::1", ("X-Forwarded-For", "[2001:db8::7]:443")) == ("2001:db8::7", "http")
    assert seen("127.0.0.1", ("X-Forwarded-For", "192.0.2.7:5000")) == ("192.0.2.7", "http")
    assert seen("127.0.0.1") == ("127.0.0.1", "http")


def test_nobody_else_says_anything() -> None:
    said = (("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https"))
    for peer in ("192.0.2.9", "127.0.0.2", "", "unix:"):
        assert seen(peer, *said) == (peer, "http")


def test_what_a_client_says_of_itself_through_a_proxy_is_hearsay() -> None:
    """Proxies add whom they heard behind what they were told."""
    assert seen("127.0.0.1", ("X-Forwarded-For", "127.0.0.1, 10.1.2.3, 192.0.2.7"))[0] == "192.0.2.7"
    assert seen("127.0.0.1", ("X-Forwarded-For", "10.9.9.9, 192.0.2.7, 10.1.2.3"))[0] == "192.0.2.7"
    assert seen("127.0.0.1", ("X-Forwarded-For", "10.9.9.9"), ("X-Forwarded-For", "192.0.2.7"))[0] == "192.0.2.7"
    assert seen("127.0.0.1", ("X-Forwarded-Proto", "https, http"))[1] == "http"


@pytest.mark.parametrize("said", ["", ",", "nobody", "192.0.2.7 or so", "::1::", "[", "1" * 5_000, "a," * 4_000])
def test_what_is_no_address_changes_nothing(said: str) -> None:
    assert seen("127.0.0.1", ("X-Forwarded-For", said), ("X-Forwarded-Proto", "gopher")) == ("127.0.0.1", "http")


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
