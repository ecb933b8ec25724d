"""A process that stands in for the API or the conductor: says what it was given, serves /healthz, ends on request."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()


OPEN = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('up', flush=True); time.sleep(600)"


def main(name: str, folder: Path, how: str) -> None:
    """`how`: plain | fails | stubborn (ignores SIGTERM and has a child that does) | open (on a TCP port) |
    open below (by its child)."""
    if how == "fails":
        print("cannot find my configuration")
        sys.exit(3)
    pids = [os.getpid()]
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        pids.append(child.pid)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if name == "api":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["METRICSWEEP_PORT"])), Health)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    if how == "open":
        opened = socket.create_server(("127.0.0.1", 0))  # noqa: F841  it stays open
    if how == "open below":
        below = subprocess.Popen([sys.executable, "-c", OPEN], stdout=subprocess.PIPE)
        assert below.stdout is not None
        below.stdout.readline()
        pids.append(below.pid)
    aside = folder / f"{name}.aside"
    aside.write_text(json.dumps({"pids": pids, "environment": dict(os.environ)}))
    aside.replace(folder / f"{name}.json")
    print("standing in")
    try:
        while True:
            time.sleep(0.05)
    finally:
        (folder / f"{name}.asked").touch()
        with (folder / "ended").open("a") as ended:
            ended.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
