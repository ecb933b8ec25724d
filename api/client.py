"""The API from Python: one method a route, views as answers, ApiError for what went wrong."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import quote

import httpx

from api.asking.asked import Asked, asked
from api.connection import Query, ServerConnection
from orchestrator.views.files import FigureFile, FigureView, Rendered
from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.pages import Page
from orchestrator.views.requests import RequestView
from orchestrator.views.submissions import Preview, Submitted
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView
from orchestrator.views.trials import Curve, LogView, TrialSummary, TrialView

# What one method alone gives is imported there: the commands would wait for all of it.
if TYPE_CHECKING:
    import pandas

    from api.asking.evidence import EvidenceClient
    from api.asking.people import PeopleClient
    from api.asking.resolutions import SweepResolutions
    from api.connection import SweepChanges
    from api.notebooks.notebook import SweepNotebook
    from orchestrator.views.cells import CellView
    from orchestrator.views.collection import CollectionView, StorageView
    from orchestrator.views.data import DataFinding
    from orchestrator.views.mirror import MirrorView
    from orchestrator.views.published import PublishedSummary, PublishedView
    from orchestrator.views.remarks import Remark
    from orchestrator.views.verdicts import VerdictsView
    from workers.catalog import Catalog

BUNDLE_SECONDS: Final = 3_600.0  # a large one has hundreds of pictures
_YAML: Final = {"Content-Type": "application/yaml"}


class Client:
    """A connection to one server; use it in a `with` block, or close it."""

    def __init__(self, url: str, token: str | None = None, auth: httpx.Auth | None = None) -> None:
        self._connection = ServerConnection(url, token, auth)
        self.url = self._connection.url

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @property
    def evidence(self) -> "EvidenceClient":
        """What numbers rest on."""
        from api.asking.evidence import EvidenceClient

        return EvidenceClient(self._connection)

    @property
    def resolutions(self) -> "SweepResolutions":
        """What decides the comparisons of a sweep's tables (docs/statistics.md)."""
        from api.asking.resolutions import SweepResolutions

        return SweepResolutions(self._connection)

    @property
    def people(self) -> "PeopleClient":
        """Users, projects and tokens (docs/sharing.md)."""
        from api.asking.people import PeopleClient

        return PeopleClient(self._connection)

    def submit(self, body: bytes, key: str | None = None, priority: int = 0, project: str | None = None) -> Submitted:
        """Queue a spec (YAML or JSON) in a project; the same key with the same body queues it once."""
        headers = {**_YAML, **({"Idempotency-Key": key} if key else {})}
        query: Query = ({"priority": priority} if priority else {}) | ({"project": project} if project else {})
        return self._connection.ask(Submitted, "POST", "/v1/sweeps", query, content=body, headers=headers)

    def preview(self, body: bytes, project: str | None = None) -> Preview:
        """What a spec would become in a project; nothing is stored."""
        query = {"dry_run": "true", "project": project}
        return self._connection.ask(Preview, "POST", "/v1/sweeps", query, content=body, headers=_YAML)

    def sweeps(
        self, state: SweepState | None = None, name: str | None = None, tag: str | None = None
    ) -> Iterator[SweepSummary]:
        """Sweeps, newest first; pages are fetched as they are needed."""
        return self._connection.pages("/v1/sweeps", {"state": state, "name": name, "tag": tag}, Page[SweepSummary])

    def sweep(self, sweep: int) -> SweepView:
        """One sweep."""
        return self._connection.ask(SweepView, "GET", f"/v1/sweeps/{sweep}")

    def changes(self, sweep: int) -> "SweepChanges":
        """What changes of a sweep, while it is entered."""
        from api.connection import SweepChanges

        return SweepChanges(self._connection.another(), sweep)

    def grid(self, sweep: int) -> list[GridCell]:
        """A sweep's cells with their candidates and trials."""
        return self._connection.ask(list[GridCell], "GET", f"/v1/sweeps/{sweep}/grid")

    def cancel(self, sweep: int, trial: int | None = None, cell: int | None = None) -> Asked:
        """Ask that a sweep, a cell or a trial of it be stopped."""
        return self._request(sweep, "cancel", trial=trial, cell=cell)

    def retry(self, sweep: int, trial: int | None = None, cell: int | None = None, only: str | None = None) -> Asked:
        """Ask that failed and cancelled trials wait again; `only` is `failed` or `all`."""
        return self._request(sweep, "retry", trial=trial, cell=cell, only=only)

    def pause(self, sweep: int) -> Asked:
        """Ask that nothing more of a sweep be started."""
        return self._request(sweep, "pause")

    def resume(self, sweep: int) -> Asked:
        """Ask that a paused sweep go on."""
        return self._request(sweep, "resume")

    def prioritize(self, sweep: int, priority: int) -> Asked:
        """Ask that a sweep be drawn before those of lower priority."""
        return self._request(sweep, "priority", value=priority)

    def extend(self, sweep: int, body: bytes) -> Asked:
        """Ask that a sweep grow to a wider spec."""
        return asked(self._connection, f"/v1/sweeps/{sweep}/extend", content=body, headers=_YAML)

    def delete(self, sweep: int, confirm: str) -> RequestView:
        """Ask that an ended sweep be deleted; `confirm` is its name."""
        return self._connection.ask(RequestView, "DELETE", f"/v1/sweeps/{sweep}", {"confirm": confirm})

    def storage(self, sweep: int | None = None) -> "StorageView":
        """What lies on disk, of all sweeps or of one."""
        from orchestrator.views.collection import StorageView

        return self._connection.ask(StorageView, "GET", "/v1/storage", {"sweep": sweep}, timeout=BUNDLE_SECONDS)

    def collect(
        self, sweep: int | None, days: float, states: Sequence[TrialState], keep: int, *, dry_run: bool
    ) -> "CollectionView":
        """Ask that weights go, or what would."""
        from orchestrator.views.collection import CollectionView

        query = {"sweep": sweep, "days": days, "keep": keep, "dry_run": str(dry_run).lower(), "state": list(states)}
        return self._connection.ask(CollectionView, "POST", "/v1/collections", query, timeout=BUNDLE_SECONDS)

    def tell_mlflow(self, sweep: int) -> Asked:
        """Ask that MLflow be told of a whole sweep anew."""
        return self._request(sweep, "mirror")

    def mirror(self, sweep: int | None = None) -> "MirrorView":
        """What MLflow is still to be told of a sweep, or of all."""
        from orchestrator.views.mirror import MirrorView

        return self._connection.ask(MirrorView, "GET", "/v1/mirror", {"sweep": sweep})

    def request(self, request: int) -> RequestView:
        """What became of a request."""
        return self._connection.ask(RequestView, "GET", f"/v1/requests/{request}")

    def requests(self, sweep: int) -> Iterator[RequestView]:
        """What was asked of a sweep, newest first, also of a deleted one; pages are fetched as they are needed."""
        return self._connection.pages(f"/v1/sweeps/{sweep}/requests", {}, Page[RequestView])

    def _request(self, sweep: int, verb: str, **given: str | int | None) -> Asked:
        return asked(self._connection, f"/v1/sweeps/{sweep}/{verb}", given)

    def trials(self, sweep: int, state: TrialState | None = None, cell: int | None = None) -> Iterator[TrialSummary]:
        """A sweep's trials in the order of the plan; pages are fetched as they are needed."""
        return self._connection.pages(f"/v1/sweeps/{sweep}/trials", {"state": state, "cell": cell}, Page[TrialSummary])

    def trial(self, trial: int) -> TrialView:
        """One trial."""
        return self._connection.ask(TrialView, "GET", f"/v1/trials/{trial}")

    def curves(self, trial: int) -> list[Curve]:
        """What a trial's training reported."""
        return self._connection.ask(list[Curve], "GET", f"/v1/trials/{trial}/metrics")

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from an offset on."""
        return self._connection.ask(LogView, "GET", f"/v1/trials/{trial}/logs", {"offset": offset})

    def table(
        self, sweep: int, name: str, file_format: str, tuned: bool | None = None, numbers: str = "own"
    ) -> Rendered:
        """A table as a file: latex, markdown, html, csv or json; `numbers` says whose (docs/papers.md)."""
        query = {"format": file_format, "tuned": None if tuned is None else str(tuned).lower(), "numbers": numbers}
        return self._connection.file(f"/v1/sweeps/{sweep}/tables/{quote(name, safe='')}", query)

    def verdicts(self, sweep: int, table: str | None = None, covers: str | None = None) -> "VerdictsView":
        """Whether the cells of a table, by default the first, are better than their baselines (docs/statistics.md).

        `covers` is `seeds`, `queries` or `both`; by default what the table's spec says.
        """
        from orchestrator.views.verdicts import VerdictsView

        query = {"table": table, "covers": covers}
        return self._connection.ask(VerdictsView, "GET", f"/v1/sweeps/{sweep}/verdicts", query)

    def compare(self, sweeps: Sequence[int], table: str | None, view: str, file_format: str) -> Rendered:
        """One table of several sweeps as a file; `view` is merge or difference."""
        query = {"sweeps": ",".join(map(str, sweeps)), "table": table, "view": view, "format": file_format}
        return self._connection.file("/v1/tables", query)

    def cell(self, sweep: int, index: int) -> "CellView":
        """What stands behind a cell of a sweep."""
        from orchestrator.views.cells import CellView

        return self._connection.ask(CellView, "GET", f"/v1/sweeps/{sweep}/cells/{index}")

    def remark(self, path: str) -> "Remark":
        """The note and tags of a sweep, a cell or a trial, by its path: `sweeps/7`, `sweeps/7/cells/3`, `trials/41`."""
        from orchestrator.views.remarks import Remark

        return self._connection.ask(Remark, "GET", f"/v1/{path}/remark")

    def put_remark(self, path: str, **change: str | Sequence[str]) -> "Remark":
        """Set its `note`, or its `tags`; tags are `added` to those that are there and `removed` from them, too."""
        from orchestrator.views.remarks import Remark

        return self._connection.ask(Remark, "PATCH", f"/v1/{path}/remark", json=change)

    def bundle(self, sweep: int, out: IO[bytes]) -> None:
        """Write a sweep's archive to `out` as it comes; making it may take minutes."""
        with self._connection.streamed(f"/v1/sweeps/{sweep}/bundle", BUNDLE_SECONDS) as pieces:
            for piece in pieces:
                out.write(piece)

    def notebook(self, sweep: int) -> "SweepNotebook":
        """A sweep as a notebook shows it: pandas frames, tables and figures that render."""
        from api.notebooks.notebook import SweepNotebook

        return SweepNotebook(self, self._connection, sweep)

    def frame(self) -> "pandas.DataFrame":
        """Every sweep as a row of a pandas frame."""
        from api.notebooks.frame import frame

        return frame(self._connection, "/v1/frames/sweeps")

    def figures(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        return self._connection.ask(list[FigureView], "GET", f"/v1/sweeps/{sweep}/figures")

    def figure(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure as a file: json (Vega-Lite), svg, png, pdf, or csv (the data behind it)."""
        query = {"format": file_format, "heading": str(heading).lower()}
        return self._connection.file(f"/v1/sweeps/{sweep}/figures/{quote(name, safe='')}", query)

    def figure_files(self, trial: int) -> list[FigureFile]:
        """The files that a trial's training kept for figures."""
        return self._connection.ask(list[FigureFile], "GET", f"/v1/trials/{trial}/figures")

    def figure_file(self, trial: int, name: str) -> Rendered:
        """One of these files."""
        return self._connection.file(f"/v1/trials/{trial}/figures/{quote(name, safe='')}")

    def published(self) -> "list[PublishedSummary]":
        """The papers' tables that own numbers can be compared with."""
        from orchestrator.views.published import PublishedSummary

        return self._connection.ask(list[PublishedSummary], "GET", "/v1/published")

    def published_table(self, table_id: str) -> "PublishedView":
        """One of the papers' tables with all its numbers."""
        from orchestrator.views.published import PublishedView

        return self._connection.ask(PublishedView, "GET", f"/v1/published/{quote(table_id, safe='')}")

    def data(self) -> "list[DataFinding]":
        """What the nodes' data roots have."""
        from orchestrator.views.data import DataFinding

        return self._connection.ask(list[DataFinding], "GET", "/v1/data")

    def mlflow(self) -> str:
        """The address for an `mlflow` client; raises ApiError where the server passes on none."""
        self._connection.send("GET", "/mlflow/version")
        return f"{self.url}/mlflow"

    def catalog(self) -> "Catalog":
        """The parts that a recipe may name."""
        from workers.catalog import Catalog

        return self._connection.ask(Catalog, "GET", "/v1/catalog")

    def login_link(self) -> str:
        """The URL by which a browser logs in once."""
        return f"{self.url}{self._connection.send('POST', '/v1/login-links').json()['path']}"
