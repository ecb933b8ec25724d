"""Commands that submit, list, show and change sweeps."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urljoin

import typer

from api.commands.terminal import (
    FAILED,
    HOME,
    Changes,
    Home,
    Json,
    Only,
    Server,
    SpecFile,
    SweepId,
    TypedPlace,
    Where,
    Without,
    err,
    out,
    placed,
    print_json,
    print_list,
    print_rows,
    read_spec,
    readable,
    refuse,
    settings,
)
from api.commands.watch import follow, verdict
from orchestrator.cost.estimate import cost_in_words
from orchestrator.host.logs import one_line
from orchestrator.views.states import SweepState
from orchestrator.views.tables import printed

if TYPE_CHECKING:
    from api.client import Client, SweepRequest
    from orchestrator.views.pages import Annotation
    from orchestrator.views.sweeps import Counts, Preview, RequestView, SweepSummary, SweepView
    from orchestrator.views.tables import CellView
    from orchestrator.views.trials import ListedRow, TrialView

Fresh = Annotated[bool, typer.Option("--fresh", help="Train everything again, even finished trainings.")]
Limit = Annotated[int, typer.Option(min=1, help="Most lines to print.")]
_SUGGESTED_FROM: Final = 200  # the newest sweeps, among which a similar name is suggested


def submit(
    server: Server,
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    watch: Annotated[bool, typer.Option("--watch", help="Watch the sweep until it has ended.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: a repeated command with the same key submits nothing new.")
    ] = None,
    priority: Annotated[
        int, typer.Option(min=-100, max=100, help="Sweeps with a higher priority are trained first.")
    ] = 0,
    project: Annotated[
        str | None, typer.Option(help="The project, if you can submit to several.", show_default=False)
    ] = None,
    fresh: Fresh = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print cells, trials and cost.")] = False,
    as_json: Json = False,
) -> None:
    """Check a spec and queue its sweep; all problems of a spec are reported at once."""
    body = read_spec(file, changes, only, without, fresh=fresh)
    with server.connect() as client:
        if dry_run or not as_json:
            show_preview(client.preview(body, project), as_json)
        if dry_run:
            return
        submitted = client.submit(body, key, priority, project)
        if as_json:
            print_json(submitted)
            _show_annotations(submitted.notes, submitted.warnings)  # without --json, they are in the preview
        else:
            known = "" if submitted.created else " (known by its key)"
            out.print(f"sweep {submitted.id}{known}  {client.url}/sweeps/{submitted.id}")
        if watch:
            console = err if as_json else out
            raise typer.Exit(verdict(follow(client, submitted.id, console), console))


def list_sweeps(
    server: Server,
    state: Annotated[SweepState | None, typer.Option(help="Only sweeps in this state.")] = None,
    name: Annotated[str | None, typer.Option(help="Only sweeps of this name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only sweeps with this tag.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List sweeps, newest first."""
    with server.connect() as client:
        sweeps = list(islice(client.sweeps(state, name, tag), limit))
        near = _near(name, client) if name and not sweeps else None
    meant = f"; did you mean {near!r}?" if near else ""
    none = f" like this{meant}" if state or name or tag else "; submit one with `metricsweep submit FILE`"
    print_list(sweeps, as_json, _row, ("id", "done", "failed", "cancelled"), f"no sweeps{none}")


def _row(sweep: "SweepSummary") -> dict[str, str]:
    best = sweep.best
    return {
        "id": str(sweep.id),
        "name": sweep.name,
        "state": sweep.state + (" (waits)" if sweep.notice else ""),
        "done": f"{sweep.steps.percent} %",
        "trials": str(sweep.total),
        "failed": str(sweep.counts.failed),
        "cancelled": str(sweep.counts.cancelled),
        "created": f"{sweep.created:%Y-%m-%d %H:%M} UTC",
        "best cell": f"{best.metric} {best.text} ({' / '.join(best.labels.values())})" if best else "",
        "tags": ", ".join(sweep.tags),
        "other than before": "; ".join(sweep.differences),
    }


