"""The contracts between the rooms hold, and each of them fires when it is broken."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
FIGURES = "Figures are at home in orchestrator.publish, and shown in api.notebook"
ARROW = "Arrow is at home in orchestrator.publish and api.notebook, S3 in orchestrator.host.storage"
HTTP = "HTTP is at home in api"
OPENID = "OpenID Connect is at home in api.auth.oidc"
TERMINAL = "The terminal is at home in api"
HTML = "HTML is at home in dashboards"
TRACES = "Traces are at home in orchestrator.host.tracing"
PROMETHEUS = "Prometheus is at home in api.telemetry"

PLANTED = [
    ("workers/data/listing.py", "import orchestrator.views.errors", {ONE_WAY}),
    ("orchestrator/views/runs.py", "import dashboards", {ONE_WAY}),
    ("dashboards/__init__.py", "import api", {ONE_WAY}),
    ("workers/catalog/wording.py", "import workers.training.loop", {CYCLES, TORCH, LIGHT}),
    ("orchestrator/views/runs.py", "import workers.catalog.source", {WORKERS}),
    ("orchestrator/run/engine.py", "from workers import registry", {WORKERS}),
    ("api/problems.py", "import workers.registry", {WORKERS}),
    ("dashboards/__init__.py", "import orchestrator.views.errors", {VIEWS}),
    ("orchestrator/service/service.py", "import orchestrator.conduct.conductor", {CONDUCTOR, FLOORS, REACH}),
    ("orchestrator/run/engine.py", "import orchestrator.record.mlflow.tracker", {FLOORS}),
    ("orchestrator/plan/grid.py", "import orchestrator.publish.tables.build", {FLOORS}),
    ("orchestrator/publish/aggregate.py", "import orchestrator.plan.grid", {FLOORS}),
    ("orchestrator/record/mlflow/tracker.py", "import orchestrator.run.engine", {FLOORS}),
    ("orchestrator/views/runs.py", "import orchestrator.host.files", {FLOORS, CYCLES}),
    ("orchestrator/spec/spec.py", "import orchestrator.plan.grid", {FLOORS, JOIN, CYCLES}),
    ("orchestrator/spec/spec.py", "import orchestrator.views.operations", {FLOORS, CYCLES}),
    ("api/problems.py", "import orchestrator.run.engine", {JOIN}),
    ("orchestrator/views/runs.py", "import torch", {TORCH}),
    ("orchestrator/publish/aggregate.py", "from sklearn.cluster import KMeans", {TORCH}),
    ("orchestrator/run/engine.py", "def late():\n    import pytorch_metric_learning.losses", {TORCH}),
    ("workers/contract.py", "import torch", {TORCH, LIGHT}),
    ("workers/catalog/source.py", "import faiss", {TORCH, LIGHT}),
    ("workers/registry.py", "import torch", {LIGHT}),
    ("orchestrator/service/service.py", "import orchestrator.record.mlflow.client", {REACH}),
    ("orchestrator/service/service.py", "import orchestrator.run.ray.engine", {REACH}),
    ("api/main.py", "import ray", {RAY, REACH}),
    ("workers/geometry.py", "import ray", {RAY}),
    ("orchestrator/record/outbox.py", "import ray.tune", {RAY, REACH}),
    ("workers/geometry.py", "import optuna", {OPTUNA}),
    ("orchestrator/service/service.py", "import orchestrator.run.optuna", {REACH}),
    ("workers/geometry.py", "import mlflow", {MLFLOW}),
    ("orchestrator/run/engine.py", "from mlflow import MlflowClient", {MLFLOW}),
    ("workers/geometry.py", "import sqlalchemy", {DATABASE}),
    ("api/auth/gate.py", "import authlib", {OPENID}),
    ("orchestrator/run/engine.py", "import alembic", {DATABASE}),
    ("dashboards/__init__.py", "import vl_convert", {FIGURES}),
    ("orchestrator/views/runs.py", "import altair", {FIGURES}),
    ("orchestrator/record/columns.py", "import pyarrow.parquet", {ARROW}),
    ("orchestrator/publish/aggregate.py", "import pyarrow", {ARROW}),
    ("orchestrator/views/runs.py", "import fastapi", {HTTP}),
    ("workers/geometry.py", "import httpx", {HTTP}),
    ("orchestrator/views/runs.py", "import typer", {TERMINAL}),
    ("workers/geometry.py", "import rich.progress", {TERMINAL}),
    ("orchestrator/publish/aggregate.py", "import jinja2", {HTML}),
    ("api/problems.py", "import jinja2", {HTML}),
    ("api/client.py", "import pyarrow", {ARROW}),
    ("api/problems.py", "import prometheus_client", {PROMETHEUS}),
    ("orchestrator/run/engine.py", "import opentelemetry.trace", {TRACES}),
]


def broken_in(root: Path) -> set[str]:
    """The contracts that `lint-imports` finds broken in a copy of the rooms, as it is now."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=root, env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)(?: \(.*\))?$", done.stdout, re.MULTILINE))
    assert set(verdicts) == CONTRACTS, done.stdout + done.stderr
    found = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert done.returncode == bool(found)
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


