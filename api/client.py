"""The API from Python: one method for each route, with views as answers. Raises ApiError and Unreachable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final

import httpx

from api.connection import Query, ServerConnection, api_path
from api.notebook import BUNDLE_SECONDS, Sweep, Trial, frame
from orchestrator.views.accounts import (
    SHARE_DAYS,
    AuditEntry,
    CallerView,
    NewTokenView,
    ProjectView,
    Quota,
    QuotaKind,
    QuotaUse,
    Role,
    Scope,
    ShareView,
    TokenView,
    UserView,
)
from orchestrator.views.evidence import (
    MacrosView,
    OptimismView,
    PublishedSummary,
    PublishedView,
    ReproductionSummary,
    ReproductionView,
    ResolutionBudget,
    ResolutionView,
    VerdictsView,
)
from orchestrator.views.operations import ClusterView, CollectionView, DataFinding, MirrorView, StorageView
from orchestrator.views.pages import Annotation, FigureFile, FigureView, Page, Rendered
from orchestrator.views.states import SweepState, TrialState
from orchestrator.views.sweeps import GridCell, Preview, RequestView, Submitted, SweepSummary, SweepView
from orchestrator.views.tables import CellView
from orchestrator.views.trials import ClassScores, Curve, ListedRow, Listing, LogView, TrialSummary
from workers.catalog import Catalog

if TYPE_CHECKING:
    import pandas


_AUDIT_SECONDS: Final = 60.0
_YAML: Final = {"Content-Type": "application/yaml"}


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep at the time of a request about it, and the number of the request."""

    sweep: SweepView
    request: int


