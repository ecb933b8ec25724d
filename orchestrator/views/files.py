"""Tables and figures as files."""

from typing import Final

from orchestrator.views.pages import View

FIGURE_FORMATS: Final = ("json", "svg", "png", "pdf", "csv")
"""What a figure of a sweep may be written as."""


class Rendered(View):
    """A table or figure as a file."""

    content: bytes
    media_type: str
    filename: str


class FigureView(View):
    """A figure of a sweep in a list."""

    name: str
    kind: str
    title: str
    formats: list[str]
    url: str  # /v1/sweeps/<id>/figures/<name>


class FigureFile(View):
    """A file that a trial's training kept for figures."""

    name: str
    media_type: str
    size: int  # bytes
    url: str  # /v1/trials/<id>/figures/<name>
