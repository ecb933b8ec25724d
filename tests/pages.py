"""The fenced blocks of the documentation, and whether the project's programs accept the commands in them."""

import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any, Final

from typer.main import get_command

from api.cli import app
from orchestrator import __main__ as orchestrator
from orchestrator.run.files import __main__ as files
from tests.conftest import ROOT
from workers import __main__ as workers

PAGES: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
}
METRICSWEEP: Final[dict[str, Any]] = get_command(app).commands  # type: ignore[attr-defined]
PARSERS: Final[dict[str, Callable[[list[str]], Any]]] = {
    "orchestrator": orchestrator._parser().parse_args,
    "orchestrator.run.files": files._parser().parse_args,
    "workers": workers._parser().parse_args,
}


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of the fenced blocks in some languages."""
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The shell commands of a text, without comments and `.venv/bin/`; of a console block only those after a prompt."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    lines += [line[2:] for block in blocks(text, "console") for line in block.splitlines() if line.startswith("$ ")]
    plain = [re.sub(r"(^|\s+)#\s.*$", "", line).replace(".venv/bin/", "", 1) for line in lines]
    return [command for command in plain if command]


def parse(command: str) -> None:
    """Raise an error unless the shell can read the command, its files exist, and our program accepts its arguments."""
    subprocess.run(["sh", "-n", "-c", command], check=True)
    words = shlex.split(command)
    paths = [word for word in words if re.match(r"(docker|docs|sweeps|tests)[-./]", word)]
    assert all((ROOT / path).exists() for path in paths), command
    match words:
        case ["metricsweep", name, *rest] if name != "import":  # which looks for its file
            METRICSWEEP[name].make_context(name, rest)
        case ["python", "-m", module, *rest] if module in PARSERS:
            PARSERS[module](rest)
        case ["make", *rest] if "-C" not in rest:
            subprocess.run(["make", "-n", *rest], cwd=ROOT, check=True, capture_output=True)
