"""A storm of requests on real processes: the conductor lives, the database holds together, each request has its end."""

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from api.client import Client, SweepRequest
from api.connection import ApiError
from orchestrator.record import schema
from orchestrator.record.store import Store
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import RequestView
from tests.faults.installation import Installation
from tests.record.invariants import check
from tests.test_conductor import spec

pytestmark = pytest.mark.soak

SWEEPS, CLIENTS, EACH = 12, 6, 24
REFUSALS = {404, 409, 422}


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An API and a conductor that trains in its own process; the latter is not started again when it ends."""
    with tempfile.TemporaryDirectory(prefix="ms-") as folder:
        made = Installation(Path(folder), None, train="tests.run.trainings:dawdling")
        try:
            made.start_api()
            made.start_conductor()
            yield made
        finally:
            made.end_all()


def body(number: int, seeds: int = 2) -> bytes:
    """A sweep of 2 x `seeds` trainings, some shared with its neighbours; in every third one some fail."""
    rates = [0.5 if number % 3 == 0 else 0.01]
    first = number - number % 2
    return spec(
        name=f"storm-{number}", tune={"optimizer.lr": rates}, repeat={"seed": list(range(first, first + seeds))}
    )


class Storm:
    """Clients that ask at random, each for itself."""

    def __init__(self, client: Client) -> None:
        self.client, self.asked, self.said = client, list[int](), Counter[str]()
        self.sweeps: list[int] = []
        self._lock = threading.Lock()

    def ask(self, kind: str, act: Callable[[], SweepRequest | RequestView]) -> None:
        """Ask and keep what was answered; anything but a refusal that says why is an error."""
        try:
            found = act()
            number = found.id if isinstance(found, RequestView) else found.request
            with self._lock:
                self.asked.append(number)
                self.said[f"{kind} 202"] += 1
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            with self._lock:
                self.said[f"{kind} {error.status}"] += 1

    def blow(self, seed: int) -> None:
        """One client's requests."""
        drawn = random.Random(seed)
        for _ in range(EACH):
            number = drawn.randrange(SWEEPS)
            kind, act = drawn.choice(self._kinds(number, drawn))
            self.ask(kind, act)

    def delete(self, number: int) -> None:
        """End a sweep and delete it three times at once, and at once ask for what ended the conductor."""
        client, sweep = self.client, self.sweeps[number]
        with suppress(ApiError):  # another client has deleted it
            while client.sweep(sweep).state not in SWEEP_ENDED:
                self.ask("cancel", lambda: client.cancel(sweep))
                time.sleep(0.5)
        acts: list[tuple[str, Callable[[], SweepRequest | RequestView]]] = [
            *[("delete", lambda: client.delete(sweep, f"storm-{number}"))] * 3,
            ("retry", lambda: client.retry(sweep)),
            ("priority", lambda: client.prioritize(sweep, 9)),
            ("extend", lambda: client.extend(sweep, body(number, 3))),
        ]
        with ThreadPoolExecutor(len(acts)) as pool:
            for done in [pool.submit(self.ask, *act) for act in acts]:
                done.result()

    def _kinds(self, number: int, drawn: random.Random) -> list[tuple[str, Callable[[], SweepRequest | RequestView]]]:
        client, sweep = self.client, self.sweeps[number]
        trial, cell = drawn.randrange(1, 4 * SWEEPS), drawn.randrange(3)
        return [
            ("cancel", lambda: client.cancel(sweep)),
            ("cancel cell", lambda: client.cancel(sweep, cell=cell)),
            ("cancel trial", lambda: client.cancel(sweep, trial=trial)),
            ("retry", lambda: client.retry(sweep)),
            ("retry cell", lambda: client.retry(sweep, cell=cell)),
            ("retry trial", lambda: client.retry(sweep, trial=trial)),
            ("retry failed", lambda: client.retry(sweep, only="failed")),
            ("retry all", lambda: client.retry(sweep, only="all")),
            ("pause", lambda: client.pause(sweep)),
            ("resume", lambda: client.resume(sweep)),
            ("priority", lambda: client.prioritize(sweep, drawn.randrange(-5, 6))),
            ("extend", lambda: client.extend(sweep, body(number, 3))),
            ("extend otherwise", lambda: client.extend(sweep, body(number + 1, 3))),
            ("delete", lambda: client.delete(sweep, f"storm-{number}")),
        ]


def test_a_storm_of_requests(installation: Installation) -> None:
    client = installation.client
    storm = Storm(client)
    conductor = installation._kept["conductor"].child.pid
    storm.sweeps = [client.submit(body(number)).id for number in range(SWEEPS)]
    with ThreadPoolExecutor(CLIENTS + 2) as pool:
        blowing = [pool.submit(storm.blow, seed) for seed in range(CLIENTS)]
        blowing += [pool.submit(storm.delete, number) for number in range(0, SWEEPS, 2)]
        for blow in blowing:
            blow.result()
    store = Store.open(installation.settings.database)
    installation.until(lambda: not [one for one in store.requests.pending() if one.kind != "delete"], "all is applied")
    for one in client.sweeps(SweepState.PAUSED):
        storm.ask("resume", lambda sweep=one.id: client.resume(sweep))  # type: ignore[misc]
    last = client.submit(spec(name="after")).id
    installation.until(lambda: not store.requests.pending() and not store.sweeps.active(), "all has ended")
    assert installation._kept["conductor"].child.pid == conductor
    assert installation.exits("conductor") == [], installation.log("conductor")[-3000:]
    assert client.sweep(last).state == SweepState.FINISHED
    storm.sweeps.append(last)
    storm.ask("delete", lambda: client.delete(last, "after"))  # it may be that the storm let none be deleted
    installation.until(lambda: not store.requests.pending(), "it is deleted")
    whole(store, storm)
    store.close()


def whole(store: Store, storm: Storm) -> None:
    """The database holds together, and every request has an outcome that its sender can see."""
    check(store)
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        requests = connection.execute(sa.select(schema.request)).all()
        states = set(connection.execute(sa.select(schema.sweep.c.state)).scalars())
        trials = set(connection.execute(sa.select(schema.trial.c.state)).scalars())
        alone = sa.select(schema.training.c.id).where(
            ~sa.exists().where(schema.trial.c.training_id == schema.training.c.id)
        )
        assert connection.execute(alone).all() == [], "trainings that no trial points to"
        left = set(connection.execute(sa.select(schema.sweep.c.id)).scalars())
    assert states <= SWEEP_ENDED
    assert trials <= set(TrialState)
    assert {one.id for one in requests} == set(storm.asked)
    assert all(one.applied and one.outcome for one in requests)
    deleted = {one.sweep_id for one in requests if one.outcome.startswith("deleted")}
    assert deleted == set(storm.sweeps) - left
    assert deleted, storm.said
    for number in storm.asked:
        assert storm.client.request(number).state in ("done", "refused")
    for sweep in deleted:
        with pytest.raises(ApiError, match="it was deleted at"):
            storm.client.sweep(sweep)
    assert {kind.rpartition(" ")[0] for kind in storm.said} >= {"cancel", "retry all", "extend", "delete"}
