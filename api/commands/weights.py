"""`weights`: the published weights of backbones in this machine's data folder."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from api.commands.options import HOME, Home
from orchestrator.host.packages import require


def weights(
    action: Annotated[
        Literal["list", "verify", "fetch"],
        typer.Argument(help="`list` says what is here, `verify` compares hashes, `fetch` downloads."),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Backbones, such as bn_inception, or their files.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", envvar="METRICSWEEP_DATA", metavar="DIR", help="The data folder (default: HOME/data)."),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option("--mirror", metavar="URL", help="With `fetch`: a folder of such files, asked first."),
    ] = None,
    home: Home = HOME,
) -> None:
    """List, verify or fetch the pretrained weights of backbones, in this machine's data folder.

    They are what `pretrained: true` loads. Whichever address gives a file, the hash in its name decides; a download
    that broke goes on where it ended.
    """
    # The worker's own command: what knows of weights may be installed without a server, and the server without it.
    require("torch", "worker")
    given = [*(names or []), *(f"--mirror={one}" for one in mirror or [])]
    command = [sys.executable, "-P", "-m", "workers", "weights", action, *given, "--data", str(data or home / "data")]
    done = subprocess.run(command, check=False)  # noqa: S603  our own command
    raise typer.Exit(done.returncode)
