"""Where in what was submitted a command looks: at a sweep, `7`, at a cell of it, `7/3`, or at a trial."""

import re
from typing import Annotated, Final, NamedTuple

import typer

_GREATEST: Final = 2**31 - 1


class TypedPlace(NamedTuple):
    """A sweep, a cell or a trial."""

    number: int
    cell: int | None = None
    trial: bool = False

    @property
    def path(self) -> str:
        """Its path, as REST and the pages have it."""
        if self.trial:
            return f"trials/{self.number}"
        return f"sweeps/{self.number}" if self.cell is None else f"sweeps/{self.number}/cells/{self.cell}"

    def __str__(self) -> str:
        if self.trial:
            return f"trial {self.number}"
        return f"sweep {self.number}" if self.cell is None else f"cell {self.cell} of sweep {self.number}"


Where = Annotated[str, typer.Argument(metavar="ID", help="A sweep's number, or 7/3 for cell 3 of sweep 7.")]
IsTrial = Annotated[bool, typer.Option("--trial", help="The number is a trial's.")]


def placed(text: str, *, trial: bool) -> TypedPlace:
    """The place that was typed; raises BadParameter."""
    typed = re.fullmatch(r"([1-9]\d{0,9})(?:/(\d{1,10}))?", text.strip(), re.ASCII)
    if typed is None or int(typed[1]) > _GREATEST or int(typed[2] or 0) > _GREATEST:
        raise typer.BadParameter(f"{text!r} is no number of a sweep; expected such as 7, or 7/3 for cell 3 of sweep 7")
    if trial and typed[2]:
        raise typer.BadParameter(f"{text!r} is a cell; with --trial expected the number of a trial, such as 41")
    return TypedPlace(int(typed[1]), None if typed[2] is None else int(typed[2]), trial)
