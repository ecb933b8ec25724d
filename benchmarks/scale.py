"""What a trial costs the service as sweeps grow to 100,000 trials: submit, expand, schedule, list, tables, memory.

    python -m benchmarks.scale [10x10x10 10x100x10 100x100x10 10000x1x10] [--database-url URL] [--peer 500]

A sweep of each shape, cells x candidates x seeds, runs through the real API, the real conductor and the inline engine
with a training function that takes no time; MLflow is away. While the conductor expands, another process asks to write
every 50 ms, on SQLite. Each step is a process of its own, whose memory is the peak above what it held before the
step. Optuna asks and tells `--peer` trials of a random search over its own storage on SQLite. On two free cores the
four shapes take half an hour.
"""

import argparse
import functools
import importlib.metadata
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import optuna
import sqlalchemy as sa
from fastapi.testclient import TestClient

from api.main import create_app
from benchmarks.bystander import alongside
from benchmarks.memory import peak, resident
from benchmarks.sweep_of import Shape, body
from orchestrator.conduct.conductor import Conductor
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.run.inline import Inline
from orchestrator.run.spool import Message
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.runs import Order
from workers import catalog as catalogs

SHAPES: Final = ("10x10x10", "10x100x10", "100x100x10", "10000x1x10")
STEPS: Final = ("preview", "submit", "expand", "schedule", "read", "table")
EDGE: Final = 1_000
"""The number of trials at the beginning and at the end of a sweep whose cost is reported separately."""
PAGE: Final = 200
"""Trials a page, the most that the API gives."""

Told = dict[str, Any]


class Expanding(Inline):
    """An engine that trains nothing."""

    def __init__(self, workplace: Workplace, database: str) -> None:
        super().__init__(workplace)
        self._store = Store.open(database)

    def run(self, broker: Broker) -> None:
        """End the conductor as a person would, once it has expanded the sweep."""
        if not self._store.sweeps.queued():
            signal.raise_signal(signal.SIGTERM)


class Timed(Inline):
    """Notes when each result was recorded."""

    def __init__(self, workplace: Workplace) -> None:
        super().__init__(workplace)
        self.at: list[float] = []

    def run(self, broker: Broker) -> None:
        """Work for the broker, whose recording of a result is waited for."""
        record = broker.record

        def noted(order: Order, message: Message) -> None:
            record(order, message)
            if message.kind == "finished":
                self.at.append(time.perf_counter())

        broker.record = noted  # type: ignore[method-assign]
        super().run(broker)
        broker.record = record  # type: ignore[method-assign]


def preview(settings: Settings, shape: Shape) -> Told:
    """Check and expand a spec, and store nothing."""
    with _http(settings) as http:
        return _posted(http, "/v1/sweeps?dry_run=true", shape, 200)


def submit(settings: Settings, shape: Shape) -> Told:
    """Check, expand and queue a spec."""
    with _http(settings) as http:
        return _posted(http, "/v1/sweeps", shape, 201)


def expand(settings: Settings, shape: Shape) -> Told:
    """Have the conductor write the trials' rows, while another process asks to write too."""
    conductor = _conductor(settings, Expanding(_workplace(settings), settings.database))
    conductor.handle_signals()
    with alongside(settings.database) as waited:
        told = _timed(conductor.conduct)
    named = {"longest": "longest wait to write, ms", "mean of the waits": "mean of the waits to write, ms"}
    told |= {name: waited[key] for key, name in named.items() if key in waited}
    size = Path(sa.make_url(settings.database).database or "")
    return told | ({"database megabytes": round(size.stat().st_size / 2**20, 1)} if size.is_file() else {})


