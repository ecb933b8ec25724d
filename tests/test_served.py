"""What one real service shows: a killed conductor, and docs/tutorial.md and docs/deploy.md followed to the letter."""

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from stat import S_ISLNK, S_ISSOCK

import httpx
import pytest
import typer
import yaml

from api.cli import app
from orchestrator.host.identity import made_for
from orchestrator.run.slurm import SlotJob
from orchestrator.settings import Settings
from orchestrator.views.states import TrialState
from tests.conftest import ROOT
from tests.served import UNHURRIED, Served, conductor_of, until
from tests.test_compose import SETTINGS, ray_knows

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
SMALL = """
version: 1
name: followed
recipe:
  dataset: digits
  backbone: {name: mlp, width: 16}
  embedding: 8
  loss: triplet
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 4
  validation: {name: class_holdout, folds: 3, fold: 0}
slot: {cpus: 1, gpus: 0}
tables: {main: {rows: [loss], columns: [dataset], metrics: [map@r]}}
"""
"""In place of the spec of 200 trainings that docs/deploy.md submits."""
ELSEWHERE = ("make install", "export PATH", "metricsweep serve", "ssh ")
"""What the fixtures have done already, or another machine does."""


ADOPTED = "2 attempts were left running; going on with them"


@pytest.mark.ray
def test_a_sweep_goes_on_where_it_was_when_its_conductor_is_killed(served_home: Served) -> None:
    client, serve, home = served_home.client, served_home.process, served_home.home
    before = set((home / "storage").glob("*/*/spool.jsonl"))  # of other tests, whose service it is too
    hold = home / "hold"  # while it is there a training takes 200 s, so that both slots train at the kill
    hold.touch(mode=0o600)
    held = {**UNHURRIED, "recipe": {**UNHURRIED["recipe"], "loss": {"name": "unhurried", "held": str(hold)}}}
    sweep = client.submit(yaml.safe_dump(held).encode()).id

    def both_train() -> bool:
        return sum(trial.step > 0 for trial in client.trials(sweep, TrialState.RUNNING)) == 2

    log = home / "logs" / "conductor.log"
    until(both_train, "both slots train")
    victim = conductor_of(serve)
    assert victim is not None
    victim.send_signal(signal.SIGKILL)
    until(lambda: conductor_of(serve, besides=victim.pid) is not None, "another conductor runs")
    until(lambda: ADOPTED in log.read_text(), "it goes on with what trains")
    hold.unlink()
    until(lambda: client.sweep(sweep).ended is not None, "the sweep ended")
    ended = client.sweep(sweep)
    assert (ended.state, ended.counts.finished) == ("finished", 4), log.read_text()[-3000:]
    trials = [client.trial(trial.id) for trial in client.trials(sweep)]
    attempts = Counter(len(trial.attempts) for trial in trials)
    assert attempts == {1: 4}, "the slots outlived the conductor: no attempt was lost, no trial trained twice"
    spools = sorted(path.parent.name for path in set((home / "storage").glob("*/*/spool.jsonl")) - before)
    assert spools == ["1"] * 4
    assert [path for path in opened(home) if path.name != "serve.out"] == []  # which is the test's own


def opened(folder: Path) -> list[Path]:
    """What others could read, were they let in; Ray opens its own on purpose, and has a closed folder around it."""
    found = [folder, *(path for path in folder.rglob("*") if folder / "ray" / "t" not in (path, *path.parents))]
    modes: dict[Path, int] = {}
    for path in found:
        with suppress(FileNotFoundError):  # the journal of a database that is being written, say
            modes[path] = path.lstat().st_mode
    # MLflow's socket is open too, behind a folder that is closed.
    return [path for path, mode in modes.items() if not (S_ISLNK(mode) or S_ISSOCK(mode)) and mode & 0o077]


@pytest.mark.ray
def test_a_service_runs_no_module_of_the_current_folder(served_home: Served) -> None:
    """Neither do MLflow's server and Ray's workers."""
    client = served_home.client
    sweep = client.submit(SMALL.encode()).id
    headers = {"Authorization": f"Bearer {made_for(served_home.home).secret}"}
    assert httpx.get(f"{client.url}/mlflow/version", headers=headers, trust_env=False, timeout=120).status_code == 200
    until(lambda: client.sweep(sweep).state == "finished", "the sweep has finished")
    assert not served_home.planted.exists(), served_home.planted.read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def commands(title: str) -> list[str]:
    return [line for block in blocks(section(title), "sh") for line in block.splitlines()]


def followed(lines: list[str], folder: Path, served: Served, **told: str) -> dict[str, str]:
    """Run the commands of a page, and return the output of each; sweep 1 of a page is the latest sweep of the home."""
    if not (folder / ".metricsweep").exists():
        (folder / ".metricsweep").symlink_to(served.home)
    bins = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {key: value for key, value in os.environ.items() if not key.startswith("METRICSWEEP_")}
    said = {}
    for line in lines:
        if line.startswith(ELSEWHERE):
            continue
        latest = str(max((one.id for one in served.client.sweeps()), default=0))
        command = re.sub(r"^(metricsweep \w+) 1\b", rf"\1 {latest}", line)
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, env=plain | {"PATH": bins, **told}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said[line] = done.stdout
    return said


