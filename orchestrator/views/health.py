"""Whether the service can do its work, as clients see it."""

from orchestrator.views.pages import View


class Check(View):
    """Whether one thing that the service needs is there."""

    name: str
    ok: bool
    detail: str


class Disk(View):
    """A folder that fills up, and the disk that it is on."""

    name: str
    free_bytes: int
    size_bytes: int


class Readiness(View):
    """Whether the service can do its work."""

    ok: bool
    checks: list[Check]
