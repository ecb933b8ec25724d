"""Every page under axe-core, in light and dark: names, roles, contrast, headings, landmarks."""

from pathlib import Path
from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from dashboards import guide
from orchestrator.views.callers import Role, Scope
from orchestrator.views.remarks import TagChange
from tests.dashboards.stage import SMALL_SPEC, SPEC, Stage

pytestmark = pytest.mark.browser

DRAWN: Final = {"plot=": "#plot svg", "/curves?": "#drawing svg", "/docs": ".opblock"}
"""What is waited for on the pages of which a script draws a part."""
SIZES: Final = "target-size"
"""Of WCAG 2.2: what is pressed is 24 pixels wide and high, or has as much room for itself. Axe looks only if asked."""
ALL: Final[dict[str, Any]] = {"resultTypes": ["violations"], "rules": {SIZES: {"enabled": True}}}
COLOURS: Final = {**ALL, "runOnly": ["color-contrast"]}
ON_A_PHONE: Final = {**ALL, "runOnly": [SIZES]}
DESK: Final = ViewportSize(width=1280, height=720)
PHONE: Final = ViewportSize(width=390, height=844)
THEIRS: Final = {
    "/docs": {"color-contrast", "nested-interactive", "heading-order", SIZES},  # Swagger UI's operations
    "/docs/guide/": {"aria-required-attr", "landmark-unique", "scrollable-region-focusable"},  # Furo's sidebar and code
}
"""The rules that what we did not write breaks, by the page where it does."""


def findings(page: Page, options: dict[str, Any], theirs: set[str]) -> list[str]:
    """What axe finds, each by its rule and the element."""
    found = Axe().run(page, options=options).response["violations"]
    return [f"{one['id']} {node['target']}" for one in found if one["id"] not in theirs for node in one["nodes"]]


def test_axe_finds_nothing_on_our_pages(
    context: BrowserContext, stage: Stage, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "FOLDER", site)
    sweep = stage.submit(SPEC)
    for at in range(12):
        if at == 4:
            stage.fail()
        else:
            stage.finish(diverged=at == 5)
    stage.start(0.5)
    stage.settle()
    stage.service.remarks.put(("sweep", sweep, 0), "", TagChange(["paper", "wip"]), None)
    stage.resolve(sweep)
    stage.service.people.add_user("ada", Role.MEMBER, "main")
    for name in ("laptop", "desk"):
        token = stage.service.people.tokens.add("ada", name, Scope.READ, 30)
    stage.service.people.tokens.revoke(token.id)
    other = stage.submit(SMALL_SPEC)
    page = context.new_page()
    left = {}
    for path in (
        "/", f"/sweeps/{sweep}", f"/sweeps/{sweep}/cells/0", f"/sweeps/{sweep}/storage",
        "/trials/1", "/trials/5", "/trials/13",
        f"/sweeps/{sweep}/trials?plot=parallel", "/compare?trial=1&trial=5",
        f"/compare?cell={sweep}/0&cell={sweep}/4", f"/compare?sweep={sweep}&sweep={other}", f"/curves?sweep={sweep}",
        "/submit?preset=digits", "/ledger", "/ledger/ISA?standing=not+run",
        "/catalog", "/catalog/loss/triplet", "/cluster",
        "/people", "/tokens?user=ada", "/login", "/docs", "/docs/guide/",
    ):  # fmt: skip
        page.emulate_media(color_scheme="light")
        page.goto(path)
        for part in (part for end, part in DRAWN.items() if end in path and "guide" not in path):
            expect(page.locator(part).first).to_be_visible()
        theirs = THEIRS.get(path, set())
        light = findings(page, ALL, theirs)
        page.emulate_media(color_scheme="dark")
        dark = findings(page, COLOURS, theirs)
        page.set_viewport_size(PHONE)
        left[path] = light, dark, findings(page, ON_A_PHONE, theirs)
        page.set_viewport_size(DESK)
    assert {path: found for path, found in left.items() if any(found)} == {}
