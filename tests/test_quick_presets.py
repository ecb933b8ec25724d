"""A quick variant of a preset run for real as a person does it, by `metricsweep run`: from the spec to its table.

Its trainings are cut short here, since what they show is asserted in tests/claims.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.host.slot_environment import NICENESS
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = [pytest.mark.ray, pytest.mark.soak]

ROOT = Path(__file__).parents[1]
SECONDS = 600


def run(name: str, folder: Path) -> Any:
    """Run the quick variant of a preset over a fresh home; gives its table `main` as the JSON format has it."""
    home, out = folder / "home", folder / "tables"
    short = ["--set", "recipe.iterations=8", "--set", "recipe.evaluate_every=8"]
    command = [sys.executable, "-m", "api.cli", "run", f"sweeps/quick/{name}.yaml", "--home", str(home), *short]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("METRICSWEEP_", "RAY_"))}
    plain[NICENESS] = os.environ[NICENESS]  # theirs, unlike all else that is Ray's
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, env=plain, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    service = Service.open(Settings(home=home))
    try:
        found = service.sweeps.get(1)
        assert (found.state, found.counts.finished, found.counts.failed) == ("finished", found.total, 0)
        return json.loads(service.tables.render(1, "main", "json").content)
    finally:
        service.close()


def test_table_3_of_sec(tmp_path: Path) -> None:
    table = run("sec_t3", tmp_path)
    cells = [cell for panel in table["panels"] for row in panel["rows"] for cell in row["cells"]]
    assert table["complete"] == table["total"]
    assert all(cell["text"][:1].isdigit() for cell in cells)
    assert [[(group["text"], group["span"]) for group in panel["groups"][0]] for panel in table["panels"]] == [
        [("Digits d=8", 6), ("Digits d=16", 6)], [("Digits d=32", 6), ("Digits d=64", 4)],
    ]  # fmt: skip
    for panel in table["panels"]:
        for at, _ in enumerate(panel["columns"]):
            for block in range(0, 12, 3):  # one loss on one data set
                cells = [row["cells"][at] for row in panel["rows"][block : block + 3]]
                best = max(float(cell["text"]) for cell in cells)
                assert [cell["bold"] for cell in cells] == [float(cell["text"]) == best for cell in cells]
    assert "Selection budget" in " ".join(table["details"]), "the cells had unequal chances"
    files = {path.name: path for path in (tmp_path / "tables").iterdir()}
    assert {f"quick-sec-t3-main.{suffix}" for suffix in ("tex", "md", "csv")} <= set(files)
    with files["quick-sec-t3-main.csv"].open(newline="") as file:
        assert len(list(csv.reader(file))) > 12
    assert {cell["candidates"] for cell in table["cells"]} == {1, 2}
