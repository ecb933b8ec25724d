"""The commands against the real application behind a real port."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import COMMANDS, app
from api.client import Client
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.settings import Settings
from tests.api.conftest import TOKEN, named
from tests.api.played import SPEC, Conductor
from tests.conftest import ROOT
from tests.record.shelf import Shelf

NOWHERE = "http://127.0.0.1:1"
"""For commands that ask no server."""


def metricsweep(url: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], env=named(url))


def test_every_command_has_help_and_an_example() -> None:
    overview = metricsweep("", "--help").output
    assert "Exit codes" in overview
    for command, _, _ in COMMANDS:
        answer = metricsweep("", command, "--help")
        assert answer.exit_code == 0, command
        assert re.search(rf"Example:  .*metricsweep {command}", answer.output), command
        assert f"\n  {command} " in overview, command


def test_submit_list_and_show(url: str, spec: Path) -> None:
    assert metricsweep(url, "list").exit_code == 0
    submitted = metricsweep(url, "submit", spec, "--key", "once")
    assert submitted.exit_code == 0
    assert submitted.stdout.splitlines()[-1] == f"sweep 1  {url}/sweeps/1"
    assert "(known by its key)" in metricsweep(url, "submit", spec, "--key", "once").stdout
    assert json.loads(metricsweep(url, "submit", spec, "--key", "once", "--json").stdout)["created"] is False
    listed = metricsweep(url, "list", "--state", "queued", "--name", "four")
    assert "four-trials" in listed.stdout
    assert json.loads(metricsweep(url, "list", "--json").stdout)[0]["id"] == 1
    assert json.loads(metricsweep(url, "list", "--state", "failed", "--json").stdout) == []
    shown = metricsweep(url, "show", 1).stdout
    assert "queued" in shown
    assert "main" in shown
    assert json.loads(metricsweep(url, "show", 1, "--json").stdout)["text"] == SPEC
    assert CliRunner().invoke(app, ["submit", "-"], input=SPEC, env=named(url)).exit_code == 0
    assert TOKEN not in CliRunner().invoke(app, ["list", "--help"], env={"METRICSWEEP_TOKEN": TOKEN}).output


@contextmanager
def obeying(conductor: Conductor, mirror: Mirror | None = None) -> Iterator[None]:
    """A conductor that carries out requests, and mirrors to a tracker, if there is one."""
    ended = threading.Event()

    def obey() -> None:
        while not ended.wait(0.02):
            conductor.obey(mirror)
            if mirror is not None:
                mirror.forward(2)

    thread = threading.Thread(target=obey)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_mlflow_is_filled_again(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish(times=4)
    conductor.settle()
    shelf = Shelf()
    with obeying(conductor, Mirror(conductor.store, conductor.writer, lambda: shelf)):
        told = metricsweep(url, "mlflow", "sync", 1)
        assert (told.exit_code, conductor.store.outbox.lag()) == (0, 0)
        assert told.stdout.splitlines()[-1] == "MLflow shows 1 sweep as the database says"
        first = list(shelf.sent)
        assert metricsweep(url, "mlflow", "sync").exit_code == 0
        assert set(shelf.sent[len(first) :]) == set(first), "everything once more"
    with obeying(conductor):
        refused = metricsweep(url, "mlflow", "sync", 1)
        assert (refused.exit_code, "sweeps are not mirrored to MLflow here" in refused.stderr) == (2, True)
    assert metricsweep(url, "mlflow", "sync", 7).exit_code == 2


def test_a_dry_run_and_an_expansion_agree(url: str, spec: Path, tmp_path: Path) -> None:
    dry = json.loads(metricsweep(url, "submit", spec, "--dry-run", "--json").stdout)
    here = ("expand", spec, "--home", tmp_path / "nothing")
    assert json.loads(metricsweep("http://127.0.0.1:1", *here, "--json").stdout) == dry
    assert metricsweep("", *here).stdout.splitlines() == [
        "four-trials: 2 cells, 2 candidates, 4 trials",
        "4 different trainings: 4 to be trained, 0 trained already",
        "work: 80 steps, 1,280 images through the network, and up to 27,372 by evaluations",
        "hours: not known yet: 0 of 3 trainings of this shape measured",
    ]
    assert not (tmp_path / "nothing").exists()
    assert json.loads(metricsweep(url, "list", "--json").stdout) == []


def test_the_cost_of_a_sweep_is_shown_at_submit(url: str, spec: Path, conductor: Conductor, settings: Settings) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish(times=3)
    more = spec.with_name("more.yaml")
    more.write_text(SPEC.replace("[0, 1]", "[0, 1, 2, 3]"))
    told = [
        "four-trials: 2 cells, 2 candidates, 8 trials",
        "8 different trainings: 5 to be trained, 3 trained already",
        "work: 100 steps, 1,600 images through the network, and up to 34,215 by evaluations",
        "hours: about 0.0021 (0.0021 to 0.0021) on cpu",
    ]
    reuse = re.compile(r"3 of 8 trainings are reused, trained (on|between) .*; `fresh: true` trains again")
    for command in (
        (url, "submit", more, "--dry-run"),
        (url, "submit", more),
        ("", "expand", more, "--home", settings.home),
    ):
        lines = metricsweep(*command).stdout.splitlines()
        assert reuse.fullmatch(lines.pop(2))
        assert lines[:4] == told
    more.write_text(SPEC.replace("iterations: 20", "iterations: 40\n  evaluate_every: 2"))
    assert "hours: about 0.0033 (0.0033 to 0.0033) on cpu" in metricsweep(url, "submit", more, "--dry-run").stdout
    more.write_text(SPEC.replace("iterations: 20", "iterations: 40"))
    assert "0 of 3 trainings of this shape measured" in metricsweep(url, "submit", more, "--dry-run").stdout


def test_a_subset_of_a_spec_is_submitted_as_such(url: str, spec: Path) -> None:
    part = ("--only", "loss=triplet", "--without", "seed=1")
    for command in (("expand", spec), ("submit", spec, "--dry-run"), ("submit", spec)):
        assert "1 cells, 1 candidates, 1 trials" in metricsweep(url, *command, *part).stdout
    assert "only      loss=triplet\nwithout   seed=1\n" in metricsweep(url, "show", 1).stdout
    text = json.loads(metricsweep(url, "show", 1, "--json").stdout)["text"]
    assert text == f'{SPEC}only: {{"loss": ["triplet"]}}\nwithout: {{"seed": [1]}}\n'
    spec.write_text(SPEC.replace("[recall@1, map@r]", "[recall@1, {metric: map@r, delta: {loss: semihard}}]"))
    note = "the difference of map@r to loss semihard is left out: that is not taken"
    assert note in metricsweep(url, "submit", spec, "--json", "--only", "loss=triplet").stderr
    wrong = metricsweep("", "submit", spec, "--only", "loss=tripplet")
    assert wrong.exit_code == 2, "before any server is asked"
    assert "did you mean 'triplet'? it has 'triplet', 'semihard'" in wrong.stderr


def test_a_wrong_spec_ends_with_2(url: str, spec: Path) -> None:
    spec.write_text(SPEC.replace("semihard", "semihart").replace("width", "widht"))
    for command in (["submit"], ["submit", "--dry-run"], ["expand"]):
        answer = metricsweep(url, *command, spec)
        assert (answer.exit_code, answer.stdout) == (2, "")
        for part in ("compare.loss[1]", "semihard", "widht"):
            assert part in answer.stderr


def test_a_sweep_is_watched_to_its_end(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish()
    assert "0.5000  best/test/recall@1" in metricsweep(url, "show", "trial:1").stdout
    assert json.loads(metricsweep(url, "show", "trial:1", "--json").stdout)["sweep"] == 1
    metricsweep(url, "cancel", 1)
    conductor.obey()
    assert metricsweep(url, "list").stdout.splitlines()[-1].split()[2:7] == ["cancelled", "25", "%", "4", "0"]
    watched = metricsweep(url, "watch", 1).stdout
    assert "25 % of 80 steps  1/4 trials  0 running  0 failed  3 cancelled" in watched, "never called done"
    again = metricsweep(url, "cancel", 1)
    assert again.exit_code == 2
    assert "sweep 1 is cancelled; only an active one can be cancelled" in again.stderr
    metricsweep(url, "retry", 1)

    def train() -> None:
        time.sleep(0.5)  # the retry waits for the conductor meanwhile, and the sweep is still cancelled
        conductor.obey()
        conductor.finish(times=2)
        conductor.fail()
        conductor.settle()

    thread = threading.Thread(target=train)
    thread.start()
    ended = metricsweep(url, "watch", 1, "--every", 0.1)
    thread.join()
    assert (ended.exit_code, "no such thing" in ended.stdout) == (1, True), ended.output


def test_metrics_are_added_to_the_spec_that_a_sweep_has(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec, "--set", "name=widened")
    conductor.begin()
    conductor.finish(times=4)
    conductor.settle()
    further = ("--metric", "nmi_sec", "--metric", "recall@16", "--metric", "recall@1", "--figure", "tsne")
    wider = metricsweep(url, "extend", 1, *further)
    assert (wider.exit_code, "sweep 1 widened: extension requested" in wider.stdout) == (0, True), wider.output
    conductor.obey()
    told = json.loads(metricsweep(url, "show", 1, "--json").stdout)
    assert told["spec"]["tables"]["main"]["metrics"] == ["recall@1", "map@r", "nmi_sec", "recall@16"]
    assert {"nmi_sec", "recall@16"} <= set(told["spec"]["recipe"]["metrics"])
    assert told["spec"]["recipe"]["figures"] == ["tsne"]
    assert (told["counts"]["finished"], told["requests"][0]["state"]) == (4, "done")
    wrong = metricsweep(url, "extend", 1, "--metric", "recal@1")
    assert wrong.exit_code == 2
    assert "tables.main.metrics[4]  no metric named 'recal@1'; did you mean 'recall@1'?" in wrong.stderr
    for given in ([], ["--metric", "nmi", "--set", "name=x"], [spec, "--metric", "nmi"]):
        answer = metricsweep("", "extend", 1, *given)
        assert answer.exit_code == 2
        assert "expected FILE, or --metric and --figure" in " ".join(answer.stderr.replace("│", " ").split())


def test_trials_are_found_and_their_waiting_is_explained(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish(times=2)
    found = metricsweep(url, "trials", 1, "--filter", "state:finished", "--sort", "trial").stdout.splitlines()
    assert len(found) == 3
    assert found[1].split()[:2] == ["1", "1/0"]
    assert json.loads(metricsweep(url, "trials", "--filter", "state:finished", "--limit", 1, "--json").stdout)[0][
        "trial"
    ]
    assert metricsweep(url, "trials", "--filter", "state:").exit_code == 2
    waits = metricsweep(url, "why").stdout
    assert "1 four-trials" in waits
    assert "for a free slot" in waits
    assert "no sweep 9" in metricsweep(url, "why", 9).stderr


def test_an_extension_is_previewed_and_the_catalog_needs_no_server(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    wider = ("extend", 1, spec, "--set", "repeat.seed=[0, 1, 2]")
    planned = metricsweep(url, *wider, "--dry-run")
    assert planned.exit_code == 0, planned.output
    for line in ("2 of its trials are new to sweep 1", "2 different trainings: 2 to be trained, 0 trained already"):
        assert line in planned.output
    assert json.loads(metricsweep(url, "show", 1, "--json").stdout)["requests"] == []
    assert metricsweep(url, "extend", 1, spec, "--set", "repeat.seed=[1]", "--dry-run").exit_code == 2
    fresh = metricsweep(url, "submit", spec, "--fresh", "--json")
    assert (
        json.loads(metricsweep(url, "show", json.loads(fresh.stdout)["id"], "--json").stdout)["spec"]["fresh"] is True
    )
    assert "alpha" in metricsweep(NOWHERE, "catalog", "loss", "proxy_anchor").stdout


IMPORTED = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").partition("\n## Other people's numbers\n")[2]


def test_the_page_on_imported_numbers_is_followed(
    url: str, spec: Path, conductor: Conductor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lines,) = re.findall(r"^```text\n(.*?)^```$", IMPORTED, flags=re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^```sh\nmetricsweep (import .*)\n```$", IMPORTED, flags=re.MULTILINE)
    (tmp_path / "theirs.csv").write_text(lines)
    monkeypatch.chdir(tmp_path)
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish(times=4)
    conductor.settle()
    answer = metricsweep(url, *command.replace(" 7 ", " 1 ").split())
    assert (answer.exit_code, "import of 2 rows requested" in answer.stdout) == (0, True), answer.output
    conductor.obey()
    table = json.loads(metricsweep(url, "table", 1, "--format", "json").stdout)
    rows = [row for row in table["panels"][0]["rows"] if row.get("imported")]
    assert [row["headings"][0] for row in rows] == ["SEC (lab B)†", "Triplet (a talk)†"]
    assert [row["cells"][0]["imported"]["test"]["word"] for row in rows] == ["higher", "untested"]
    (written,) = re.findall(r"^```yaml\n(.*?)^```$", IMPORTED, flags=re.MULTILINE | re.DOTALL)
    shown = yaml.safe_load(json.loads(metricsweep(url, "show", 1, "--json").stdout)["text"])
    assert shown["tables"]["main"]["imported"][0] == yaml.safe_load(written)["tables"]["main"]["imported"][0]


def test_a_file_that_is_wrong_changes_nothing(url: str, spec: Path, tmp_path: Path) -> None:
    metricsweep(url, "submit", spec)
    file = tmp_path / "theirs.csv"
    file.write_text("method,metric,mean\nA,map@r,nan\n,map@r,1\n")
    answer = metricsweep(url, "import", file, 1, "--unit", "percent", "--row", "method")
    assert answer.exit_code == 2
    assert f"{file} has 2 problems." in answer.stderr.replace("\n", "")
    assert "line 2, column 'mean'" in answer.stderr
    assert json.loads(metricsweep(url, "requests", 1, "--json").stdout) == []
    assert "--unit percent (65.1)" in " ".join(metricsweep(url, "import", file).stderr.replace("│", " ").split())


def test_a_command_says_what_became_of_its_request(
    url: str, spec: Path, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    waits = metricsweep(url, "priority", 1, 5)
    assert (waits.exit_code, waits.stdout.splitlines()[-1]) == (
        0, "request 1: waits for the conductor; `metricsweep requests 1` shows the result",
    )  # fmt: skip
    monkeypatch.setattr("api.commands.sweeps.PATIENCE_SECONDS", 60.0)
    with obeying(conductor):
        assert metricsweep(url, "cancel", 1).stdout.splitlines()[-1] == "request 2: 4 trials cancelled"
        monkeypatch.setattr("orchestrator.conduct.requests.Requests._retry", lambda *given: int(given))  # it fails
        refused = metricsweep(url, "retry", 1)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("metricsweep: request 3 was refused: TypeError")
        assert "request   3 (retry)" in metricsweep(url, "show", 1).stdout
        assert "refused: TypeError" in metricsweep(url, "show", 1).stdout
        assert metricsweep(url, "delete", 1, "--yes").stdout.splitlines()[-1] == "request 4: deleted"
    rows = metricsweep(url, "requests", 1).stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["request", "4", "3", "2", "1"]
    assert json.loads(metricsweep(url, "requests", 1, "--json").stdout)[0]["outcome"] == "deleted"
    gone = metricsweep(url, "show", 1)
    assert gone.exit_code == 2
    assert "it was deleted at" in gone.stderr
    assert metricsweep(url, "requests", 9).exit_code == 2


def test_tables_are_printed_and_written(url: str, spec: Path, tmp_path: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    conductor.finish()
    assert metricsweep(url, "table", 1).stdout.count("|") > 4
    assert "toprule" in metricsweep(url, "table", 1, "main", "--format", "latex", "--tuned").stdout
    for suffix, sign in {".tex": b"toprule", ".csv": b","}.items():
        file = tmp_path / "out" / f"main{suffix}"
        assert metricsweep(url, "table", 1, "--out", file).exit_code == 0
        assert sign in file.read_bytes()
    assert metricsweep(url, "table", 1, "nope").exit_code == 2
    assert "Nothing is judged: no cell has a baseline." in metricsweep(url, "verdicts", 1).stdout
    assert json.loads(metricsweep(url, "verdicts", 1, "main", "--json").stdout)["comparisons"] == []
    assert json.loads(metricsweep(url, "verdicts", 1, "--covers", "both", "--json").stdout)["covers"] == "both"
    assert metricsweep(url, "verdicts", 1, "--covers", "classes").exit_code == 2
    assert metricsweep(url, "table", 1, "--format", "docx").exit_code == 2


def test_the_catalog(url: str) -> None:
    assert "Triplet" in metricsweep(url, "catalog").stdout
    losses = json.loads(metricsweep(url, "catalog", "loss", "--json").stdout)
    assert {one["kind"] for one in losses} == {"loss"}
    assert "  margin: float, default 1.0\n" in metricsweep(url, "catalog", "loss", "triplet").stdout
    assert "  of: a backbone, " in metricsweep(url, "catalog", "backbone", "frozen").stdout
    for unknown in (["losses"], ["loss", "triplett"]):
        assert metricsweep(url, "catalog", *unknown).exit_code == 2


def test_without_a_server_a_command_says_how_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for command in (["list"], ["watch", 1], ["table", 1], ["cancel", 1]):
        answer = metricsweep(nowhere, *command)
        assert (answer.exit_code, answer.stdout) == (3, "")
        assert f"no metricsweep at {nowhere}" in answer.stderr
        assert "metricsweep serve" in answer.stderr
    for address in ("nonsense", "ftp://127.0.0.1", "http://", "http://[::1"):
        assert metricsweep(address, "list").exit_code == 3, address


def test_wrong_usage_and_settings_end_with_2(spec: Path, tmp_path: Path) -> None:
    usages = (
        (["nothing"], ""), (["show"], ""), (["show", "x"], ""), (["submit", tmp_path / "nothing.yaml"], ""),
        (["list", "--state", "x"], ""), (["note", "7/3/1"], "expected such as 7 for sweep 7"),
        (["tag", "0", "x"], "names nothing"), (["show", "9" * 12], "names nothing"),
        (["note", "trial:7/3"], "or trial:41 for trial 41"),
        (["tag", "7", "--jsn"], "there is no option --jsn"),
    )  # fmt: skip
    for command, said in usages:
        answer = metricsweep("", *command)
        assert (answer.exit_code, said in " ".join(answer.stderr.split())) == (2, True), command
    names = "expected `module:function`, such as"
    for variable, value, said in (
        ("PORT", "many", "METRICSWEEP_PORT"),
        ("TRAIN", "workers.train", f"METRICSWEEP_TRAIN {names} `workers.train:train`, found"),
        ("TRAIN", "", f"METRICSWEEP_TRAIN {names}"),
        ("INSPECT", "look", f"METRICSWEEP_INSPECT {names} `workers.data.inspection:inspect`"),
        ("ENGINE", "ray", "METRICSWEEP_ENGINE expected `ray_tune`, `files`, `inline` or `module:factory` of an engine"),
        ("PARTS", "/nowhere", "metricsweep: /nowhere: the folder of own parts does not exist"),
    ):
        answer = CliRunner().invoke(app, ["expand", str(spec)], env={f"METRICSWEEP_{variable}": value})
        assert (answer.exit_code, said in " ".join(answer.stderr.split())) == (2, True), answer.stderr


def test_notes_and_tags_are_written_and_shown(url: str, spec: Path, conductor: Conductor) -> None:
    metricsweep(url, "submit", spec)
    conductor.begin()
    assert "no note" in metricsweep(url, "note", 1).stderr
    assert metricsweep(url, "note", 1, "eta 1\ndiverges").stdout == "sweep 1: noted\n"
    assert metricsweep(url, "note", 1).stdout == "eta 1\ndiverges\n"
    assert metricsweep(url, "tag", 1, "paper", "wip", "harder").stdout == "sweep 1: harder, paper, wip\n"
    assert metricsweep(url, "tag", 1, "-wip", "-harder").stdout == "sweep 1: paper\n"
    assert metricsweep(url, "tag", 1).stdout == "sweep 1: paper\n"
    assert metricsweep(url, "tag", "1/1", "best").stdout == "cell 1 of sweep 1: best\n"
    assert metricsweep(url, "tag", "trial:2", "odd, late").stdout == "trial 2: late, odd\n"
    assert json.loads(metricsweep(url, "note", "trial:2", "slow", "--json").stdout)["tags"] == ["late", "odd"]
    assert "note      eta 1\n          diverges\ntags      paper\n" in metricsweep(url, "show", 1).stdout
    shown = metricsweep(url, "show", "1/1").stdout
    assert "cell      1 of sweep 1 four-trials\nlabels    loss=" in shown
    assert "tags      best\n" in shown
    assert json.loads(metricsweep(url, "show", "1/1", "--json").stdout)["annotation"]["tags"] == ["best"]
    trial = metricsweep(url, "show", "trial:2").stdout
    assert "note      slow\ntags      late, odd\n" in trial
    assert metricsweep(url, "list", "--tag", "Paper").stdout.splitlines()[-1].split()[-1] == "paper"
    assert "no sweeps like this" in metricsweep(url, "list", "--tag", "wip").stderr
    assert metricsweep(url, "note", 1, "").stdout == "sweep 1: has no note now\n"
    with Client(url, TOKEN) as client:
        assert [one.id for one in client.sweeps(tag="paper")] == [1]


def test_values_are_set_before_a_spec_is_submitted_or_counted(url: str, spec: Path) -> None:
    sets = ("--set", "select.split=test", "--set", "repeat.seed=[0, 1, 2]", "--json")
    counted = metricsweep(url, "expand", spec, "--set", "recipe.validation=none", *sets)
    assert json.loads(counted.stdout)["trials"] == 6
    assert json.loads(metricsweep(url, "submit", spec, *sets).stdout)["id"] == 1
    text = json.loads(metricsweep(url, "show", 1, "--json").stdout)["text"]
    assert "seed: [0, 1, 2]" in text
    assert yaml.safe_load(text)["select"] == {"metric": "map@r", "split": "test"}


def test_run_refuses_a_wrong_spec_before_it_starts_anything(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("semihard", "semihart"))
    answer = metricsweep(NOWHERE, "run", spec, "--home", tmp_path / "none")
    assert (answer.exit_code, "semihard" in answer.stderr) == (2, True)
    assert not (tmp_path / "none").exists()


def test_a_wrong_value_is_refused_before_anything_starts(url: str, spec: Path) -> None:
    for command in ("submit", "expand", "run"):
        for wrong, told in {"recipe.iterations": "PATH=VALUE", "recipe.iterations=many": "recipe.iterations"}.items():
            answer = metricsweep(url, command, spec, "--set", wrong)
            assert (answer.exit_code, answer.stdout, told in answer.stderr) == (2, "", True), command
