"""What a person can set, run or ask for stands in README.md or docs/; what these name and link to is there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from typer import Context
from typer.main import get_command

from api.cli import COMMANDS, app
from api.main import create_app
from orchestrator.settings import Settings
from tests.state_diagram import diagrams

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = "api|benchmarks|dashboards|docker|docs|orchestrator|sweeps|tests|workers"


@pytest.fixture(scope="module")
def documents() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in pages)


def test_every_setting(documents: str) -> None:
    settings = [f"METRICSWEEP_{name.upper()}" for name in Settings.model_fields]
    assert [name for name in settings if not re.search(rf"\b{name}\b", documents)] == []


def test_every_command(documents: str) -> None:
    assert [name for name, _, _ in COMMANDS if not re.search(rf"\bmetricsweep {re.escape(name)}\b", documents)] == []


def test_every_option(documents: str) -> None:
    commands = get_command(app)
    parameters = [
        (name, parameter)
        for name, _, _ in COMMANDS
        for parameter in commands.get_command(Context(commands), name).params  # type: ignore[attr-defined]
    ]
    options = {(name, option) for name, one in parameters for option in one.opts if option.startswith("--")}
    assert {(name, option) for name, option in options if not re.search(rf"{option}(?![\w-])", documents)} == set()


def test_every_command_line_that_is_shown_is_accepted() -> None:
    commands = get_command(app)
    known = {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in commands.commands.items()  # type: ignore[attr-defined]
    }
    wrong = []
    for page in PAGES:
        code = re.findall(r"```.*?```|`[^`\n]+`", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in re.findall(
            r"(?:^|[`(\"$]) *metricsweep ([a-z].*?)(?:[`#|;&>)\n]|$)", "\n".join(code), re.MULTILINE
        ):
            name, *words = line.split()
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            strange = options - known[name] - {"--help"} if name in known else {name}
            wrong += [(_name(page), line, option) for option in sorted(strange)]
    assert wrong == []


def test_every_path(documents: str, tmp_path: Path) -> None:
    app = create_app(cast(Any, None), Settings(home=tmp_path))
    paths = set(app.openapi()["paths"]) | {str(app.openapi_url)}
    assert {path for path in paths if not re.search(re.escape(path) + r"(?![\w/{])", documents)} == set()


def test_the_diagram_of_the_states_is_the_one_of_the_code() -> None:
    page = (ROOT / "docs" / "slots.md").read_text(encoding="utf-8")
    assert diagrams() in page, "replace the section by the output of `python -m tests.state_diagram`"


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


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in _anchors(target))


def test_every_link_leads_somewhere() -> None:
    assert [(_name(page), link) for page in PAGES for link in _links(page) if not _leads_somewhere(page, link)] == []


def test_every_file_that_is_named_is_there() -> None:
    named = [
        (_name(page), path) for page in PAGES for path in re.findall(rf"`((?:{FOLDERS})/[\w./@-]+)`", _prose(page))
    ]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_every_module_that_is_run_is_there() -> None:
    pattern = re.compile(r"python (?:-P )?-m ((?:api|benchmarks|orchestrator|tests|workers)[\w.]*\w)")
    run = [(_name(page), name) for page in PAGES for name in pattern.findall(page.read_text("utf-8"))]
    missing = [
        (page, name)
        for page, name in run
        if not (path := ROOT / name.replace(".", "/")).with_suffix(".py").exists()
        and not (path / "__main__.py").exists()
    ]
    assert missing == []
