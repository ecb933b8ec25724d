"""`audit`: who did what when, as lines of JSON."""

from typing import Annotated

import typer

from api.commands.options import HOME, Home, Token, Url, managing
from api.commands.terminal import write_json


def audit(
    after: Annotated[int, typer.Option(min=0, help="Only what came after the entry of this number.")] = 0,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Print who did what when, from where, a line of JSON each; of the home, or by --url."""
    with managing(url, token, home) as people:
        for one in people.audit(after):
            write_json(one.model_dump_json())
