"""A sweep in a notebook: pandas frames, tables, figures, and the models of its trials."""

import json
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from api.connection import ApiError, Query, ServerConnection, Unreachable, api_path
from orchestrator.host.checks import requires_extra
from orchestrator.views.accounts import SHARE_DAYS, NewShareView
from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.sweeps import SweepView
from orchestrator.views.trials import ClassScore, ClassScores, TrialView

if TYPE_CHECKING:
    import altair
    import pandas


_FRAME_SECONDS: Final = 600.0
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


BUNDLE_SECONDS: Final = 3_600.0  # a large one has hundreds of pictures
POLL_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 60.0
_BAR: Final = "{desc} {percentage:3.0f} %|{bar:30}| {postfix} [{elapsed}]"


class NotebookTable:
    """A table that Jupyter renders: HTML in a page, LaTeX in print."""

    def __init__(self, html: str, latex: str, markdown: str, content: str) -> None:
        self._html, self._latex, self._markdown, self._content = html, latex, markdown, content

    def to_html(self) -> str:
        """The table as HTML."""
        return self._html

    def to_latex(self) -> str:
        """The table as LaTeX."""
        return self._latex

    def frame(self) -> "pandas.DataFrame":
        """A row for each cell: its labels, the unrounded mean of each metric, its deviation as `... std`, and `n`.

        Rows that a paper or another file provides are left out.
        """
        with requires_extra("notebook"):
            import pandas

        found: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
        texts: dict[str, None] = {}
        for panel in json.loads(self._content)["panels"]:
            for row in panel["rows"]:
                for column, cell in zip(panel["columns"], row["cells"], strict=True):
                    if row.get("quoted") or row.get("imported"):
                        continue
                    labels = {**row["labels"], **column["labels"]}
                    texts |= dict.fromkeys(labels)
                    values = found.setdefault(frozenset(labels.items()), labels)
                    name, number = _column_name(column), cell["value"]
                    if "key" not in column:
                        texts[name], values[name] = None, cell["text"]
                    elif number is not None:
                        values |= {name: number["mean"], f"{name} std": number["std"], "n": number["n"]}
        names = dict.fromkeys(name for values in found.values() for name in values if name != "n")
        columns = {name: [values.get(name) for values in found.values()] for name in [*texts | names, "n"]}
        return pandas.DataFrame({
            name: _numbers(values) if name in texts else pandas.array(values, dtype="Int64" if name == "n" else float)
            for name, values in columns.items()
        })  # fmt: skip

    _repr_html_, _repr_latex_ = to_html, to_latex  # called by Jupyter

    def __repr__(self) -> str:
        return self._markdown


class Sweep(SweepView):
    """A sweep when it was read, and what the server has of it: frames, tables and figures."""

    _connection: ServerConnection

    @classmethod
    def of(cls, connection: ServerConnection, sweep: int) -> "Sweep":
        """Read a sweep."""
        found = connection.fetch(cls, "GET", api_path("sweeps", sweep))
        found._connection = connection
        return found

    def __repr__(self) -> str:
        return f"<sweep {self.id} {self.name}: {_progress(self)}>"

    def trials(self) -> "pandas.DataFrame":
        """A row for each trial; its labels and metrics are columns, and `recipe` is JSON."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/trials")

    def candidates(self) -> "pandas.DataFrame":
        """A row for each candidate: means over its repeats, deviations as `... std`, and whether it is selected."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/candidates")

    def curves(self, key: str | None = None) -> "pandas.DataFrame":
        """A row for each point of the curves, or of the curve `key`: trial, key, step, value."""
        return frame(self._connection, f"/v1/sweeps/{self.id}/frames/curves", {"key": key})

    def table(self, name: str = "main") -> NotebookTable:
        """A table with the results so far."""
        path = api_path("sweeps", self.id, "tables", name)
        files = (self._connection.file(path, {"format": form}) for form in ("html", "latex", "markdown", "json"))
        return NotebookTable(*(file.content.decode() for file in files))

    def figure(self, name: str | None = None, **described: Any) -> "altair.Chart":
        """A figure as an Altair chart: one of the spec by its name, or any other, described as in a spec.

        For example `figure(kind="bars", metric="recall@1", x="loss")`.
        """
        with requires_extra("notebook"):
            import altair

        path = api_path("sweeps", self.id, *(["figure"] if name is None else ["figures", name]))
        query = {"spec": json.dumps(described)} if name is None else {}
        return altair.Chart.from_dict(json.loads(self._connection.file(path, {**query, "format": "json"}).content))

    def classes(self, trial: int, split: str = "test", *, seeds: bool = False) -> "pandas.DataFrame":
        """A row for each class of a trial's test queries, or of all `seeds`: its scores, the lowest F1 first."""
        with requires_extra("notebook"):
            import pandas

        path = api_path("trials", trial, "classes")
        found = self._connection.fetch(ClassScores, "GET", path, {"split": split, "seeds": str(seeds).lower()}).classes
        return pandas.DataFrame([one.model_dump() for one in found], columns=[*ClassScore.model_fields])

    def share(self, days: float = SHARE_DAYS) -> str:
        """The URL of a new share link, which shows the sweep read-only and without an account for some days."""
        made = self._connection.fetch(NewShareView, "POST", f"/v1/sweeps/{self.id}/shares", json={"days": days})
        return f"{self._connection.url}{made.path}"

    def wait(self) -> "Sweep":
        """Wait until the sweep has ended, with a progress bar, and return it; the server may be away for a minute."""
        with requires_extra("notebook"):
            from tqdm import tqdm  # type: ignore[import-untyped]

        # A text bar, since bars of widgets need a further package.
        with tqdm(desc=f"sweep {self.id}", file=sys.stdout, bar_format=_BAR) as bar:
            while True:
                view = self._read()
                bar.n, bar.total = view.steps.done, view.steps.total or None
                bar.set_postfix_str(_progress(view))
                if view.is_over:
                    return view
                time.sleep(POLL_SECONDS)

    def _read(self) -> "Sweep":
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return Sweep.of(self._connection, self.id)
            except (Unreachable, ApiError) as error:
                away = isinstance(error, Unreachable) or error.status >= 500
                if not away or time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)


