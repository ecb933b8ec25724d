"""`docs/add-a-part.md` followed literally: its examples go where it says and are trained by its specs."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from orchestrator.__main__ import main
from orchestrator.conduct.conductor import Conductor
from orchestrator.publish import formats
from orchestrator.publish.tables.build import build
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Site, engine_named
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.publish import sweeps
from workers import catalog as catalogs
from workers.contract import FOLDERS

PAGE: Final = (Path(__file__).parents[1] / "docs" / "add-a-part.md").read_text(encoding="utf-8")
EXAMPLES: Final = dict(re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.M | re.S))
SPECS: Final = {
    re.findall(r"^name: (\S+)$", spec, re.M)[0]: spec for spec in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
}
PARTS: Final = {file: text for file, text in EXAMPLES.items() if file.partition("/")[0] in FOLDERS.values()}
FORMAT: Final = "formats/tsv.py"
ENGINE: Final = "one_by_one.py"


@pytest.fixture
def home(tmp_path: Path, migrated: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an installation whose environment names a folder of own parts: the page's."""
    for file, text in PARTS.items():
        (tmp_path / "own" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / file).write_text(text, encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    migrated(home)
    monkeypatch.setenv("METRICSWEEP_HOME", str(home))
    monkeypatch.setenv("METRICSWEEP_PARTS", str(tmp_path / "own"))
    return home


def test_the_page_has_these_examples() -> None:
    assert list(PARTS) == [
        "losses/uniform_alignment.py", "metrics/separation.py", "datasets/patterns.py", "tasks/regression.py",
        "metrics/error.py",
    ]  # fmt: skip
    assert set(EXAMPLES) == {*PARTS, FORMAT, ENGINE}
    assert list(SPECS) == ["library-losses", "own-parts", "own-task"]
    assert PAGE.count("```python") == len(EXAMPLES), "each says where it goes"


@pytest.mark.parametrize(
    ("name", "labels", "metrics", "least"),
    [
        (
            "library-losses",
            ["Triplet", "Circle", "Mined triplets", "Contrastive with XBM"],
            ["R@1", "MAP@R"],
            [25.0, 0.0],
        ),
        ("own-parts", ["Alignment + uniformity", "sharper"], ["Separation", "R@1"], [0.0, 25.0]),
        ("own-task", ["4", "32"], ["Error"], [0.0]),
    ],
)
def test_the_examples_train_by_the_specs_of_the_page(
    name: str,
    labels: list[str],
    metrics: list[str],
    least: list[float],
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPECS[name], encoding="utf-8")
    assert main(["run", str(spec)]) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    lines = [line.replace("*", "").split("|")[1:-1] for line in printed.splitlines() if line.startswith("|")]
    titles, _, *rows = [[cell.strip() for cell in line] for line in lines]
    assert [title.split(" ")[0] for title in titles[1:]] == metrics
    assert [row[0] for row in rows] == labels
    for row in rows:
        assert all(float(cell.split()[0]) > bound for cell, bound in zip(row[1:], least, strict=True)), row


def test_the_engine_of_the_page_trains_them(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ENGINE).write_text(EXAMPLES[ENGINE], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = Settings(engine="one_by_one:engine", lease_seconds=5)
    service, store = Service.open(settings), Store.open(settings.database)
    workplace = Workplace(settings.train, settings.storage, settings.data_root, parts=settings.parts)
    try:
        sweep = service.submissions.submit(SPECS["own-task"].encode()).id
        engine = engine_named(settings.engine, Site(workplace, home))
        Conductor(settings, store, engine, catalogs.load(settings.parts), None).conduct(until_idle=True)
        assert service.sweeps.get(sweep).state == "finished"
        trial = service.store.trials.page(sweep, None, None, None, 9).items[0]
        assert service.trials.get(trial.id).attempts[0].slot == "this process"
    finally:
        service.close()
        store.close()


def test_the_format_of_the_page_renders_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / Path(FORMAT).name).write_text(EXAMPLES[FORMAT], encoding="utf-8")
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    assert "tsv" in formats.names()
    table = build(sweeps.tiny(), "main", sweeps.catalog())
    rendered = formats.render(table, "tsv")
    assert rendered.filename.endswith(".tsv")
    lines = [line.split("\t") for line in rendered.content.decode().splitlines()]
    assert len(lines) == sum(1 + len(panel.rows) for panel in table.panels)
    assert len({len(line) for line in lines}) == 1
