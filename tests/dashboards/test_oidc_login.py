"""A person logs in by a provider, in a browser: from the requested page back to it, and out again."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role
from tests.api.oidc_provider import CLIENT, SECRET, mock_provider
from tests.served_app import served

pytestmark = pytest.mark.browser


@pytest.fixture
def provider() -> Iterator[str]:
    with mock_provider({"sub": "17", "preferred_username": "ada"}, {"sub": "18", "preferred_username": "eve"}) as found:
        yield found


@pytest.fixture
def settings(settings: Settings, provider: str) -> Settings:
    given = {"oidc_issuer": provider, "oidc_client_id": CLIENT, "oidc_name": "the lab"}
    given["oidc_client_secret"] = SECRET
    return Settings(home=settings.home, mlflow_url=settings.mlflow_url, **given)


def test_in_and_out(
    browser: Browser, service: Service, settings: Settings, provider: str, migrated: Callable[[Path], Path]
) -> None:
    service.people.add_user("ada", Role.MEMBER, "main")
    service.people.logins.link("ada", "17")
    said: list[str] = []
    with served(create_app(service, settings)) as address:
        page = browser.new_context(base_url=address).new_page()
        page.on("console", lambda one: said.append(one.text))
        page.goto("/catalog")
        expect(page).to_have_url(f"{address}/login?next=%2Fcatalog")
        assert Axe().run(page).response["violations"] == []
        page.get_by_role("link", name="Log in with the lab").click()
        expect(page).to_have_url(re.compile(re.escape(provider)))
        page.get_by_role("button", name="18").click()
        expect(page.get_by_role("alert")).to_contain_text("no user here is linked with this login")
        page.get_by_role("link", name="Log in with the lab").click()
        page.get_by_role("button", name="17").click()
        expect(page.get_by_role("link", name="Tokens of ada")).to_be_visible()
        page.goto("/tokens")
        expect(page.get_by_text("from a login through a provider")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("status")).to_contain_text("You are logged out here.")
        page.get_by_role("link", name="Log out of the lab too").click()
        expect(page).to_have_url(re.compile(rf"{re.escape(provider)}/oauth2/end_session"))
        page.goto("/catalog")
        expect(page).to_have_url(f"{address}/login?next=%2Fcatalog")
    assert [one for one in said if "Refused" in one or "Content Security" in one] == []
