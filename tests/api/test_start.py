"""What a command waits for before it begins: counted in modules, which no load of the machine changes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SERVERS = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "ray", "mlflow", "optuna", "altair", "scipy"}
SERVERS |= {"numpy", "pyarrow", "jinja2", "vl_convert", "psutil", "yaml", "torch", "asyncio"}
CODE = """
import sys
sys.argv = ["metricsweep", *{arguments}]
from api.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
print(code, *sys.modules, file=sys.stderr)
"""


def loaded(arguments: list[str]) -> set[str]:
    """The packages that a command has imported when it ends, and its exit code."""
    code = CODE.format(arguments=arguments)
    ours = {"METRICSWEEP_URL": "http://127.0.0.1:9", "METRICSWEEP_HOME": "/nowhere", "PATH": "", "HOME": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=ours, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=str)
def test_the_help_needs_nothing_of_the_server(arguments: list[str]) -> None:
    assert SERVERS & loaded(arguments) == set()


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["show", "7"], ["watch", "7"], ["table", "7"], ["cancel", "7"], ["submit", "sweeps/digits.yaml"]],
    ids=str,
)
def test_a_client_needs_nothing_of_the_server(arguments: list[str]) -> None:
    found = loaded(arguments)
    assert "3" in found  # no server answered: it went as far as a client goes
    assert SERVERS & found == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit", "sweeps/digits.yaml", "--set", "select.split=test"],
        ["submit", "sweeps/digits.yaml", "--only", "loss=triplet"],
        ["submit", "sweeps/digits.yaml", "--without", "loss=triplet"],
        ["extend", "7", "sweeps/digits.yaml", "--set", "repeat.seed=[0, 1]"],
        ["import", "tests/plan/theirs.csv", "7", "--unit", "percent", "--row", "method"],
    ],
    ids=str,
)
def test_an_edited_spec_needs_its_reader_and_nothing_of_the_server(arguments: list[str]) -> None:
    found = loaded(arguments)
    assert "3" in found
    assert (SERVERS - {"yaml"}) & found == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["published"],
        ["published", "SEC-T3"],
        ["published", "SEC-T3", "--like", "sweeps/sec_t3.yaml", "--format", "latex"],
        ["expand", "sweeps/digits.yaml", "--home", "/nowhere"],
        ["expand", "sweeps/sec_t3.yaml", "--only", "loss=triplet", "--home", "/nowhere"],
    ],
    ids=str,
)
def test_what_asks_no_server_brings_none(arguments: list[str]) -> None:
    found = loaded(arguments)
    assert "None" in found or "0" in found
    assert (SERVERS - {"yaml"}) & found == set()


def printed(code: str) -> str:
    """What a Python of its own prints, without the home that a demo may have left in this folder."""
    homeless = {**os.environ, "METRICSWEEP_HOME": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True, env=homeless
    )
    return done.stdout.strip()


def test_a_first_start_waits_for_no_database() -> None:
    """What is looked at before anything is started needs the database's libraries only where there is a database."""
    code = """
import sys, tempfile
from pathlib import Path
import api.local.serve
from api.local.refusals import refuse_wrong_start
from orchestrator.settings import Settings
with tempfile.TemporaryDirectory() as home:
    refuse_wrong_start(Settings(home=Path(home)))
print({"sqlalchemy", "alembic"} & set(sys.modules))
"""
    assert printed(code) == "set()"


def test_whether_a_conductor_lives_is_asked_without_one(migrated: Callable[[Path], Path], tmp_path: Path) -> None:
    """Compose asks every half minute, on each machine that has a conductor."""
    migrated(tmp_path)
    code = f"""
import os, sys
os.environ["METRICSWEEP_HOME"] = {str(tmp_path)!r}
from orchestrator.__main__ import main
main(["healthy"])
rooms = {{".".join(name.split(".")[:2]) for name in sys.modules}}
print(sorted({{"orchestrator.conduct", "orchestrator.run", "orchestrator.plan", "alembic", "ray", "numpy"}} & rooms))
"""
    assert printed(code).splitlines() == ["no conductor holds the lease", "[]"]
