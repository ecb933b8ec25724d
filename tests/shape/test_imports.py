"""The contracts between the rooms hold, and each of them fires when it is broken."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS = {contract["name"] for contract in SETTINGS["contracts"]}
ROOMS = ("workers", "orchestrator", "api", "dashboards")

ONE_WAY = "Imports run one way: api, dashboards, orchestrator, workers"
CYCLES = "No cycles"
WORKERS = "Of the workers, others see the contract, the catalog and the scratch folder"
VIEWS = "Of the orchestrator, the dashboards see the views"
CONDUCTOR = "The conductor is a process of its own"
FLOORS = "The rooms of the orchestrator stand on one another"
JOIN = "Only conduct and service join the four verbs"
TORCH = "Nobody upstream of the workers reaches torch"
LIGHT = "The contract, the catalog and the registry reach no torch"
REACH = "Neither the API nor the dashboards reach ray, optuna or mlflow"
RAY = "Ray is at home in orchestrator.run.ray"
OPTUNA = "Optuna is at home in orchestrator.run.optuna"
MLFLOW = "MLflow is at home in orchestrator.record.mlflow"
DATABASE = "The database is at home in orchestrator.record"
FIGURES = "Figures are at home in orchestrator.publish, and shown in api.notebooks"
ARROW = "Arrow is at home in orchestrator.publish and api.notebooks, S3 in orchestrator.host.bucket"
HTTP = "HTTP is at home in api"
OPENID = "OpenID Connect is at home in api.oidc"
TERMINAL = "The terminal is at home in api"
HTML = "HTML is at home in dashboards"
TRACES = "Traces are at home in orchestrator.host.traces"
PROMETHEUS = "Prometheus is at home in api.telemetry"

PLANTED = [
    ("workers/data/listing.py", "import orchestrator.views.errors", {ONE_WAY}),
    ("orchestrator/views/events.py", "import dashboards", {ONE_WAY}),
    ("dashboards/__init__.py", "import api", {ONE_WAY}),
    ("workers/catalog/wording.py", "import workers.training.loop", {CYCLES, TORCH, LIGHT}),
    ("orchestrator/views/events.py", "import workers.catalog.signature", {WORKERS}),
    ("orchestrator/run/engine.py", "from workers import registry", {WORKERS}),
    ("api/problems.py", "import workers.registry", {WORKERS}),
    ("dashboards/__init__.py", "import orchestrator.views.errors", {VIEWS}),
    ("orchestrator/service/service.py", "import orchestrator.conduct.conductor", {CONDUCTOR, FLOORS, REACH}),
    ("orchestrator/run/engine.py", "import orchestrator.record.tracker", {FLOORS}),
    ("orchestrator/plan/reading/document.py", "import orchestrator.publish.tables.table", {FLOORS}),
    ("orchestrator/publish/statistics.py", "import orchestrator.plan.reading.document", {FLOORS}),
    ("orchestrator/record/tracker.py", "import orchestrator.run.engine", {FLOORS}),
    ("orchestrator/views/events.py", "import orchestrator.host.private", {FLOORS, CYCLES}),
    ("orchestrator/spec/spec.py", "import orchestrator.plan.grid", {FLOORS, JOIN, CYCLES}),
    ("orchestrator/spec/slot.py", "import orchestrator.views.resources", {FLOORS, CYCLES}),
    ("api/problems.py", "import orchestrator.run.engine", {JOIN}),
    ("orchestrator/views/events.py", "import torch", {TORCH}),
    ("orchestrator/publish/statistics.py", "from sklearn.cluster import KMeans", {TORCH}),
    ("orchestrator/run/engine.py", "def late():\n    import pytorch_metric_learning.losses", {TORCH}),
    ("workers/contract.py", "import torch", {TORCH, LIGHT}),
    ("workers/catalog/signature.py", "import faiss", {TORCH, LIGHT}),
    ("workers/registry.py", "import torch", {LIGHT}),
    ("orchestrator/service/service.py", "import orchestrator.record.mlflow.client", {REACH}),
    ("orchestrator/service/service.py", "import orchestrator.run.ray.engine", {REACH}),
    ("api/main.py", "import ray", {RAY, REACH}),
    ("workers/embeddings/geometry.py", "import ray", {RAY}),
    ("orchestrator/record/tracker.py", "import ray.tune", {RAY, REACH}),
    ("workers/embeddings/geometry.py", "import optuna", {OPTUNA}),
    ("orchestrator/service/service.py", "import orchestrator.run.optuna.samplers", {REACH}),
    ("workers/embeddings/geometry.py", "import mlflow", {MLFLOW}),
    ("orchestrator/run/engine.py", "from mlflow import MlflowClient", {MLFLOW}),
    ("workers/embeddings/geometry.py", "import sqlalchemy", {DATABASE}),
    ("api/access/auth.py", "import authlib", {OPENID}),
    ("orchestrator/run/engine.py", "import alembic", {DATABASE}),
    ("dashboards/__init__.py", "import vl_convert", {FIGURES}),
    ("orchestrator/views/events.py", "import altair", {FIGURES}),
    ("orchestrator/record/json_floats.py", "import pyarrow.parquet", {ARROW}),
    ("orchestrator/publish/statistics.py", "import pyarrow", {ARROW}),
    ("orchestrator/views/events.py", "import fastapi", {HTTP}),
    ("workers/embeddings/geometry.py", "import httpx", {HTTP}),
    ("orchestrator/views/events.py", "import typer", {TERMINAL}),
    ("workers/embeddings/geometry.py", "import rich.progress", {TERMINAL}),
    ("orchestrator/publish/statistics.py", "import jinja2", {HTML}),
    ("api/problems.py", "import jinja2", {HTML}),
    ("api/client.py", "import pyarrow", {ARROW}),
    ("api/problems.py", "import prometheus_client", {PROMETHEUS}),
    ("orchestrator/run/engine.py", "import opentelemetry.trace", {TRACES}),
]


def broken(tree: Path) -> set[str]:
    """The names of the contracts that are broken in a copy of the repository."""
    run = "from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-c", run, "--no-cache", "--no-logo"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)(?: \(.*\))?$", done.stdout, re.MULTILINE))
    assert set(verdicts) == CONTRACTS, done.stdout + done.stderr
    found = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert (done.returncode == 0) == (not found), done.stdout
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the rooms and of their contracts."""
    copy = tmp_path_factory.mktemp("tree")
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__", "templates", "static")
        shutil.copytree(ROOT / room, copy / room, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


@contextmanager
def planted(path: Path, line: str) -> Iterator[None]:
    """`line` at the end of a module, for a while."""
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def test_every_contract_is_kept(tree: Path) -> None:
    assert broken(tree) == set()


@pytest.mark.parametrize(("module", "line", "fires"), PLANTED)
def test_a_planted_violation_fires(tree: Path, module: str, line: str, fires: set[str]) -> None:
    with planted(tree / module, line):
        assert broken(tree) == fires


def test_every_contract_has_a_planted_violation() -> None:
    assert set().union(*(fires for _, _, fires in PLANTED)) == CONTRACTS


def test_the_api_and_the_conductor_load_nothing_heavy() -> None:
    """What the contracts say of the source, seen while it runs."""
    code = "import sys, api.main, api.cli, orchestrator.conduct.conductor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    heavy = {"torch", "sklearn", "faiss", "ray", "mlflow", "pandas", "scipy", "altair", "vl_convert"}
    assert not heavy & set(done.stdout.split())
