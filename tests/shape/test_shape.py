"""The shape of the repository: names, sizes, docstrings, and nothing left undone."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.shape.syntax import Class, Function, syntax

ROOT = Path(__file__).parents[2]
ROOMS = ("workers", "orchestrator", "api", "dashboards")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in (*ROOMS, "tests", "docs", "sweeps", "benchmarks", ".github")
    for suffix in ("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "*.html", "*.js", "*.css")
    for path in (ROOT / folder).rglob(suffix)
) + sorted(path for path in ROOT.iterdir() if path.is_file() and path.suffix in {"", ".md", ".toml", ".txt", ".yml"})

NAMELESS = {"utils", "helpers", "common", "core", "base", "manager", "types", "misc", "model", "models"}
"""Names that say nothing of what lives there."""
VAGUE = {"found", "one"}
"""Names of locals that say nothing of what they hold."""

MOST_LINES = 300
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_BESIDE_A_VAGUE_NAME = 12
"""Of the body, its docstring among them."""
MOST_ARGUMENTS = 6
MOST_BASES = 1
"""Of ours: a class that does more is made of objects."""
MOST_METHODS = 16
"""Public ones of a class of the orchestrator."""
MOST_FENCES = 7
"""Signatures that take the number of a lease: where a writer is made of it, and where it is checked, by slots too."""

# Each is here for the reason beside it, and only for what it breaks.
LONG_MODULES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {
    "orchestrator/record/migrations/versions/0001_first.py:upgrade": 250,  # generated: every table of the release
}
WIDE_FUNCTIONS: dict[str, int] = {}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(paths: Iterable[Path]) -> list[tuple[str, Function]]:
    """With module and name, which two may share: methods of two classes."""
    return [(f"{relative(path)}:{one.name}", one) for path in paths for one in syntax(path).functions]


def offered_from_outside(name: str, decorated: bool) -> bool:
    """Whether others fix the arguments: a command's options, a route's parameters, a part's hyper-parameters."""
    file, _, function = name.partition(":")
    folder = Path(file).parent
    part = folder.parent.name == "workers" and function == "__init__"
    return part or folder.name == "commands" or (folder.name == "routes" and decorated)


def test_names_say_what_lives_there() -> None:
    for path in (*MODULES, *TESTS):
        assert not NAMELESS & {part.lower() for part in path.relative_to(ROOT).with_suffix("").parts}, relative(path)


def test_modules_are_short() -> None:
    long = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > LONG_MODULES.get(name, MOST_LINES)} == {}


def test_functions_are_short() -> None:
    most = MOST_LINES_OF_A_FUNCTION
    assert [name for name, one in functions(MODULES) if one.lines > LONG_FUNCTIONS.get(name, most)] == []


def test_locals_of_longer_functions_say_what_they_hold() -> None:
    """A variable of a comprehension is read beside what it is taken from, and may be called by any name."""
    longer = [(name, one) for name, one in functions(MODULES) if one.body_lines > MOST_LINES_BESIDE_A_VAGUE_NAME]
    assert [(name, VAGUE & one.bound) for name, one in longer if VAGUE & one.bound] == []


def test_functions_take_few_arguments() -> None:
    wide = [
        name
        for name, one in functions(MODULES)
        if len(one.arguments) > WIDE_FUNCTIONS.get(name, MOST_ARGUMENTS)
        and not offered_from_outside(name, one.decorated)
    ]
    assert wide == []


def classes(room: str) -> dict[str, Class]:
    paths = sorted((ROOT / room).rglob("*.py"))
    return {f"{relative(path)}:{one.name}": one for path in paths for one in syntax(path).classes}


def test_classes_are_made_of_objects_and_not_of_mixins() -> None:
    known = classes("orchestrator")
    ours = {one.name for one in known.values()}
    bases = {name: [base for base in one.bases if base in ours] for name, one in known.items()}
    assert {name: found for name, found in bases.items() if len(found) > MOST_BASES} == {}


def test_classes_have_few_methods() -> None:
    methods = {name: one.methods for name, one in classes("orchestrator").items()}
    assert {name: number for name, number in methods.items() if number > MOST_METHODS} == {}


def test_the_fence_is_bound_once() -> None:
    known = functions(sorted((ROOT / "orchestrator").rglob("*.py")))
    taking = {name for name, one in known if "fence" in one.arguments}
    assert len(taking) <= MOST_FENCES, taking


def test_no_exception_outlives_its_reason() -> None:
    known = {relative(path) for path in MODULES} | {name for name, _ in functions(MODULES)}
    assert {*LONG_MODULES, *LONG_FUNCTIONS, *WIDE_FUNCTIONS} <= known


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_says_what_lives_there(path: Path) -> None:
    empty = not path.read_text(encoding="utf-8").strip()
    assert syntax(path).docstring or (empty and path.name == "__init__.py")


def test_no_test_turns_the_clock_of_its_process() -> None:
    """A server's event loop in another thread would sleep for as long; give the module a clock of its own instead."""
    turned = re.compile(r"""setattr\(\s*(?:(?:\w+\.)*(?:time|asyncio),|["'][\w.]+\.(?:time|asyncio)\.)""")
    assert [relative(path) for path in TESTS if turned.search(path.read_text(encoding="utf-8"))] == []


def test_nothing_is_left_for_later() -> None:
    words = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
    assert [relative(path) for path in TEXTS if words.search(path.read_text(encoding="utf-8"))] == []


def test_no_parameter_hides_a_builtin() -> None:
    """A route's or an option's outer name, such as `id` or `format`, is its alias."""
    hiding = re.compile(r"noqa:[^\n]*\bA00[12]\b")
    assert [relative(path) for path in (*MODULES, *TESTS) if hiding.search(path.read_text(encoding="utf-8"))] == []


def test_data_files_are_read_by_their_own_room() -> None:
    """What another room's files hold is asked of that room: import contracts do not see who opens a file."""
    foreign = {
        (relative(path), package)
        for path in MODULES
        for package in syntax(path).packages_read
        if package not in {"__package__", repr(".".join(path.relative_to(ROOT).parent.parts))}
    }
    assert foreign == set()
