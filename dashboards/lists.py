"""Pages that are lists: trials, the cluster, people, and reproduction reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, get_args
from urllib.parse import urlencode

from dashboards.rendering import render
from orchestrator.views.accounts import Caller, NewTokenView, ProjectView, QuotaUse, Role, Scope, TokenView, UserView
from orchestrator.views.evidence import LedgerEntry, LedgerEvidence, LedgerSummary, LedgerTable, LedgerView, Standing
from orchestrator.views.operations import REASONS, ClusterView, GpuUsage, NodeView, SlotView, WaitingSweep
from orchestrator.views.pages import Page
from orchestrator.views.trials import Listed, ListedColumn, ListedRow, Listing

REFRESH_SECONDS: Final = 3
GIB: Final = 2**30
_UNITS: Final = {"CPU": "CPU", "GPU": "GPU", "memory": "GB"}


@dataclass(frozen=True, slots=True)
class Bar:
    """So much of so much, drawn as a bar with its words beside it."""

    share: float  # 0 to 1
    words: str
    title: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A node with what it offers and holds."""

    node: NodeView
    meters: Sequence[Bar]
    memory: Bar | None  # of the whole machine, as a slot on it said
    load: str
    slots: int
    busy: int


def cluster_page(cluster: ClusterView, quotas: Sequence[QuotaUse] = (), *, now: datetime | None = None) -> str:
    """Nodes, slots, the queue and quotas; asks for itself again every few seconds."""
    there = [node for node in cluster.nodes if node.alive]
    gone = [node for node in cluster.nodes if not node.alive]
    busy = sum(slot.trains is not None for slot in cluster.slots)
    return render(
        "cluster.html", now, cluster=cluster, gone=gone, busy=busy,
        machines=[_machine(node, cluster.slots) for node in there],
        waiting=sum(sum(one.waiting.values()) for one in cluster.queue),
        reasons=_reasons(cluster.queue), words=REASONS, gpus=_gpus, holds=_of_slot, memory=_memory,
        quotas=quotas, used=_used, active=True, refresh=REFRESH_SECONDS,
    )  # fmt: skip


def _machine(node: NodeView, slots: Sequence[SlotView]) -> Machine:
    ours = [slot for slot in slots if node.uid.startswith(slot.node)]
    usages = [slot.usage for slot in ours if slot.usage is not None]
    memory, load = None, ""
    if usages:
        said = usages[-1]
        taken = said.machine_memory_bytes - said.machine_memory_free_bytes
        memory = _meter(taken, said.machine_memory_bytes, "memory", "in use on the machine")
        load = "" if said.machine_load is None else f"load {said.machine_load:.1f} on {said.machine_cpus} CPUs"
    names = [name for name in ("CPU", "GPU") if node.resources.get(name)]
    names += sorted(name for name in node.resources if name not in _UNITS and not name.startswith(("node:", "object")))
    meters = [_meter(node.held.get(name, 0.0), node.resources[name], name, "held by slots") for name in names]
    return Machine(node, meters, memory, load, len(ours), sum(slot.trains is not None for slot in ours))


def _meter(taken: float, whole: float, name: str, what: str) -> Bar:
    unit = _UNITS.get(name, name)
    if name == "memory":
        taken, whole = taken / GIB, whole / GIB
        words = f"{taken:.1f} of {whole:.1f} {unit}"
    else:
        words = f"{taken:.4g} of {whole:.4g} {unit}{'s' if whole != 1 and name in _UNITS else ''}"
    return Bar(min(1.0, taken / whole) if whole else 0.0, words, f"{words} {what}")


def _of_slot(resources: Mapping[str, float]) -> str:
    """What a slot holds of its node: `4 CPUs, 0.5 GPU`."""
    said = []
    for name, amount in resources.items():
        if name == "memory":
            said.append(f"{amount / GIB:.3g} GB")
        else:
            said.append(f"{amount:.3g} {name}{'s' if amount > 1 and name in _UNITS else ''}")
    return ", ".join(said)


def _gpus(slot: SlotView) -> list[tuple[GpuUsage, Bar, Bar | None]]:
    """The GPUs of a slot: memory, and how busy each is."""
    shown = []
    for gpu in (slot.usage and slot.usage.gpus) or ():
        memory = _meter(gpu.memory_used_bytes, gpu.memory_bytes, "memory", f"in use on {gpu.name}")
        busy = None if gpu.busy is None else Bar(gpu.busy, f"{gpu.busy:.0%} busy", f"{gpu.name} computes")
        shown.append((gpu, memory, busy))
    return shown


