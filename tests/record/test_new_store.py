"""A store of MLflow that we make is one that MLflow makes, and a sweep is shown in it while neither is there."""

import importlib.metadata
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

from orchestrator.record.mlflow import new_store

ANEW = "write what sqlite_master says of a store that MLflow has made into orchestrator/record/mlflow/new_store.sql"
UNTOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from orchestrator.record.mlflow import new_store
from orchestrator.record.mlflow.backend_store import BackendStore
from orchestrator.record.mlflow.store_tracker import StoreTracker
from orchestrator.record.tracker import RunMirror

file = Path(sys.argv[1])
assert new_store.make(file)
tracker = StoreTracker(BackendStore(file), lambda memory: sys.exit("the server was asked"))
experiment = tracker.experiment("digits #1", "a-uid", {"metricsweep.name": "digits"})
now = datetime(2026, 1, 2, tzinfo=UTC)
run = RunMirror(
    kind="sweep", key="a-uid/summary", run=None, name="tables", status="FINISHED", started=now, ended=now,
    sweep="a-uid", metrics={"trials finished": 3.0}, files={"tables/main/main.tex": b"toprule"},
)
ident = tracker.mirror(experiment, run)
assert tracker.experiment("digits #1", "a-uid", {"metricsweep.name": "renamed"}) == experiment
assert tracker.unite(experiment, lambda keys: {}) == 0
tracker.remove(tracker.experiment("doomed", "another-uid", {}))
assert not {"mlflow", "pandas"} & sys.modules.keys(), "MLflow takes seconds to load"
print(experiment, ident)
"""


def clauses(sql: str) -> list[str]:
    """The columns and constraints of a statement, blanks aside: MLflow's migrations put them in the order of a set."""
    head, _, rest = re.sub(r"\s+", " ", sql).partition("(")
    parts, depth = [""], 0
    for character in rest.rstrip().removesuffix(")"):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [head.strip(), *sorted(part.strip() for part in parts)]


def tables(file: Path) -> dict[str, Any]:
    """What a store holds: statements by name, blanks aside, and rows without the times of making."""
    with closing(sqlite3.connect(file)) as connection:
        listed = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        held = {name: clauses(sql) for name, sql in listed}
        rows = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall() for name, sql in listed if "TABLE" in sql[:20]
        }
    without_times = {name: [row[:4] for row in its] for name, its in rows.items() if its}
    return {"statements": held, "rows": without_times}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    file = tmp_path / "mlflow.db"
    assert new_store.make(file)
    return file


def test_it_is_the_one_that_mlflow_makes(made: Path, tmp_path: Path) -> None:
    SqlAlchemyStore(f"sqlite:///{tmp_path / 'theirs.db'}", new_store.ARTIFACTS)
    assert tables(made) == tables(tmp_path / "theirs.db"), ANEW
    assert importlib.metadata.version("mlflow") == new_store.VERSION, ANEW


def test_one_that_is_there_is_kept_and_nothing_is_left_beside_it(made: Path) -> None:
    before = made.read_bytes()
    assert new_store.make(made)
    assert made.read_bytes() == before
    assert list(made.parent.iterdir()) == [made]


def test_another_mlflow_makes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_store, "VERSION", "3.17.1")
    assert not new_store.make(tmp_path / "mlflow.db")
    assert not list(tmp_path.iterdir())


def test_a_sweep_is_shown_before_mlflow_is_there(tmp_path: Path) -> None:
    """By a process that never loads MLflow; then MLflow finds it all, to the row as it would have written it."""
    file = tmp_path / "mlflow.db"
    told = subprocess.run([sys.executable, "-c", UNTOLD, str(file)], check=True, capture_output=True, text=True)
    ident, run_id = told.stdout.split()
    theirs = SqlAlchemyStore(f"sqlite:///{file}", new_store.ARTIFACTS)
    experiment = theirs.get_experiment(ident)
    assert (experiment.name, experiment.artifact_location) == ("digits #1", f"{new_store.ARTIFACTS}{ident}")
    assert experiment.tags["metricsweep.sweep"] == "a-uid"
    assert experiment.tags["metricsweep.name"] == "renamed"
    run = theirs.get_run(run_id)
    assert run.info.artifact_uri == f"{new_store.ARTIFACTS}{ident}/{run_id}/artifacts"
    assert run.data.metrics == {"trials finished": 3.0}
    kept = tmp_path / "mlartifacts" / ident / run_id / "artifacts"
    assert [str(each.relative_to(kept)) for each in kept.rglob("*") if each.is_file()] == ["tables/main/main.tex"]
    another = theirs.create_experiment("theirs")
    with closing(sqlite3.connect(file)) as connection:
        active = "experiment_id > 0 AND lifecycle_stage = 'active'"
        rows = connection.execute(f"SELECT * FROM experiments WHERE {active} ORDER BY experiment_id").fetchall()
        names = [column[0] for column in connection.execute("SELECT * FROM experiments LIMIT 0").description]
    mine, its = (dict(zip(names, row, strict=True)) for row in rows)
    drawn = {"experiment_id", "name", "creation_time", "last_update_time", "artifact_location"}
    assert {key: mine[key] for key in names if key not in drawn} == {key: its[key] for key in names if key not in drawn}
    assert its["artifact_location"] == f"{new_store.ARTIFACTS}{another}"
    assert abs(mine["creation_time"] - datetime.now(UTC).timestamp() * 1000) < 3_600_000