def test_the_contracts_hold(tree: Path) -> None:
    assert broken_in(tree) == set()


@contextmanager
def planted(path: Path, line: str) -> Iterator[None]:
    """`line` at the end of a module, for a while."""
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


Violation = tuple[str, str, set[str]]


def together() -> list[list[Violation]]:
    """Violations of different modules and contracts, so that what is broken together says which of them fired."""
    groups: list[list[Violation]] = []
    for one in PLANTED:
        fits = (group for group in groups if all(one[0] != other[0] and not one[2] & other[2] for other in group))
        group = next(fits, None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


@pytest.fixture(scope="module")
def broken(tree: Path) -> dict[tuple[str, str], set[str]]:
    """The contracts that each violation breaks: looked for in groups, and one by one where a group breaks others."""
    found = {}
    for group in together():
        with ExitStack() as plants:
            for module, line, _ in group:
                plants.enter_context(planted(tree / module, line))
            whole = broken_in(tree)
        if whole == set().union(*(fires for _, _, fires in group)):
            found |= {(module, line): fires for module, line, fires in group}
            continue
        for module, line, _ in group:
            with planted(tree / module, line):
                found[module, line] = broken_in(tree)
    return found


def test_each_planted_violation_fires(broken: dict[tuple[str, str], set[str]]) -> None:
    assert broken == {(module, line): fires for module, line, fires in PLANTED}
    assert set().union(*broken.values()) == CONTRACTS, "each contract has a planted violation"


def test_the_api_and_the_conductor_load_nothing_heavy() -> None:
    """What the contracts say of the source, seen while it runs."""
    code = "import sys, api.main, api.cli, orchestrator.conduct.conductor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    heavy = {"torch", "sklearn", "faiss", "ray", "mlflow", "pandas", "scipy"}
    assert not heavy & set(done.stdout.split())


INTERNALS = ("h11", "uvicorn.protocols", "uvicorn.server", "mlflow.server", "mlflow.cli", "mlflow.store")
"""What no product package may import. import-linter knows packages of others by their roots alone."""


def reached(source: str) -> set[str]:
    """The modules among INTERNALS that a module names: in an import, or as an attribute of a package."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            named.add(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named |= {
                word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
            }
    return {inner for inner in INTERNALS for name in named if f"{name}.".startswith(f"{inner}.")}


def test_no_package_reaches_into_a_dependency() -> None:
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): inner for file in files if (inner := reached(file.read_text()))}
    assert found == {}
    planted = {
        "import h11": "h11",
        "def late():\n    from uvicorn.protocols.http.h11_impl import H11Protocol": "uvicorn.protocols",
        "from uvicorn import server": "uvicorn.server",
        "import mlflow\nmlflow.server._exec_cmd = print": "mlflow.server",
        "from mlflow.cli import cli": "mlflow.cli",
        "import importlib\nimportlib.import_module('mlflow.store.tracking')": "mlflow.store",
        "import mlflow.tracking, httpx\nfrom uvicorn import Config": None,
    }
    assert {source: reached(source) for source in planted} == {
        source: {inner} if inner else set() for source, inner in planted.items()
    }