def _near(name: str, client: "Client") -> str | None:
    from workers.catalog import near  # here, since it is rarely needed

    return near(name, {sweep.name for sweep in islice(client.sweeps(), _SUGGESTED_FROM)})


def show_preview(preview: "Preview", as_json: bool) -> None:
    """Print the sweep that a spec would become, and its cost."""
    if as_json:
        print_json(preview)
        return
    for line in (*preview.summary, *cost_in_words(preview.cost)):
        out.print(line)
    _show_annotations(preview.notes, preview.warnings)


def _show_annotations(notes: Sequence[str], warnings: Sequence[str]) -> None:
    for note in notes:
        err.print(f"note: {note}")
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow")


def expand(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    home: Home = HOME,
    as_json: Json = False,
) -> None:
    """Check a spec and count its cells, candidates and trials, without a server."""
    from orchestrator.service import offline

    show_preview(offline.preview(read_spec(file, changes, only, without), settings(home=home)), as_json)


def note(
    server: Server,
    where: Where,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help='The note; "" removes it. Without it the note is printed.')
    ] = None,
    as_json: Json = False,
) -> None:
    """Set or print the note of a sweep, a cell or a trial."""
    place = placed(where)
    with server.connect() as client:
        annotation = client.annotation(place.path) if text is None else client.put_annotation(place.path, note=text)
    if as_json:
        print_json(annotation)
    elif text is not None:
        out.print(f"{place}: {'noted' if annotation.note else 'has no note now'}")
    elif not annotation.note:
        err.print(f"{place} has no note")
    else:
        out.print(annotation.note)
        if annotation.actor:
            err.print(
                f"by {annotation.actor}" + (f", {annotation.changed:%Y-%m-%d %H:%M} UTC" if annotation.changed else "")
            )


def tag(
    server: Server,
    where: Where,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="TAG", help="Tags to add, or to remove with `-` before them; without tags, print them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set or print the tags of a sweep, a cell or a trial."""
    place = placed(where)
    words = [word for argument in tags or () for word in argument.split(",") if word.strip()]
    wrong = next((word for word in words if word.startswith("--") or word == "-"), None)
    if wrong is not None:
        raise typer.BadParameter(f"there is no option {wrong}; a tag is added by `paper` and removed by `-paper`")
    removed = [word[1:].strip() for word in words if word.startswith("-")]
    added = [word.strip() for word in words if not word.startswith("-")]
    with server.connect() as client:
        given = {key: words for key, words in (("added", added), ("removed", removed)) if words}
        annotation = client.put_annotation(place.path, **given) if given else client.annotation(place.path)
    if as_json:
        print_json(annotation)
    else:
        out.print(f"{place}: {', '.join(annotation.tags) or 'no tags'}")


PATIENCE_SECONDS: Final = 5.0
"""How long a command waits for the outcome of its request; an idle conductor takes half a second."""


def cancel(server: Server, where: Where) -> None:
    """Cancel a sweep, one of its cells, or a trial; ended trials keep their results."""
    place = placed(where)
    with server.connect() as client:
        response = client.cancel(*_parts(client, place))
        out.print(
            f"{place}: stop requested; sweep {response.sweep.id} {response.sweep.name} is {response.sweep.state} now"
        )
        follow_request(client, response.request)


def _parts(client: "Client", place: TypedPlace) -> tuple[int, int | None, int | None]:
    """The sweep of a place, its trial and its cell."""
    if place.trial:
        return client.trial(place.number).sweep, place.number, None
    return place.number, None, place.cell


def retry(
    server: Server,
    where: Where,
    only: Annotated[
        Literal["failed", "all"] | None,
        typer.Option(help="`failed` leaves out cancelled trials; `all` adds pruned trials."),
    ] = None,
) -> None:
    """Run the failed and cancelled trials of a sweep or a cell again, or one trial."""
    place = placed(where)
    with server.connect() as client:
        response = client.retry(*_parts(client, place), only)
        which = {"failed": "its failed trials", "all": "its failed, cancelled and pruned trials"}
        what = place if place.trial else which.get(only or "", "its failed and cancelled trials")
        words = f"requested a retry of {what}; `metricsweep watch {response.sweep.id}` follows it"
        report_request(client, response, words)


def pause(server: Server, number: SweepId) -> None:
    """Pause a sweep: no further trial starts; running trainings continue."""
    with server.connect() as client:
        words = f"pause requested; `metricsweep resume {number}` continues it"
        report_request(client, client.pause(number), words)


def resume(server: Server, number: SweepId) -> None:
    """Continue a paused sweep."""
    with server.connect() as client:
        report_request(client, client.resume(number), "resume requested")


def priority(
    server: Server,
    number: SweepId,
    value: Annotated[
        int, typer.Argument(min=-100, max=100, help="Sweeps with a higher priority are trained first; 0 is usual.")
    ],
) -> None:
    """Set the priority of a sweep; running trainings are not stopped."""
    with server.connect() as client:
        report_request(client, client.prioritize(number, value), f"priority {value} requested")


def extend(
    server: Server,
    number: SweepId,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", callback=readable, help="A wider spec; - reads standard input.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of FILE: add this metric, such as recall@16, to the tables of the sweep. "
            "May be given several times.",
            metavar="NAME",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of FILE: add this figure of the recipe, such as tsne or panels. May be given several times.",
            metavar="NAME",
        ),
    ] = None,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be trained.")] = False,
) -> None:
    """Extend a sweep to a wider spec (more seeds, a new loss); only new trials are trained.

    New metrics and figures of finished trainings are computed from their kept weights.
    """
    if (file is None) == (not (metric or figure)) or (file is None and (changes or only or without)):
        raise typer.BadParameter("expected FILE, or --metric and --figure without FILE, --set, --only and --without")
    with server.connect() as client:
        if file is not None:
            body = read_spec(file, changes, only, without)
        else:
            from orchestrator.service.offline import with_figures, with_metrics

            known = client.sweep(number)
            body = known.text.encode()
            body = with_metrics(body, known.spec, metric) if metric else body
            body = with_figures(body, figure) if figure else body
        if dry_run:
            show_preview(client.preview_extension(number, body), as_json=False)
            return
        words = f"extension requested; watch it with `metricsweep watch {number}`"
        report_request(client, client.extend(number, body), words)


