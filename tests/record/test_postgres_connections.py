"""Connections to Postgres: a server whose machine is gone is noticed."""

import pytest
import sqlalchemy as sa

from orchestrator.record.database import Database
from tests.record.conftest import new_postgres_database


@pytest.mark.postgres
def test_a_server_that_is_gone_without_a_word_is_noticed_within_half_a_minute(postgres_server: str) -> None:
    """A connection that was cut off says nothing, and Linux keeps who waits for an answer waiting for two hours."""
    url = sa.make_url(new_postgres_database(postgres_server))
    for given, idle in ((url, "10"), (url.update_query_dict({"keepalives_idle": "60"}), "60")):
        database = Database(given.render_as_string(hide_password=False))
        try:
            with database.engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert raw is not None
                shown = raw.info.get_parameters()
        finally:
            database.engine.dispose()
        keeps = {name: shown[name] for name in ("keepalives_idle", "keepalives_interval", "keepalives_count")}
        assert keeps == {"keepalives_idle": idle, "keepalives_interval": "5", "keepalives_count": "3"}
        assert (shown["tcp_user_timeout"], shown["connect_timeout"]) == ("25000", "10")
