"""The documentation as a site, for tests of what shows it and of what carries it."""

import subprocess
import sys
from pathlib import Path

from dashboards import catalog
from tests.conftest import ROOT


def site(folder: Path) -> Path:
    """The guide that `make check` or `make demo` built, or one of our own below `folder` where nobody has built it."""
    if catalog.guide_is_built():
        return catalog.GUIDE_FOLDER
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", "docs/site", "-d", str(folder / ".doctrees")]
    subprocess.run([*command, "docs", str(folder / "site")], cwd=ROOT, check=True)
    return folder / "site"