def delete(
    server: Server,
    number: SweepId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete an ended sweep, with checkpoints, logs and results that no other sweep uses."""
    with server.connect() as client:
        found = client.sweep(number)
        if not yes:
            question = f"Delete sweep {number} {found.name} with its {found.total} trials? What others share is kept."
            typer.confirm(one_line(question), abort=True)
        request = client.delete(number, found.name)
        out.print(f"sweep {number} {found.name}: deletion requested")
        follow_request(client, request.id)


def requests(server: Server, number: SweepId, limit: Limit = 50, as_json: Json = False) -> None:
    """List the requests to a sweep and their results, newest first; also of a deleted sweep."""
    with server.connect() as client:
        found = list(islice(client.requests(number), limit))
    print_list(found, as_json, _request_row, ("request",), f"no requests to sweep {number}")


def report_request(client: "Client", response: "SweepRequest", words: str) -> None:
    """Print what is requested of a sweep, and the outcome as `follow_request` does."""
    out.print(f"sweep {response.sweep.id} {response.sweep.name}: {words}")
    follow_request(client, response.request)


def wait_for_request(client: "Client", request: int, most: float = float("inf")) -> "RequestView":
    """The request once it was carried out, or after `most` seconds; a refused request ends the command with 2."""
    until = time.monotonic() + most
    found = client.request(request)
    while found.state == "waiting" and time.monotonic() < until:
        time.sleep(0.2)
        found = client.request(request)
    if found.state == "refused":
        refuse(f"request {found.id} was refused: {found.outcome}")
    return found


def follow_request(client: "Client", request: int) -> None:
    """Print the outcome of a request if it is known soon; a refused request ends the command with 2."""
    found = wait_for_request(client, request, PATIENCE_SECONDS)
    waits = f"waits for the conductor; `metricsweep requests {found.sweep}` shows the result"
    out.print(f"request {found.id}: {found.outcome or waits}")


def _request_row(request: "RequestView") -> dict[str, str]:
    part = f" trial {request.trial}" if request.trial else f" cell {request.cell}" if request.cell is not None else ""
    return {
        "request": str(request.id),
        "requested": f"{request.created:%Y-%m-%d %H:%M:%S} UTC",
        "by": request.actor or "",
        "what": f"{request.kind}{part}",
        "state": request.state,
        "outcome": request.outcome or "",
    }


def show(server: Server, where: Where, as_json: Json = False) -> None:
    """Show a sweep, one of its cells, or a trial."""
    place = placed(where)
    with server.connect() as client:
        if place.trial:
            found = client.trial(place.number)
            print_json(found) if as_json else _show_trial(found, client)
        elif place.cell is not None:
            cell = client.cell(place.number, place.cell)
            print_json(cell) if as_json else _show_cell(cell, client)
        else:
            sweep = client.sweep(place.number)
            print_json(sweep) if as_json else _show_sweep(sweep, client)


def trials(
    server: Server,
    number: Annotated[int | None, typer.Argument(metavar="[ID]", min=1, help="Only of this sweep.")] = None,
    where: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="Such as `loss:triplet eta<0.5 map@r>.6 state:failed`.")
    ] = "",
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="Such as map@r, or -map@r for the largest first.")
    ] = "-trial",
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Metrics, comma-separated; by default those of the tables.")
    ] = None,
    candidates: Annotated[bool, typer.Option("--candidates", help="Candidates with means over their repeats.")] = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """Find trials of any sweep by labels, metrics, state, tags and times."""
    query = {"sweep": number, "where": where, "sort": sort, "columns": columns}
    with server.connect() as client:
        found = list(islice(client.find_trials({**query, "of": "candidates" if candidates else "trials"}), limit))
    axes = dict.fromkeys(axis for row in found for axis in row.labels)
    numbers = ("trial", "score", *(found[0].values if found else ()))
    none = "no trials" + (" like this" if where or number else "")
    print_list(found, as_json, lambda row: _listed(row, list(axes)), numbers, none)


def _listed(row: "ListedRow", axes: Sequence[str]) -> dict[str, str]:
    values = {name: "" if value is None else f"{value:.4f}" for name, value in row.values.items()}
    return {
        "trial": str(row.trial),
        "cell": f"{row.sweep}/{row.cell}",
        **{axis: row.labels.get(axis, "") for axis in axes},
        "state": "diverged" if row.diverged else row.state,
        "score": "" if row.score is None else f"{row.score:.4f}",
        **values,
    }


def why(server: Server, number: Annotated[int | None, typer.Argument(metavar="[ID]", min=1)] = None) -> None:
    """Print which sweeps wait, for what, and what the slots do."""
    from orchestrator.views.operations import REASONS

    with server.connect() as client:
        if number is not None:
            client.sweep(number)  # NotFoundError
        found = client.cluster()
    rows = [
        {
            "sweep": f"{sweep.id} {sweep.name}",
            "by": sweep.actor or "",
            "priority": str(sweep.priority),
            "waits": ", ".join(f"{count} {REASONS[reason]}" for reason, count in sweep.waiting.items()),
            "because": sweep.notice or "",
        }
        for sweep in found.queue
        if number in (None, sweep.id)
    ]
    if rows:
        print_rows(rows, numbers=("priority",))
    else:
        out.print("nothing waits" if number is None else f"no trial of sweep {number} waits")
    busy = sum(slot.trains is not None for slot in found.slots)
    nodes = f"{len(found.nodes)} node{'s' * (len(found.nodes) != 1)}"
    out.print(f"{busy} of {len(found.slots)} slots train; the cluster has {nodes}")
    if not found.conducted:
        out.print("no conductor runs, so that nothing starts; start one by `metricsweep serve`", style="yellow")


def model(
    server: Server,
    where: Where,
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", file_okay=False, help="The folder; by default trial-NUMBER.")
    ] = None,
) -> None:
    """Download the model of a cell or a trial: weights as safetensors, with recipe and preprocessing.

    Of a cell it is the first finished trial of the selected candidate. README.md in the folder says how to load it.
    """
    place = placed(where)
    with server.connect() as client:
        number = place.number if place.trial else _selected(client, place)
        target = folder or Path(f"trial-{number}")
        client.trial(number).download(target)
    err.print(f"wrote the model of trial {number} to {target}")


def _selected(client: "Client", place: TypedPlace) -> int:
    """The first finished trial of the selected candidate of a cell."""
    if place.cell is None:
        refuse(f"{place} has a model for each trial; name a cell, such as {place.number}/0")
    candidates = client.cell(place.number, place.cell).candidates
    trials = [trial for candidate in candidates if candidate.selected for trial in candidate.trials]
    finished = [trial.trial for trial in trials if trial.state == "finished" and not trial.diverged]
    if not finished:
        refuse(f"{place} has no selected candidate yet; name a trial, such as trial:41", FAILED)
    return finished[0]


def _show_sweep(sweep: "SweepView", client: "Client") -> None:
    subsets = {key: sweep.spec.get(key, {}).items() for key in ("only", "without")}
    facts = {
        "sweep": f"{sweep.id} {sweep.name}",
        "about": sweep.description,
        "state": f"{sweep.state}, {sweep.left}" if sweep.left else sweep.state,
        "priority": str(sweep.priority) if sweep.priority else None,
        "error": sweep.error,
        "notice": sweep.notice,
        **{key: "; ".join(f"{axis}={','.join(labels)}" for axis, labels in subset) for key, subset in subsets.items()},
        "done": sweep.steps.summary,
        "trials": f"{sweep.total}: {_counted(sweep.counts)}",
        "tables": ", ".join(sweep.tables),
        "figures": ", ".join(sweep.figures),
        **_note_and_tags(sweep.annotation),
        "page": f"{client.url}/sweeps/{sweep.id}",
        "mlflow": _address(sweep.mlflow_url, client),
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
        **_note_and_tags(cell.annotation),
        "page": f"{client.url}/sweeps/{cell.sweep}/cells/{cell.index}",
        "mlflow": _address(cell.mlflow_url, client),
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
        **_note_and_tags(trial.annotation),
        "anew": "; ".join(f"not from step {old.step} of older versions" for old in trial.replaced),
        "page": f"{client.url}/trials/{trial.id}",
        "mlflow": _address(trial.mlflow_url, client),
    }
    _print_facts(facts)
    for key, value in trial.metrics.items():
        out.print(f"{'not a number' if value is None else printed(value, 'number', 4):>12}  {key}")


def _note_and_tags(annotation: "Annotation") -> dict[str, str | None]:
    return {"note": annotation.note or None, "tags": ", ".join(annotation.tags) or None}


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{axis}={label}" for axis, label in labels.items())


def _coming(trial: "TrialView") -> str | None:
    evaluation = trial.evaluation
    if evaluation is None:
        return None
    why = f": {evaluation.error}" if evaluation.error else ", of the weights that it has kept"
    return f"{', '.join(evaluation.metrics)} ({evaluation.state}){why}"


def _evaluated_from(trial: "TrialView") -> str | None:
    source = trial.evaluated_from
    if source is None:
        return None
    where = f" of sweep {source.sweep}" if source.sweep else ""
    return f"{', '.join(source.metrics)} evaluated from training {source.training}{where}, whose other numbers it has"


def _address(address: str | None, client: "Client") -> str | None:
    """A complete address; MLflow's is only a path if this server forwards to it."""
    return address and urljoin(client.url, address)


def _counted(counts: "Counts") -> str:
    words = {"evaluations": "evaluations left", "evaluations_failed": "evaluations failed"}
    found = counts.model_dump().items()
    return ", ".join(f"{number} {words.get(state, state)}" for state, number in found if number) or "none yet"


def _print_facts(facts: dict[str, str | None]) -> None:
    for name, value in facts.items():
        if value:
            out.print(f"{name:8}  {value}".replace("\n", f"\n{'':10}"))
