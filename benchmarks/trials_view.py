"""How fast trials are found among 100,000: pages of a listing for a set of filters and sorts, as the API answers.

    python -m benchmarks.trials_view [--trials 100000] [--database-url postgresql+psycopg://...] [--rounds 7]

The rows are written as the conductor writes them: 16 losses x regularizers, 625 values of eta and a rate, 10 seeds, 32
metrics a trial, one in fifty failed. The database is a SQLite file, or an empty one that is named, or with `postgres`
one of a server from the wheel. Each question is asked over HTTP in process, with the number of all rows (`count`), and
timed over the rounds; beside it stands the CPU time of the process, which a busy machine does not lengthen as much.
"""

import argparse
import itertools
import json
import os
import platform
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from fastapi.testclient import TestClient

from api.main import create_app
from benchmarks.named_database import database
from orchestrator.record import schema
from orchestrator.record.database import chunked
from orchestrator.record.listed_tables import tag
from orchestrator.record.store import Store
from orchestrator.record.writes.submissions import NewSweep
from orchestrator.record.writes.trial_places import take_results
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.spec.slot import Slot
from orchestrator.views.planned import Candidate, Cell, PlannedTrial
from workers.contract import Recipe

LOSSES: Final = ("triplet", "semihard", "normalized_npair", "multi_similarity")
REGULARIZERS: Final = ("none", "l2", "sec", "svmax")
METRICS: Final = ("nmi", "f1", "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "norm_var")
SEEDS: Final = 10
QUESTIONS: Final[dict[str, dict[str, str]]] = {
    "no filter, newest": {},
    "best first": {"sort": "-map@r"},
    "one loss": {"where": "loss:triplet", "sort": "-map@r"},
    "loss, range, metric": {"where": "loss:triplet eta<0.5 map@r>.6", "sort": "-recall@1"},
    "no row": {"where": "eta<0.2 eta>0.8", "sort": "nmi"},
    "few rows": {"where": "map@r>.9", "sort": "eta"},
    "nearly all rows": {"where": "map@r>.1 nmi>.1 f1>.1 recall@1>.1", "sort": "-recall@8"},
    "failed": {"where": "state:failed", "sort": "-started"},
    "error": {"where": "error~memory", "sort": "trial"},
    "a word": {"where": "simil", "sort": "-map@r"},
    "three words": {"where": "simil sec 7", "sort": "loss"},
    "negation": {"where": "-loss:triplet -state:failed seed:3", "sort": "seconds"},
    "or": {"where": "(loss:triplet regularizer:sec) or (loss:semihard eta:0.1..0.2)", "sort": "-last/test/nmi"},
    "sorted by a label": {"where": "regularizer:sec,svmax", "sort": "loss"},
    "sorted by duration": {"sort": "-seconds"},
    "tag": {"where": "tag:paper", "sort": "-map@r"},
    "candidates, best first": {"of": "candidates", "sort": "-map@r"},
    "candidates, filtered": {"of": "candidates", "where": "loss:triplet eta<0.5 map@r>.6", "sort": "-recall@1"},
    "of one sweep": {"sweep": "1", "where": "eta>0.5", "sort": "-map@r"},
}


def planned(trials: int) -> Iterator[tuple[Cell, list[Candidate]]]:
    """Cells with their candidates."""
    cells = [*itertools.product(LOSSES, REGULARIZERS)]
    candidates = max(1, trials // (len(cells) * SEEDS))
    for index, (loss, regularizer) in enumerate(cells):
        tuned = [
            Candidate(index, at, {"regularizer.eta": f"{(at + 1) / candidates:.6g}", "optimizer.lr": f"{1e-5 * at:g}"})
            for at in range(candidates)
        ]
        yield Cell(index, {"loss": loss, "regularizer": regularizer}), tuned


def fill(store: Store, trials: int) -> int:
    """Write a sweep of finished and failed trials; gives how many."""
    fence = store.lease.acquire("benchmark", 36_000.0)
    assert fence is not None
    spec = {"name": "many", "tables": {"main": {"rows": ["loss"], "metrics": ["map@r", "recall@1", "nmi", "f1"]}}}
    new = NewSweep("many", str(uuid.uuid4()), "name: many\n", spec, trials, None, None, "hash")
    sweep = store.submissions.add_sweep(new).id
    plan = [*planned(trials)]
    recipe = Recipe.model_validate({"dataset": "digits", "loss": "triplet", "backbone": "mlp", "iterations": 1})
    rows = (
        PlannedTrial(one.cell, one.index, seed, {"seed": str(seed)}, recipe, f"{number:064x}", document={})
        for number, (one, seed) in enumerate(
            itertools.product([one for _, tuned in plan for one in tuned], range(SEEDS))
        )
    )  # fmt: skip
    candidates = [one for _, tuned in plan for one in tuned]
    store.writer(fence).sweeps.start(sweep, [one for one, _ in plan], candidates, rows, Slot(cpus=1), fresh=True)
    return finish(store, random.Random(7))


def finish(store: Store, chance: random.Random) -> int:
    """Give every training a result, and every trial its numbers, as the conductor does."""
    now = datetime.now(UTC)
    with store.database.writing() as connection:
        ids = list(connection.execute(sa.select(schema.trial.c.id).order_by(schema.trial.c.id)).scalars())
        for chunk in chunked(ids, 2_000):
            made = [result(chance, number, now) for number in chunk]
            for table in (schema.training, schema.trial):
                own = {column.name for column in table.columns}
                values: dict[str, Any] = {name: sa.bindparam(f"its_{name}") for name in made[0] if name in own}
                setting = sa.update(table).where(table.c.id == sa.bindparam("its_id")).values(values)
                kept = {f"its_{name}" for name in values} | {"its_id"}
                connection.execute(
                    setting, [{f"its_{k}": v for k, v in {"id": n, **one}.items() if f"its_{k}" in kept}
                              for n, one in zip(chunk, made, strict=True)],
                )  # fmt: skip
            take_results(connection, chunk)
        connection.execute(
            sa.insert(tag),
            [{"kind": "trial", "sweep_id": 1, "entity": number, "tag": "paper"} for number in ids[::1000]],
        )
    with store.database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return len(ids)


def result(chance: random.Random, number: int, now: datetime) -> dict[str, Any]:
    """The columns of a training and of its trial."""
    if number % 50 == 0:
        error = "OutOfMemoryError: CUDA out of memory" if number % 100 == 0 else "ValueError: no such class"
        return {
            "state": "failed", "error": error, "ended": now, "started": now, "metrics": None, "score": None,
            "seconds": None,
        }  # fmt: skip
    middle = chance.random()
    metrics = {
        f"{mark}/{split}/{name}": min(1.0, max(0.0, chance.gauss(middle, 0.05)))
        for mark in ("best", "last")
        for split in ("test", "validation")
        for name in METRICS
    }
    return {
        "state": "finished", "metrics": metrics, "score": metrics["best/validation/map@r"], "error": None,
        "seconds": chance.uniform(10, 900), "started": now, "ended": now,
    }  # fmt: skip


def asked(http: TestClient, question: dict[str, str], rounds: int) -> dict[str, Any]:
    """Milliseconds of a question over the rounds, its pages by cursor among them, and how many rows it has."""
    times: list[float] = []
    worked: list[float] = []
    page: dict[str, Any] = {}
    for turn in range(rounds + 1):
        cursor = {"cursor": page["next_cursor"]} if turn % 2 and page.get("next_cursor") else {}
        began, busy = time.perf_counter(), time.process_time()
        answer = http.get("/v1/trials", params={"count": "true", "limit": "50", **question, **cursor})
        times.append(1000 * (time.perf_counter() - began))
        worked.append(1000 * (time.process_time() - busy))
        page = answer.raise_for_status().json()
    return {"times": times[1:], "worked": worked[1:], "rows": page["total"]}


def percentile(times: list[float], share: float) -> float:
    """The value that so many of the times do not pass."""
    return sorted(times)[min(len(times) - 1, round(share * (len(times) - 1)))]


def main() -> None:
    """Print what each question took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--database-url", default="", help="an empty database, or `postgres`")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        url = database(chosen.database_url, Path(home), stack)
        settings = Settings(home=Path(home) / "home", database_url=url)
        began = time.perf_counter()
        service = Service.open(settings)
        stack.callback(service.close)
        store = Store.open(settings.database)
        stack.callback(store.close)
        trials = fill(store, chosen.trials)
        filled = time.perf_counter() - began
        app = create_app(service, settings)
        bearer = {"Authorization": f"Bearer {app.state.access.identity.secret}"}
        http = TestClient(app, base_url="http://127.0.0.1:8787", headers=bearer)
        told = {name: asked(http, question, chosen.rounds) for name, question in QUESTIONS.items()}
        every = [one for answers in told.values() for one in answers["times"]]
        busy = [one for answers in told.values() for one in answers["worked"]]
        facts = {
            "database": store.database.engine.dialect.name, "trials": trials, "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
            "filled, seconds": round(filled, 1),
            "all, ms": {"p50": round(statistics.median(every)), "p95": round(percentile(every, 0.95))},
            "all, CPU ms of this process": {
                "p50": round(statistics.median(busy)), "p95": round(percentile(busy, 0.95)),
            },
            "questions": {
                name: {
                    "rows": one["rows"], "p50": round(statistics.median(one["times"])),
                    "p95": round(percentile(one["times"], 0.95)), "CPU, p50": round(statistics.median(one["worked"])),
                }
                for name, one in told.items()
            },
        }  # fmt: skip
        print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
