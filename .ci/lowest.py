"""Prints the lower bounds of pyproject.toml as constraints, for `make lowest`."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
chosen = [extra for name, extra in project["optional-dependencies"].items() if name not in ("docs", "dev")]
lines = {line for group in (project["dependencies"], *chosen) for line in group}
for line in sorted(lines):
    if bound := re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)(?:,<[\w.]+)?", line):
        print(f"{bound[1]}=={bound[2]}")
    elif not line.startswith("metricsweep["):
        raise SystemExit(f"{line}: expected a lower bound, and at most an upper one")
