"""The API from Python: one method a route, views as answers, ApiError for what went wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from api.connection import Query, ServerConnection, SweepChanges
from orchestrator.views.accounts import (
    AuditEntry,
    CallerView,
    NewTokenView,
    ProjectView,
    Quota,
    QuotaKind,
    QuotaUse,
    Role,
    Scope,
    TokenView,
    UserView,
)
from orchestrator.views.evidence import (
    LedgerSummary,
    LedgerView,
    MacrosView,
    OptimismView,
    PublishedSummary,
    PublishedView,
    ResolutionBudget,
    ResolutionView,
    VerdictsView,
)
from orchestrator.views.operations import CollectionView, DataFinding, MirrorView, StorageView
from orchestrator.views.pages import FigureFile, FigureView, Page, Remark, Rendered
from orchestrator.views.states import SweepState, TrialState
from orchestrator.views.sweeps import GridCell, Preview, RequestView, Submitted, SweepSummary, SweepView
from orchestrator.views.tables import CellView
from orchestrator.views.trials import Curve, LogView, TrialSummary, TrialView
from workers.catalog import Catalog

if TYPE_CHECKING:
    import pandas

    from api.notebook import SweepNotebook


@dataclass(frozen=True, slots=True)
class Asked:
    """A sweep as it was when something was asked of it, and the number of the request."""

    sweep: SweepView
    request: int


def asked(connection: ServerConnection, path: str, query: Query | None = None, **more: Any) -> Asked:
    """Post a request about a sweep to a path; `more` goes to `ServerConnection.send`."""
    response = connection.send("POST", path, query, **more)
    number = response.headers.get("location", "").rpartition("/")[2]
    if not number.isdigit():
        raise connection.stranger(response)
    return Asked(connection.read(SweepView, response), int(number))


class EvidenceClient:
    """Asks a server for what numbers rest on; `Client.evidence` gives one."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def ledgers(self) -> list[LedgerSummary]:
        """Every paper with how many of its numbers stand how (docs/papers.md)."""
        return self._connection.ask(list[LedgerSummary], "GET", "/v1/ledgers")

    def ledger(self, paper: str, within: float = 1.0) -> LedgerView:
        """What own runs say of each number of a paper; `within` points of percent count as the same."""
        return self._connection.ask(LedgerView, "GET", _ledger(paper), {"within": within})

    def ledger_file(self, paper: str, file_format: str, within: float = 1.0) -> Rendered:
        """The same as a file: json, csv, markdown or latex."""
        return self._connection.file(_ledger(paper), {"format": file_format, "within": within})

    def drift(self, before: str, after: str, table: str | None = None, file_format: str = "json") -> Rendered:
        """What changed between two tables as a file (docs/tables.md); a side is `7` or `7@2026-11-20T12:00`."""
        query = {"before": before, "after": after, "table": table, "format": file_format}
        return self._connection.file("/v1/drift", query)

    def macros(self, sweep: int, table: str, prefix: str = "ms") -> MacrosView:
        """A table as macros of LaTeX (docs/papers.md)."""
        query = {"format": "json", "prefix": prefix}
        return self._connection.ask(MacrosView, "GET", _macros(sweep, table), query)

    def macros_file(self, sweep: int, table: str, file_format: str = "latex", prefix: str = "ms") -> Rendered:
        """The same as a file: latex or json."""
        return self._connection.file(_macros(sweep, table), {"format": file_format, "prefix": prefix})

    def optimism(self, sweep: int) -> OptimismView:
        """By how much the best candidate of each cell looks better than it is (docs/statistics.md)."""
        return self._connection.ask(OptimismView, "GET", f"/v1/sweeps/{sweep}/optimism")


def _macros(sweep: int, table: str) -> str:
    return f"/v1/sweeps/{sweep}/tables/{quote(table, safe='')}/macros"


def _ledger(paper: str) -> str:
    return f"/v1/ledgers/{quote(paper, safe='')}"


