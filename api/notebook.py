"""What a notebook gets of a sweep: pandas frames, tables and figures."""

import json
import re
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from api.connection import ApiError, Query, ServerConnection, Unreachable
from orchestrator.host.checks import brought_by
from orchestrator.views.states import SWEEP_ENDED

if TYPE_CHECKING:
    import altair
    import pandas
    import pyarrow

    from api.connection import SweepChanges
    from orchestrator.views.pages import Rendered
    from orchestrator.views.sweeps import SweepView

FRAME_SECONDS: Final = 600.0
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def frame(connection: ServerConnection, path: str, query: Query | None = None) -> "pandas.DataFrame":
    """A frame from Arrow's stream; columns of names and values become a column each.

    A column of labels that are all numbers, such as `seed` or `regularizer.eta`, holds numbers.
    """
    with brought_by("notebook"):
        import pandas
        import pyarrow

    with connection.streamed(path, FRAME_SECONDS, query) as pieces:
        whole = pyarrow.py_buffer(b"".join(pieces))
    table = pyarrow.ipc.open_stream(whole).read_all()
    plain = [name for name in table.schema.names if not pyarrow.types.is_map(table.schema.field(name).type)]
    rows = table.select(plain).to_pandas()
    extra: dict[str, Any] = {}
    for name in ("labels", "metrics", "deviations"):
        if name in table.schema.names:
            wide = _wide(table.column(name))
            ending = " std" if name == "deviations" else ""
            for key, values in wide.items():
                column = f"{key}{ending}"
                extra[column if column not in plain else f"{column}_"] = (
                    _numbers(values) if name == "labels" else values
                )
    return pandas.concat([rows, pandas.DataFrame(extra, index=rows.index)], axis=1)


def _numbers(labels: Any) -> Any:
    """Labels as numbers where all that there are can be read as such; others stay text."""
    import pandas

    given = [label for label in labels if label is not None]
    if not given or not all(map(_NUMBER.fullmatch, given)):
        return labels
    if all(label.lstrip("+-").isdigit() for label in given):
        whole = [None if label is None else int(label) for label in labels]
        if all(abs(one) < 2**63 for one in whole if one is not None):
            return pandas.array(whole, dtype="int64" if len(given) == len(labels) else "Int64")
    return pandas.array([float("nan") if label is None else float(label) for label in labels], dtype="float64")


def _wide(column: "pyarrow.ChunkedArray") -> Mapping[str, Any]:
    """A column of maps as a column a key; nothing where a row lacks it."""
    import numpy
    import pyarrow
    from pyarrow import compute

    by_key: dict[str, Any] = {}
    length, begin = len(column), 0
    for chunk in column.chunks:
        rows = numpy.repeat(numpy.arange(len(chunk)), numpy.diff(chunk.offsets.to_numpy())) + begin
        keys, items = compute.dictionary_encode(chunk.keys), chunk.items
        numbers = pyarrow.types.is_floating(items.type)
        values = items.to_numpy(zero_copy_only=False)
        which = keys.indices.to_numpy()
        for index, key in enumerate(keys.dictionary.to_pylist()):
            if key not in by_key:
                by_key[key] = numpy.full(length, numpy.nan if numbers else None, dtype=float if numbers else object)
            mine = which == index
            by_key[key][rows[mine]] = values[mine]
        begin += len(chunk)
    return by_key


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
