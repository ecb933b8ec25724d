"""What a person can set, run or ask for stands in README.md or docs/."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from api.cli import COMMANDS
from api.main import create_app
from orchestrator.settings import Settings
from orchestrator.views.state_diagram import diagrams

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def documents() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in pages)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting(documents: str, name: str) -> None:
    assert re.search(rf"\bMETRICSWEEP_{name.upper()}\b", documents)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command(documents: str, name: str) -> None:
    assert re.search(rf"\bmetricsweep {re.escape(name)}\b", documents)


def test_every_path(documents: str, tmp_path: Path) -> None:
    app = create_app(cast(Any, None), Settings(home=tmp_path))
    paths = set(app.openapi()["paths"]) | {str(app.openapi_url)}
    assert {path for path in paths if not re.search(re.escape(path) + r"(?![\w/{])", documents)} == set()


def test_the_diagram_of_the_states_is_the_one_of_the_code() -> None:
    assert (ROOT / "docs" / "states.md").read_text(encoding="utf-8") == diagrams()
