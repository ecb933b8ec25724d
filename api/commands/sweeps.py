"""`submit`, `list` and `show`: the commands about sweeps."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urljoin

import typer

from api.commands.options import HOME, Changes, Home, Json, Only, SpecFile, Token, Url, Without, connect, read_spec
from api.commands.previews import show_notes, show_preview, show_warnings
from api.commands.terminal import err, out, print_json, print_rows
from api.commands.watch import follow, time_left, verdict
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.printing import printed

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import Counts, SweepSummary, SweepView
    from orchestrator.views.trials import TrialView

_LOOKED_AT: Final = 200  # sweeps, for one whose name is near


def submit(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until the sweep has ended.")] = False,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key and spec submit once.")] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Sweeps of higher priority are drawn first.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the spec would become.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Submit a spec; every problem of a wrong one is told at once."""
    body = read_spec(file, changes, only, without)
    with connect(url, token, home) as client:
        if dry_run:
            show_preview(client.preview(body), as_json)
            return
        if not as_json:
            show_preview(client.preview(body), as_json)
        submitted = client.submit(body, key, priority)
        if as_json:
            print_json(submitted)
            show_notes(submitted.notes)
            show_warnings(submitted.warnings)  # which without --json the preview has told
        else:
            known = "" if submitted.created else " (known by its key)"
            out.print(f"sweep {submitted.id}{known}  {client.url}/sweeps/{submitted.id}")
        if watch:
            console = err if as_json else out
            raise typer.Exit(verdict(follow(client, submitted.id, console), console))


def list_sweeps(
    state: Annotated[SweepState | None, typer.Option(help="Only sweeps in this state.")] = None,
    name: Annotated[str | None, typer.Option(help="Only sweeps of this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List sweeps, newest first."""
    with connect(url, token, home) as client:
        sweeps = list(islice(client.sweeps(state, name), limit))
        others = {one.name for one in islice(client.sweeps(), _LOOKED_AT)} if name and not sweeps else set()
    if as_json:
        print_json(sweeps)
    elif sweeps:
        print_rows([_row(sweep) for sweep in sweeps], numbers=("id", "done", "failed", "cancelled"))
    else:
        close = _near(name, others) if name else None
        meant = f"; did you mean {close!r}?" if close else ""
        err.print(
            "no sweeps" + (f" like this{meant}" if state or name else "; submit one with `metricsweep submit FILE`")
        )


def show(
    number: Annotated[int, typer.Argument(min=1, metavar="ID", help="The number of a sweep, or of a trial.")],
    trial: Annotated[bool, typer.Option("--trial", help="The number is a trial's.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Show a sweep with its counts and problems, or one trial."""
    with connect(url, token, home) as client:
        if as_json:
            print_json(client.trial(number) if trial else client.sweep(number))
        elif trial:
            _show_trial(client.trial(number), client)
        else:
            _show_sweep(client.sweep(number), client)


def _row(sweep: "SweepSummary") -> dict[str, str]:
    return {
        "id": str(sweep.id),
        "name": sweep.name,
        "state": sweep.state + (" (waits)" if sweep.notice else ""),
        "done": f"{sweep.steps.percent} %",
        "trials": str(sweep.total),
        "failed": str(sweep.counts.failed),
        "cancelled": str(sweep.counts.cancelled),
        "created": f"{sweep.created:%Y-%m-%d %H:%M} UTC",
    }


def _show_sweep(sweep: "SweepView", client: "Client") -> None:
    left = f", {said}" if (said := time_left(sweep)) else ""
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
        "page": f"{client.url}/sweeps/{sweep.id}",
        "mlflow": _whole(sweep.mlflow_url, client),
    }
    _print_facts(facts)
    for problem in sweep.problems:
        labels = ", ".join(f"{axis}={label}" for axis, label in problem.labels.items())
        out.print(f"problem   trial {problem.trial} ({labels}) {problem.state}: {problem.message}")
    for request in sweep.requests:
        if request.state != "done":
            by = f" of {request.actor}" if request.actor else ""
            out.print(
                f"request   {request.id} ({request.kind}){by} {request.state}"
                + (f": {request.outcome}" if request.outcome else "")
            )


def _show_trial(trial: "TrialView", client: "Client") -> None:
    source = f", trained for trial {trial.reused_from}" if trial.reused_from else ""
    facts = {
        "trial": f"{trial.id} of sweep {trial.sweep} {trial.sweep_name}",
        "labels": ", ".join(f"{axis}={label}" for axis, label in trial.labels.items()),
        "state": trial.state + (", diverged" if trial.diverged else "") + (", reused" if trial.reused else "") + source,
        "step": f"{trial.step} of {trial.total_steps}",
        "attempts": str(len(trial.attempts)),
        "error": trial.error,
        "coming": _coming(trial),
        "of": _evaluated_from(trial),
        "older": f"numbers changed since then in {', '.join(trial.outdated)}" if trial.outdated else None,
        "anew": "; ".join(f"not from step {one.step} of older versions" for one in trial.replaced),
        "page": f"{client.url}/trials/{trial.id}",
        "mlflow": _whole(trial.mlflow_url, client),
    }
    _print_facts(facts)
    for key, value in trial.metrics.items():
        out.print(f"{'not a number' if value is None else printed(value, 'number', 4):>12}  {key}")


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


def _near(name: str, others: Collection[str]) -> str | None:
    from workers.catalog import near  # here, since whoever lists sweeps waits for no catalog

    return near(name, others)


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
