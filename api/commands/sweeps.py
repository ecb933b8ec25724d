"""Commands that submit, list, show and change sweeps."""

import json
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urljoin

import typer

from api.commands.terminal import (
    HOME,
    WRONG,
    Changes,
    Home,
    IsTrial,
    Json,
    Only,
    SpecFile,
    SweepId,
    Token,
    TypedPlace,
    Url,
    Where,
    Without,
    connect,
    err,
    out,
    placed,
    print_json,
    print_rows,
    read_spec,
    readable,
    settings,
)
from api.commands.watch import follow, verdict
from orchestrator.cost.estimate import cost_in_words
from orchestrator.host.logs import one_line
from orchestrator.views.states import SweepState
from orchestrator.views.tables import printed

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.pages import Remark
    from orchestrator.views.sweeps import Counts, Preview, RequestView, SweepSummary, SweepView
    from orchestrator.views.tables import CellView
    from orchestrator.views.trials import TrialView

Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
_LOOKED_AT: Final = 200  # sweeps, for one whose name is near


def submit(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until the sweep has ended.")] = False,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key and spec submit once.")] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Sweeps of higher priority are drawn first.")] = 0,
    project: Annotated[
        str | None, typer.Option(help="To which project, where there are several to choose from.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the spec would become.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Submit a spec; every problem of a wrong one is reported at once."""
    body = read_spec(file, changes, only, without)
    with connect(url, token, home) as client:
        if dry_run:
            show_preview(client.preview(body, project), as_json)
            return
        if not as_json:
            show_preview(client.preview(body, project), as_json)
        submitted = client.submit(body, key, priority, project)
        if as_json:
            print_json(submitted)
            show_notes(submitted.notes)
            show_warnings(submitted.warnings)  # which the preview shows without --json
        else:
            known = "" if submitted.created else " (known by its key)"
            out.print(f"sweep {submitted.id}{known}  {client.url}/sweeps/{submitted.id}")
        if watch:
            console = err if as_json else out
            raise typer.Exit(verdict(follow(client, submitted.id, console), console))


def list_sweeps(
    state: Annotated[SweepState | None, typer.Option(help="Only sweeps in this state.")] = None,
    name: Annotated[str | None, typer.Option(help="Only sweeps of this name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only sweeps with this tag.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List sweeps, newest first."""
    with connect(url, token, home) as client:
        sweeps = list(islice(client.sweeps(state, name, tag), limit))
        others = {one.name for one in islice(client.sweeps(), _LOOKED_AT)} if name and not sweeps else set()
    if as_json:
        print_json(sweeps)
    elif sweeps:
        tagged = any(sweep.tags for sweep in sweeps)
        print_rows([_row(sweep, tagged=tagged) for sweep in sweeps], numbers=("id", "done", "failed", "cancelled"))
    else:
        close = _near(name, others) if name else None
        meant = f"; did you mean {close!r}?" if close else ""
        asked = state or name or tag
        err.print("no sweeps" + (f" like this{meant}" if asked else "; submit one with `metricsweep submit FILE`"))


def _row(sweep: "SweepSummary", *, tagged: bool) -> dict[str, str]:
    row = {
        "id": str(sweep.id),
        "name": sweep.name,
        "state": sweep.state + (" (waits)" if sweep.notice else ""),
        "done": f"{sweep.steps.percent} %",
        "trials": str(sweep.total),
        "failed": str(sweep.counts.failed),
        "cancelled": str(sweep.counts.cancelled),
        "created": f"{sweep.created:%Y-%m-%d %H:%M} UTC",
    }
    return row | {"tags": ", ".join(sweep.tags)} if tagged else row


def _near(name: str, others: Collection[str]) -> str | None:
    from workers.catalog import near  # here, since whoever lists sweeps waits for no catalog

    return near(name, others)


def show_preview(preview: "Preview", as_json: bool) -> None:
    """Print it, the cost in the last lines."""
    if as_json:
        print_json(preview)
        return
    for line in (*preview.said, *cost_in_words(preview.cost)):
        out.print(line)
    show_notes(preview.notes)
    show_warnings(preview.warnings)


def show_notes(notes: Sequence[str]) -> None:
    """Say on stderr what a subset of a spec leaves out."""
    for note in notes:
        err.print(f"note: {note}")


def show_warnings(warnings: Sequence[str]) -> None:
    """Say on stderr what will have to wait."""
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow")


_FRESH: Final = re.compile(rb"^(['\"]?)fresh\1[ \t]*:[^\r\n]*", re.MULTILINE)


def expand(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    home: Home = HOME,
    as_json: Json = False,
) -> None:
    """Check a spec here, without a server, and count its cells, candidates and trials."""
    from orchestrator.service import offline

    show_preview(offline.preview(read_spec(file, changes, only, without), settings(home=home)), as_json)


def afresh(body: bytes) -> bytes:
    """The same spec with `fresh: true`, its comments and order kept; JSON stays JSON."""
    if body.lstrip().startswith(b"{"):
        document = json.loads(body)
        return json.dumps(document | {"fresh": True}, indent=2, ensure_ascii=False).encode()
    line = b"fresh: true"
    if _FRESH.search(body):
        return _FRESH.sub(line, body, count=1)
    return body.rstrip() + b"\n" + line + b"\n"


def note(
    where: Where,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help='The note; "" removes it. Without it the note is printed.')
    ] = None,
    trial: IsTrial = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Note something of a sweep, a cell or a trial, or print its note."""
    place = placed(where, trial=trial)
    with connect(url, token, home) as client:
        remark = client.remark(place.path) if text is None else client.put_remark(place.path, note=text)
    if as_json:
        print_json(remark)
    elif text is None:
        _print_note(place, remark)
    else:
        out.print(f"{place}: {'noted' if remark.note else 'has no note now'}")


def tag(
    where: Where,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG | -TAG]...", help="Tags to add; with - before it one goes. Without: print them."),
    ] = None,
    trial: IsTrial = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Tag a sweep, a cell or a trial; `list --tag` and the filter `tag:paper` find it by these."""
    place = placed(where, trial=trial)
    words = [word for one in tags or () for word in one.split(",") if word.strip()]
    wrong = next((word for word in words if word.startswith("--") or word == "-"), None)
    if wrong is not None:
        raise typer.BadParameter(f"there is no option {wrong}; a tag is added by `paper` and removed by `-paper`")
    removed = [word[1:].strip() for word in words if word.startswith("-")]
    added = [word.strip() for word in words if not word.startswith("-")]
    with connect(url, token, home) as client:
        given = {key: words for key, words in (("added", added), ("removed", removed)) if words}
        remark = client.put_remark(place.path, **given) if given else client.remark(place.path)
    if as_json:
        print_json(remark)
    else:
        out.print(f"{place}: {', '.join(remark.tags) or 'no tags'}")


def _print_note(place: TypedPlace, remark: "Remark") -> None:
    if not remark.note:
        err.print(f"{place} has no note")
        return
    out.print(remark.note)
    if remark.actor:
        err.print(f"by {remark.actor}" + (f", {remark.changed:%Y-%m-%d %H:%M} UTC" if remark.changed else ""))


Trial = Annotated[int | None, typer.Option(min=1, help="Only this trial.")]
Cell = Annotated[int | None, typer.Option(min=0, help="Only the trials of this cell.")]

PATIENCE_SECONDS: Final = 5.0
"""How long a command waits to hear what became of its request: a conductor that is free takes half a second."""


def cancel(
    number: SweepId,
    trial: Trial = None,
    cell: Cell = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Ask that a sweep be stopped; trials that have ended keep their results."""
    with connect(url, token, home) as client:
        asked = client.cancel(number, trial, cell)
        found = asked.sweep
        what = f"trial {trial} of sweep" if trial else f"cell {cell} of sweep" if cell is not None else "sweep"
        out.print(f"{what} {found.id} {found.name}: asked to stop; the sweep is {found.state} now")
        follow_request(client, asked.request)


def retry(
    number: SweepId,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        typer.Option(help="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Ask that a sweep's failed and cancelled trials be trained again; finished ones are kept."""
    with connect(url, token, home) as client:
        asked = client.retry(number, trial, cell, only)
        found, which = asked.sweep, {"failed": "its failed trials", "all": "its failed, cancelled and pruned trials"}
        what = f"trial {trial}" if trial else which.get(only or "", "its failed and cancelled trials")
        out.print(f"sweep {found.id} {found.name}: asked to retry {what}; watch it with `metricsweep watch {found.id}`")
        follow_request(client, asked.request)


def pause(number: SweepId, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Ask that nothing more of a sweep be started; what trains goes on to its end."""
    with connect(url, token, home) as client:
        asked = client.pause(number)
        found = asked.sweep
        out.print(f"sweep {found.id} {found.name}: asked to pause; `metricsweep resume {found.id}` lets it go on")
        follow_request(client, asked.request)


def resume(number: SweepId, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Ask that a paused sweep go on."""
    with connect(url, token, home) as client:
        asked = client.resume(number)
        out.print(f"sweep {asked.sweep.id} {asked.sweep.name}: asked to go on")
        follow_request(client, asked.request)


def priority(
    number: SweepId,
    value: Annotated[int, typer.Argument(min=-100, max=100, help="0 is the usual; higher is drawn first.")],
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Set a sweep's priority; nothing that trains is stopped for it."""
    with connect(url, token, home) as client:
        asked = client.prioritize(number, value)
        out.print(f"sweep {asked.sweep.id} {asked.sweep.name}: asked for priority {value}")
        follow_request(client, asked.request)


def extend(
    number: SweepId,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", callback=readable, help="A wider spec; - reads standard input.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="In place of FILE: add this metric, such as recall@16, to the sweep's spec as a column of its tables. "
            "May be given several times.",
            metavar="NAME",
        ),
    ] = None,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Extend a sweep to a wider spec (more seeds, a new loss); only what is new is trained.

    Further metrics of what is trained already are evaluated of the weights that it kept.
    """
    if (file is None) == (not metric) or (file is None and (changes or only or without)):
        raise typer.BadParameter("expected FILE, or --metric without FILE, --set, --only and --without")
    with connect(url, token, home) as client:
        if file is not None:
            body = read_spec(file, changes, only, without)
        else:
            from orchestrator.service.offline import with_metrics

            known = client.sweep(number)
            body = with_metrics(known.text.encode(), known.spec, metric or ())
        asked = client.extend(number, body)
        sweep = asked.sweep
        out.print(f"sweep {sweep.id} {sweep.name}: asked to grow; watch it with `metricsweep watch {sweep.id}`")
        follow_request(client, asked.request)


def delete(
    number: SweepId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Delete an ended sweep, with checkpoints, logs and results that no other sweep uses."""
    with connect(url, token, home) as client:
        found = client.sweep(number)
        if not yes:
            question = f"Delete sweep {number} {found.name} with its {found.total} trials? What others share is kept."
            typer.confirm(one_line(question), abort=True)
        asked = client.delete(number, found.name)
        out.print(f"sweep {number} {found.name}: asked to be deleted")
        follow_request(client, asked.id)


def requests(
    number: SweepId,
    limit: Limit = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List what was asked of a sweep, newest first, and what became of it; also of a sweep that was deleted."""
    with connect(url, token, home) as client:
        found = list(islice(client.requests(number), limit))
    if as_json:
        print_json(found)
    elif found:
        print_rows([_request_row(one) for one in found], numbers=("request",))
    else:
        err.print(f"nothing was asked of sweep {number}")


def follow_request(client: "Client", request: int) -> None:
    """Say what became of a request, if that is known soon; one that was refused ends with 2."""
    until = time.monotonic() + PATIENCE_SECONDS
    found = client.request(request)
    while found.state == "waiting" and time.monotonic() < until:
        time.sleep(0.2)
        found = client.request(request)
    if found.state == "refused":
        err.print(f"metricsweep: request {found.id} was refused: {found.outcome}")
        raise typer.Exit(WRONG)
    waits = f"waits for the conductor; `metricsweep requests {found.sweep}` says what becomes of it"
    out.print(f"request {found.id}: {found.outcome or waits}")


def _request_row(one: "RequestView") -> dict[str, str]:
    part = f" trial {one.trial}" if one.trial else f" cell {one.cell}" if one.cell is not None else ""
    return {
        "request": str(one.id),
        "asked": f"{one.created:%Y-%m-%d %H:%M:%S} UTC",
        "by": one.actor or "",
        "what": f"{one.kind}{part}",
        "state": one.state,
        "outcome": one.outcome or "",
    }


def show(
    where: Where,
    trial: IsTrial = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Show a sweep with its counts and problems, a cell of it with its numbers, or one trial."""
    place = placed(where, trial=trial)
    with connect(url, token, home) as client:
        if place.trial:
            found = client.trial(place.number)
            print_json(found) if as_json else _show_trial(found, client)
        elif place.cell is not None:
            cell = client.cell(place.number, place.cell)
            print_json(cell) if as_json else _show_cell(cell, client)
        else:
            sweep = client.sweep(place.number)
            print_json(sweep) if as_json else _show_sweep(sweep, client)


def _show_sweep(sweep: "SweepView", client: "Client") -> None:
    left = f", {said}" if (said := sweep.left) else ""
    facts = {
        "sweep": f"{sweep.id} {sweep.name}",
        "about": sweep.description,
        "state": f"{sweep.state}{left}",
        "priority": str(sweep.priority) if sweep.priority else None,
        "error": sweep.error,
        "notice": sweep.notice,
        **{key: _labelled(sweep.spec.get(key, {})) for key in ("only", "without")},
        "done": sweep.steps.said,
        "trials": f"{sweep.total}: {_counted(sweep.counts)}",
        "tables": ", ".join(sweep.tables),
        "figures": ", ".join(sweep.figures),
        **_said(sweep.remark),
        "page": f"{client.url}/sweeps/{sweep.id}",
        "mlflow": _whole(sweep.mlflow_url, client),
    }
    _print_facts(facts)
    for problem in sweep.problems:
        out.print(f"problem   trial {problem.trial} ({_pairs(problem.labels)}) {problem.state}: {problem.message}")
    for request in sweep.requests:
        if request.state != "done":
            by = f" of {request.actor}" if request.actor else ""
            out.print(
                f"request   {request.id} ({request.kind}){by} {request.state}"
                + (f": {request.outcome}" if request.outcome else "")
            )


def _show_cell(cell: "CellView", client: "Client") -> None:
    selected = next((candidate for candidate in cell.candidates if candidate.selected), None)
    states = Counter(
        "diverged" if trial.diverged else trial.state for candidate in cell.candidates for trial in candidate.trials
    )
    facts: dict[str, str | None] = {
        "cell": f"{cell.index} of sweep {cell.sweep} {cell.sweep_name}",
        "labels": _pairs(cell.labels),
        "state": cell.status,
        "trials": ", ".join(f"{count} {state}" for state, count in states.items()),
        "selected": f"{_pairs(selected.labels) or 'untuned'}, by the mean of {cell.selection_key}"
        if selected
        else None,
        **_said(cell.remark),
        "page": f"{client.url}/sweeps/{cell.sweep}/cells/{cell.index}",
        "mlflow": _whole(cell.mlflow_url, client),
    }
    _print_facts(facts)
    for candidate in cell.candidates:
        if why := next((trial.reason for trial in candidate.trials if trial.reason), None):
            out.print(f"candidate {candidate.index} ({_pairs(candidate.labels)}): {why}")
    for number in cell.numbers:
        out.print(f"{number.text or 'none':>16}  {number.metric} (table {number.table})")


def _show_trial(trial: "TrialView", client: "Client") -> None:
    source = f", trained for trial {trial.reused_from}" if trial.reused_from else ""
    facts = {
        "trial": f"{trial.id} of sweep {trial.sweep} {trial.sweep_name}",
        "labels": _pairs(trial.labels),
        "state": trial.state + (", diverged" if trial.diverged else "") + (", reused" if trial.reused else "") + source,
        "step": f"{trial.step} of {trial.total_steps}",
        "attempts": str(len(trial.attempts)),
        "error": trial.error,
        "why": trial.reason,
        "coming": _coming(trial),
        "of": _evaluated_from(trial),
        "older": f"numbers changed since then in {', '.join(trial.outdated)}" if trial.outdated else None,
        **_said(trial.remark),
        "anew": "; ".join(f"not from step {one.step} of older versions" for one in trial.replaced),
        "page": f"{client.url}/trials/{trial.id}",
        "mlflow": _whole(trial.mlflow_url, client),
    }
    _print_facts(facts)
    for key, value in trial.metrics.items():
        out.print(f"{'not a number' if value is None else printed(value, 'number', 4):>12}  {key}")


def _said(remark: "Remark") -> dict[str, str | None]:
    return {"note": remark.note or None, "tags": ", ".join(remark.tags) or None}


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{axis}={label}" for axis, label in labels.items())


def _coming(trial: "TrialView") -> str | None:
    one = trial.evaluation
    if one is None:
        return None
    why = f": {one.error}" if one.error else ", of the weights that it has kept"
    return f"{', '.join(one.metrics)} ({one.state}){why}"


def _evaluated_from(trial: "TrialView") -> str | None:
    one = trial.evaluated_from
    if one is None:
        return None
    where = f" of sweep {one.sweep}" if one.sweep else ""
    return f"{', '.join(one.metrics)} evaluated from training {one.training}{where}, whose other numbers it has"


def _whole(address: str | None, client: "Client") -> str | None:
    """An address with its host: MLflow's is a path where this server passes it on."""
    return address and urljoin(client.url, address)


def _counted(counts: "Counts") -> str:
    words = {"evaluations": "evaluations left", "evaluations_failed": "evaluations failed"}
    found = counts.model_dump().items()
    return ", ".join(f"{number} {words.get(state, state)}" for state, number in found if number) or "none yet"


def _labelled(part: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{axis}={','.join(labels)}" for axis, labels in part.items())


def _print_facts(facts: dict[str, str | None]) -> None:
    for name, value in facts.items():
        if value:
            out.print(f"{name:8}  {value}".replace("\n", f"\n{'':10}"))
