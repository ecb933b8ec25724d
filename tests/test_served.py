"""What one real service shows: a killed conductor, and docs/tutorial.md and docs/deploy.md followed to the letter."""

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISLNK, S_ISSOCK

import httpx
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from api.cli import app
from orchestrator.host.identity import ensure_identity
from orchestrator.run.slurm import SlotJob
from orchestrator.settings import Settings
from orchestrator.views.states import TrialState
from tests.conftest import ROOT
from tests.pages import METRICSWEEP, PAGES, blocks, commands, parse
from tests.served import UNHURRIED, Served, conductor_of, until
from tests.test_compose import SETTINGS, ray_knows

TUTORIAL = PAGES["docs/tutorial.md"]
ADD_A_PART = PAGES["docs/add-a-part.md"]  # which tests/test_add_a_part.py follows
YOUR_PAPER = PAGES["docs/your-paper.md"]  # which tests/test_your_paper.py follows
SLOW = ("docs/deploy.md", "docs/presets.md")
SMALL = """
version: 1
name: followed
recipe:
  dataset: digits
  backbone: {name: mlp, width: 16}
  embedding: 8
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 4
  validation: {name: class_holdout, folds: 3, fold: 0}
compare: {loss: [triplet, normalized_npair], regularizer: [none, sec]}
repeat: {seed: [0, 1]}
slot: {cpus: 1, gpus: 0}
tables: {main: {rows: [loss, regularizer], columns: [dataset], metrics: [recall@1, map@r], published: SEC-T3}}
"""
"""In place of sweeps/digits.yaml, which trains for minutes."""
NOT_RUN = {
    "make ": "installs, tests or trains for minutes",
    "export ": "the environment of a person's shell",
    "metricsweep serve": "served_home runs it",
    "metricsweep run ": "trains for minutes; tests/test_quick_presets.py runs it",
    "metricsweep import ": "tests/api/test_cli.py runs it",
    "metricsweep slots ": "needs Slurm; tests/faults/test_slurm.py runs it",
    "metricsweep weights fetch ": "needs the internet",
    "python -m workers data ": "needs the internet, or the data set",
    "python -m benchmarks.claims ": "trains for minutes",
    "pytest ": "tests",
    "python -P -m orchestrator.run.ray ": "needs a cluster of Ray",
    "docker compose ": "needs Docker",
    "kubectl ": "needs Kubernetes",
    "git clone ": "needs the internet",
    "pip install ": "needs the internet",
    "ssh ": "needs another machine",
    "useradd ": "needs root",
    "chmod 711 /srv/": "needs root",
    "systemctl ": "needs systemd",
    "cp docker/proxy/": "needs root",
    "METRICSWEEP_DOMAIN=": "needs Caddy",
}
"""How a command of a page begins that is only parsed, and why."""
ENDED_BY_TIMEOUT = 124


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
    headers = {"Authorization": f"Bearer {ensure_identity(served_home.home).secret}"}
    assert httpx.get(f"{client.url}/mlflow/version", headers=headers, trust_env=False, timeout=120).status_code == 200
    until(lambda: client.sweep(sweep).state == "finished", "the sweep has finished")
    assert not served_home.planted.exists(), served_home.planted.read_text()


def section(title: str) -> str:
    return PAGES["docs/deploy.md"].split(f"\n## {title}\n")[1].split("\n## ")[0]


@dataclass
class Desk:
    """A folder with the home of a running service, where the commands of the pages run.

    `numbers` are the sweeps that the pages call 7 and 9; their 1 and 2 are the latest.
    """

    served: Served
    numbers: dict[str, int]

    def run(self, command: str) -> tuple[int, str]:
        """Run a command, and return its exit code and output; `metricsweep` runs in this process.

        Submissions of whole presets are dry runs.
        """
        latest = max((sweep.id for sweep in self.served.client.sweeps()), default=0)
        numbers = self.numbers | {"1": latest, "2": latest}
        sweep = r"(?<!--days )(?<!--revoke )(?<= )[1279](?=[ /@]|$)"
        own = re.sub(sweep, lambda found: str(numbers[found[0]]), command)
        own = re.sub(r":8787/v1/sweeps/7", lambda found: f":8787/v1/sweeps/{numbers['7']}", own)
        own = own.replace("curl -N ", "timeout 2 curl -N ")  # a stream that does not end
        own = own.replace(":8787/", f":{httpx.URL(self.served.client.url).port}/").replace("/backups/", "backups/")
        if own.startswith("metricsweep submit sweeps/") and "digits" not in own:
            own += " --dry-run"
        if own.startswith("metricsweep backup"):
            shutil.rmtree(own.split()[2], ignore_errors=True)
        if own.startswith("metricsweep "):
            done = CliRunner().invoke(app, shlex.split(own)[1:])
            return done.exit_code, done.output
        conductor = conductor_of(self.served.process)
        environment = os.environ | {"CONDUCTOR": str(conductor and conductor.pid)}
        shell = subprocess.run(["sh", "-c", own], env=environment, capture_output=True, text=True, check=False)
        return 0 if shell.returncode == ENDED_BY_TIMEOUT else shell.returncode, shell.stdout + shell.stderr


