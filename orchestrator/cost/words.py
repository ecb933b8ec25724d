"""What a sweep costs in words: the work, then the hours, and what is not known yet."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.cost.view import Cost


def cost_in_words(cost: "Cost") -> Iterator[str]:
    """The work, then the hours: a line for each device, and what is not known yet."""
    if not cost.trainings:
        yield "cost: nothing is left to train"
        return
    yield f"work: {_work(cost)}"
    if cost.clusterings:
        number = "1 expensive clustering" if cost.clusterings == 1 else f"{cost.clusterings} expensive clusterings"
        each = f"{_count(cost.products)} multiplications an iteration, of some tens"
        yield f"clustering: {number} for nmi_sec and f1_sec at the ends of trainings: {each}"
    for estimate in cost.hours:
        part = f" for {estimate.trainings} of {cost.trainings} trainings" if estimate.trainings < cost.trainings else ""
        spread = f" ({_amount(estimate.low)} to {_amount(estimate.high)})"
        hours = f"hours: about {_amount(estimate.hours)}{spread} on {estimate.device}{part}"
        yield (
            hours
            if estimate.wall_hours is None
            else f"{hours}; {_amount(estimate.wall_hours)} {_at_once(estimate.slots)}"
        )
    if unknown := cost.trainings - cost.measured:
        part = "" if unknown == cost.trainings else f" for {unknown} trainings"
        measured = f"{cost.nearest} of {cost.needed} trainings"
        if cost.unmeasured_shapes == 1:
            yield f"hours: not known yet{part}: {measured} of this shape measured"
        else:
            shapes = f"{cost.unmeasured_shapes} shapes, each with at most {measured} measured"
            yield f"hours: not known yet{part}: {shapes}"


def _at_once(slots: int | None) -> str:
    return "in the one present slot" if slots == 1 else f"in {slots} present slots at once"


def _work(cost: "Cost") -> str:
    most = "at most " if cost.at_most else ""
    models = "" if cost.models == cost.trainings else f" for {cost.models} models"
    if cost.steps is None:
        steps = f"{most}{cost.trainings} trainings{models}, whose steps are not known before the data is read"
    else:
        steps = f"{most}{_count(cost.steps)} steps{models}"
    images = "" if cost.images is None else f", {_count(cost.images)} images through the network"
    looks = "" if cost.evaluated is None else f", and up to {_count(cost.evaluated)} by evaluations"
    return f"{steps}{images}{looks}" + (f" ({'; '.join(cost.at_most)})" if cost.at_most else "")


def _count(number: int) -> str:
    """`528`, `5,160`, `4.9 million`."""
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def _amount(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
