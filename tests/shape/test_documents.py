"""What a person can set, run or ask for stands in README.md or docs/; what these name and link to is there."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
import yaml

from api.cli import COMMANDS
from api.main import create_app
from benchmarks.performance import BEGIN, END, GOALS, KEPT, PAGE, RUNS, Figures, Goal, table
from orchestrator.plan.check import check
from orchestrator.plan.read import KEYS
from orchestrator.plan.schema import json_schema
from orchestrator.settings import Settings
from tests import pages
from tests.state_diagram import diagrams
from workers.catalog import load
from workers.contract import Recipe

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
    options = {
        (name, option)
        for name, command in pages.METRICSWEEP.items()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert {(name, option) for name, option in options if not re.search(rf"{option}(?![\w-])", documents)} == set()


def test_every_command_in_a_sentence_has_its_options() -> None:
    known = {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in pages.METRICSWEEP.items()
    }
    wrong = []
    for page, text in pages.PAGES.items():
        for line in re.findall(r"`metricsweep ([a-z][^`|\n]*)", text):
            name, *words = line.split()
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            wrong += [(page, line)] if name not in known or options - known[name] - {"--help"} else []
    assert wrong == []


def test_every_spec_is_valid_and_every_part_of_a_spec_satisfies_the_schema() -> None:
    """Other tests train the specs of two pages; docs/operating.md has a file of Prometheus."""
    catalog, whole = load(), yaml.safe_load((ROOT / "sweeps" / "digits.yaml").read_text("utf-8"))
    schema = jsonschema.Draft7Validator(json_schema(catalog))
    wrong = []
    for page in pages.PAGES.keys() - {"docs/tutorial.md", "docs/add-a-part.md", "docs/operating.md"}:
        for block in pages.blocks(pages.PAGES[page], "yaml"):
            part = yaml.safe_load(block.replace(", ...", "").replace("[...]", "[0.5]"))
            if "version" in part:
                check(part, catalog)
            elif not part.keys() <= set(KEYS):
                part = {"recipe": part} if part.keys() <= Recipe.model_fields.keys() else {"tables": {"main": part}}
            recipe = whole["recipe"] | part.get("recipe", {})
            wrong += [(page, block, error.message) for error in schema.iter_errors({**whole, **part, "recipe": recipe})]
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


@pytest.fixture(scope="module")
def kept() -> dict[str, Figures]:
    found: dict[str, Figures] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return found


def test_the_page_shows_what_is_kept(kept: dict[str, Figures]) -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table(kept)


def test_every_goal_has_its_benchmark(kept: dict[str, Figures]) -> None:
    assert set(kept) <= set(RUNS) == {goal.run for goal in GOALS}


def test_a_missed_goal_names_its_reason() -> None:
    goal = Goal("to be fast", "start", lambda figures: float(figures["s"]), 2, "it waits")
    assert goal.line({"each": [{"s": 2}]}) == "| to be fast | 2 | one run | 2 | met |"
    assert (
        goal.line({"each": [{"s": 2}, {"s": 3}, {"s": 2.5}]})
        == "| to be fast | 2.5 | 2 to 3 of 3 | 2 | **missed**: it waits |"
    )
    of_medians = {"each": [{"s": 2}, {"s": 3}], "medians": {"s": 1.75}}
    assert goal.line(of_medians) == "| to be fast | 1.75 | 2 to 3 of 2 | 2 | met |"
