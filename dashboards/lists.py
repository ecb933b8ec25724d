"""Pages that are lists: trials, the cluster, people, and reproduction reports."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args
from urllib.parse import parse_qsl, urlencode, urlsplit

from dashboards.rendering import render
from orchestrator.views.accounts import (
    Caller,
    NewTokenView,
    ProjectView,
    QuotaUse,
    Role,
    Scope,
    TokenView,
    UserView,
)
from orchestrator.views.evidence import ReproductionStatus, ReproductionView
from orchestrator.views.operations import REASONS, ClusterView, GpuUsage, NodeView, SlotView
from orchestrator.views.pages import Page
from orchestrator.views.trials import Listed, ListedColumn, ListedRow, Listing

_REFRESH_SECONDS: Final = 3
GIB: Final = 2**30
_UNITS: Final = {"CPU": "CPU", "GPU": "GPU", "memory": "GB"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A share that is drawn as a bar with words next to it."""

    share: float  # 0 to 1
    words: str
    title: str


def cluster_page(cluster: ClusterView, quotas: Sequence[QuotaUse] = ()) -> str:
    """Nodes, slots, the queue and quotas; the page reloads itself every few seconds."""
    waiting: Counter[str] = Counter()
    for sweep in cluster.queue:
        waiting.update({REASONS[reason]: count for reason, count in sweep.waiting.items()})
    return render(
        "cluster.html", cluster=cluster, gone=[node for node in cluster.nodes if not node.alive],
        busy=sum(slot.trains is not None for slot in cluster.slots),
        machines=[_machine(node, cluster.slots) for node in cluster.nodes if node.alive],
        waiting=waiting.total(), reasons=waiting.most_common(), words=REASONS, gpus=_gpus, holds=_of_slot, gib=GIB,
        quotas=quotas, used=_used, active=True, refresh=_REFRESH_SECONDS,
    )  # fmt: skip


def _machine(node: NodeView, slots: Sequence[SlotView]) -> dict[str, Any]:
    ours = [slot for slot in slots if node.uid.startswith(slot.node)]
    usages = [slot.usage for slot in ours if slot.usage is not None]
    memory, load = None, ""
    if usages:  # each slot reports the memory and load of its machine
        usage = usages[-1]
        taken = usage.machine_memory_bytes - usage.machine_memory_free_bytes
        memory = _meter(taken, usage.machine_memory_bytes, "memory", "in use on the machine")
        load = "" if usage.machine_load is None else f"load {usage.machine_load:.1f} on {usage.machine_cpus} CPUs"
    names = [name for name in ("CPU", "GPU") if node.resources.get(name)]
    names += sorted(name for name in node.resources if name not in _UNITS and not name.startswith(("node:", "object")))
    meters = [_meter(node.used.get(name, 0.0), node.resources[name], name, "held by slots") for name in names]
    busy = sum(slot.trains is not None for slot in ours)
    return {"node": node, "meters": meters, "memory": memory, "load": load, "slots": len(ours), "busy": busy}


def _meter(taken: float, whole: float, name: str, what: str) -> Bar:
    unit = _UNITS.get(name, name)
    if name == "memory":
        taken, whole = taken / GIB, whole / GIB
        words = f"{taken:.1f} of {whole:.1f} {unit}"
    else:
        words = f"{taken:.4g} of {whole:.4g} {unit}{'s' if whole != 1 and name in _UNITS else ''}"
    return Bar(min(1.0, taken / whole) if whole else 0.0, words, f"{words} {what}")


def _of_slot(resources: Mapping[str, float]) -> str:
    """The resources of a slot: `4 CPUs, 0.5 GPU`."""
    return ", ".join(
        f"{amount / GIB:.3g} GB"
        if name == "memory"
        else f"{amount:.3g} {name}{'s' if amount > 1 and name in _UNITS else ''}"
        for name, amount in resources.items()
    )


