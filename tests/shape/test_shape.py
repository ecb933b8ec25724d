"""The shape of the repository: file names that say something, and nothing left undone."""

import ast
import re
from pathlib import Path

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


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_named_after_nothing() -> None:
    named = [relative(path) for path in (*MODULES, *TESTS) if re.fullmatch(r"utils?|helpers?|misc", path.stem)]
    assert named == []


def test_no_module_is_very_long() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


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
