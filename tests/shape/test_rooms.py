"""The rooms: which modules stand at their top, that documents know them, and names that are given once."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.shape.syntax import syntax
from tests.shape.test_shape import MODULES, MOST_FENCES, ROOMS, ROOT, relative

LOOSE: Final = {
    "workers": {"contract", "registry", "train"},
    "orchestrator": {"secrets", "settings"},
    "dashboards": {
        "catalog", "cluster", "comparison", "curves", "guide", "listing", "pages",
        "problems", "progress", "rendering", "training", "wording",
        "editor", "gallery", "ledger", "people",
    },
    "api": {
        "cli", "client", "connection", "dependencies", "discovery", "examples", "failures", "main", "openapi", "paging",
        "problems",
    },
}  # fmt: skip
"""What stands in no room; anything else has one."""

NAMED_BY_SPECS: Final = (
    "workers/", "orchestrator/publish/formats/", "orchestrator/publish/figures/kinds/",
    "orchestrator/record/migrations/", "api/routes/", "api/commands/",
)  # fmt: skip
"""Where a file's name is that of what it holds, so that the folder is the list: parts, formats, steps, routes."""

SHORT: Final = 25


def rooms() -> Iterator[str]:
    return (relative(path.parent) for path in MODULES if path.name == "__init__.py")


def callers() -> dict[str, set[str]]:
    """By module, the modules that import it."""
    names = {_dotted(path) for path in MODULES}
    found: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in syntax(path).imports:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found[whole if whole in names else node.module].add(_dotted(path))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(_dotted(path))
    return found


def _dotted(path: Path) -> str:
    return relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_no_module_stands_outside_the_rooms() -> None:
    for room in ROOMS:
        tops = {path.stem for path in (ROOT / room).glob("*.py")} - {"__init__", "__main__"}
        assert tops == LOOSE[room], room


def test_the_page_lists_the_rooms() -> None:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = page.partition("## The rooms")[2].partition("\n\n|")[2].partition("\n\n")[0]
    listed = set()
    for row in table.splitlines()[2:]:
        first, inside = row.strip("| ").split(" | ", 1)
        folders: list[str] = re.findall(r"`([\w/]+)/`", first)
        top = folders[0].partition("/")[0]
        whole = [name if name.startswith(f"{top}/") or name == top else f"{top}/{name}" for name in folders]
        listed |= set(whole)
        if len(whole) == 1:
            listed |= {f"{whole[0]}/{name}" for name in re.findall(r"`([\w/]+)/`", inside)}
    found = {room for room in rooms() if room.count("/") < 3}
    assert listed == found


def test_a_short_module_with_one_caller_belongs_to_it() -> None:
    called = callers()
    short = {
        relative(path)
        for path in MODULES
        if path.stem not in {"__init__", "__main__"}
        and not relative(path).startswith(NAMED_BY_SPECS)
        and len(path.read_text(encoding="utf-8").splitlines()) < SHORT
        and len(called[_dotted(path)]) < 2
    }
    assert short == set()


def test_a_public_class_has_its_name_alone() -> None:
    homes = defaultdict(list)
    for path in MODULES:
        for one in syntax(path).classes:
            if one.top and not one.name.startswith("_"):
                homes[one.name].append(relative(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_siblings_differ_by_an_ending() -> None:
    """`search` and `searches`, `request` and `requesting` are one noun, which has one home."""
    stems = defaultdict(list)
    for path in MODULES:
        if path.name != "__init__.py":
            stem = re.sub(r"(ing|ings|es|s|ed|er|ers|ment|ion|ions)$", "", path.stem)
            stems[path.parent / re.sub(r"e$", "", stem)].append(relative(path))
    assert {relative(stem): found for stem, found in stems.items() if len(found) > 1} == {}


def class_of(file: str, name: str) -> ast.ClassDef:
    body = ast.parse((ROOT / file).read_bytes()).body
    return next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name)


def offered(node: ast.ClassDef) -> str:
    """What a class is made of, as the decision says it: other classes, public methods, public attributes."""
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    made = [part for function in functions if function.name == "__init__" for part in ast.walk(function)]
    objects = {part.attr for part in made if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)}
    methods, public = (
        [name for name in names if name[0] != "_"] for names in ([one.name for one in functions], objects)
    )
    return f"{len(node.bases)}; {len(methods)}, and {len(public)} objects"


def test_the_decision_has_the_figures_of_today() -> None:
    """Those in its last column that no other test here holds to zero."""
    page = (ROOT / "docs" / "decisions" / "rooms.md").read_text(encoding="utf-8")
    after = dict(re.findall(r"^\| (.+?) \|.+\| (.+?) \|$", page, re.M))
    for room in ("orchestrator", "workers", "api"):
        assert int(after[f"loose modules of `{room}`"].split(" ")[0]) == len(LOOSE[room])
    for name, file in (("Store", "orchestrator/record/store.py"), ("Service", "orchestrator/service/service.py")):
        said = after[f"classes that `{name}` was put together from; its public methods"]
        assert said.removesuffix(" by noun") == offered(class_of(file, name))
    assert int(after["signatures with the number of the lease"]) == MOST_FENCES
    conductor = class_of("orchestrator/conduct/conductor.py", "Conductor")
    assert int(after["the conductor's class"].partition(",")[0]) == (conductor.end_lineno or 0) - conductor.lineno + 1


def test_nothing_imports_the_notebooks_door() -> None:
    """It is above `api`; import-linter knows the packages in the repository's top only."""
    assert {by for name, found in callers().items() if name.startswith("metricsweep") for by in found} == set()
