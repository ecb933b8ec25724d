"""The real application behind a real server, and a real browser before it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright

import tests.made_once  # noqa: F401 - by being imported
from api.main import create_app
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests import guide_site
from tests.dashboards.chromium import WINDOWLESS, launched
from tests.dashboards.stage import Stage
from tests.served_app import served

# It must reach nothing but the server of the test: no updates, no services of the browser's maker.
PATIENCE = 120_000
"""Milliseconds that a page may take on a machine that is busy with other tests."""
expect.set_options(timeout=PATIENCE)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("METRICSWEEP_")]:
        monkeypatch.delenv(name)
    return Settings(home=tmp_path / "home", mlflow_url="http://127.0.0.1:5000")


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    opened = Service.open(settings)
    yield opened
    opened.close()


@pytest.fixture
def stage(settings: Settings, service: Service) -> Iterator[Stage]:
    store = Store.open(settings.database)
    yield Stage(service, store)
    store.close()


@pytest.fixture
def application(settings: Settings, service: Service) -> FastAPI:
    return create_app(service, settings)


@pytest.fixture
def address(application: FastAPI) -> Iterator[str]:
    with served(application) as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide."""
    return guide_site.site(tmp_path_factory.mktemp("guide"))


@pytest.fixture
def logged_in(application: FastAPI) -> Callable[[BrowserContext], BrowserContext]:
    """Logs a context in, as the link does that `serve` prints."""

    def enter(context: BrowserContext) -> BrowserContext:
        context.request.post("/login", form={"code": application.state.access.codes.new()})
        return context

    return enter


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    started = launched(playwright, WINDOWLESS, "chromium")
    yield started
    started.close()


class Watched:
    """A browser's context that remembers what pages complained about and what they asked other servers for."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.complaints = context, list[str]()
        context.on("console", lambda message: message.type in {"error", "warning"} and self._note(message.text))
        context.on("weberror", lambda error: self._note(str(error.error)))
        context.on("request", lambda request: request.url.startswith((address, "data:")) or self._note(request.url))

    def _note(self, text: str) -> None:
        self.complaints.append(text)


@pytest.fixture
def watched(browser: Browser, address: str, logged_in: Callable[[BrowserContext], BrowserContext]) -> Iterator[Watched]:
    """A fresh context; the test fails when a page of it complained, broke the policy or left this server."""
    context = logged_in(browser.new_context(base_url=address))
    context.set_default_timeout(PATIENCE)
    kept = Watched(context, address)
    yield kept
    context.close()
    assert kept.complaints == []


@pytest.fixture
def context(watched: Watched) -> BrowserContext:
    return watched.context
