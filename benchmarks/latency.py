"""How long the API takes to answer ten clients while a sweep of 10,000 trials runs: p50, p95 and p99 by question.

    python -m benchmarks.latency [--shape 10x100x10] [--finished 5000] [--clients 10] [--seconds 60]

The API and a conductor are processes over one SQLite; of the sweep, `--finished` trials are trained before by a
function that takes no time, and while the clients ask, five a second more. Each client asks one question after the
other, with a second's pause between two, and receives the events of the sweep all the while. The floor is `/healthz`,
requested by the same clients. Milliseconds, from the request to the whole answer; of an event, from the first client
that receives it to the last. Requests that a busy server refuses for a while are counted separately.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.sweep_of import Shape, body
from orchestrator.host.identity import ensure_identity
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.ports import free_port

FLOOR: Final = "floor: /healthz"
QUESTIONS: Final[Mapping[str, str]] = {
    FLOOR: "/healthz",
    "sweeps": "/v1/sweeps",
    "one sweep": "/v1/sweeps/1",
    "trials, 50": "/v1/sweeps/1/trials?limit=50",
    "one trial": "/v1/trials/{trial}",
    "table, JSON": "/v1/sweeps/1/tables/main?format=json",
    "table, LaTeX": "/v1/sweeps/1/tables/main?format=latex",
    "page: sweeps": "/",
    "page: one sweep": "/sweeps/1",
    "page: trials": "/trials?sweep=1",
    "page: one trial": "/trials/{trial}",
}
SUBMIT: Final = "submit"
REFUSED: Final = "refused for a while"
PAUSE: Final = 1.0
Waits = defaultdict[str, list[float]]


@contextmanager
def process(environment: Mapping[str, str], *module: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of our processes, until the end of the block."""
    log = Path(environment["METRICSWEEP_HOME"], f"{module[0]}.log")
    with log.open("ab") as output:
        begun = subprocess.Popen([sys.executable, "-m", *module], env={**os.environ, **environment}, stderr=output)
        try:
            yield begun
        except SystemExit:
            print(log.read_text(encoding="utf-8")[-4_000:], file=sys.stderr)
            raise
        finally:
            begun.terminate()
            begun.wait()


def wait_until(holds: Any, begun: subprocess.Popen[bytes]) -> None:
    """Wait for something that a process does."""
    while not holds():
        if begun.poll() is not None:
            raise SystemExit(f"it ended with {begun.returncode}")
        time.sleep(0.2)


def train_some(settings: Settings, environment: Mapping[str, str], shape: Shape, finished: int) -> None:
    """Submit the sweep, and have so many of its trials trained at once."""
    service = Service.open(settings)
    try:
        service.submissions.submit(body(shape))
        with process({**environment, "METRICSWEEP_TRAIN": "benchmarks.instant:train"}, *CONDUCT) as conductor:
            wait_until(lambda: service.sweeps.get(1).counts.finished >= finished, conductor)
    finally:
        service.close()


def answers(url: str) -> bool:
    """Whether the API is up."""
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/healthz", trust_env=False).is_success
    return False


async def client(http: httpx.AsyncClient, token: str, shape: Shape, waits: Waits) -> None:
    """Ask everything in turn until cancelled; now and then submit a sweep of one trial."""
    await asyncio.sleep(random.random() * PAUSE)
    for turn in itertools.count(random.randrange(len(QUESTIONS))):
        kind = list(QUESTIONS)[turn % len(QUESTIONS)]
        path = QUESTIONS[kind].replace("{trial}", str(random.randrange(shape.trials) + 1))
        await timed(waits, kind, http.get(path))
        if turn % 25 == 0:
            alone = body(Shape(1, 1, 1), iterations=random.randrange(2, 1_000_000))
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}  # no page may post there
            await timed(waits, SUBMIT, http.post("/v1/sweeps", content=alone, headers=headers))
        await asyncio.sleep(PAUSE)


