"""What routes are given: the service, the settings, who may ask, the name of who asks, and of what a spec names."""

from typing import Annotated

from fastapi import Depends, Header, Path, Request

from api.access.auth import Authentication
from api.auth.oidc import ProviderLogin
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.callers import caller


# Of these all but `_actor` are coroutines, though they wait for nothing: FastAPI has a thread call any other function.
async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Asked = Annotated[Service, Depends(_service)]


async def _settings(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


async def _access(request: Request) -> Authentication:
    found: Authentication = request.app.state.access
    return found


async def _provider(request: Request) -> ProviderLogin | None:
    found: ProviderLogin | None = request.app.state.provider
    return found


def _actor(
    request: Request,
    service: Asked,
    x_actor: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=100,
            pattern=r"^[\x20-\x7e]+$",
            description="Who asks, in your own words, as long as the server has no users; then the one for whom a "
            "trusted proxy asks.",
            examples=["ada@lab"],
        ),
    ] = None,
) -> str:
    who = caller()
    if who.name is not None:
        return who.name
    said = None if x_actor and service.accounts.any() else x_actor  # among users nobody names themselves
    return said or (request.client.host if request.client else "unknown")


def person(request: Request) -> str:
    """Who sits before a page, as far as it is known."""
    browser = f"browser at {request.client.host}" if request.client else "browser"
    return caller().name or browser


InForce = Annotated[Settings, Depends(_settings)]
Admission = Annotated[Authentication, Depends(_access)]
ByProvider = Annotated[ProviderLogin | None, Depends(_provider)]
Actor = Annotated[str, Depends(_actor)]
Named = Annotated[
    str, Path(max_length=100, pattern=r"^[^\x00/]+$", description="As the spec names it.", examples=["main"])
]
