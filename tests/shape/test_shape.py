"""The shape of the repository: file names that say something, and nothing left undone."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("workers", "orchestrator", "api", "dashboards")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in (*PACKAGES, "tests", "docs", "sweeps", "benchmarks", ".github")
    for suffix in ("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "*.html", "*.js", "*.css")
    for path in (ROOT / folder).rglob(suffix)
) + sorted(path for path in ROOT.iterdir() if path.is_file() and path.suffix in {"", ".md", ".toml", ".txt", ".yml"})

MOST_LINES = 700
LONGEST_CHAIN = 29
"""The longest chain of imports. It may only become shorter."""
SMALL_MODULES = 8
"""Modules of fewer than 150 lines with one importer, in the same folder. There may only be fewer."""
PARTS = "losses regularizers backbones datasets metrics samplers heads optimizers schedules eta_schedules tasks"
PLUGINS = (*(f"workers.{folder}." for folder in PARTS.split()), "orchestrator.publish.formats.")
"""Folders whose every file is a part."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_named_after_nothing() -> None:
    named = [relative(path) for path in (*MODULES, *TESTS) if re.fullmatch(r"utils?|helpers?|misc", path.stem)]
    assert named == []


def test_no_module_is_very_long() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules of the product that each module imports, anywhere in its text."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    imports: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                expected = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                expected = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for full in expected:
                found = full if full in paths else full.rpartition(".")[0]
                imports[name] |= {found} & paths.keys() - {name}
    return imports


def test_the_longest_chain_of_imports_does_not_grow(graph: dict[str, set[str]]) -> None:
    chains: dict[str, list[str]] = {}

    def chain(name: str, above: tuple[str, ...]) -> list[str]:
        if name not in chains:
            below = [chain(other, (*above, name)) for other in sorted(graph[name]) if other not in above]
            chains[name] = [name, *max(below, key=len, default=[])]
        return chains[name]

    longest = max((chain(name, ()) for name in sorted(graph)), key=len)
    assert len(longest) <= LONGEST_CHAIN, longest


def test_small_modules_are_not_split_off_their_only_importer(graph: dict[str, set[str]]) -> None:
    small = []
    for name in sorted(graph):
        importers = [other for other in graph if name in graph[other]]
        path = ROOT / Path(*name.split(".")).with_suffix(".py")
        if len(importers) == 1 and path.exists() and not name.startswith(PLUGINS):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines < 150 and importers[0].rpartition(".")[0] == name.rpartition(".")[0]:
                small.append(f"{name} ({lines} lines) <- {importers[0]}")
    assert len(small) <= SMALL_MODULES, "\n".join(small)


def test_no_test_turns_the_clock_of_its_process() -> None:
    """A server's event loop in another thread would sleep for as long; give the module a clock of its own instead."""
    turned = re.compile(r"""setattr\(\s*(?:(?:\w+\.)*(?:time|asyncio),|["'][\w.]+\.(?:time|asyncio)\.)""")
    assert [relative(path) for path in TESTS if turned.search(path.read_text(encoding="utf-8"))] == []


def test_nothing_is_left_for_later() -> None:
    words = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
    assert [relative(path) for path in TEXTS if words.search(path.read_text(encoding="utf-8"))] == []


def test_the_package_for_notebooks_is_imported_by_no_module() -> None:
    """It stands above `api`; import-linter knows only the packages at the top of the repository."""
    importers = [
        relative(path)
        for path in MODULES
        if "package" not in path.parts
        for node in ast.walk(ast.parse(path.read_bytes()))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("metricsweep"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("metricsweep") for alias in node.names))
    ]
    assert importers == []