async def timed(waits: Waits, kind: str, asking: Any) -> None:
    """Note what an answer took, in milliseconds."""
    began = time.monotonic()
    answer = await asking
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # more than it takes at once: it says when to come again
        waits[f"{kind}: {REFUSED}"].append(1000 * (time.monotonic() - began))
        await asyncio.sleep(float(answer.headers["retry-after"]))
        return
    answer.raise_for_status()
    waits[kind].append(1000 * (time.monotonic() - began))


async def listen(http: httpx.AsyncClient, heard: dict[int, float]) -> None:
    """Note when each event came first."""
    async with http.stream("GET", "/v1/sweeps/1/events", timeout=60) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                heard.setdefault(int(line[4:]), time.monotonic())


async def logged_in(url: str, token: str) -> httpx.AsyncClient:
    """A client with a login of its own, as a browser has: of one login only some streams are answered."""
    http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=60)
    answer = await http.post("/login", data={"token": token}, headers={"Origin": url})
    if not answer.is_redirect:
        raise RuntimeError(f"the login answers {answer.status_code}")
    return http


async def measured(url: str, token: str, shape: Shape, clients: int, seconds: float) -> tuple[Waits, list[int]]:
    """The waiting times of all clients, and the number of events that each received."""
    waits: Waits = defaultdict(list)
    every = [await logged_in(url, token) for _ in range(clients)]
    heard: list[dict[int, float]] = [{} for _ in every]
    tasks = [asyncio.create_task(client(one, token, shape, waits)) for one in every]
    ears = [asyncio.create_task(listen(one, its)) for one, its in zip(every, heard, strict=True)]
    await asyncio.sleep(seconds / 4)
    waits.clear()  # the first answers are made, the next are kept
    await asyncio.sleep(seconds)
    for task in (*tasks, *ears):
        task.cancel()
    ended = await asyncio.gather(*tasks, *ears, return_exceptions=True)
    if broken := [one for one in ended if not isinstance(one, asyncio.CancelledError)]:
        raise SystemExit(f"{len(broken)} clients were refused: {broken[0]!r}")
    for one in every:
        await one.aclose()
    times = [[its[id_] for its in heard if id_ in its] for id_ in set().union(*heard)]
    waits["event: from the first client to the last"] = [
        1000 * (max(one) - min(one)) for one in times if len(one) == clients
    ]
    return waits, [len(its) for its in heard]


def told(waits: Waits) -> dict[str, dict[str, float]]:
    """For each request: its count, p50, p95, p99, and the ratio of p99 to the floor's p99."""
    floor = _at(waits[FLOOR], 0.99)
    return {
        kind: {
            "asked": len(its),
            "p50, ms": round(_at(its, 0.5), 1),
            "p95, ms": round(_at(its, 0.95), 1),
            "p99, ms": round(_at(its, 0.99), 1),
            "p99 / floor": round(_at(its, 0.99) / floor, 1),
        }
        for kind, its in sorted(waits.items())
        if its
    }


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


CONDUCT: Final = ("orchestrator", "conduct")


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="10x100x10")
    parser.add_argument("--finished", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    shape = Shape.parse(options.shape)
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
        settings, port = Settings(home=Path(folder), engine="inline"), free_port()
        environment = {
            "METRICSWEEP_HOME": folder,
            "METRICSWEEP_ENGINE": "inline",
            "METRICSWEEP_PORT": str(port),
            **dict.fromkeys(
                (f"METRICSWEEP_{kind}_RATE" for kind in ("READ", "WRITE", "OPEN")), "0"
            ),  # all are one user
            "METRICSWEEP_TRAIN": "benchmarks.instant:paced",
        }
        train_some(settings, environment, shape, options.finished)
        url = f"http://127.0.0.1:{port}"
        with process(environment, *CONDUCT), process(environment, "api") as api:
            wait_until(lambda: answers(url), api)
            token = ensure_identity(Path(folder)).secret
            waits, heard = asyncio.run(measured(url, token, shape, options.clients, options.seconds))
    facts = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    asked = {"shape": str(shape), "clients": options.clients, "seconds": options.seconds}
    print(json.dumps({**facts, **asked, "events heard, least": min(heard), "answers": told(waits)}, indent=2))


if __name__ == "__main__":
    main()
