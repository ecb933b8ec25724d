"""The real application over a real SQLite file, and a conductor played by hand through the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.main import create_app
from orchestrator.record.store import Store
from orchestrator.service import Service
from orchestrator.settings import Settings
from tests.api.played import Conductor

URL = "http://127.0.0.1:8787"
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("URL", "TOKEN", "HOST", "PORT", "HOME", "DATABASE_URL", "PARTS"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    return Settings(home=tmp_path / "home")


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    opened = Service.open(settings)
    yield opened
    opened.close()


@pytest.fixture
def app(service: Service, settings: Settings) -> FastAPI:
    return create_app(service, settings)


@pytest.fixture
def http(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=URL, follow_redirects=False) as client:
        yield client


@pytest.fixture
def guarded(service: Service, settings: Settings) -> Iterator[TestClient]:
    """The application with a token set."""
    secret = settings.model_copy(update={"token": SecretStr(TOKEN)})
    with TestClient(create_app(service, secret), base_url=URL, follow_redirects=False) as client:
        yield client


@pytest.fixture
def conductor(settings: Settings, service: Service) -> Iterator[Conductor]:
    store = Store.open(settings.database)
    yield Conductor(store)
    store.close()
