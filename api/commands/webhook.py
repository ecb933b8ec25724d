"""`webhook`: tries out who is told what becomes of sweeps."""

import os
import subprocess
import sys
from typing import Annotated, Literal

import typer

from api.commands.options import HOME, Home


def webhook(
    action: Annotated[
        Literal["test"], typer.Argument(help="`test` sends one signed message of the type `test`, and says what came.")
    ],
    home: Home = HOME,
) -> None:
    """Send the webhook a test message, from this machine by the settings of this shell; 0 where it is taken.

    The address and the secret are METRICSWEEP_WEBHOOK_URL and METRICSWEEP_WEBHOOK_SECRET, as for the conductor; no
    server is asked, and nothing is tried again.
    """
    # The conductor's own command: no client of the API has it tell anybody anything.
    command = [sys.executable, "-P", "-m", "orchestrator", "webhook"]
    told = os.environ | {"METRICSWEEP_HOME": str(home)}
    raise typer.Exit(subprocess.run(command, check=False, env=told).returncode)  # noqa: S603 - our own command