@pytest.fixture(scope="module")
def numbers(served_home: Served) -> dict[str, int]:
    """Two sweeps that have ended, by their numbers on the pages."""
    client = served_home.client
    found = {number: client.submit(SMALL.replace("followed", f"number-{number}").encode()).id for number in "79"}
    until(lambda: all(client.sweep(sweep).ended for sweep in found.values()), "both sweeps have ended")
    return found


@pytest.fixture
def desk(served_home: Served, numbers: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk of a service that is ready, with the presets and with the files that pages name."""
    ready = f"{served_home.client.url}/readyz"
    until(lambda: httpx.get(ready, trust_env=False).is_success, "MLflow has started and has taken every run")
    shutil.copytree(ROOT / "sweeps", tmp_path / "sweeps")
    (tmp_path / "sweeps" / "digits.yaml").write_text(SMALL)
    (tmp_path / ".metricsweep").symlink_to(served_home.home)
    (tmp_path / ".env.example").symlink_to(ROOT / ".env.example")
    for name in ("a.png", "b.png"):
        Image.new("L", (8, 8)).save(tmp_path / name)
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(yaml.safe_load(SMALL)["recipe"] | {"loss": "triplet"}))
    (tmp_path / ".curlrc").write_text("fail-with-body\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURL_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("METRICSWEEP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("METRICSWEEP_OIDC_ISSUER", "https://login.example.org/realms/lab")  # as docs/security.md sets it
    monkeypatch.setenv("METRICSWEEP_OIDC_CLIENT_ID", "metricsweep")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return Desk(served_home, numbers)


def only_parsed(command: str) -> bool:
    return any(command.startswith(start) for start in NOT_RUN)


@pytest.mark.ray
def test_the_tutorial_leads_from_images_to_latex(desk: Desk) -> None:
    (script,) = blocks(TUTORIAL, "python")
    spec, wider = blocks(TUTORIAL, "yaml")
    Path("make_images.py").write_text(script)
    Path("shapes.yaml").write_text(spec)
    (narrow,) = re.findall(r"^  loss: .*\n", spec, flags=re.MULTILINE)
    client = desk.served.client
    outputs = {}
    for command in commands(TUTORIAL):
        if only_parsed(command):
            continue
        if command.startswith("metricsweep extend"):
            Path("shapes.yaml").write_text(spec.replace(narrow, wider))
        code, outputs[command] = desk.run(command)
        assert code == 0, (command, outputs[command])
    number = max(sweep.id for sweep in client.sweeps())
    until(lambda: client.sweep(number).counts.total > 12 and client.sweep(number).state == "finished", "it is trained")
    counted = re.search(r"It prints (.+?)\.", TUTORIAL)
    assert counted
    assert all(count in outputs["metricsweep expand shapes.yaml"] for count in re.findall(r"\d+ \w+", counted[1]))
    latex = Path("shapes.tex").read_text()
    assert "\\toprule" in latex
    assert latex.count("{\\scriptsize$\\pm$") == 8  # two metrics of four cells
    assert "alpha" in outputs["metricsweep catalog loss proxy_anchor"]


@pytest.mark.ray
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.soak if page in SLOW else ())
        for page, text in PAGES.items()
        if text not in (TUTORIAL, ADD_A_PART, YOUR_PAPER) and (commands(text) or blocks(text, "python"))
    ],
)
def test_the_examples_of_a_page_run(page: str, desk: Desk) -> None:
    text, failures = PAGES[page], []
    for command in commands(text):
        if only_parsed(command):
            parse(command)
            continue
        code, output = desk.run(command)
        counted = re.search(rf"^{re.escape(command)} +# (\d+) of", text, re.MULTILINE)
        right = not counted or f" {counted[1]} trials" in output
        right &= f"\n$ {command}\n" not in text or output in text
        failures += [] if right and not code else [f"{command}: exit code {code}: {output}"]
    assert failures == [], "\n\n".join(failures)
    for block in blocks(text, "python"):
        exec(textwrap.dedent(block), {})


def test_the_groups_box_starts_what_is_there(tmp_path: Path) -> None:
    (line,) = [line for line in commands(section("A group's GPU box")) if "settings.env" in line]
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
    assert command == "serve"
    assert f"--home-dir {service['WorkingDirectory']} " in commands(section("A group's GPU box"))[0]


def test_a_slurm_cluster() -> None:
    lines = commands(section("A Slurm cluster"))
    assert lines[:2] == commands(section("A laptop"))[:2]
    told = re.findall(r"METRICSWEEP_\w+", next(line for line in lines if line.startswith("export METRICSWEEP")))
    assert set(told) <= SETTINGS
    (slots,) = [shlex.split(line) for line in lines if line.startswith("metricsweep slots")]
    given = METRICSWEEP["slots"].make_context("slots", slots[2:]).params
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
