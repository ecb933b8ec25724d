"""docs/tutorial.md, followed to the letter: its files are written, and every command in it is run, in its order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.served import Served, until

pytestmark = pytest.mark.ray

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STANDS = {"metricsweep serve"}
"""What the fixture has done already."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line]


def test_it_names_the_commands_that_lead_to_a_table() -> None:
    assert set(commands()) >= STANDS
    assert [line.split()[1] for line in commands() if line.startswith("metricsweep ")] == [
        "expand", "serve", "submit", "list", "table", "table", "catalog", "extend"
    ]  # fmt: skip


def wider_is_trained(served: Served, sweep: int) -> bool:
    found = served.client.sweep(sweep)
    return found.counts.total > 12 and found.state == "finished"


def test_from_images_to_latex(served_home: Served, tmp_path: Path) -> None:
    (tmp_path / ".metricsweep").symlink_to(served_home.home)
    (script,) = blocks("python")
    (tmp_path / "make_images.py").write_text(script)
    spec, wider = blocks("yaml")
    (tmp_path / "shapes.yaml").write_text(spec)
    bins = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("METRICSWEEP_")}
    said: dict[str, str] = {}
    number = "1"
    for command in commands():
        if command in STANDS:
            continue
        if command.startswith("metricsweep extend"):
            (narrow,) = re.findall(r"^  loss: .*\n", spec, flags=re.MULTILINE)
            (tmp_path / "shapes.yaml").write_text(spec.replace(narrow, wider))
        line = re.sub(r"^(metricsweep \w+) 1\b", rf"\1 {number}", command)  # the served home had other sweeps before
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, env=environment | {"PATH": bins}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said[command] = done.stdout
        if command.startswith("metricsweep submit"):
            number = next(str(sweep.id) for sweep in served_home.client.sweeps() if sweep.name == "shapes")
    until(lambda: wider_is_trained(served_home, int(number)), "the wider sweep is trained")
    counted = re.search(r"It says (.+?)\.", PAGE)
    assert counted
    for count in re.findall(r"\d+ \w+", counted[1]):
        assert count in said["metricsweep expand shapes.yaml"], count
    latex = (tmp_path / "shapes.tex").read_text()
    assert "\\toprule" in latex
    assert latex.count("{\\scriptsize$\\pm$") == 8  # two metrics of four cells
    assert "alpha" in said["metricsweep catalog loss proxy_anchor"]
