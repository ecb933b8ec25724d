"""The API as a process of its own: `python -m api`, one worker, on METRICSWEEP_HOST and METRICSWEEP_PORT."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from typing import Final

import uvicorn
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from api.commands.terminal import FAILED, OK, explain
from api.local.refusals import refuse_open_host
from api.main import create_app
from api.mlflow import rules
from api.protection.connections import BACKLOG, Connection, ConnectionPatience, Crowd, allowed_connections
from api.routes import events
from api.streams.feed import Feed, most_streams
from orchestrator.host import storage
from orchestrator.host.logs import begin_logging
from orchestrator.host.packages import refuse_hidden
from orchestrator.host.private import write_for_us_alone
from orchestrator.host.traces import begin_tracing, end_tracing
from orchestrator.secrets import Secrets
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from workers.catalog import PartSourceError

log = logging.getLogger(__name__)

END_SECONDS: Final = 5
"""How long a SIGTERM waits for what is being answered; the supervisor kills after ten."""


def main(patience: ConnectionPatience = ConnectionPatience()) -> int:  # noqa: B008 - nobody can change it
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    write_for_us_alone()
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
    crowd = Crowd(allowed_connections(), patience, rules.is_upload, events.is_stream)
    feed: Feed = application.state.feed
    feed.most = most_streams(crowd.most)
    config = uvicorn.Config(
        CutOff(application),
        host=settings.host,
        port=settings.port,
        http=partial(Connection, crowd=crowd),  # type: ignore[arg-type]  # called as the class would be
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # else uvicorn believes whoever is on this machine; protection/forwarding.py is for it
        timeout_keep_alive=int(patience.idle),
        timeout_graceful_shutdown=END_SECONDS,
        lifespan="off",
    )
    # uvicorn ends gracefully and then raises the signal once more: by then there is nothing left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        _Server(config, feed).run()
    except SystemExit:  # a start that failed, which uvicorn has logged
        return FAILED
    finally:
        service.close()
        end_tracing()
    return OK


class CutOff:
    """The outermost application: a cancellation, which only the server's end brings this far, is told in one line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless the server ends before."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:  # its task ends here, and uvicorn would print it as an error of ours
            log.warning("a request was cut off, since the server ends")


class _Server(uvicorn.Server):
    """Ends within its time even where a request's thread does not, which nothing can interrupt."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, with a last resort; the database undoes what was under way."""
        last = threading.Timer(END_SECONDS + 2, _leave)
        last.daemon = True
        last.start()
        self._feed.end()
        await super().shutdown(sockets)


def _leave() -> None:
    log.warning("requests are still at work %s s after the signal; ending without them", END_SECONDS + 2)
    os._exit(OK)


if __name__ == "__main__":
    sys.exit(main())
