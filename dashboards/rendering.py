"""How a page becomes HTML: the templates, what they may call, and the files that stand beside them."""

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards import problems, progress, wording
from orchestrator.views.accounts import caller
from orchestrator.views.pages import duration


def render(template: str, now: datetime | None, **shown: Any) -> str:
    """The template with what it shows and `who` asks; `now`: of which moment relative times are, none: of this one."""
    return _environment().get_template(template).render(now=now or datetime.now(UTC), who=caller(), **shown)


def static(name: str) -> bytes | None:
    """A style sheet, script or icon; none where there is no such file."""
    return _static_files().get(name)


@cache
def _static_files() -> dict[str, bytes]:
    # Read once and by listing: a name from an address never becomes a path.
    return {one.name: one.read_bytes() for one in (files("dashboards") / "static").iterdir() if one.is_file()}


def _address(name: str) -> str:
    """Where a static file is, under an address that changes with its content."""
    return f"/static/{name}?v={hashlib.sha256(_static_files()[name]).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("dashboards"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        ago=wording.ago, exact=wording.exact, machine=wording.machine, seconds_since=wording.seconds_since,
        length_of_time=duration, number=wording.number, share=wording.share, short_axis=wording.short_axis,
        indented=wording.indented, size=wording.size, counted=wording.counted, squares=progress.squares,
        eligible=progress.eligible, segments=progress.segments, by_kind=progress.by_kind,
        quoted=lambda text: quote(text, safe=""), held=wording.held, waits=progress.waits, plain=wording.plain,
        groups=progress.groups, group_kinds=progress.group_kinds, upper_first=wording.upper_first,
        breakable=wording.breakable,
    )  # fmt: skip
    made.globals.update(static=_address, kinds=progress.KINDS, most_problems=problems.MOST)
    return made
