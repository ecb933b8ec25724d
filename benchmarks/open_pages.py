"""What pages that stay open cost the API: 300 browsers before one running sweep, by polling and by events.

`python -m benchmarks.open_pages` starts the API as a process over a sweep of 240 trials, of which a conductor, played
here, trains four at once with a report a second each. Each browser has a login and connections of its own and asks as
`dashboards/static/refresh.js` does: as it did before there were events, every three seconds for the whole page; and as
it does now, when its stream says so. The processor time is that of the API's process alone, by psutil.
"""

import argparse
import asyncio
import itertools
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from orchestrator.host.identity import made_for
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.dashboards.stage import SPEC, Stage
from tests.ports import free_port

POLL: Final = 3.0
PAUSES: Final = {"trial": 3.0, "cell": 3.0, "progress": 5.0}
"""Of follow.js, with .5 s for any other event."""
REPORTS: Final = 20
"""Of each training."""


@dataclass
class Count:
    """What all browsers saw."""

    looks: int = 0
    unchanged: int = 0
    refused: int = 0
    events: int = 0
    bytes: int = 0
    took: list[float] = field(default_factory=list)

    async def look(self, http: httpx.AsyncClient, path: str, headers: dict[str, str]) -> httpx.Response:
        """Ask for the page once."""
        began = time.monotonic()
        answer = await http.get(path, headers={"Accept": "text/html", **headers})
        self.took.append(time.monotonic() - began)
        self.looks += 1
        self.unchanged += answer.status_code == 304
        self.refused += answer.status_code not in (200, 304)
        self.bytes += answer.num_bytes_downloaded
        return answer


async def polling(http: httpx.AsyncClient, path: str, count: Count) -> None:
    """As the page did before there were events."""
    await asyncio.sleep(random.random() * POLL)
    while True:
        await count.look(http, path, {"Accept-Encoding": "identity"})  # nothing was compressed
        await asyncio.sleep(max(POLL, 4 * count.took[-1]))


class Following:
    """As feed.js, follow.js and refresh.js do together."""

    def __init__(self) -> None:
        self.due, self.looked, self.change = time.monotonic() + random.random() * POLL, 0.0, 0
        self.woken = asyncio.Event()

    async def follow(self, http: httpx.AsyncClient, path: str, count: Count) -> None:
        """Listen and look until cancelled."""
        ear = asyncio.create_task(self.listen(http, count))
        ear.add_done_callback(lambda _: self.woken.set())
        tag = ""
        try:
            while not ear.done():
                self.woken.clear()
                pause = self.due - time.monotonic()
                if pause > 0:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.woken.wait(), min(pause, 60.0))
                    continue
                self.due, self.looked = float("inf"), time.monotonic()
                headers = {"Cache-Control": "max-age=2", "Metricsweep-Change": str(self.change)}
                answer = await count.look(http, path, headers | ({"If-None-Match": tag} if tag else {}))
                tag = answer.headers.get("etag", "")
            await ear
            raise ConnectionError("the stream has ended")  # a deaf page asks for little: it is broken, not cheap
        finally:
            ear.cancel()

    async def listen(self, http: httpx.AsyncClient, count: Count) -> None:
        """Hear what changes, and say when the page is to look."""
        async with http.stream("GET", "/v1/events", timeout=60) as answer:
            assert answer.status_code == 200, answer.status_code
            kind, id_ = "", 0
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    id_ = int(value)
                elif name == "data" and kind != "hello":
                    count.events += 1
                    self.change = self.change if kind == "progress" else id_
                    earliest = max(self.looked + PAUSES.get(kind, 0.5), time.monotonic())
                    self.due = min(self.due, earliest + random.random() / 2)
                    self.woken.set()


async def following(http: httpx.AsyncClient, path: str, count: Count) -> None:
    """One page that follows."""
    await Following().follow(http, path, count)