class Client:
    """A connection to one server; use it in a `with` block, or close it."""

    def __init__(self, url: str, token: str | None = None, auth: httpx.Auth | None = None) -> None:
        self._connection = connection = ServerConnection(url, token, auth)
        self.url = connection.url
        self.evidence = EvidenceClient(connection)
        self.resolutions = SweepResolutions(connection)
        self.people = PeopleClient(connection)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def submit(self, body: bytes, key: str | None = None, priority: int = 0, project: str | None = None) -> Submitted:
        """Submit a spec (YAML or JSON) to a project; the same key with the same body submits it once."""
        headers = {**_YAML, **({"Idempotency-Key": key} if key else {})}
        query: Query = ({"priority": priority} if priority else {}) | ({"project": project} if project else {})
        return self._connection.fetch(Submitted, "POST", "/v1/sweeps", query, content=body, headers=headers)

    def preview(self, body: bytes, project: str | None = None) -> Preview:
        """The sweep that a spec would become in a project; nothing is stored."""
        query = {"dry_run": "true", "project": project}
        return self._connection.fetch(Preview, "POST", "/v1/sweeps", query, content=body, headers=_YAML)

    def sweeps(
        self, state: SweepState | None = None, name: str | None = None, tag: str | None = None
    ) -> Iterator[SweepSummary]:
        """Sweeps, newest first; pages are fetched as they are needed."""
        return self._connection.pages("/v1/sweeps", {"state": state, "name": name, "tag": tag}, Page[SweepSummary])

    def sweep(self, sweep: int) -> Sweep:
        """One sweep with its state, frames, tables and figures."""
        return Sweep.of(self._connection, sweep)

    def grid(self, sweep: int) -> list[GridCell]:
        """A sweep's cells with their candidates and trials."""
        return self._connection.fetch(list[GridCell], "GET", f"/v1/sweeps/{sweep}/grid")

    def cancel(self, sweep: int, trial: int | None = None, cell: int | None = None) -> SweepRequest:
        """Request that a sweep, a cell or a trial stop."""
        return self._request(sweep, "cancel", trial=trial, cell=cell)

    def retry(
        self, sweep: int, trial: int | None = None, cell: int | None = None, only: str | None = None
    ) -> SweepRequest:
        """Request that failed and cancelled trials run again; `only` is `failed`, or `all` to add pruned trials."""
        return self._request(sweep, "retry", trial=trial, cell=cell, only=only)

    def pause(self, sweep: int) -> SweepRequest:
        """Request that no further trial of a sweep start."""
        return self._request(sweep, "pause")

    def resume(self, sweep: int) -> SweepRequest:
        """Request that a paused sweep continue."""
        return self._request(sweep, "resume")

    def prioritize(self, sweep: int, priority: int) -> SweepRequest:
        """Request a priority; sweeps of higher priority are trained first."""
        return self._request(sweep, "priority", value=priority)

    def extend(self, sweep: int, body: bytes) -> SweepRequest:
        """Request that a sweep grow to a wider spec."""
        return _requested(self._connection, f"/v1/sweeps/{sweep}/extend", content=body, headers=_YAML)

    def preview_extension(self, sweep: int, body: bytes) -> Preview:
        """What an extension to a wider spec would train, without requesting it."""
        path = f"/v1/sweeps/{sweep}/extend"
        return self._connection.fetch(Preview, "POST", path, {"dry_run": "true"}, content=body, headers=_YAML)

    def delete(self, sweep: int, confirm: str) -> RequestView:
        """Request the deletion of an ended sweep; `confirm` is its name."""
        return self._connection.fetch(RequestView, "DELETE", f"/v1/sweeps/{sweep}", {"confirm": confirm})

    def storage(self, sweep: int | None = None) -> StorageView:
        """The sizes of stored files in bytes, of all sweeps or of one."""
        return self._connection.fetch(StorageView, "GET", "/v1/storage", {"sweep": sweep}, timeout=BUNDLE_SECONDS)

    def collect(
        self, sweep: int | None, days: float, states: Sequence[TrialState], keep: int, *, dry_run: bool
    ) -> CollectionView:
        """Request the removal of kept weights; a dry run says what would be removed."""
        query = {"sweep": sweep, "days": days, "keep": keep, "dry_run": str(dry_run).lower(), "state": list(states)}
        return self._connection.fetch(CollectionView, "POST", "/v1/collections", query, timeout=BUNDLE_SECONDS)

    def sync_mlflow(self, sweep: int) -> SweepRequest:
        """Request that all runs of a sweep be written to MLflow again."""
        return self._request(sweep, "mirror")

    def mirror(self, sweep: int | None = None) -> MirrorView:
        """The number of runs of a sweep, or of all, that are not in MLflow yet."""
        return self._connection.fetch(MirrorView, "GET", "/v1/mirror", {"sweep": sweep})

    def request(self, request: int) -> RequestView:
        """A request with its state and result."""
        return self._connection.fetch(RequestView, "GET", f"/v1/requests/{request}")

    def requests(self, sweep: int) -> Iterator[RequestView]:
        """The requests to a sweep, newest first, also of a deleted sweep; pages are fetched as they are needed."""
        return self._connection.pages(f"/v1/sweeps/{sweep}/requests", {}, Page[RequestView])

    def _request(self, sweep: int, verb: str, **query: str | int | None) -> SweepRequest:
        return _requested(self._connection, f"/v1/sweeps/{sweep}/{verb}", query)

    def trials(self, sweep: int, state: TrialState | None = None, cell: int | None = None) -> Iterator[TrialSummary]:
        """A sweep's trials in the order of the plan; pages are fetched as they are needed."""
        return self._connection.pages(f"/v1/sweeps/{sweep}/trials", {"state": state, "cell": cell}, Page[TrialSummary])

    def find_trials(self, query: Query) -> Iterator[ListedRow]:
        """Trials of any sweep; `query` has the parameters of `GET /v1/trials` but `cursor` and `limit`."""
        return self._connection.pages("/v1/trials", query, Listing)

    def cluster(self) -> ClusterView:
        """Nodes, slots and the queue, with the reasons why trials wait."""
        return self._connection.fetch(ClusterView, "GET", "/v1/cluster")

    def trial(self, trial: int) -> Trial:
        """One trial; `trial(41).download(folder)` writes its model."""
        return Trial.of(self._connection, trial)

    def curves(self, trial: int) -> list[Curve]:
        """The metrics that a trial's training reported, by step."""
        return self._connection.fetch(list[Curve], "GET", f"/v1/trials/{trial}/metrics")

    def classes(self, trial: int, split: str = "test", *, seeds: bool = False) -> ClassScores:
        """Recall, precision and F1 of each class of a trial's test queries, or of all `seeds`."""
        return self._connection.fetch(
            ClassScores, "GET", f"/v1/trials/{trial}/classes", {"split": split, "seeds": str(seeds).lower()}
        )

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from an offset on."""
        return self._connection.fetch(LogView, "GET", f"/v1/trials/{trial}/logs", {"offset": offset})

    def table(
        self, sweep: int, name: str, file_format: str, tuned: bool | None = None, numbers: str = "own"
    ) -> Rendered:
        """A table as a file: latex, markdown, html, csv or json; `numbers` selects own or printed numbers."""
        query = {"format": file_format, "tuned": None if tuned is None else str(tuned).lower(), "numbers": numbers}
        return self._connection.file(api_path("sweeps", sweep, "tables", name), query)

    def verdicts(self, sweep: int, table: str | None = None, covers: str | None = None) -> VerdictsView:
        """Whether the cells of a table, by default the first, are better than their baselines (docs/statistics.md).

        `covers` is `seeds`, `queries` or `both`; by default what the table's spec says.
        """
        query = {"table": table, "covers": covers}
        return self._connection.fetch(VerdictsView, "GET", f"/v1/sweeps/{sweep}/verdicts", query)

    def compare(self, sweeps: Sequence[int], table: str | None, view: str, file_format: str) -> Rendered:
        """One table of several sweeps as a file; `view` is merge or difference."""
        query = {"sweeps": ",".join(map(str, sweeps)), "table": table, "view": view, "format": file_format}
        return self._connection.file("/v1/tables", query)

    def cell(self, sweep: int, index: int) -> CellView:
        """The candidates, trials and provenance of a cell."""
        return self._connection.fetch(CellView, "GET", f"/v1/sweeps/{sweep}/cells/{index}")

    def annotation(self, path: str) -> Annotation:
        """The note and tags of a sweep, a cell or a trial, by its path: `sweeps/7`, `sweeps/7/cells/3`, `trials/41`."""
        return self._connection.fetch(Annotation, "GET", f"/v1/{path}/annotation")

    def put_annotation(self, path: str, **change: str | Sequence[str]) -> Annotation:
        """Set the `note` or all `tags`; `added` and `removed` change single tags."""
        return self._connection.fetch(Annotation, "PATCH", f"/v1/{path}/annotation", json=change)

    def bundle(self, sweep: int, out: IO[bytes]) -> None:
        """Write a sweep's bundle to `out` while it arrives; making it may take minutes."""
        with self._connection.streamed(f"/v1/sweeps/{sweep}/bundle", BUNDLE_SECONDS) as pieces:
            for piece in pieces:
                out.write(piece)

    def frame(self) -> "pandas.DataFrame":
        """Every sweep as a row of a pandas frame."""
        return frame(self._connection, "/v1/frames/sweeps")

    def figures(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        return self._connection.fetch(list[FigureView], "GET", f"/v1/sweeps/{sweep}/figures")

    def figure(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure as a file: json (Vega-Lite), svg, png, pdf, or csv (the data behind it).

        `name` is that of a figure of the spec, or a description such as `{kind: bars, metric: recall@1, x: loss}`.
        """
        query = {"format": file_format, "heading": str(heading).lower()}
        if name.lstrip().startswith("{"):
            return self._connection.file(api_path("sweeps", sweep, "figure"), {**query, "spec": name})
        return self._connection.file(api_path("sweeps", sweep, "figures", name), query)

    def figure_files(self, trial: int) -> list[FigureFile]:
        """The files that a trial's training kept for figures."""
        return self._connection.fetch(list[FigureFile], "GET", f"/v1/trials/{trial}/figures")

    def figure_file(self, trial: int, name: str) -> Rendered:
        """A file that a trial's training kept for figures."""
        return self._connection.file(api_path("trials", trial, "figures", name))

    def published(self) -> list[PublishedSummary]:
        """The papers' tables that own numbers can be compared with."""
        return self._connection.fetch(list[PublishedSummary], "GET", "/v1/published")

    def published_table(self, table_id: str) -> PublishedView:
        """One of the papers' tables with all its numbers."""
        return self._connection.fetch(PublishedView, "GET", api_path("published", table_id))

    def data(self) -> list[DataFinding]:
        """The data sets and weights that each node has."""
        return self._connection.fetch(list[DataFinding], "GET", "/v1/data")

    def mlflow(self) -> str:
        """The address for an `mlflow` client; raises ApiError if the server has no MLflow."""
        self._connection.send("GET", "/mlflow/version")
        return f"{self.url}/mlflow"

    def catalog(self) -> Catalog:
        """The parts that a recipe may name."""
        return self._connection.fetch(Catalog, "GET", "/v1/catalog")

    def share(self, sweep: int, days: float = SHARE_DAYS) -> str:
        """The URL of a new share link, which shows a sweep read-only and without an account for some days."""
        return self.sweep(sweep).share(days)

    def shares(self, sweep: int) -> list[ShareView]:
        """The valid share links of a sweep, without their secrets."""
        return self._connection.fetch(list[ShareView], "GET", f"/v1/sweeps/{sweep}/shares")

    def revoke_share(self, sweep: int, link: int) -> ShareView:
        """Revoke a share link of a sweep by its number."""
        return self._connection.fetch(ShareView, "DELETE", f"/v1/sweeps/{sweep}/shares/{link}")

    def login_link(self) -> str:
        """The URL by which a browser logs in once."""
        return f"{self.url}{self._connection.send('POST', '/v1/login-links').json()['path']}"


class _Part:
    """A group of a client's methods."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection


class SweepResolutions(_Part):
    """Requests resolutions, which add seeds to decide comparisons; `Client.resolutions` is one."""

    def request(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> SweepRequest:
        """Request further seeds that decide the comparisons of a table, by default the sweep's first."""
        return _requested(self._connection, f"/v1/sweeps/{sweep}/resolve", _query(budget, table))

    def plan(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> ResolutionView:
        """The first round that a resolution would train; nothing is requested."""
        path = f"/v1/sweeps/{sweep}/resolution/plan"
        return self._connection.fetch(ResolutionView, "GET", path, _query(budget, table))

    def get(self, sweep: int) -> ResolutionView:
        """The last resolution of a sweep, with its rounds and verdicts."""
        return self._connection.fetch(ResolutionView, "GET", f"/v1/sweeps/{sweep}/resolution")

    def halt(self, sweep: int) -> SweepRequest:
        """Request that the resolution of a sweep start no further round."""
        return _requested(self._connection, f"/v1/sweeps/{sweep}/halt")


class EvidenceClient(_Part):
    """Reads the evidence for numbers; `Client.evidence` is one."""

    def reproductions(self) -> list[ReproductionSummary]:
        """Every paper with how many of its numbers are reproduced, not reproduced, or not run (docs/papers.md)."""
        return self._connection.fetch(list[ReproductionSummary], "GET", "/v1/reproductions")

    def reproduction(self, paper: str, within: float = 1.0) -> ReproductionView:
        """Whether own runs reproduce each number of a paper; `within` percentage points count as the same."""
        return self._connection.fetch(ReproductionView, "GET", api_path("reproductions", paper), {"within": within})

    def reproduction_file(self, paper: str, file_format: str, within: float = 1.0) -> Rendered:
        """The reproduction of a paper as a file: json, csv, markdown or latex."""
        return self._connection.file(api_path("reproductions", paper), {"format": file_format, "within": within})

    def diff(self, before: str, after: str, table: str | None = None, file_format: str = "json") -> Rendered:
        """What changed between two tables as a file (docs/tables.md); a side is `7` or `7@2026-11-20T12:00`."""
        query = {"before": before, "after": after, "table": table, "format": file_format}
        return self._connection.file("/v1/diff", query)

    def macros(self, sweep: int, table: str, prefix: str = "ms") -> MacrosView:
        """A table as LaTeX macros (docs/papers.md)."""
        query = {"format": "json", "prefix": prefix}
        return self._connection.fetch(MacrosView, "GET", api_path("sweeps", sweep, "tables", table, "macros"), query)

    def macros_file(self, sweep: int, table: str, file_format: str = "latex", prefix: str = "ms") -> Rendered:
        """The LaTeX macros of a table as a file: latex or json."""
        query = {"format": file_format, "prefix": prefix}
        return self._connection.file(api_path("sweeps", sweep, "tables", table, "macros"), query)

    def optimism(self, sweep: int) -> OptimismView:
        """By how much selection inflates the score of each cell (docs/statistics.md)."""
        return self._connection.fetch(OptimismView, "GET", f"/v1/sweeps/{sweep}/optimism")


class PeopleClient(_Part):
    """Reads and changes users, projects and quotas; `Client.people` is one.

    It has the methods of `orchestrator.service.accounts.People`, which writes to the database of a home.
    """

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection)
        self.tokens, self.logins = TokenClient(connection), LoginClient(connection)

    def me(self) -> CallerView:
        """The caller and its rights."""
        return self._connection.fetch(CallerView, "GET", "/v1/me")

    def users(self) -> Iterator[UserView]:
        """All users, the oldest first."""
        return self._connection.pages("/v1/users", {}, Page[UserView])

    def user(self, name: str) -> UserView:
        """One user."""
        return self._connection.fetch(UserView, "GET", api_path("users", name))

    def projects(self) -> Iterator[ProjectView]:
        """All projects, the oldest first."""
        return self._connection.pages("/v1/projects", {}, Page[ProjectView])

    def project(self, name: str) -> ProjectView:
        """One project."""
        return self._connection.fetch(ProjectView, "GET", api_path("projects", name))

    def add_user(self, name: str, role: Role, project: str | None) -> UserView:
        """Add a user, in a project or in none."""
        body = {"name": name, "role": role, "project": project}
        return self._connection.fetch(UserView, "POST", "/v1/users", json=body)

    def join(self, name: str, project: str, role: Role) -> UserView:
        """Add a user to a project: a viewer reads, every other role also changes."""
        return self._connection.fetch(
            UserView, "PUT", api_path("projects", project, "members", name), json={"role": role}
        )

    def leave(self, name: str, project: str) -> UserView:
        """Remove a user from a project."""
        return self._connection.fetch(UserView, "DELETE", api_path("projects", project, "members", name))

    def set_role(self, name: str, role: Role) -> UserView:
        """Set a user's role."""
        return self._connection.fetch(UserView, "PATCH", api_path("users", name), json={"role": role})

    def disable(self, name: str, *, disabled: bool) -> UserView:
        """Disable a user with all tokens and sessions, or enable the user again."""
        return self._connection.fetch(UserView, "PATCH", api_path("users", name), json={"disabled": disabled})

    def add_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Add a project that its members see, or everybody."""
        return self._connection.fetch(ProjectView, "POST", "/v1/projects", json={"name": name, "open": everyone})

    def open_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Show a project to every user, or to its members only."""
        return self._connection.fetch(ProjectView, "PATCH", api_path("projects", name), json={"open": everyone})

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Set the quota of a user or a project; one without limits removes it."""
        path = api_path("quotas", kind, name)
        self._connection.fetch(list[QuotaUse], "PUT", path, json=quota.model_dump(mode="json"))

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """The quotas of users or projects, and what they have used."""
        return [quota for quota in self._connection.fetch(list[QuotaUse], "GET", "/v1/quotas") if quota.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """The entries of the audit log after the one with this number, the oldest first."""
        with self._connection.streamed("/v1/audit", _AUDIT_SECONDS, {"after": after}) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                yield from map(AuditEntry.model_validate_json, lines)


class TokenClient(_Part):
    """Reads, makes and revokes tokens; `PeopleClient.tokens` is one."""

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """The caller's own tokens; for an administrator, those of a user or of all users."""
        return self._connection.pages("/v1/tokens", {"user": user}, Page[TokenView])

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, key: str | None = None
    ) -> NewTokenView:
        """A new token with its secret, by default for the caller; the same key gives the same token."""
        body = {"user": user, "name": name, "scope": scope, "days": days or 0}
        headers = {"Idempotency-Key": key} if key else {}
        return self._connection.fetch(NewTokenView, "POST", "/v1/tokens", json=body, headers=headers)

    def revoke(self, number: int) -> TokenView:
        """Revoke a token, and end the sessions that began with it."""
        return self._connection.fetch(TokenView, "DELETE", f"/v1/tokens/{number}")


class LoginClient(_Part):
    """Links users with logins of an OpenID Connect provider; `PeopleClient.logins` is one."""

    def link(self, name: str, subject: str, issuer: str | None = None) -> UserView:
        """Link a user with a subject of an OpenID provider, by default the server's, for logging in."""
        body = {"subject": subject, "issuer": issuer}
        return self._connection.fetch(UserView, "PUT", api_path("users", name, "login"), json=body)

    def unlink(self, name: str) -> UserView:
        """Remove the OpenID link of a user, and end the browser sessions that it began."""
        return self._connection.fetch(UserView, "DELETE", api_path("users", name, "login"))


def _requested(connection: ServerConnection, path: str, query: Query | None = None, **more: Any) -> SweepRequest:
    """Post a request about a sweep; `more` goes to `ServerConnection.send`."""
    response = connection.send("POST", path, query, **more)
    number = response.headers.get("location", "").rpartition("/")[2]
    if not number.isdigit():
        raise connection.stranger(response)
    return SweepRequest(connection.read(SweepView, response), int(number))


def _query(budget: ResolutionBudget, table: str | None) -> dict[str, str | float | None]:
    return {"table": table, **budget.model_dump(exclude_none=True)}
