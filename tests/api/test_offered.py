"""Pages offer exactly the forms that the user may send: each form is accepted, and none is missing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.main import create_app
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role, Scope
from tests.api.conftest import HTML, TOKEN, URL
from tests.api.played import SPEC, YAML, Conductor

ENDED, GOES = 1, 2
PAGES = (
    "/", f"/sweeps/{ENDED}", f"/sweeps/{GOES}", f"/sweeps/{ENDED}/cells/0", f"/sweeps/{GOES}/cells/0", "/trials/1",
    "/trials/10", f"/sweeps/{ENDED}/extend?repeat.seed[0]=7", f"/sweeps/{ENDED}/statistics?plan=true", "/trials",
    f"/sweeps/{ENDED}/trials", f"/curves?sweep={ENDED}", "/compare?sweep=1&sweep=2", "/submit",
    "/reproduction", "/catalog", "/cluster", "/tokens",
)  # fmt: skip
"""Of one sweep that ended, with a trial that failed, and one that goes on; both ben's."""


class Forms(HTMLParser):
    """The addresses to which the forms of a page are sent, and its links and buttons that press nothing."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.posted, self.links, self.disabled = list[str](), list[str](), 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form" and given.get("method") == "post":
            self.posted.append(given.get("action") or "")
        elif tag == "a":
            self.links.append(given.get("href") or "")
        elif tag == "button" and "disabled" in given:
            self.disabled += 1


@dataclass(frozen=True)
class Seen:
    """The forms on every page, by user."""

    app: FastAPI
    service: Service
    tokens: dict[str, str]
    pages: dict[str, dict[str, Forms]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, migrated: Callable[[Path], Path]) -> Iterator[Seen]:
    settings = Settings(home=tmp_path_factory.mktemp("offered"), token=SecretStr(TOKEN), mlflow_public_url="/mlflow")
    migrated(settings.resolved_home)
    service, store = Service.open(settings), Store.open(settings.database)
    app, people, conductor = create_app(service, settings), service.people, Conductor(store)
    people.add_project("birds", everyone=True)
    people.add_user("root", Role.ADMIN, None)
    for name, role in (("ben", Role.MEMBER), ("bob", Role.MEMBER), ("vic", Role.VIEWER)):
        people.add_user(name, role, "birds")
    people.add_user("eve", Role.MEMBER, "main")
    tokens = {name: people.tokens.add(name, "t", Scope.ADMIN, 1).token for name in ("root", "ben", "bob", "vic", "eve")}
    tokens["reader"] = people.tokens.add("ben", "t", Scope.READ, 1).token
    ben = TestClient(app, base_url=URL, headers={"Authorization": f"Bearer {tokens['ben']}"})
    judged = SPEC.replace("semihard]", "semihard, contrastive]").replace("seed: [0, 1]", "seed: [0, 1, 2]")
    judged = judged.replace("{rows: [loss]", "{verdicts: {against: {loss: semihard}, looks: any}, rows: [loss]")
    for name in ("four-trials", "goes-on"):
        spec = judged.replace("four-trials", name).replace("iterations: 20", f"iterations: {20 + len(name)}")
        assert ben.post("/v1/sweeps", params={"project": "birds"}, content=spec, headers=YAML).is_success
        conductor.begin()
        if name == "four-trials":
            conductor.fail()
            for value in (0.1, 0.2, 0.1, 0.2, 0.3, 0.2, 0.35, 0.3):
                conductor.finish(value)
            conductor.settle()
    shown = {}
    for who, token in tokens.items():
        browser = TestClient(app, base_url=URL, headers=HTML, follow_redirects=False)
        assert browser.post("/login", data={"token": token}).status_code == 303
        pages = {path: browser.get(path) for path in PAGES}
        assert {path for path, page in pages.items() if page.status_code != 200} == set(), who
        shown[who] = {path: Forms(page.text) for path, page in pages.items()}
    yield Seen(app, service, tokens, shown)
    store.close()
    service.close()


def actions(pages: dict[str, Forms]) -> set[str]:
    """What the forms of all pages do, without that of logging out."""
    return {re.sub(r"\d+", "N", form) for page in pages.values() for form in page.posted} - {"/logout"}


STEERING = {
    f"/sweeps/N/{verb}"
    for verb in ("retry", "pause", "priority", "cancel", "extend", "resolve", "annotation", "cells/N/annotation")
} | {"/trials/N/annotation"}  # fmt: skip


def test_each_is_offered_what_it_may_press(seen: Seen) -> None:
    own, revoking = {"/submit", "/tokens"}, {"/tokens/N/revoke"}
    assert {who: actions(pages) for who, pages in seen.pages.items()} == {
        "root": STEERING | own | revoking | {"/sweeps/N/delete"},
        "ben": STEERING | own | revoking | {"/sweeps/N/delete"},
        "bob": STEERING | own | revoking,  # of the project, and not its owner
        "eve": own | revoking,  # sees it, since it is open, and is no member
        "vic": own | revoking,
        "reader": {"/submit"},
    }


def test_a_refusal_says_why(seen: Seen) -> None:
    for who, message in (
        ("vic", "viewers may not change anything"), ("reader", "your token may only read"),
        ("eve", "not a member of its project birds"), ("bob", "its owner and administrators may delete it"),
    ):  # fmt: skip
        headers = {"Authorization": f"Bearer {seen.tokens[who]}", "Accept": "text/html"}
        page = TestClient(seen.app, base_url=URL, headers=headers).get(f"/sweeps/{ENDED}").text
        assert message.lower() in page.lower(), who
        assert "project birds" in page
    disabled = {who: pages["/submit"].disabled for who, pages in seen.pages.items()}
    assert disabled == {"root": 0, "ben": 0, "bob": 0, "eve": 0, "vic": 1, "reader": 1}


def test_no_link_leads_to_a_refusal(seen: Seen) -> None:
    """Every link on a page is answered or missing for the user of that page, and none is refused.

    Of links that differ in numbers and in the values of a query alone, everybody follows one.
    """
    for who, pages in seen.pages.items():
        shown = {"Authorization": f"Bearer {seen.tokens[who]}"}
        client = TestClient(seen.app, base_url=URL, headers=shown, follow_redirects=False)
        links = {link.partition("#")[0] for page in pages.values() for link in page.links}
        ours = {link for link in links if link.startswith("/") and "bundle" not in link and "format=" not in link}
        kinds = {re.sub(r"\d+|/catalog/.*", "N", re.sub(r"=[^&]*", "", link)): link for link in sorted(ours)}
        assert len(kinds) > 20, who
        assert {link for link in kinds.values() if client.get(link).status_code in (401, 403)} == set(), who


def test_a_sweep_is_submitted_to_the_chosen_project(seen: Seen) -> None:
    seen.service.people.add_project("faces", everyone=False)
    seen.service.people.join("ben", "faces", Role.MEMBER)
    browser = TestClient(seen.app, base_url=URL, headers=HTML, follow_redirects=False)
    browser.post("/login", data={"token": seen.tokens["ben"]})
    assert '<select id="project"' in browser.get("/submit").text
    sent = browser.post("/submit", data={"spec": SPEC, "key": "k", "project": "faces"})
    assert sent.status_code == 303
    assert seen.service.sweeps.get(int(sent.headers["location"].rpartition("/")[2])).project == "faces"
