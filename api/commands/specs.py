"""`expand`: what a spec would become, without a server; and a spec made to train afresh."""

import json
import re
from typing import Final

from api.commands.options import HOME, Changes, Home, Json, Only, SpecFile, Without, read_spec, settings
from api.commands.previews import show_preview

_FRESH: Final = re.compile(rb"^(['\"]?)fresh\1[ \t]*:[^\r\n]*", re.MULTILINE)


def expand(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    home: Home = HOME,
    as_json: Json = False,
) -> None:
    """Check a spec here, without a server, and count its cells, candidates and trials."""
    from orchestrator.service import offline

    show_preview(offline.preview(read_spec(file, changes, only, without), settings(home=home)), as_json)


def afresh(body: bytes) -> bytes:
    """The same spec with `fresh: true`, its comments and order kept; JSON stays JSON."""
    if body.lstrip().startswith(b"{"):
        document = json.loads(body)
        return json.dumps(document | {"fresh": True}, indent=2, ensure_ascii=False).encode()
    line = b"fresh: true"
    if _FRESH.search(body):
        return _FRESH.sub(line, body, count=1)
    return body.rstrip() + b"\n" + line + b"\n"
