"""The application: one service behind `/v1` for programs and behind `/` for people."""

import importlib.metadata
from typing import Final

from fastapi import Depends, FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api import mlflow, problems
from api.auth.gate import Authentication, AuthMiddleware, bearer
from api.auth.oidc import LoginSession, ProviderLogin
from api.events import Feed
from api.http.middleware import BodyLimit, HostsAndOrigins, PeerAddress, RateLimit, Rates, ResponseHeaders
from api.http.turns import Turns
from api.mlflow import Upstream
from api.problems import OPENAPI_PATH, documented, openapi
from api.routes import accounts, cluster, curves, events, frames, listings, login, pages, sweeps, tables, trials
from api.telemetry import Exposition, Latency, Spans
from orchestrator.service.service import Service
from orchestrator.service.trials import MEDIA_TYPE as FRAMES
from orchestrator.settings import Settings

DESCRIPTION: Final = """\
Submit a sweep, watch it, and export its tables.

A spec is posted as YAML or JSON to `/v1/sweeps`; the conductor trains what it asks for; the tables under
`/v1/sweeps/{id}/tables/{name}` fill in while it runs. Every error is a problem document (RFC 9457)."""
NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own traces hold the query of an address, where a login link has its code; api/telemetry.py has ours."""
LEVEL: Final = 5
"""Of compression: level 9 takes twice the time for hardly fewer bytes."""
DENSE: Final = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/pdf", FRAMES)
"""Content types that compression makes no smaller."""
ROUTERS: Final = (
    sweeps.posting,
    sweeps.extending,
    sweeps.packing,
    frames.drawing,
    sweeps.sweeps_router,
    sweeps.requests_router,
    listings.router,
    sweeps.remarks_router,
    trials.router,
    sweeps.cells_router,
    tables.tables_router,
    sweeps.resolutions_router,
    tables.comparisons_router,
    tables.papers_router,
    tables.drift_router,
    curves.router,
    tables.figures_router,
    frames.router,
    tables.published_router,
    accounts.quotas_router,
    tables.ledgers_router,
    cluster.catalog_router,
    cluster.data_router,
    events.router,
    cluster.cluster_router,
    cluster.storage_router,
    accounts.people_router,
    accounts.tokens_router,
    accounts.audit_router,
    login.router,
)

PAGES: Final = (
    pages.costly,
    curves.page,
    cluster.cluster_pages,
    tables.costly_ledgers,
    listings.pages,
    accounts.forms,
    sweeps.remark_forms,
    cluster.storage_forms,
    pages.pages_router,
    sweeps.resolution_forms,
    pages.checking,
    pages.submit_router,
    pages.reference_router,
    pages.static_router,
)


def create_app(service: Service, settings: Settings) -> FastAPI:
    """The ASGI application over one service; the caller opens and closes the service.

    Raises MetricsweepError where the home folder, which keeps the server's secret, is somebody else's.
    """
    access = Authentication(settings)
    exposition = Exposition(service)
    app = FastAPI(
        title="metricsweep",
        version=importlib.metadata.version("metricsweep"),
        description=DESCRIPTION,
        openapi_url=OPENAPI_PATH,
        # Theirs come from another server, which the pages' policy refuses; `routes/pages` has ours.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        # The first is the outermost.
        middleware=[
            Middleware(PeerAddress),
            Middleware(ProxyHeadersMiddleware, trusted_hosts=[str(one) for one in settings.forwarders]),
            Middleware(Latency, seconds=exposition.requests),
            Middleware(Spans, is_stream=events.is_stream),
            Middleware(ResponseHeaders),
            Middleware(GZipMiddleware, compresslevel=LEVEL, exclude_content_types=DENSE),
            Middleware(HostsAndOrigins, settings=settings),
            Middleware(AuthMiddleware, access=access, mlflow=mlflow.PREFIX),
            Middleware(
                RateLimit,
                rates=Rates.of(settings),
                mlflow=mlflow.PREFIX,
                is_open=access.open_paths.__contains__,
                is_stream=events.is_stream,
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
    app.state.feed = Feed(service)
    app.state.folderless = problems.folder_cutter(settings)
    app.state.mlflow = Upstream(settings.mlflow_socket) if settings.mlflow_socket else None
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(bearer)], responses=documented(429))
    app.include_router(cluster.health_router)
    app.include_router(cluster.telemetry_router)
    app.include_router(login.open_router)
    app.include_router(login.pages_router)
    app.include_router(login.provider_router)
    for router in PAGES:
        app.include_router(router)
    app.include_router(mlflow.router)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app
