"""The real application over a real SQLite file, and a conductor played by hand through the store."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response
from pydantic import SecretStr

import tests.made_once  # noqa: F401 - by being imported
from api.auth import sessions
from api.main import create_app
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.played import SPEC, Conductor
from tests.dashboards.markup import read
from tests.served_app import served

if TYPE_CHECKING:
    from tests.api.two_worlds import World

URL = "http://127.0.0.1:8787"
TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HTML = {"Accept": "text/html"}


def named(url: str) -> dict[str, str]:
    """The environment of a command that is to talk to a server with the token of the tests."""
    return {"METRICSWEEP_URL": url, "METRICSWEEP_TOKEN": TOKEN, "COLUMNS": "200"}


def opened(browser: TestClient, link: str) -> Response:
    """The answer to a person who opens a login link and presses its button."""
    page = read(browser.get(link, headers={"Accept": "text/html"}).text)
    form, code = page.having("form", method="post")[0], page.having("input", name="code")[0]
    return browser.post(form["action"], data={"code": code["value"]})


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("URL", "TOKEN", "HOST", "PORT", "HOME", "DATABASE_URL", "PARTS"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    return Settings(home=tmp_path / "home", token=SecretStr(TOKEN))


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conductor that is played by hand answers no command while it waits."""
    monkeypatch.setattr("api.commands.sweeps.PATIENCE_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong tokens wait, but not long."""
    monkeypatch.setattr(sessions, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(sessions, "LONGEST_PAUSE", 0.01)


@pytest.fixture
def app(service: Service, settings: Settings) -> FastAPI:
    return create_app(service, settings)


@pytest.fixture
def http(app: FastAPI) -> Iterator[TestClient]:
    """A program that has the token."""
    with TestClient(app, base_url=URL, headers=BEARER, follow_redirects=False) as client:
        yield client


@pytest.fixture
def stranger(app: FastAPI) -> Iterator[TestClient]:
    """Somebody who has not."""
    with TestClient(app, base_url=URL, follow_redirects=False) as client:
        yield client


@pytest.fixture
def conductor(settings: Settings, service: Service) -> Iterator[Conductor]:
    store = Store.open(settings.database)
    yield Conductor(store)
    store.close()


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    """Its address."""
    with served(app) as found:
        yield found


@pytest.fixture(scope="module")
def worlds(
    tmp_path_factory: pytest.TempPathFactory, migrated: Callable[[Path], Path]
) -> "Iterator[tuple[World, World]]":
    """A world of ada alone, and one of ada and ben, for tests that change neither."""
    from tests.api.two_worlds import two_worlds

    folder = tmp_path_factory.mktemp("worlds")
    with two_worlds(folder, Settings(home=folder, token=SecretStr(TOKEN)), migrated) as both:
        yield both


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "four.yaml"
    file.write_text(SPEC)
    return file
