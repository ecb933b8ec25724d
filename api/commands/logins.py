"""`login-link`: a way in for a browser."""

from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.terminal import out


def login_link(url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Print a link that logs a browser in: it works once, within the hour."""
    with connect(url, token, home) as client:
        out.print(client.login_link())
