"""`audit`: who did what when, as lines of JSON."""

import sys
from typing import Annotated

import typer

from api.commands.options import HOME, Home, settings
from orchestrator.host.printable import printable_json


def audit(
    after: Annotated[int, typer.Option(min=0, help="Only what came after the entry of this number.")] = 0,
    home: Home = HOME,
) -> None:
    """Print who did what when, from where, a line of JSON each; on the machine of the home."""
    from orchestrator.service.owner import owning

    with owning(settings(home=home)) as owner:
        for one in owner.audit(after):
            sys.stdout.write(printable_json(one.model_dump_json()) + "\n")
