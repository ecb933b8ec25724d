"""`pip install metricsweep` alone is a client of a server; a command that needs more names the extra to install."""

import subprocess
from pathlib import Path

from tests import extras
from tests.api.conftest import TOKEN, named

COMMAND = """
sys.argv[0] = "metricsweep"
from api.cli import main
main()
"""
NEEDS = 'is not installed; `pip install "metricsweep[{}]"` brings it'


def metricsweep(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return extras.run([], COMMAND, *arguments, **environment)


def test_commands_work_against_a_server(url: str, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text("\\input{main.tex}\n")
    wrong = dict[str, str]()
    for arguments in (
        ["submit", spec, "--set", "select.split=test", "--only", "seed=0", "--json"], ["show", 1],
        ["expand", "sweeps/sec_t3.yaml", "--home", tmp_path / "new"],
        ["table", 1, "main", "--out", tmp_path / "main.tex"], ["check", tmp_path / "paper.tex"],
        ["published", "SEC-T3", "--like", "sweeps/sec_t3.yaml", "--format", "latex"],
    ):  # fmt: skip
        done = metricsweep(*arguments, **named(url))
        if done.returncode:
            wrong[" ".join(map(str, arguments))] = done.stderr[-1000:]
    assert not wrong, wrong


def test_what_needs_more_says_what_to_install(url: str, tmp_path: Path) -> None:
    wrong = dict[str, str]()
    for arguments, extra in (
        (["serve"], "server"),
        (["check", "README.md", "--bundle", "README.md"], "server"),
        (["weights", "list"], "worker"),
    ):
        done = metricsweep(*arguments, METRICSWEEP_HOME=str(tmp_path / "home"))
        if done.returncode != 1 or NEEDS.format(extra) not in done.stderr or "Traceback" in done.stderr:
            wrong[" ".join(map(str, arguments))] = done.stderr[-1000:]
    code = f"import metricsweep; metricsweep.connect({url!r}, {TOKEN!r}).frame()"
    assert NEEDS.format("notebook") in extras.run([], code).stderr
    assert not wrong, wrong


def test_a_worker_trains_without_the_server(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "dataset: digits\nbackbone: {name: mlp, width: 4}\nembedding: 4\nloss: triplet\niterations: 1\n"
        "sampler: {name: balanced, classes: 2, per_class: 2}\nselect: {split: last}\n"
    )
    code = "import orchestrator.run.files.slot\nfrom workers.__main__ import main\nsys.exit(main())"
    done = extras.run(["worker"], code, "train", recipe, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "result.json").exists()
