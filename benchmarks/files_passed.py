"""The files that a posted spec and a table pass through, and how often a file is entered again.

    python -m benchmarks.files_passed [--list]

Each function of the project counts once, where it is called first. `files` is how many files these calls pass through,
`returns` how often they come back to a file that they have left: a reader who follows them opens and reopens so many.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from orchestrator.plan.check import read_spec
from orchestrator.publish import formats, papers
from orchestrator.publish.tables.build import build
from tests.publish import sweeps
from workers import catalog

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "sweeps" / "digits.yaml"
PRODUCT = ("api", "dashboards", "orchestrator", "workers")


def passed(run: Callable[[], Any]) -> list[str]:
    """The files of the functions that `run` calls, in the order of first calls, without immediate repeats."""
    seen: set[CodeType] = set()
    files: list[str] = []

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or code in seen or code.co_name.startswith("<") or not path.is_relative_to(ROOT):
            return
        seen.add(code)
        name = str(path.relative_to(ROOT))
        if name.startswith(PRODUCT) and files[-1:] != [name]:
            files.append(name)

    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(None)
    return files


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files_passed")
    parser.add_argument("--list", action="store_true", help="the files too")
    given = parser.parse_args()
    known, body, printed = catalog.load(), SPEC.read_bytes(), papers.printed_lines()
    results = sweeps.grid({"loss": sweeps.LOSSES, "regularizer": sweeps.REGULARIZERS}, sweeps.spec())
    parts = sweeps.catalog()
    cases: dict[str, Callable[[], Any]] = {
        "a spec, checked and expanded": lambda: read_spec(body, known, printed),
        "a table, as LaTeX": lambda: formats.render(build(results, "main", parts), "latex"),
    }
    for name, run in cases.items():
        files = passed(run)
        unlike = list(dict.fromkeys(files))
        print(f"{name}: {len(unlike)} files, {len(files) - len(unlike)} returns")
        if given.list:
            print("".join(f"    {one}\n" for one in unlike), end="")


if __name__ == "__main__":
    main()
