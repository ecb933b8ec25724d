"""The real application behind a real server, and a real browser before it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright

import tests.made_once  # noqa: F401 - by being imported
from orchestrator.host.identity import ensure_identity
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests import guide_site
from tests.api import conftest as shared
from tests.dashboards.stage import Stage

# It must reach nothing but the server of the test: no updates, no services of the browser's maker.
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-quic", "--no-first-run",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
PATIENCE = 120_000
"""Milliseconds that a page may take on a machine that is busy with other tests."""
expect.set_options(timeout=PATIENCE)

app, url = shared.app, shared.url


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("METRICSWEEP_")]:
        monkeypatch.delenv(name)
    return Settings(home=tmp_path / "home", mlflow_url="http://127.0.0.1:5000")


@pytest.fixture
def stage(settings: Settings, service: Service) -> Iterator[Stage]:
    store = Store.open(settings.database)
    yield Stage(service, store)
    store.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide."""
    return guide_site.site(tmp_path_factory.mktemp("guide"))


@pytest.fixture
def http(app: FastAPI, settings: Settings) -> Iterator[TestClient]:
    """A program that has the token of the home."""
    told = {"Authorization": f"Bearer {ensure_identity(settings.resolved_home).secret}"}
    with TestClient(app, base_url="http://127.0.0.1:8787", headers=told, follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """The program that METRICSWEEP_TEST_CHROMIUM names, or Chromium, if possible its headless build."""
    named = os.environ.get("METRICSWEEP_TEST_CHROMIUM")
    program = named or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine")
    started = playwright.chromium.launch(executable_path=program, args=FLAGS)
    yield started
    started.close()


class Watched:
    """A browser's context that records the errors of pages and their requests to other servers."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context, self.complaints = context, list[str]()
        context.on("console", lambda message: message.type in {"error", "warning"} and self._note(message.text))
        context.on("weberror", lambda error: self._note(str(error.error)))
        context.on("request", lambda request: request.url.startswith((url, "data:")) or self._note(request.url))

    def _note(self, text: str) -> None:
        self.complaints.append(text)


@pytest.fixture
def context(browser: Browser, url: str, app: FastAPI) -> Iterator[BrowserContext]:
    """A fresh context, logged in; the test fails when a page of it complained, broke the policy or left this server."""
    made = browser.new_context(base_url=url)
    made.request.post("/login", form={"code": app.state.access.codes.new()})
    made.set_default_timeout(PATIENCE)
    watched = Watched(made, url)
    yield made
    made.close()
    assert watched.complaints == []
