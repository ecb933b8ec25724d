"""`mlflow-env`: what an `mlflow` client of a notebook is told."""

import shlex

from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.terminal import out
from orchestrator.host.identity import made_for


def mlflow_env(url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Print the variables for an `mlflow` client of your own, for the shell to set."""
    with connect(url, token, home) as client:
        address = client.mlflow()
    # The home's own token opens everything; notebooks show what they were told.
    shown = token if token and url else made_for(home.absolute()).mlflow_password
    for name, value in {"MLFLOW_TRACKING_URI": address, "MLFLOW_TRACKING_TOKEN": shown}.items():
        out.print(f"export {name}={shlex.quote(value)}")
    out.print("unset MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD")  # they would win over the token