def _gpus(slot: SlotView) -> list[tuple[GpuUsage, Bar, Bar | None]]:
    """The GPUs of a slot with their use of memory and, if known, of time."""
    shown = []
    for gpu in (slot.usage and slot.usage.gpus) or ():
        memory = _meter(gpu.memory_used_bytes, gpu.memory_bytes, "memory", f"in use on {gpu.name}")
        busy = None if gpu.busy is None else Bar(gpu.busy, f"{gpu.busy:.0%} busy", f"{gpu.name} computes")
        shown.append((gpu, memory, busy))
    return shown


def _used(quota: QuotaUse) -> list[Bar]:
    """The use of each limit of a quota."""
    return [
        Bar(min(1.0, used / most) if most else 1.0, f"{used:.4g} of {most:.4g} {what}", f"{used:.4g} {what} used")
        for what, used, most in quota.amounts
        if most is not None
    ]


STATUSES: Final = get_args(ReproductionStatus)
EXPORTS: Final = ("latex", "markdown", "csv", "json")


def reproduction_page(view: ReproductionView, status: str = "") -> str:
    """The reproduction of one paper: the numbers with a status, by default all that were run."""
    wanted = status if status in STATUSES else ""
    tables = []
    for table in view.tables:
        entries = [
            entry for entry in table.entries if (entry.status == wanted if wanted else entry.status != "not run")
        ]
        tables.append(
            (table, [(entry, *(text.replace("-", "−") for text in entry.own_and_difference)) for entry in entries])
        )
    return render("reproduction.html", view=view, tables=tables, status=wanted, statuses=STATUSES, exports=EXPORTS)


MOST_AXES: Final = 12
"""How many axes have a column of their own; the labels of further axes share one."""
ROWS: Final = 50
"""How many rows a page has by default."""
_DRAWINGS: Final = {
    "scatter": "Scatter",
    "heat": "Heat map",
    "slice": "Slice",
    "parallel": "Parallel coordinates",
    "importance": "Importance",
    "history": "History",
    "distribution": "Distribution",
    "norms": "Norm variance",
}
"""The plots of a listing, by their names in REST."""