class Trial(TrialView):
    """A trial when it was read, and its model."""

    _connection: ServerConnection

    @classmethod
    def of(cls, connection: ServerConnection, trial: int) -> "Trial":
        """Read a trial."""
        found = connection.fetch(cls, "GET", api_path("trials", trial))
        found._connection = connection
        return found

    def download(self, folder: str | Path) -> Path:
        """Write the model to a folder: weights as safetensors, recipe, preprocessing, and how to load it.

        `workers.model.load(folder)` loads it.
        """
        with tempfile.TemporaryFile() as file:
            with self._connection.streamed(api_path("trials", self.id, "model"), BUNDLE_SECONDS) as pieces:
                for piece in pieces:
                    file.write(piece)
            with zipfile.ZipFile(file) as archive:
                archive.extractall(folder)
        return Path(folder)


def frame(connection: ServerConnection, path: str, query: Query | None = None) -> "pandas.DataFrame":
    """A frame from an Arrow stream; each key of a column of maps becomes a column.

    Labels that are all numbers, such as those of `seed` or `regularizer.eta`, become numbers.
    """
    with requires_extra("notebook"):
        import pandas
        import pyarrow

    with connection.streamed(path, _FRAME_SECONDS, query) as pieces:
        whole = pyarrow.py_buffer(b"".join(pieces))
    table = pyarrow.ipc.open_stream(whole).read_all()
    plain = [name for name in table.schema.names if not pyarrow.types.is_map(table.schema.field(name).type)]
    rows = table.select(plain).to_pandas()
    extra: dict[str, Any] = {}
    for name in ("labels", "metrics", "deviations"):
        if name in table.schema.names:
            maps = [dict(pairs or ()) for pairs in table.column(name).to_pylist()]
            for key in dict.fromkeys(key for pairs in maps for key in pairs):
                column = f"{key} std" if name == "deviations" else key
                values = [pairs.get(key) for pairs in maps]
                extra[column if column not in plain else f"{column}_"] = (
                    _numbers(values) if name == "labels" else pandas.array(values, dtype="float64")
                )
    return pandas.concat([rows, pandas.DataFrame(extra, index=rows.index)], axis=1)


def _column_name(column: Mapping[str, Any]) -> str:
    """The name of a table's column in a frame, different for each."""
    name = f"{column['kind']}:{column['name']}" if column["kind"] == "selection_gap" else str(column["name"])
    name += f" by {column['selection']}" if column.get("selection") else ""
    return f"{name} delta" if column.get("delta") is not None else name


def _numbers(labels: list[str | None]) -> Any:
    """Labels as numbers if all of them are; otherwise they stay text."""
    import pandas

    given = [label for label in labels if label is not None]
    if not given or not all(map(_NUMBER.fullmatch, given)):
        return labels
    if all(label.lstrip("+-").isdigit() for label in given):
        whole = [None if label is None else int(label) for label in labels]
        if all(abs(number) < 2**63 for number in whole if number is not None):
            return pandas.array(whole, dtype="int64" if len(given) == len(labels) else "Int64")
    return pandas.array([float("nan") if label is None else float(label) for label in labels], dtype="float64")


def _progress(view: SweepView) -> str:
    counts, parts = view.counts, [f"{view.counts.done}/{view.total} trials"]
    parts += [f"{counts.failed} failed"] if counts.failed else []
    if view.state not in SWEEP_ENDED and view.left:
        parts.append(view.left)
    return ", ".join([*parts, view.state.value])
