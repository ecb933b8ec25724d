"""Run the API in this process, on METRICSWEEP_HOST and METRICSWEEP_PORT."""

import argparse
import logging
import signal
import socket
import sys
from typing import Final

import uvicorn
from pydantic import ValidationError

from api.commands.terminal import FAILED, OK, explain
from api.local.serve import refuse_open_host
from api.main import create_app
from api.routes.events import Streams
from orchestrator.host import storage
from orchestrator.host.checks import refuse_hidden
from orchestrator.host.files import restrict_new_files
from orchestrator.host.logs import begin_logging
from orchestrator.host.tracing import begin_tracing, end_tracing
from orchestrator.service.service import Service
from orchestrator.settings import Secrets, Settings
from orchestrator.views.errors import MetricsweepError
from workers.catalog import PartSourceError

log = logging.getLogger(__name__)

END_SECONDS: Final = 5
"""How long a SIGTERM waits for running requests. The supervisor kills after 10 s."""
IDLE_SECONDS: Final = 15
"""How long an idle connection stays open: longer than the 5 s of httpx, so that a client never writes into a connection
that the server is closing."""
_HEAD_BYTES: Final = 16 * 1024
"""Request line and headers; browsers send 1 to 2 KiB."""


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    restrict_new_files()
    begin_logging()
    try:
        refuse_hidden()
        settings = Settings()
        begin_logging(settings.log_format, Secrets(settings).hidden)
        begin_tracing("api", settings.traces_url)
        refuse_open_host(settings)
        storage.opened(settings.storage).check()
        service = Service.open(settings)
        application = create_app(service, settings)
    except (MetricsweepError, PartSourceError, ValidationError) as error:
        return explain(error)
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        http="h11",
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application adds uvicorn's middleware itself, with the proxies of the settings
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        lifespan="off",
    )
    # After its graceful end uvicorn raises the signal again, when nothing is left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        _Server(config, application.state.streams).run()
    except SystemExit:  # the start failed, and uvicorn logged it
        return FAILED
    finally:
        service.close()
        end_tracing()
    return OK


class _Server(uvicorn.Server):
    """A uvicorn server that ends the event streams first, since they would keep their connections open."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams, then shut down."""
        self._streams.ended = True
        await super().shutdown(sockets)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m api", description=__doc__).parse_args()  # there are no options
    sys.exit(main())
