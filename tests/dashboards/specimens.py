"""Views as the service gives them, in every state and with hostile names."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from orchestrator.views import evidence, sweeps
from orchestrator.views.pages import FigureFile
from orchestrator.views.states import SweepState, TrialState
from orchestrator.views.trials import AttemptView, LogView, TrialView

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
HOSTILE = """</script><script>alert(1)</script><img src=x onerror='alert("2")'>{{ 7*7 }}&amp;"""
MLFLOW = "http://127.0.0.1:5000/#/experiments/3"
TABLE = '<figure class="metricsweep-table"><table><tbody><tr><td>61.04</td></tr></tbody></table></figure>'
STEPS = sweeps.StepCount(
    total=1_200, done=540, percent=45,
    shares={"finished": 400, "diverged": 100, "failed": 100, "cancelled": 100, "running": 40, "waiting": 460},
)  # fmt: skip
FIGURE: dict[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.1.0.json",
    "title": "Trial 5",
    "concat": [
        {"title": "Loss", "data": {"values": [{"step": 10, "value": 0.5}, {"step": 20, "value": None}]}},
        {"title": {"text": HOSTILE}, "data": {"name": "held"}},
        {"title": "no points", "data": {"values": []}},
    ],
    "datasets": {"held": [{"step": 30, "value": 12345.678}]},
}


class Noon(datetime):
    """Times of which the present one is `NOW`, for pages."""

    @classmethod
    def now(cls, tz: Any = None) -> "Noon":
        return cls.fromtimestamp(NOW.timestamp(), tz)


def summary(state: SweepState = SweepState.RUNNING, **more: Any) -> sweeps.SweepSummary:
    return sweeps.SweepSummary(**_sweep(state) | more)


def sweep(state: SweepState = SweepState.RUNNING, **more: Any) -> sweeps.SweepView:
    return sweeps.SweepView(**_sweep(state) | {"spec": {}, "text": "name: digits\n"} | more)


def _sweep(state: SweepState) -> dict[str, Any]:
    counts = sweeps.Counts(waiting=2, running=1, finished=5, failed=1, cancelled=1, diverged=1, reused=2)
    return {
        "id": 7, "uid": "0b5c", "name": "digits", "state": state, "created": NOW - timedelta(minutes=5),
        "counts": counts, "total": 12, "steps": STEPS, "tables": ["main"], "actor": "ada",
        "eta_seconds": 260.0, "eta_low_seconds": 200.0, "eta_high_seconds": 340.0,
    }  # fmt: skip


def resolution(state: Literal["going", "ended"] = "going", label: str = "sec") -> evidence.ResolutionView:
    """One of a round, with a comparison that it was to decide and one that it left out."""

    def verdict(cell: int, name: str, said: str) -> evidence.CellVerdictView:
        return evidence.CellVerdictView(
            cell=cell, labels={"regularizer": name}, baseline=0, metric="best/test/map@r", title="MAP@R",
            word=said.partition(" (")[0], summary=said, reason="", pairs=5, difference=0.01, interval=[-0.01, 0.03],
            p=0.1, needs=0.02, spent=0.8, looks=1, more_seeds=4, more_hours=0.8,
        )  # fmt: skip

    undecided = "no clear difference (5 seeds; difference +1.00, between -1.00 and +3.00; p = 0.1)"
    before = [verdict(1, label, undecided), verdict(2, "svmax", "no clear difference")]
    cells = [
        evidence.CellSeeds(cell=at, labels={"regularizer": name}, seeds=[5, 6])
        for at, name in enumerate(("none", label))
    ]
    left_out = [evidence.LeftOut(cell=2, labels={"regularizer": "svmax"}, metric="best/test/map@r", why="needs more")]
    one = evidence.ResolutionRound(
        number=1, cells=cells, trials=4, hours=0.4, open=2, left_out=left_out, request=3, begun=NOW
    )
    ended = state == "ended"
    return evidence.ResolutionView(
        sweep=7, table="main", budget=evidence.ResolutionBudget(hours=2, seeds=12), state=state, actor="ada", request=2,
        summary="1 of 2 comparisons decided, 1 open" if ended else "trains round 1: 4 trials, 2 comparisons open",
        begun=NOW, ended=NOW if ended else None, before=before, rounds=[one], trials=4, hours_spent=0.4, saved=2,
        after=[verdict(1, label, "better (7 seeds, p = 0.001)"), before[1]] if ended else [],
    )  # fmt: skip


def verdicts(label: str = "sec") -> evidence.VerdictsView:
    """Two comparisons, one of them of a cell named `label`."""
    return evidence.VerdictsView(
        sweep=7, table="main", against={"regularizer": "none"}, level=0.05, margin=None, looks="any",
        summary=f"Verdicts against regularizer {label}", comparisons=resolution(label=label).before,
    )  # fmt: skip


def problem(trial: int, message: str = "ValueError: no", state: TrialState = TrialState.FAILED) -> sweeps.TrialProblem:
    labels = {"loss": "triplet", "regularizer.eta": "0.5", "seed": "0"}
    return sweeps.TrialProblem(trial=trial, labels=labels, state=state, message=message, log=f"/v1/trials/{trial}/logs")


def grid(
    cells: int = 2, candidates: int = 1, repeats: int = 3, labels: dict[str, str] | None = None
) -> list[sweeps.GridCell]:
    """A grid whose squares run through every state."""
    states, made, number = list(TrialState), [], 0
    for index in range(cells):
        rows = []
        for candidate in range(candidates):
            squares = []
            for repeat in range(repeats):
                state, number = states[number % len(states)], number + 1
                squares.append(sweeps.GridTrial(trial=number, repeat=repeat, state=state))
            named = {"regularizer.eta": str(candidate)} if candidates > 1 else {}
            rows.append(sweeps.GridCandidate(labels=named, selected=candidate == 0, score=0.25, trials=squares))
        named = labels or {"loss": f"loss{index}"}
        made.append(sweeps.GridCell(index=index, labels=named, mlflow_url=MLFLOW, candidates=rows))
    return made


def trial(state: TrialState = TrialState.FINISHED, **more: Any) -> TrialView:
    attempt = AttemptView(
        number=1, uid="a1", state="finished", slot="slot-0", host="lab", started=NOW - timedelta(minutes=2), ended=NOW
    )
    metrics = {
        "last/test/map@r": 0.4, "best/test/map@r": 0.5, "best/validation/map@r": None, "best/test/norm_var": -2e-7,
        "odd": 1.0,
    }  # fmt: skip
    shown = {
        "id": 5, "uid": "t5", "sweep": 7, "cell": 1, "candidate": 0, "repeat": 0, "sweep_name": "digits",
        "labels": {"loss": "triplet", "seed": "0"}, "state": state, "step": 50, "total_steps": 100,
        "fingerprint": "f" * 64, "training": "u1", "attempts": [attempt], "metrics": metrics,
        "recipe": {
            "version": 1, "loss": {"name": "triplet", "margin": 0.2}, "iterations": 100,
            "select": {"metric": "map@r", "split": "validation"}, "pins": {"versions": {"loss": 1}},
        },
        "provenance": {"device": "cpu", "versions": {"torch": "2.6"}},
    }  # fmt: skip
    return TrialView(**shown | more)


def log(text: str = "step 1\nstep 2\n", complete: bool = True) -> LogView:
    return LogView(trial=5, text=text, next_offset=len(text), complete=complete)


def figure_file(name: str = "norms.npz", media_type: str = "application/octet-stream") -> FigureFile:
    return FigureFile(name=name, media_type=media_type, size=1_482, url=f"/v1/trials/5/figures/{name}")