def schedule(settings: Settings, shape: Shape) -> Told:
    """From the first claim to the last settled cell."""
    engine, began = Timed(_workplace(settings)), time.process_time()
    told = _timed(functools.partial(_conductor(settings, engine).conduct, until_idle=True))
    told |= {"CPU ms a trial": round(1000 * (time.process_time() - began) / shape.trials, 2)}
    if len(engine.at) != shape.trials:
        raise SystemExit(f"{len(engine.at)} of {shape.trials} trials finished")
    edge = min(EDGE, len(engine.at) // 2)
    first, last = engine.at[edge - 1] - engine.at[0], engine.at[-1] - engine.at[-edge]
    return told | {
        "first, ms a trial": round(1000 * first / (edge - 1), 2),
        "last, ms a trial": round(1000 * last / (edge - 1), 2),
    }


def read(settings: Settings, shape: Shape) -> Told:
    """What the API and a page answer; milliseconds, the median of five."""
    with _http(settings) as http:
        middle, last = _cursors(http, shape)
        paths = {
            "first page of trials": f"/v1/sweeps/1/trials?limit={PAGE}",
            "middle page of trials": f"/v1/sweeps/1/trials?limit={PAGE}&cursor={middle}",
            "last page of trials": f"/v1/sweeps/1/trials?limit={PAGE}&cursor={last}",
            "sweeps": "/v1/sweeps",
            "one sweep": "/v1/sweeps/1",
            "one cell": "/v1/sweeps/1/cells/0",
            "page of the sweep": "/sweeps/1",
        }
        before = _before()
        told: Told = {f"{name}, ms": _median(http, path) for name, path in paths.items()}
        page = http.get("/sweeps/1").content
        return told | {"page, kilobytes": round(len(page) / 1024), "megabytes": round(peak() - before, 1)}


def table(settings: Settings, shape: Shape) -> Told:
    """The sweep's table in LaTeX, then in CSV."""
    with _http(settings) as http:
        told = _timed(lambda: http.get("/v1/sweeps/1/tables/main?format=latex").raise_for_status())
        csv = _timed(lambda: http.get("/v1/sweeps/1/tables/main?format=csv").raise_for_status())
    return told | {"csv, seconds": csv["seconds"]}


RUN: Final[dict[str, Callable[[Settings, Shape], Told]]] = {
    step.__name__: step for step in (preview, submit, expand, schedule, read, table)
}


def _http(settings: Settings) -> TestClient:
    app = create_app(Service.open(settings), settings)
    bearer = {"Authorization": f"Bearer {app.state.access.identity.secret}"}
    return TestClient(app, base_url="http://127.0.0.1:8787", headers=bearer)


def _posted(http: TestClient, path: str, shape: Shape, status: int) -> Told:
    posted = body(shape)

    def post() -> None:
        answer = http.post(path, content=posted, headers={"content-type": "application/json"})
        if answer.status_code != status:
            raise SystemExit(answer.text)

    return _timed(post)


def _workplace(settings: Settings) -> Workplace:
    return Workplace(settings.train, settings.storage, settings.data_root)


def _conductor(settings: Settings, engine: Inline) -> Conductor:
    return Conductor(settings, Store.open(settings.database), engine, catalogs.load(), None)


def _cursors(http: TestClient, shape: Shape) -> tuple[str, str]:
    """The cursors of the page in the middle and of the last one, found as a client finds them."""
    cursor, found = None, []
    for _ in range((shape.trials - 1) // PAGE):
        asked = {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
        cursor = http.get("/v1/sweeps/1/trials", params=asked).json()["next_cursor"]
        found.append(cursor)
    return found[len(found) // 2], found[-1]


def _median(http: TestClient, path: str) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        http.get(path).raise_for_status()
        times.append(time.perf_counter() - began)
    return round(1000 * statistics.median(times), 1)


def _before() -> float:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    return resident()


def _timed(work: Callable[[], object]) -> Told:
    before, began = _before(), time.perf_counter()
    work()
    return {"seconds": round(time.perf_counter() - began, 3), "megabytes": round(peak() - before, 1)}


def optuna_peer(trials: int) -> float:
    """Milliseconds a trial that Optuna takes to ask and tell over SQLite, without a sampler's own thinking."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        study = optuna.create_study(
            storage=f"sqlite:///{folder}/optuna.db", sampler=optuna.samplers.RandomSampler(seed=0)
        )
        began = time.perf_counter()
        for _ in range(trials):
            trial = study.ask()
            trial.suggest_float("lr", 1e-6, 1e-3, log=True)
            trial.report(1.0, 1)
            study.tell(trial, 0.5)
        return round(1000 * (time.perf_counter() - began) / trials, 2)


def measured(shape: Shape, database_url: str) -> Told:
    """Every step for one shape, each in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        told: Told = {"trials": shape.trials}
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.scale", str(shape), "--step", step, "--home", home]
            command += ["--database-url", database_url]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            told[step] = json.loads(done.stdout)
            if "seconds" in told[step]:
                told[step]["ms a trial"] = round(1000 * told[step]["seconds"] / shape.trials, 3)
            print(shape, step, told[step], file=sys.stderr, flush=True)
        return told


def main() -> None:
    """Print what each shape took, and the ratio to the peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--database-url", default="", help="an empty database; with it, one shape alone")
    parser.add_argument("--peer", type=int, default=500)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--home", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    shapes = [Shape.parse(text) for text in chosen.shapes]
    if chosen.step:
        settings = Settings(
            home=chosen.home, database_url=chosen.database_url, train="benchmarks.instant:train", engine="inline",
        )  # fmt: skip
        print(json.dumps(RUN[chosen.step](settings, shapes[0])))
        return
    peer = optuna_peer(chosen.peer)
    found = {str(shape): measured(shape, chosen.database_url) for shape in shapes}
    facts = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlalchemy": importlib.metadata.version("sqlalchemy"),
        "optuna": optuna.__version__,
        "Optuna, ms a trial": peer,
        "metricsweep / Optuna, per trial scheduled": {
            name: round(one["schedule"]["ms a trial"] / peer, 2) for name, one in found.items()
        },
        "sweeps": found,
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