@pytest.mark.ray
def test_the_tutorial_leads_from_images_to_latex(served_home: Served, tmp_path: Path) -> None:
    lines = [line for block in blocks(TUTORIAL, "sh") for line in block.splitlines() if line]
    assert [line.split()[1] for line in lines if line.startswith("metricsweep ")] == [
        "expand", "serve", "submit", "list", "table", "table", "catalog", "extend"
    ]  # fmt: skip
    (script,) = blocks(TUTORIAL, "python")
    spec, wider = blocks(TUTORIAL, "yaml")
    (tmp_path / "make_images.py").write_text(script)
    (tmp_path / "shapes.yaml").write_text(spec)
    extend = next(at for at, line in enumerate(lines) if line.startswith("metricsweep extend"))
    said = followed(lines[:extend], tmp_path, served_home)
    (narrow,) = re.findall(r"^  loss: .*\n", spec, flags=re.MULTILINE)
    (tmp_path / "shapes.yaml").write_text(spec.replace(narrow, wider))
    said |= followed(lines[extend:], tmp_path, served_home)
    client, number = served_home.client, max(one.id for one in served_home.client.sweeps())
    until(lambda: client.sweep(number).counts.total > 12 and client.sweep(number).state == "finished", "it is trained")
    counted = re.search(r"It says (.+?)\.", TUTORIAL)
    assert counted
    assert [
        one for one in re.findall(r"\d+ \w+", counted[1]) if one not in said["metricsweep expand shapes.yaml"]
    ] == []
    latex = (tmp_path / "shapes.tex").read_text()
    assert "\\toprule" in latex
    assert latex.count("{\\scriptsize$\\pm$") == 8  # two metrics of four cells
    assert "alpha" in said["metricsweep catalog loss proxy_anchor"]


def small(folder: Path) -> Path:
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "digits.yaml").write_text(SMALL)
    return folder


@pytest.mark.ray
@pytest.mark.soak
def test_a_laptop(served_home: Served, tmp_path: Path) -> None:
    lines = commands("A laptop")
    assert lines[:3] == ["make install", 'export PATH="$PWD/.venv/bin:$PATH"', "metricsweep serve"]
    said = followed(lines, small(tmp_path), served_home)
    assert "\\toprule" in said["metricsweep table 1 main --format latex"]
    assert "/login?code=" in said["metricsweep login-link"]


@pytest.mark.ray
@pytest.mark.soak
def test_a_colleague_of_the_groups_box(served_home: Served, tmp_path: Path) -> None:
    told = [line for line in commands("A group's GPU box") if line.startswith("export METRICSWEEP_URL")]
    assert [re.findall(r"(METRICSWEEP_\w+)=", line) for line in told] == [["METRICSWEEP_URL", "METRICSWEEP_TOKEN"]]
    lines = [line for line in commands("A group's GPU box") if line.startswith("metricsweep ")]
    url = json.loads((served_home.home / "serve.json").read_text())["url"]
    token = (served_home.home / "api.token").read_text().strip()
    said = followed(lines, small(tmp_path), served_home, METRICSWEEP_URL=url, METRICSWEEP_TOKEN=token)
    assert "followed" in said["metricsweep list"]


def test_the_groups_box_starts_what_is_there(tmp_path: Path) -> None:
    (line,) = [line for line in commands("A group's GPU box") if "settings.env" in line]
    subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, check=True)
    file = tmp_path / "settings.env"
    assert file.stat().st_mode & 0o777 == 0o600
    told = dict(one.split("=", 1) for one in file.read_text().splitlines())
    assert set(told) <= SETTINGS
    assert len(Settings.model_validate({"token": told["METRICSWEEP_TOKEN"]}).token) == 48
    (text,) = re.findall(r"^```ini\n(.*?)^```$", section("A group's GPU box"), flags=re.MULTILINE | re.DOTALL)
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    assert service["EnvironmentFile"] == f"{service['WorkingDirectory']}/settings.env"
    program, command = service["ExecStart"].split()
    assert program == f"{service['WorkingDirectory']}/code/.venv/bin/metricsweep"
    assert parsed([command]).command.name == "serve"
    assert f"--home-dir {service['WorkingDirectory']} " in commands("A group's GPU box")[0]


def parsed(words: list[str]) -> typer.Context:
    """A command of ours with its options taken apart, and not run."""
    group = typer.main.get_command(app)
    command = group.commands[words[0]]  # type: ignore[attr-defined]
    context: typer.Context = command.make_context(words[0], words[1:])
    return context


def test_a_slurm_cluster() -> None:
    lines = commands("A Slurm cluster")
    assert lines[:2] == commands("A laptop")[:2]
    told = re.findall(r"METRICSWEEP_\w+", next(line for line in lines if line.startswith("export METRICSWEEP")))
    assert set(told) <= SETTINGS
    (slots,) = [shlex.split(line) for line in lines if line.startswith("metricsweep slots")]
    given = parsed(slots[1:]).params
    assert (given["slurm"], given["most"], given["gres"]) == (True, 32, "gpu:1")
    names = ("partition", "account", "gres", "cpus", "mem", "time")
    job = SlotJob(**{name: given[name] for name in names})
    assert job.offer == {"CPU": 4.0, "GPU": 1.0, "memory": 16 * 2**30}
    assert {"--time=4:00:00", "--signal=B:USR1@120"} <= set(job.options(Path("/storage"), 1))


def test_ray_on_slurm_is_a_script_of_options_that_exist() -> None:
    (name,) = set(re.findall(r"docs/examples/\w+\.sh", section("A Slurm cluster")))
    script = ROOT / name
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert os.access(script, os.X_OK)
    words = re.findall(
        r"--(?!grace)[a-z-]+(?==)", "".join(re.findall(r"^node=\(.*?\)", script.read_text(), re.M | re.S))
    )
    assert words
    assert ray_knows(words)
