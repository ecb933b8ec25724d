"""`show`: a sweep with its counts and problems, a cell of it, or a trial."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from api.commands.terminal import HOME, Home, IsTrial, Json, Token, Url, Where, connect, out, placed, print_json
from orchestrator.views.tables import printed

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import Counts, Remark, SweepView
    from orchestrator.views.tables import CellView
    from orchestrator.views.trials import TrialView


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
