"""What frames of 100,000 trials take: seconds, bytes and the server's memory, over HTTP between two processes.

    python -m benchmarks.frames [--trials 100000] [--curved 2000]

The trials are those of benchmarks.trials_view; so many of them have a curve of 500 points. The server is a process of
its own, whose memory before the first frame is taken off the most that it has held after each.
"""

import argparse
import json
import multiprocessing
import os
import platform
import socket
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import metricsweep
import psutil
import sqlalchemy as sa
import uvicorn

from api.main import create_app
from benchmarks.memory import peak, resident
from benchmarks.trials_view import fill
from orchestrator.record import schema
from orchestrator.record.database import chunked
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings

POINTS: Final = 500


def draw(store: Store, trials: int) -> None:
    """Give so many trainings a result with a curve."""
    table = schema.training
    curve = {"train/loss": [[10 * step, 1 / (1 + step)] for step in range(POINTS)]}
    with store.database.writing() as connection:
        finished = sa.select(table.c.id).where(table.c.state == "finished").order_by(table.c.id).limit(trials)
        for chunk in chunked(list(connection.execute(finished).scalars()), 500):
            connection.execute(sa.update(table).where(table.c.id.in_(chunk)).values(result={"curves": curve}))


def made(home: Path, trials: int, curved: int) -> None:
    """Fill a database."""
    settings = Settings(home=home)
    Service.open(settings).close()
    store = Store.open(settings.database)
    fill(store, trials)
    draw(store, curved)
    store.close()


def serve(home: Path, ready: Connection) -> None:
    """Serve it; tells the port and the token."""
    settings = Settings(home=home)
    service = Service.open(settings)
    app = create_app(service, settings)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ready.send((listening.getsockname()[1], app.state.access.identity.secret))
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def taken(client: metricsweep.Client, server: int) -> dict[str, Any]:
    """Each frame with its rows, seconds, and the memory of the server."""
    notebook = client.notebook(1)
    questions = {
        "sweeps": (client.frame, "/v1/frames/sweeps"),
        "trials": (notebook.trials, "/v1/sweeps/1/frames/trials"),
        "curves": (notebook.curves, "/v1/sweeps/1/frames/curves"),
        "candidates": (notebook.candidates, "/v1/sweeps/1/frames/candidates"),
    }
    client.sweep(1)
    before = resident(server)
    told: dict[str, Any] = {}
    for name, (asked, path) in questions.items():
        began, worked = time.perf_counter(), psutil.Process(server).cpu_times().user
        frame = asked()
        seconds, worked = time.perf_counter() - began, psutil.Process(server).cpu_times().user - worked
        with client._connection.streamed(path, 600) as pieces:
            size = sum(map(len, pieces))
        told[name] = {
            "rows": len(frame), "columns": len(frame.columns), "seconds": round(seconds, 1),
            "server's CPU seconds": round(worked, 1),
            "MB sent": round(size / 2**20, 1), "server's peak above before, MB": round(peak(server) - before),
        }  # fmt: skip
    return told


def main() -> None:
    """Print what each frame took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--curved", type=int, default=2_000)
    chosen = parser.parse_args()
    spawned = multiprocessing.get_context("spawn")
    here, there = spawned.Pipe()
    with tempfile.TemporaryDirectory() as home:
        place = Path(home) / "home"
        made(place, chosen.trials, chosen.curved)
        server = spawned.Process(target=serve, args=(place, there))
        server.start()
        there.close()  # so that a server which ends before it tells anything is not waited for
        try:
            port, token = here.recv()
            with metricsweep.connect(f"http://127.0.0.1:{port}", token) as client:
                told = taken(client, server.pid or 0)
        finally:
            server.terminate()
            server.join()
    facts = {
        "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
        "curves": chosen.curved, "points a curve": POINTS, "frames": told,
    }  # fmt: skip
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