def _memory(slot: SlotView) -> str:
    return "" if slot.usage is None else f"{slot.usage.memory_bytes / GIB:.2f} GB"


def _used(quota: QuotaUse) -> list[Bar]:
    """What is used of each thing that the quota limits."""
    return [
        Bar(min(1.0, used / most) if most else 1.0, f"{used:.4g} of {most:.4g} {what}", f"{used:.4g} {what} used")
        for what, used, most in quota.amounts
        if most is not None
    ]


def _reasons(queue: Sequence[WaitingSweep]) -> list[tuple[str, int]]:
    """Why trials wait, over all sweeps, the most frequent first."""
    total: dict[str, int] = {}
    for sweep in queue:
        for reason, count in sweep.waiting.items():
            total[REASONS[reason]] = total.get(REASONS[reason], 0) + count
    return sorted(total.items(), key=lambda pair: -pair[1])


STANDINGS: Final = get_args(Standing)
EXPORTS: Final = ("latex", "markdown", "csv", "json")


@dataclass(frozen=True, slots=True)
class EntryLine:
    """A number of a paper as the page tells it."""

    entry: LedgerEntry
    first: LedgerEvidence | None
    own: str
    difference: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A printed table with those of its numbers that the page lists."""

    table: LedgerTable
    lines: Sequence[EntryLine]


def papers_page(found: Sequence[LedgerSummary]) -> str:
    """The papers that have a ledger."""
    return render("ledgers.html", None, papers=found, standings=STANDINGS)


def ledger_page(view: LedgerView, standing: str = "") -> str:
    """One paper; by default every number that was run, else those that stand so."""
    wanted = standing if standing in STANDINGS else ""
    tables = []
    for table in view.tables:
        shown = [one for one in table.entries if (one.standing == wanted if wanted else one.standing != "not run")]
        tables.append(ShownTable(table, [_line(one) for one in shown]))
    return render(
        "ledger.html", None, view=view, tables=tables, standing=wanted, standings=STANDINGS, exports=EXPORTS
    )  # fmt: skip


def _line(entry: LedgerEntry) -> EntryLine:
    one = entry.evidence[0] if entry.evidence else None
    own, difference = (text.replace("-", "−") for text in entry.own_and_difference)
    return EntryLine(entry, one, own, difference)


MOST_AXES: Final = 12
"""That have a column of their own; the labels of more stand together."""
DRAWINGS: Final = {
    "scatter": "Two columns",
    "norms": "Norm variance and R@1",
    "parallel": "Parallel coordinates",
    "sensitivity": "Sensitivity",
    "heat": "Two axes",
    "importance": "Importance",
    "history": "History",
    "distribution": "Distribution",
}
"""The plots beside a listing, by the names under which REST has them."""


@dataclass(frozen=True, slots=True)
class ListingAddress:
    """What the page was asked for, which its address says."""

    where: str = ""
    sort: str = "-trial"
    columns: tuple[str, ...] | None = None
    of: Listed = "trials"
    sweep: int | None = None
    cursor: str | None = None
    plot: str = ""
    x: str = ""
    y: str = ""
    colour: str = ""

    def of_sweep(self, sweep: int) -> "ListingAddress":
        """The same of one sweep alone."""
        return replace(self, sweep=sweep)

    @property
    def path(self) -> str:
        """The page's own path."""
        return "/trials" if self.sweep is None else f"/sweeps/{self.sweep}/trials"

    def kept(self, **changed: Any) -> str:
        """The address of the same page with something else; a cursor lasts for one order of one filter alone."""
        chosen: dict[str, Any] = {
            "where": self.where, "sort": self.sort, "of": self.of, "plot": self.plot, "x": self.x, "y": self.y,
            "colour": self.colour, "columns": None if self.columns is None else ",".join(self.columns),
        } | changed  # fmt: skip
        usual = {"sort": "-trial" if chosen["of"] == "trials" else "-score", "of": "trials"}
        said = {key: value for key, value in chosen.items() if value not in (None, "", usual.get(key))}
        if chosen["columns"] == "":
            said["columns"] = ""
        return f"{self.path}?{urlencode(said)}" if said else self.path

    def sorted_by(self, name: str) -> str:
        """The address of the rows sorted by a column: best first where that is likely, the other way the next time."""
        return self.kept(sort=name if self.sort == f"-{name}" else f"-{name}")

    def direction(self, name: str) -> str | None:
        """How a column is sorted, in ARIA's words."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.sort)


def listing_page(
    asked: ListingAddress,
    listing: Listing | None,
    columns: Sequence[ListedColumn],
    *,
    sweep_name: str = "",
    problem: str = "",
) -> str:
    """The trials or candidates that were asked for; `problem` says what is wrong with the filter, which stays."""
    rows = listing.items if listing else []
    axes = _axes(rows, columns)
    names = {column.key: column.name for column in columns}
    own = [column for column in columns if asked.of == "trials" or column.role != "repeat"]
    numbers = [column.name for column in own if column.numeric]
    return render(
        "listing.html", None, asked=asked, listing=listing, rows=rows, sweep_name=sweep_name, problem=problem,
        axes=[(axis, names.get(axis, axis)) for axis in axes[:MOST_AXES]], further=axes[MOST_AXES:],
        metrics=[column for column in columns if column.role == "metric"],
        shown=list(listing.metrics) if listing else list(asked.columns or ()),
        drawings=DRAWINGS, plots=_plots(asked, numbers), numbers=["score", "seconds", *numbers],
        labels=[column.name for column in columns if column.labelled and column.role != "repeat"],
    )  # fmt: skip


def _axes(rows: Sequence[ListedRow], columns: Sequence[ListedColumn]) -> list[str]:
    """The axes that some row has, in the order of the columns."""
    there = dict.fromkeys(axis for row in rows for axis in row.labels)
    known = [column.key for column in columns if column.key in there]
    return [*known, *(axis for axis in there if axis not in known)]


def _plots(asked: ListingAddress, numbers: Sequence[str]) -> Mapping[str, str]:
    """The address from which a plot is fetched, by its name."""
    chosen: dict[str, Any] = {"where": asked.where, "of": asked.of, "sweep": asked.sweep}
    chosen |= {"x": asked.x, "y": asked.y, "colour": asked.colour}
    said = {key: value for key, value in chosen.items() if value not in (None, "")}
    return {name: f"/v1/plots/{name}?{urlencode(said)}" for name in DRAWINGS}


SCOPES: Final = {
    Scope.READ: "looks at what its user sees",
    Scope.WRITE: "does what its user may as a member",
    Scope.ADMIN: "does all that its user may",
    Scope.MLFLOW: "opens MLflow and nothing else",
    Scope.METRICS: "opens /metrics and nothing else",
}
"""What a token of each opens."""
OF_ADMINISTRATORS: Final = frozenset({Scope.ADMIN, Scope.METRICS})
"""Those that nobody else gives."""


def people_page(
    users: Page[UserView], projects: Sequence[ProjectView], provider: str = "", *, now: datetime | None = None
) -> str:
    """Who there is, and what may be done to them; `provider`: who else logs people in, if anybody."""
    further = f"/people?{urlencode({'cursor': users.next_cursor})}" if users.next_cursor else None
    return render(
        "people.html", now, users=users.items, projects=projects, roles=list(Role), further=further, provider=provider
    )


def tokens_page(
    tokens: Page[TokenView],
    whose: str,
    who: Caller,
    made: NewTokenView | None = None,
    *,
    now: datetime | None = None,
) -> str:
    """Tokens of a user, or of all where none is named; `made` is the one whose text is shown now, and never again."""
    scopes = {one: said for one, said in SCOPES.items() if who.administers or one not in OF_ADMINISTRATORS}
    kept = {"user": whose} if whose and whose != who.name else {}
    query = kept | {"cursor": tokens.next_cursor or ""}
    return render(
        "tokens.html", now, tokens=tokens.items, whose=whose, mine=whose == who.name, made=made, scopes=scopes,
        may=who.user is None or who.scope in (Scope.WRITE, Scope.ADMIN), everlasting=who.administers,
        further=f"/tokens?{urlencode(query)}" if tokens.next_cursor else None,
    )  # fmt: skip