class SweepResolutions:
    """Asks a server to resolve comparisons (docs/statistics.md); `Client.resolutions` gives one."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def ask(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> Asked:
        """Ask that seeds be trained that decide the comparisons of a table, by default the sweep's first."""
        return asked(self._connection, f"/v1/sweeps/{sweep}/resolve", _query(budget, table))

    def plan(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> ResolutionView:
        """What that would begin with; nothing is asked for."""
        path = f"/v1/sweeps/{sweep}/resolution/plan"
        return self._connection.ask(ResolutionView, "GET", path, _query(budget, table))

    def get(self, sweep: int) -> ResolutionView:
        """What became of the last one."""
        return self._connection.ask(ResolutionView, "GET", f"/v1/sweeps/{sweep}/resolution")

    def halt(self, sweep: int) -> Asked:
        """Ask that no further round follow."""
        return asked(self._connection, f"/v1/sweeps/{sweep}/halt")


def _query(budget: ResolutionBudget, table: str | None) -> dict[str, str | float | None]:
    return {"table": table, **budget.model_dump(exclude_none=True)}


AUDIT_SECONDS = 60.0
"""How long the next piece of the audit may take."""


class PeopleClient:
    """Asks a server for who there is, and has it changed; `Client.people` gives one.

    It has the methods of `orchestrator.service.accounts.People`, which writes in the database of a home.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self.tokens, self.logins = TokenClient(connection), LoginClient(connection)

    def me(self) -> CallerView:
        """Who asks, and what they may."""
        return self._connection.ask(CallerView, "GET", "/v1/me")

    def users(self) -> Iterator[UserView]:
        """All users, the oldest first."""
        return self._connection.pages("/v1/users", {}, Page[UserView])

    def user(self, name: str) -> UserView:
        """One user."""
        return self._connection.ask(UserView, "GET", _user(name))

    def projects(self) -> Iterator[ProjectView]:
        """All projects, the oldest first."""
        return self._connection.pages("/v1/projects", {}, Page[ProjectView])

    def project(self, name: str) -> ProjectView:
        """One project."""
        return self._connection.ask(ProjectView, "GET", _project(name))

    def add_user(self, name: str, role: Role, project: str | None) -> UserView:
        """Make a user, in a project or none."""
        body = {"name": name, "role": role, "project": project}
        return self._connection.ask(UserView, "POST", "/v1/users", json=body)

    def join(self, name: str, project: str, role: Role) -> UserView:
        """Have a user be in a project: a viewer looks, anybody else steers."""
        return self._connection.ask(UserView, "PUT", _place(name, project), json={"role": role})

    def leave(self, name: str, project: str) -> UserView:
        """Have a user be in a project no more."""
        return self._connection.ask(UserView, "DELETE", _place(name, project))

    def set_role(self, name: str, role: Role) -> UserView:
        """Give a user another role."""
        return self._connection.ask(UserView, "PATCH", _user(name), json={"role": role})

    def disable(self, name: str, *, disabled: bool) -> UserView:
        """Have nothing of a user's open anything, or all of it again."""
        return self._connection.ask(UserView, "PATCH", _user(name), json={"disabled": disabled})

    def add_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Make a project, which its members see, or everybody."""
        return self._connection.ask(ProjectView, "POST", "/v1/projects", json={"name": name, "open": everyone})

    def open_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Have a project be seen by every user, or by its members alone."""
        return self._connection.ask(ProjectView, "PATCH", _project(name), json={"open": everyone})

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Give a user or a project a quota in place of what it had; one that limits nothing takes it away."""
        path = f"/v1/quotas/{kind}/{quote(name, safe='')}"
        self._connection.ask(list[QuotaUse], "PUT", path, json=quota.model_dump(mode="json"))

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """What users or projects may have, and have used."""
        return [one for one in self._connection.ask(list[QuotaUse], "GET", "/v1/quotas") if one.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number."""
        with self._connection.streamed("/v1/audit", AUDIT_SECONDS, {"after": after}) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                yield from map(AuditEntry.model_validate_json, lines)


class TokenClient:
    """Asks a server for tokens; `PeopleClient.tokens` is one."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """One's own tokens, or an administrator's choice: those of a user, or of all."""
        return self._connection.pages("/v1/tokens", {"user": user}, Page[TokenView])

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, key: str | None = None
    ) -> NewTokenView:
        """A new token, with what opens; without a user one's own. The same key gives the same token."""
        body = {"user": user, "name": name, "scope": scope, "days": days or 0}
        headers = {"Idempotency-Key": key} if key else {}
        return self._connection.ask(NewTokenView, "POST", "/v1/tokens", json=body, headers=headers)

    def revoke(self, number: int) -> TokenView:
        """Have a token, and the sessions that began with it, open nothing from now on."""
        return self._connection.ask(TokenView, "DELETE", f"/v1/tokens/{number}")


class LoginClient:
    """Links users with a provider's logins; `PeopleClient.logins` is one."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def link(self, name: str, subject: str, issuer: str | None = None) -> UserView:
        """Say by which number a provider knows a user, who then comes in by it; without an issuer the server's."""
        body = {"subject": subject, "issuer": issuer}
        return self._connection.ask(UserView, "PUT", f"{_user(name)}/login", json=body)

    def unlink(self, name: str) -> UserView:
        """Have no provider log a user in, and end the browsers that one let in."""
        return self._connection.ask(UserView, "DELETE", f"{_user(name)}/login")


def _user(name: str) -> str:
    return f"/v1/users/{quote(name, safe='')}"


def _project(name: str) -> str:
    return f"/v1/projects/{quote(name, safe='')}"


def _place(user: str, project: str) -> str:
    return f"{_project(project)}/members/{quote(user, safe='')}"


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
        return EvidenceClient(self._connection)

    @property
    def resolutions(self) -> SweepResolutions:
        """What decides the comparisons of a sweep's tables (docs/statistics.md)."""
        return SweepResolutions(self._connection)

    @property
    def people(self) -> "PeopleClient":
        """Users, projects and tokens (docs/security.md)."""
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

    def changes(self, sweep: int) -> SweepChanges:
        """What changes of a sweep, while it is entered."""
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

    def storage(self, sweep: int | None = None) -> StorageView:
        """What lies on disk, of all sweeps or of one."""
        return self._connection.ask(StorageView, "GET", "/v1/storage", {"sweep": sweep}, timeout=BUNDLE_SECONDS)

    def collect(
        self, sweep: int | None, days: float, states: Sequence[TrialState], keep: int, *, dry_run: bool
    ) -> CollectionView:
        """Ask that weights go, or what would."""
        query = {"sweep": sweep, "days": days, "keep": keep, "dry_run": str(dry_run).lower(), "state": list(states)}
        return self._connection.ask(CollectionView, "POST", "/v1/collections", query, timeout=BUNDLE_SECONDS)

    def sync_mlflow(self, sweep: int) -> Asked:
        """Ask that all runs of a sweep be written to MLflow again."""
        return self._request(sweep, "mirror")

    def mirror(self, sweep: int | None = None) -> MirrorView:
        """How many runs of a sweep, or of all, are not in MLflow yet."""
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

    def verdicts(self, sweep: int, table: str | None = None, covers: str | None = None) -> VerdictsView:
        """Whether the cells of a table, by default the first, are better than their baselines (docs/statistics.md).

        `covers` is `seeds`, `queries` or `both`; by default what the table's spec says.
        """
        query = {"table": table, "covers": covers}
        return self._connection.ask(VerdictsView, "GET", f"/v1/sweeps/{sweep}/verdicts", query)

    def compare(self, sweeps: Sequence[int], table: str | None, view: str, file_format: str) -> Rendered:
        """One table of several sweeps as a file; `view` is merge or difference."""
        query = {"sweeps": ",".join(map(str, sweeps)), "table": table, "view": view, "format": file_format}
        return self._connection.file("/v1/tables", query)

    def cell(self, sweep: int, index: int) -> CellView:
        """What stands behind a cell of a sweep."""
        return self._connection.ask(CellView, "GET", f"/v1/sweeps/{sweep}/cells/{index}")

    def remark(self, path: str) -> Remark:
        """The note and tags of a sweep, a cell or a trial, by its path: `sweeps/7`, `sweeps/7/cells/3`, `trials/41`."""
        return self._connection.ask(Remark, "GET", f"/v1/{path}/remark")

    def put_remark(self, path: str, **change: str | Sequence[str]) -> Remark:
        """Set its `note`, or its `tags`; tags are `added` to those that are there and `removed` from them, too."""
        return self._connection.ask(Remark, "PATCH", f"/v1/{path}/remark", json=change)

    def bundle(self, sweep: int, out: IO[bytes]) -> None:
        """Write a sweep's archive to `out` as it comes; making it may take minutes."""
        with self._connection.streamed(f"/v1/sweeps/{sweep}/bundle", BUNDLE_SECONDS) as pieces:
            for piece in pieces:
                out.write(piece)

    def notebook(self, sweep: int) -> "SweepNotebook":
        """A sweep as a notebook shows it: pandas frames, tables and figures that render."""
        from api.notebook import SweepNotebook

        return SweepNotebook(self, self._connection, sweep)

    def frame(self) -> "pandas.DataFrame":
        """Every sweep as a row of a pandas frame."""
        from api.notebook import frame

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

    def published(self) -> list[PublishedSummary]:
        """The papers' tables that own numbers can be compared with."""
        return self._connection.ask(list[PublishedSummary], "GET", "/v1/published")

    def published_table(self, table_id: str) -> PublishedView:
        """One of the papers' tables with all its numbers."""
        return self._connection.ask(PublishedView, "GET", f"/v1/published/{quote(table_id, safe='')}")

    def data(self) -> list[DataFinding]:
        """What the nodes' data roots have."""
        return self._connection.ask(list[DataFinding], "GET", "/v1/data")

    def mlflow(self) -> str:
        """The address for an `mlflow` client; raises ApiError where the server passes on none."""
        self._connection.send("GET", "/mlflow/version")
        return f"{self.url}/mlflow"

    def catalog(self) -> Catalog:
        """The parts that a recipe may name."""
        return self._connection.ask(Catalog, "GET", "/v1/catalog")

    def login_link(self) -> str:
        """The URL by which a browser logs in once."""
        return f"{self.url}{self._connection.send('POST', '/v1/login-links').json()['path']}"
