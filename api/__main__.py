"""The API as a process of its own: `python -m api`, one worker, on METRICSWEEP_HOST and METRICSWEEP_PORT."""

import logging
import signal
import sys

import uvicorn
from pydantic import ValidationError

from api.commands.terminal import FAILED, OK, explain
from api.main import create_app
from api.serve import refuse_open_host
from orchestrator import storage
from orchestrator.errors import MetricsweepError
from orchestrator.service import Service
from orchestrator.settings import Settings


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = Settings()
        refuse_open_host(settings)
        storage.opened(settings.storage).check()
        service = Service.open(settings)
    except (MetricsweepError, ValidationError) as error:
        return explain(error)
    config = uvicorn.Config(
        create_app(service, settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        lifespan="off",
    )
    # uvicorn ends gracefully and then raises the signal once more: by then there is nothing left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    try:
        server.run()
    except SystemExit:  # a start that failed, which uvicorn has logged
        return FAILED
    finally:
        service.close()
    return OK


if __name__ == "__main__":
    sys.exit(main())
