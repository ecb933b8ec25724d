"""What it costs to see one project of many: questions of an administrator and of a member of one of 50 projects.

    python -m benchmarks.shared_views [--projects 50] [--trials 100000] [--database-url postgres] [--rounds 5]

Every project is closed, with one sweep of the rows of `benchmarks.trials_view`, of which one in twenty trials waits. An
administrator's queries read the tables, a member's the views before them. Each question is asked over HTTP in process;
what is printed is the CPU time of this process, and with Postgres, whose server is another one, the time by the clock.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from fastapi.testclient import TestClient

from api.main import create_app
from benchmarks.named_database import database
from benchmarks.trials_view import SEEDS, finish, planned
from orchestrator.record import schema
from orchestrator.record.store import Store
from orchestrator.record.writes.submissions import NewSweep
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.spec.slot import Slot
from orchestrator.views.callers import Caller, Role, Scope, calling
from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.planned import PlannedTrial
from workers.contract import Recipe

WAITING_OF: Final = 20
URL: Final = "http://127.0.0.1:8787"


def caller(store: Store, user: str) -> Caller:
    """A user, as who asks."""
    found = store.accounts.by_name(user)
    assert found is not None
    return found


def fill(store: Store, service: Service, projects: int, trials: int) -> int:
    """A closed project with a member and a running sweep, so many times; gives the number of trials."""
    fence = store.lease.acquire("benchmark", 36_000.0)
    assert fence is not None
    table = {"rows": ["loss"], "columns": ["regularizer"], "metrics": ["map@r", "recall@1"]}
    spec = {"version": 1, "name": "many", "tables": {"main": table}}
    recipe = Recipe.model_validate({"dataset": "digits", "loss": "triplet", "backbone": "mlp", "iterations": 1})
    number = itertools.count()
    for at in range(projects):
        name = f"project-{at}"
        service.people.add_project(name, everyone=False)
        service.people.add_user(f"member-{at}", Role.MEMBER, name)
        plan = [*planned(trials // projects)]
        candidates = [one for _, tuned in plan for one in tuned]
        with calling(caller(store, f"member-{at}")):
            new = NewSweep("many", str(uuid.uuid4()), "name: many\n", spec, trials // projects, None, None, "hash")
            sweep = store.submissions.add_sweep(new).id
        rows = (
            PlannedTrial(one.cell, one.index, seed, {"seed": str(seed)}, recipe, f"{next(number):064x}", document={})
            for one, seed in itertools.product(candidates, range(SEEDS))
        )
        store.writer(fence).sweeps.start(sweep, [one for one, _ in plan], candidates, rows, Slot(cpus=1), fresh=True)
    total = finish(store, random.Random(7))
    none_yet = {"state": TrialState.WAITING, "metrics": None, "score": None, "started": None, "ended": None}
    with store.database.writing() as connection:
        for rows_of in (schema.trial, schema.training):
            its = {key: value for key, value in none_yet.items() if key in rows_of.columns}
            connection.execute(sa.update(rows_of).where(rows_of.c.id % WAITING_OF == 7).values(its))
        connection.execute(sa.update(schema.sweep).values(state=SweepState.RUNNING))
    with store.database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return total


def questions(sweep: int, trial: int) -> dict[str, tuple[str, dict[str, str]]]:
    """By name, a path with its query; of one sweep and one of its trials."""
    page = {"limit": "50", "count": "true"}
    return {
        "list of sweeps": ("/v1/sweeps", {}),
        "page of the list": ("/", {}),
        "one sweep": (f"/v1/sweeps/{sweep}", {}),
        "page of a sweep": (f"/sweeps/{sweep}", {}),
        "trials of a sweep": (f"/v1/sweeps/{sweep}/trials", {"limit": "50"}),
        "a cell with its trials": (f"/v1/sweeps/{sweep}/cells/3", {}),
        "one trial": (f"/v1/trials/{trial}", {}),
        "table": (f"/v1/sweeps/{sweep}/tables/main", {"format": "csv"}),
        "trials of all, newest": ("/v1/trials", page),
        "trials of all, best first": ("/v1/trials", {**page, "sort": "-map@r"}),
        "trials of all, filtered": ("/v1/trials", {**page, "where": "loss:triplet map@r>.6", "sort": "-recall@1"}),
        "candidates of all, best first": ("/v1/trials", {**page, "of": "candidates", "sort": "-map@r"}),
        "columns": ("/v1/columns", {}),
        "cluster and queue": ("/v1/cluster", {}),
        "quotas": ("/v1/quotas", {}),
    }


def timed(ask: Callable[[], Any], rounds: int, clock: Callable[[], float]) -> float:
    """Milliseconds, the middle of the rounds after a first one."""
    times = []
    for _ in range(rounds + 1):
        began = clock()
        ask()
        times.append(1000 * (clock() - began))
    return round(statistics.median(times[1:]), 1)


def events(store: Store, user: str) -> Callable[[], Any]:
    """What the feed asks for each listener: which of the sweeps that changed it sees."""

    def ask() -> None:
        with calling(caller(store, user)):
            store.changes.seen(range(1, 51))

    return ask


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what each question took each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=50)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--database-url", default="", help="an empty database, or `postgres`")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        url = database(chosen.database_url, Path(home), stack)
        clock = time.perf_counter if chosen.database_url else time.process_time
        settings = Settings(home=Path(home) / "home", database_url=url)
        service = Service.open(settings)
        stack.callback(service.close)
        store = Store.open(settings.database)
        stack.callback(store.close)
        trials = fill(store, service, chosen.projects, chosen.trials)
        service.people.add_user("root", Role.ADMIN, None)
        app, sweep = create_app(service, settings), chosen.projects // 2
        told: dict[str, dict[str, float]] = {}
        for who, scope in (("root", Scope.ADMIN), (f"member-{sweep - 1}", Scope.WRITE)):
            token = service.people.tokens.add(who, "benchmark", scope, 1).token
            http = TestClient(app, base_url=URL, headers={"Authorization": f"Bearer {token}"})
            column = "administrator" if who == "root" else "member"
            for name, (path, given) in questions(sweep, trials // chosen.projects * (sweep - 1) + 20).items():

                def ask(path: str = path, given: dict[str, str] = given, http: TestClient = http) -> None:
                    http.get(path, params=given).raise_for_status()

                told.setdefault(name, {})[column] = timed(ask, chosen.rounds, clock)
            told.setdefault("whose events", {})[column] = timed(events(store, who), chosen.rounds, clock)
        facts = {
            "database": store.database.engine.dialect.name, "projects": chosen.projects, "trials": trials,
            "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
            "ms": "by the clock" if chosen.database_url else "of CPU", "questions": told,
        }  # fmt: skip
        print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
