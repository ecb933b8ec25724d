"""`python -m api` as a process: it serves, ends on SIGTERM, and says why it does not start."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest


def environment(home: Path, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("METRICSWEEP_")}
    return plain | {"METRICSWEEP_HOME": str(home)} | {f"METRICSWEEP_{name}": value for name, value in more.items()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = tmp_path / "api.log"
    given = environment(tmp_path / "home", PORT=str(port), TOKEN="swordfish-swordfish")
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "api"], env=given, stdout=file, stderr=file)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            assert process.poll() is None, log.read_text()
            try:
                answer = httpx.get(f"{url}/healthz", trust_env=False, timeout=60)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert answer.json() == {"ok": True}
        assert httpx.get(f"{url}/v1/sweeps?secret=1", trust_env=False, timeout=60).status_code == 401
        headers = {"Authorization": "Bearer swordfish-swordfish"}
        with httpx.stream("GET", f"{url}/v1/events", headers=headers, trust_env=False, timeout=60) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(number)
            assert list(lines)[-1] == "", "the stream ends whole, so that its client comes back without an error"
    finally:
        process.send_signal(number)
        code = process.wait(120)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    assert (tmp_path / "home" / "metricsweep.db").exists()
    assert "swordfish" not in log.read_text()
    assert "secret=1" not in log.read_text()  # no access log


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    def refused(**more: str) -> str:
        given = environment(tmp_path / "home", **more)
        done = subprocess.run([sys.executable, "-m", "api"], env=given, capture_output=True, timeout=120, check=False)
        assert done.returncode in (1, 2)
        assert b"Traceback" not in done.stderr
        return done.stderr.decode()

    assert "METRICSWEEP_TOKEN" in refused(HOST="0.0.0.0", PORT="0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "address already in use" in refused(PORT=str(taken.getsockname()[1]))
    assert "METRICSWEEP_PORT" in refused(PORT="many")