def conduct(settings: Settings, ended: threading.Event) -> None:
    """Train four at once, each with a report a second."""
    service, store = Service.open(settings), Store.open(settings.database)
    stage = Stage(service, store)
    stage.submit(SPEC.replace("seed: [0, 1, 2]", f"seed: {list(range(10))}"))
    orders, reports = [stage.start(0.1) for _ in range(4)], [1] * 4
    for turn in itertools.count():
        if ended.wait(0.25):
            break
        slot = turn % 4
        order, reports[slot] = orders[slot], reports[slot] + 1
        stage.report(order, reports[slot], reports[slot] * int(order.recipe["iterations"]) // REPORTS)
        if reports[slot] == REPORTS:
            stage.finish(order)
            stage.settle()
            orders[slot], reports[slot] = stage.start(0.1), 1
    store.close()
    service.close()


async def measured(
    url: str,
    token: str,
    process: psutil.Process,
    page: Callable[[httpx.AsyncClient, str, Count], Coroutine[Any, Any, None]],
    browsers: int,
    seconds: float,
) -> str:
    """Open the pages, let them settle, and count what the next seconds cost."""
    clients, count = [], Count()
    async with httpx.AsyncClient(
        base_url=url, trust_env=False, headers={"Authorization": f"Bearer {token}"}
    ) as program:
        for _ in range(browsers):
            link = (await program.post("/v1/login-links")).json()["path"]
            browser = httpx.AsyncClient(base_url=url, trust_env=False, timeout=120)
            await browser.get(link)
            clients.append(browser)
    pages = [asyncio.create_task(page(browser, "/sweeps/1", count)) for browser in clients]
    await asyncio.sleep(seconds / 3)
    settled = replace(count, took=[])
    count.took.clear()
    began, before = time.monotonic(), process.cpu_times()
    await asyncio.sleep(seconds)
    after, took = process.cpu_times(), time.monotonic() - began
    for one in pages:
        one.cancel()
    broken = [
        one
        for one in await asyncio.gather(*pages, return_exceptions=True)
        if not isinstance(one, asyncio.CancelledError)
    ]
    for browser in clients:
        await browser.aclose()
    looks, unchanged = count.looks - settled.looks, count.unchanged - settled.unchanged
    share = (after.user + after.system - before.user - before.system) / took
    waits = sorted(count.took) or [0.0]
    return (
        f"{getattr(page, '__name__', ''):10} {share:5.2f} cores  {looks / took:6.1f} looks/s  "
        f"{unchanged / max(1, looks):4.0%} unchanged  {count.refused} refused  {len(broken)} broken  "
        f"{(count.events - settled.events) / took:7.0f} events/s  "
        f"{(count.bytes - settled.bytes) / took / 1e6:6.2f} MB/s  "
        f"median {waits[len(waits) // 2]:.2f} s  worst {waits[-1]:.2f} s"
    )


def main() -> None:
    """Measure both, one after the other, over the same sweep."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pages", type=int, default=300)
    asked.add_argument("--seconds", type=float, default=30.0)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, port, ended = Path(folder), free_port(), threading.Event()
        settings = Settings(home=home)
        conductor = threading.Thread(target=conduct, args=(settings, ended))
        conductor.start()
        unlimited = dict.fromkeys((f"METRICSWEEP_{kind}_RATE" for kind in ("READ", "OPEN")), "0")  # all are one user
        environment = {**os.environ, **unlimited, "METRICSWEEP_HOME": str(home), "METRICSWEEP_PORT": str(port)}
        api = subprocess.Popen([sys.executable, "-m", "api"], env=environment)
        url = f"http://127.0.0.1:{port}"
        try:
            while api.poll() is None:
                with suppress(httpx.TransportError):
                    if httpx.get(f"{url}/healthz", trust_env=False).is_success:
                        break
                time.sleep(0.1)
            else:
                raise SystemExit("the API has ended before it answered")
            print(f"{given.pages} pages, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
            for page in (polling, following):
                token, process = made_for(home).secret, psutil.Process(api.pid)
                print(asyncio.run(measured(url, token, process, page, given.pages, given.seconds)), flush=True)
                time.sleep(3)
        finally:
            ended.set()
            conductor.join()
            api.terminate()
            api.wait()


if __name__ == "__main__":
    main()
