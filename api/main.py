"""The ASGI application: REST below `/v1` and pages below `/`, over one service."""

import importlib.metadata
from typing import Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api import mlflow, problems
from api.auth.gate import Authentication, AuthMiddleware, bearer
from api.auth.oidc import LoginSession, ProviderLogin
from api.http.middleware import BodyLimit, HostsAndOrigins, PeerAddress, RateLimit, ResponseHeaders
from api.http.turns import Turns
from api.mlflow import Upstream
from api.problems import OPENAPI_PATH, documented, openapi
from api.routes import accounts, cluster, events, listings, login, pages, sweeps, tables, trials
from api.telemetry import Exposition, RequestTelemetry
from orchestrator.host.checks import networks
from orchestrator.service.service import Service
from orchestrator.service.trials import MEDIA_TYPE as FRAMES
from orchestrator.settings import Settings

_DESCRIPTION: Final = """\
Submit a sweep, watch it, and export its tables.

A spec is posted as YAML or JSON to `/v1/sweeps`; the conductor trains what it asks for; the tables under
`/v1/sweeps/{id}/tables/{name}` fill in while it runs. Every error is a problem document (RFC 9457)."""
_NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own traces contain the query of an address, in which a login link has its code; see api/telemetry.py."""
LEVEL: Final = 5
"""The level of compression: 9 takes twice the time for hardly fewer bytes."""
_DENSE: Final = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/pdf", FRAMES)
"""Content types that are not compressed, since it would not make them smaller."""
_ROUTES: Final = (sweeps, trials, listings, tables, cluster, accounts, events, login, pages, mlflow)
"""Every `APIRouter` of these modules is part of the application."""


def create_app(service: Service, settings: Settings) -> FastAPI:
    """The ASGI application over one service; the caller opens and closes the service.

    Raises MetricsweepError if the home folder, which contains the server's secret, belongs to another account.
    """
    access = Authentication(settings)
    exposition = Exposition(service)
    app = FastAPI(
        title="metricsweep",
        version=importlib.metadata.version("metricsweep"),
        description=_DESCRIPTION,
        openapi_url=OPENAPI_PATH,
        # FastAPI's pages load scripts from another server, which our policy forbids; see `routes/pages`.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
        exception_handlers=problems.HANDLERS,
        # The first middleware is the outermost.
        middleware=[
            Middleware(PeerAddress),
            Middleware(ProxyHeadersMiddleware, trusted_hosts=list(map(str, networks(settings.forwarding_proxies)))),
            Middleware(RequestTelemetry, seconds=exposition.requests),
            Middleware(ResponseHeaders),
            Middleware(GZipMiddleware, compresslevel=LEVEL, exclude_content_types=_DENSE),
            Middleware(HostsAndOrigins, settings=settings),
            Middleware(AuthMiddleware, access=access),
            Middleware(
                RateLimit,
                rates={"read": settings.read_rate, "write": settings.write_rate, "open": settings.open_rate},
                is_open=access.open_paths.__contains__,
            ),
            Middleware(BodyLimit, is_upload=mlflow.is_upload),
            *([Middleware(LoginSession, secret=access.sealing)] if settings.oidc_issuer else []),
        ],
    )
    app.state.service = service
    app.state.settings = settings
    app.state.access = access
    app.state.provider = ProviderLogin(settings) if settings.oidc_issuer else None
    app.state.exposition = exposition
    app.state.turns = Turns()
    app.state.streams = events.Streams()
    app.state.folderless = problems.folder_cutter(settings)
    app.state.mlflow = Upstream(settings.mlflow_socket) if settings.mlflow_socket else None
    routers = [value for module in _ROUTES for value in vars(module).values() if isinstance(value, APIRouter)]
    for router in routers:
        if router.prefix.startswith("/v1"):  # these need a token
            app.include_router(router, dependencies=[Depends(bearer)], responses=documented(429))
        else:
            app.include_router(router)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app
