"""`foresee`: what a plan and a budget would decide, before anything is trained."""

from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.budget import MOST, Hours, Seeds, above_zero
from api.commands.options import HOME, Home, Json, SpecFile, Token, Url, connect, read_spec
from api.commands.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    from orchestrator.views.foresight import ForesightView


def foresee(
    file: SpecFile,
    name: Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")] = None,
    like: Annotated[
        int | None, typer.Option(min=1, help="Suppose that cells differ and spread as those of this sweep.")
    ] = None,
    spread: Annotated[
        float | None, typer.Option(callback=above_zero, help="Or: the deviation of what one seed says of a difference.")
    ] = None,
    effect: Annotated[
        float | None, typer.Option(min=0.0, max=MOST, help="And: the deviation of the true differences, around 0.")
    ] = None,
    hours: Hours = None,
    seeds: Seeds = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say which comparisons of a spec's table would be decided, with how many seeds and hours; trains nothing."""
    from orchestrator.views.foresight import SupposedTruth
    from orchestrator.views.resolutions import ResolutionBudget

    truth = SupposedTruth(spread=spread, effect=effect, like=like)
    with connect(url, token, home) as client:
        budget = ResolutionBudget(hours=hours, seeds=seeds)
        foreseen = client.resolutions.foresee(read_spec(file), budget, truth, name)
    if as_json:
        print_json(foreseen)
    else:
        _print(foreseen)


def _print(foreseen: "ForesightView") -> None:
    print_rows(
        [
            {
                "cell": " / ".join(comparison.labels.values()) or "the only cell",
                "metric": comparison.metric,
                "supposed": comparison.supposed,
                "decided": f"{comparison.decided:.0%}",
                "seeds": f"{comparison.seeds:.1f}",
            }
            for comparison in foreseen.comparisons
        ],
        numbers=("decided", "seeds"),
    )
    out.print(f"{foreseen.said} (budget: {foreseen.budget.said}; {foreseen.plays} plays)")
    out.print(f"trials: {foreseen.plan_trials} of the plan, about {foreseen.trials:.0f} with the rounds "
              f"({foreseen.low_trials} to {foreseen.high_trials})")  # fmt: skip
    for device in foreseen.hours:
        out.print(f"hours on {device.device}: {device.plan:.2g} of the plan, about {device.middle:.2g} with the rounds "
                  f"({device.low:.2g} to {device.high:.2g})")  # fmt: skip
    if not foreseen.hours:
        out.print("hours: not known yet, too few such trainings were measured here")
