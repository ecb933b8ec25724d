"""The guide: the documentation as a site, which `make guide` builds beside this module, and wheels carry."""

import base64
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "guide"
ABSENT: Final = (
    "the guide was not built where this is installed: `make guide` builds it in a clone of the repository, as "
    "`make check` and `make wheel` do; the same pages are the Markdown files of its docs/"
)
_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GuideFile:
    """A file of the site."""

    content: bytes
    media_type: str
    scripts: tuple[str, ...]
    """The hashes of the scripts that stand in a page, by which a Content-Security-Policy allows them and no other."""


def built(folder: Path | None = None) -> bool:
    """Whether there is a guide."""
    return ((folder or FOLDER) / "index.html").is_file()


def file(address: str, folder: Path | None = None) -> GuideFile | None:
    """The file at an address below the guide's; a folder's is its `index.html`. None where there is none."""
    root = (folder or FOLDER).resolve()
    if "\0" in address:
        return None
    try:
        place = (root / address).resolve()
        if place.is_dir():
            place /= "index.html"
        if not place.is_relative_to(root) or not place.is_file():
            return None
        content = place.read_bytes()
    except OSError:  # a name that is longer than a file system takes
        return None
    media_type = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    page = media_type == "text/html"
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return GuideFile(content, media_type, tuple(_hash(script) for script in _INLINE.findall(content)) if page else ())


def _hash(script: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}"