@dataclass(frozen=True, slots=True)
class ListingAddress:
    """The parameters of a list's page, as in its address."""

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
    group: str = ""
    limit: int = ROWS

    @property
    def path(self) -> str:
        """The path of the list's page."""
        return "/trials" if self.sweep is None else f"/sweeps/{self.sweep}/trials"

    def kept(self, **changed: Any) -> str:
        """The address of the page with changed parameters and without the cursor, which would be invalid."""
        chosen: dict[str, Any] = {
            "where": self.where, "sort": self.sort, "of": self.of, "plot": self.plot, "x": self.x, "y": self.y,
            "colour": self.colour, "columns": None if self.columns is None else ",".join(self.columns),
            "limit": self.limit, "group": self.group,
        } | changed  # fmt: skip
        usual = {"sort": "-trial" if chosen["of"] == "trials" else "-score", "of": "trials", "limit": ROWS}
        query = {key: value for key, value in chosen.items() if value not in (None, "", usual.get(key))}
        if chosen["columns"] == "":
            query["columns"] = ""
        return f"{self.path}?{urlencode(query)}" if query else self.path

    def hidden(self, *chosen: str) -> list[tuple[str, str]]:
        """The parameters that a form keeps, by name, without those that are chosen in it."""
        query = parse_qsl(urlsplit(self.kept()).query, keep_blank_values=True)
        return [(name, value) for name, value in query if name not in chosen]

    def of_group(self, label: str) -> str:
        """The address of the page with the rows of a group alone."""
        condition = f"{self.group}:{json.dumps(label, ensure_ascii=False)}"
        return self.kept(where=f"({self.where}) {condition}" if self.where else condition, group="")

    def drawn(self, plot: str) -> str:
        """The address of the page with another plot, or without the plot that it has."""
        same = "heat" not in (plot, self.plot)  # the colour of a heat map is a number, and elsewhere a label
        return self.kept(plot="" if plot == self.plot else plot, x="", y="", colour=self.colour if same else "")

    def sorted_by(self, name: str) -> str:
        """The address of the page sorted by a column: first from the greatest down, then from the least up."""
        return self.kept(sort=name if self.sort == f"-{name}" else f"-{name}")

    def direction(self, name: str) -> str | None:
        """The direction in which a column is sorted, as the value of `aria-sort`."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.sort)


def listing_page(
    address: ListingAddress,
    listing: Listing | None,
    columns: Sequence[ListedColumn],
    *,
    sweep_name: str = "",
    problem: str = "",
) -> str:
    """A list of trials or candidates; `problem` says what is wrong with the filter."""
    rows = listing.items if listing else []
    axes = _axes(rows, columns)
    names = {column.key: column.name for column in columns}
    own = [column for column in columns if address.of == "trials" or column.role != "repeat"]
    numbers = [column.name for column in own if column.numeric]
    return render(
        "listing.html", address=address, listing=listing, rows=rows, sweep_name=sweep_name, problem=problem,
        axes=[(axis, names.get(axis, axis)) for axis in axes[:MOST_AXES]], further=axes[MOST_AXES:],
        metrics=[column for column in columns if column.role == "metric"],
        shown=list(listing.metrics) if listing else list(address.columns or ()),
        drawings=_DRAWINGS, plots=_plots(address), numbers=["score", "seconds", *numbers],
        labels=[column.name for column in columns if column.labelled and column.role != "repeat"],
    )  # fmt: skip


def _axes(rows: Sequence[ListedRow], columns: Sequence[ListedColumn]) -> list[str]:
    """The axes of the rows, in the order of the columns."""
    there = dict.fromkeys(axis for row in rows for axis in row.labels)
    known = [column.key for column in columns if column.key in there]
    return [*known, *(axis for axis in there if axis not in known)]


def _plots(address: ListingAddress) -> Mapping[str, str]:
    """The address of each plot, by its name."""
    chosen: dict[str, Any] = {"where": address.where, "of": address.of, "sweep": address.sweep}
    chosen |= {"x": address.x, "y": address.y, "colour": address.colour}
    query = {key: value for key, value in chosen.items() if value not in (None, "")}
    return {name: f"/v1/plots/{name}?{urlencode(query)}" for name in _DRAWINGS}


_SCOPES: Final = {
    Scope.READ: "looks at what its user sees",
    Scope.WRITE: "does what its user may as a member",
    Scope.ADMIN: "does all that its user may",
    Scope.MLFLOW: "opens MLflow and nothing else",
    Scope.METRICS: "opens /metrics and nothing else",
}
"""What a token of each scope allows."""
_OF_ADMINISTRATORS: Final = frozenset({Scope.ADMIN, Scope.METRICS})
"""The scopes that only administrators may give."""


def people_page(users: Page[UserView], projects: Sequence[ProjectView], provider: str = "") -> str:
    """Users and projects with forms that change them; `provider` is the name of the OpenID Connect provider, if any."""
    further = f"/people?{urlencode({'cursor': users.next_cursor})}" if users.next_cursor else None
    return render(
        "people.html", users=users.items, projects=projects, roles=list(Role), further=further, provider=provider
    )


def tokens_page(tokens: Page[TokenView], whose: str, who: Caller, made: NewTokenView | None = None) -> str:
    """The tokens of a user, or of all users; `made` is a new token, whose text is shown only now."""
    scopes = {scope: text for scope, text in _SCOPES.items() if who.administers or scope not in _OF_ADMINISTRATORS}
    kept = {"user": whose} if whose and whose != who.name else {}
    query = kept | {"cursor": tokens.next_cursor or ""}
    return render(
        "tokens.html", tokens=tokens.items, whose=whose, mine=whose == who.name, made=made, scopes=scopes,
        may=who.is_owner or who.scope in (Scope.WRITE, Scope.ADMIN), everlasting=who.administers,
        further=f"/tokens?{urlencode(query)}" if tokens.next_cursor else None,
    )  # fmt: skip
