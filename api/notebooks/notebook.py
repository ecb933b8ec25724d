"""What a notebook shows of a sweep: pandas frames in one request each, tables and figures that render."""

import json
import sys
import time
from typing import TYPE_CHECKING, Final, Protocol

from api.connection import ServerConnection
from api.failures import ApiError, Unreachable
from api.notebooks.frame import frame
from orchestrator.host.checks import brought_by
from orchestrator.views.states import SWEEP_ENDED

if TYPE_CHECKING:  # late, since the commands wait for neither
    import altair
    import pandas

    from api.connection import SweepChanges
    from orchestrator.views.pages import Rendered
    from orchestrator.views.sweeps import SweepView

POLL_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 60.0
_BAR: Final = "{desc} {percentage:3.0f} %|{bar:30}| {postfix} [{elapsed}]"


class NotebookClient(Protocol):
    """The client, as far as a notebook asks it."""

    def sweep(self, sweep: int) -> "SweepView":
        """One sweep."""

    def changes(self, sweep: int) -> "SweepChanges":
        """What changes of a sweep."""

    def table(self, sweep: int, name: str, file_format: str) -> "Rendered":
        """A table as a file."""

    def figure(self, sweep: int, name: str, file_format: str) -> "Rendered":
        """A figure as a file."""


class NotebookTable:
    """A table as Jupyter renders it: HTML in a page, LaTeX where it prints."""

    def __init__(self, html: str, latex: str, markdown: str) -> None:
        self._html, self._latex, self._markdown = html, latex, markdown

    def to_html(self) -> str:
        """As HTML."""
        return self._html

    def to_latex(self) -> str:
        """As LaTeX."""
        return self._latex

    def _repr_html_(self) -> str:
        return self._html

    def _repr_latex_(self) -> str:
        return self._latex

    def __repr__(self) -> str:
        return self._markdown


class SweepNotebook:
    """One sweep."""

    def __init__(self, client: NotebookClient, connection: ServerConnection, sweep: int) -> None:
        self._client, self._connection, self.id = client, connection, sweep

    def trials(self) -> "pandas.DataFrame":
        """A row a trial: its labels and metrics are columns, `recipe` is JSON."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/trials")

    def candidates(self) -> "pandas.DataFrame":
        """A row a candidate: means over its repeats, `... std` their deviations, and whether its cell shows it."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/candidates")

    def curves(self, key: str | None = None) -> "pandas.DataFrame":
        """A row a point of the curves, or of one of them: trial, key, step, value."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/curves", {"key": key})

    def table(self, name: str = "main") -> NotebookTable:
        """A table, as far as the sweep has come."""
        forms = (self._client.table(self.id, name, form).content.decode() for form in ("html", "latex", "markdown"))
        return NotebookTable(*forms)

    def figure(self, name: str) -> "altair.Chart":
        """A figure as an Altair chart, to be shown or changed."""
        with brought_by("notebook"):
            import altair

        return altair.Chart.from_dict(json.loads(self._client.figure(self.id, name, "json").content))

    def wait(self) -> "SweepView":
        """Wait until it has ended, with a bar that counts steps; a server that is away for a minute is waited for."""
        with brought_by("notebook"):
            from tqdm import tqdm  # type: ignore[import-untyped]

        # Text, which every notebook shows: the bars of widgets need a package of their own.
        with (
            self._client.changes(self.id) as changes,
            tqdm(desc=f"sweep {self.id}", file=sys.stdout, bar_format=_BAR) as bar,
        ):
            while True:
                view = self._looked()
                bar.n, bar.total = view.steps.done, view.steps.total or None
                bar.set_postfix_str(_said(view))
                if view.is_over:
                    return view
                time.sleep(POLL_SECONDS)
                while not changes.due():
                    time.sleep(POLL_SECONDS)

    def _looked(self) -> "SweepView":
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._client.sweep(self.id)
            except (Unreachable, ApiError) as error:
                away = isinstance(error, Unreachable) or error.status >= 500
                if not away or time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)


def _said(view: "SweepView") -> str:
    counts, parts = view.counts, [f"{view.counts.done}/{view.total} trials"]
    parts += [f"{counts.failed} failed"] if counts.failed else []
    if view.state not in SWEEP_ENDED and view.left:
        parts.append(view.left)
    return ", ".join([*parts, view.state.value])
