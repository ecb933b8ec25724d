"""Writes what the images install, each package with its version and its hash: `python docker/lock.py`.

pip resolves it by constraints.txt as the images would, installs nothing, and tells the hash of each file; images then
take `pip install --require-hashes`. It is of the system and the Python that it runs on, which are to be those of the
images: Linux on x86-64, Python 3.11. Where reports of `pip install --report` are named, in the order of the images, it
reads these.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final[Mapping[str, list[str]]] = {
    "control": [".[server,traces]", "sphinx", "myst-parser", "furo", "setuptools"],
    "worker": [".[server,worker,traces]", "setuptools"],
}
"""What each image asks for: setuptools builds our own wheel, and the guide's tools leave again."""
HEAD: Final = "# What the {image} image installs, of Python {python} on {machine}: `python docker/lock.py` writes it.\n"


def report(wanted: list[str]) -> dict[str, Any]:
    """What pip would install, as it reports it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    command += ["--constraint", "constraints.txt", *wanted]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def lock(image: str, found: dict[str, Any]) -> str:
    """A line for each package but our own, in order."""
    locked = {}
    for package in found["install"]:
        name = re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()
        if name != "metricsweep":
            digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
            locked[name] = f"{name}=={package['metadata']['version']} --hash=sha256:{digest}\n"
    system = found["environment"]
    head = HEAD.format(image=image, python=system["python_version"], machine=system["platform_machine"])
    return head + "".join(locked[name] for name in sorted(locked))


def main(reports: list[str]) -> None:
    """Write the file of each image."""
    for number, (image, wanted) in enumerate(IMAGES.items()):
        found = json.loads(Path(reports[number]).read_text(encoding="utf-8")) if reports else report(wanted)
        (ROOT / "docker" / f"{image}.lock.txt").write_text(lock(image, found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
