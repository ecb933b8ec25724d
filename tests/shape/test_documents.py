"""What a person can set, run or ask for stands in README.md or docs/; what these name and link to is there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from typer import Context
from typer.main import get_command

from api.cli import app
from api.commands.index import COMMANDS
from api.main import create_app
from orchestrator.settings import Settings
from orchestrator.views.state_diagram import diagrams

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = "api|benchmarks|dashboards|docker|docs|orchestrator|sweeps|tests|workers"


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


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option(documents: str, name: str) -> None:
    command = get_command(app).get_command(Context(get_command(app)), name)  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if not re.search(rf"{option}(?![\w-])", documents)} == set()


def test_every_path(documents: str, tmp_path: Path) -> None:
    app = create_app(cast(Any, None), Settings(home=tmp_path))
    paths = set(app.openapi()["paths"]) | {str(app.openapi_url)}
    assert {path for path in paths if not re.search(re.escape(path) + r"(?![\w/{])", documents)} == set()


def test_the_diagram_of_the_states_is_the_one_of_the_code() -> None:
    assert (ROOT / "docs" / "states.md").read_text(encoding="utf-8") == diagrams()


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _prose(page: Path) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: the n-th of one name ends in -n."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", _prose(page), flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        found.append(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return {f"{one}-{found[:at].count(one)}" if one in found[:at] else one for at, one in enumerate(found)}


def _links(page: Path) -> Iterator[str]:
    return (link for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)) if not re.match(r"\w+:", link))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=_name)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    named = re.findall(rf"`((?:{FOLDERS})/[\w./@-]+)`", _prose(page))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_module_that_is_run_is_there(page: Path) -> None:
    run = re.findall(r"python -m ((?:api|benchmarks|orchestrator|tests|workers)[\w.]*\w)", page.read_text("utf-8"))
    paths = [ROOT / name.replace(".", "/") for name in run]
    assert [
        path for path in paths if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists()
    ] == []


ORDINARY = {"Counts", "Details", "Identified"}
"""Words of names that say what they say anywhere."""


def test_the_vocabulary_has_what_clients_see(tmp_path: Path) -> None:
    """By the names of what the API answers with."""
    page = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8").lower()
    document = create_app(cast("Any", None), Settings(home=tmp_path / "home")).openapi()
    words = {word for name in document["components"]["schemas"] for word in re.findall(r"[A-Z][a-z]+", name)}
    assert {word for word in words - ORDINARY if not re.search(rf"\b{word.lower()}", page)} == set()
