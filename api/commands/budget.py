"""The options that bound a resolution."""

from typing import Annotated, Final

import typer

MOST: Final = 1_000_000


def above_zero(value: float | None) -> float | None:
    """A number above 0, if there is one; raises BadParameter for 0 too, which is no limit that anybody means."""
    if value is not None and not 0 < value <= MOST:
        raise typer.BadParameter(f"{value:g} is not above 0 and at most {MOST:,}")
    return value


Hours = Annotated[
    float | None, typer.Option(callback=above_zero, help="Budget: at most so many hours of training on one slot.")
]
Seeds = Annotated[int | None, typer.Option(min=1, max=48, help="Budget: at most so many further seeds of any cell.")]
