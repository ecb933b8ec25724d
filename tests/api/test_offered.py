"""Pages offer what may be pressed: to whoever asks, each form that a page has is taken, and none is missing."""

import re
from html.parser import HTMLParser

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.callers import Role, Scope
from tests.api.conftest import URL
from tests.api.played import SPEC, Conductor

ENDED, GOES = 1, 2
PAGES = (
    "/", f"/sweeps/{ENDED}", f"/sweeps/{GOES}", f"/sweeps/{ENDED}/cells/0", f"/sweeps/{GOES}/cells/0", "/trials/1",
    "/trials/5", "/trials", f"/sweeps/{ENDED}/trials", f"/curves?sweep={ENDED}", "/compare?sweep=1&sweep=2", "/submit",
    "/ledger", "/catalog", "/cluster", "/tokens",
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


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"mlflow_public_url": "/mlflow"})


@pytest.fixture
def users(service: Service, conductor: Conductor) -> dict[str, str]:
    """A token for each who looks at the pages."""
    people = service.people
    people.add_project("birds", everyone=True)
    for name, role in (("root", Role.ADMIN), ("ben", Role.MEMBER), ("bob", Role.MEMBER), ("vic", Role.VIEWER)):
        people.add_user(name, role, "birds" if name != "root" else None)
    people.add_user("eve", Role.MEMBER, "main")
    tokens = {name: people.tokens.add(name, "t", Scope.ADMIN, 1).token for name in ("root", "ben", "bob", "vic", "eve")}
    tokens["reader"] = people.tokens.add("ben", "t", Scope.READ, 1).token
    return tokens


@pytest.fixture
def seen(app: FastAPI, users: dict[str, str], conductor: Conductor) -> dict[str, dict[str, Forms]]:
    """By who looks, every page's forms."""
    ben = TestClient(app, base_url=URL, headers={"Authorization": f"Bearer {users['ben']}"})
    for name in ("four-trials", "goes-on"):
        spec = SPEC.replace("four-trials", name).replace("iterations: 20", f"iterations: {20 + len(name)}")
        assert ben.post(
            "/v1/sweeps", params={"project": "birds"}, content=spec, headers={"Content-Type": "application/yaml"}
        ).is_success
        conductor.begin()
        if name == "four-trials":
            conductor.fail()
            for _ in range(3):
                conductor.finish()
            conductor.settle()
    shown = {}
    for who, token in users.items():
        browser = TestClient(app, base_url=URL, headers={"Accept": "text/html"}, follow_redirects=False)
        assert browser.post("/login", data={"token": token}).status_code == 303
        pages = {path: browser.get(path) for path in PAGES}
        assert {path for path, page in pages.items() if page.status_code != 200} == set(), who
        shown[who] = {path: Forms(page.text) for path, page in pages.items()}
    return shown


def actions(pages: dict[str, Forms]) -> set[str]:
    """What the forms of all pages do, without that of logging out."""
    return {re.sub(r"\d+", "N", form) for page in pages.values() for form in page.posted} - {"/logout"}


STEERING = {
    f"/sweeps/N/{verb}" for verb in ("retry", "pause", "priority", "cancel", "resolve", "remark", "cells/N/remark")
} | {"/trials/N/remark"}  # fmt: skip


def test_each_is_offered_what_it_may_press(seen: dict[str, dict[str, Forms]]) -> None:
    own = {"/submit", "/tokens"}
    revoking = {"/tokens/N/revoke"}
    for who, more in (
        ("root", {"/sweeps/N/delete"}),
        ("ben", {"/sweeps/N/delete"}),
        ("bob", set[str]()),  # of the project, and not its owner
    ):
        assert actions(seen[who]) == STEERING | more | own | revoking, who
    assert actions(seen["eve"]) == own | revoking, "sees it, since it is open, and is no member"
    assert actions(seen["vic"]) == own | revoking
    assert actions(seen["reader"]) == {"/submit"}


def test_why_not_is_said(app: FastAPI, seen: dict[str, dict[str, Forms]], users: dict[str, str]) -> None:
    for who, said in (
        ("vic", "A viewer looks, and changes nothing."), ("reader", "by a token that may only read."),
        ("eve", "no member of the project birds"), ("bob", "its owner and administrators may delete it"),
    ):  # fmt: skip
        headers = {"Authorization": f"Bearer {users[who]}", "Accept": "text/html"}
        page = TestClient(app, base_url=URL, headers=headers).get(f"/sweeps/{ENDED}").text
        assert said.lower() in page.lower(), who
        assert "of the project birds" in page
    assert {who: pages["/submit"].disabled for who, pages in seen.items()} == {
        "root": 0, "ben": 0, "bob": 0, "eve": 0, "vic": 1, "reader": 1,
    }  # fmt: skip


def test_no_link_leads_to_a_refusal(app: FastAPI, seen: dict[str, dict[str, Forms]], users: dict[str, str]) -> None:
    """Every address of ours that a page of anybody's names answers, or is told to be missing; none is refused.

    Of links that differ in numbers and in the values of a query alone, everybody follows one.
    """
    walked = dict[str, int]()
    for who, pages in seen.items():
        client = TestClient(
            app, base_url=URL, headers={"Authorization": f"Bearer {users[who]}"}, follow_redirects=False
        )
        links = {link.partition("#")[0] for page in pages.values() for link in page.links}
        ours = {link for link in links if link.startswith("/") and "bundle" not in link and "format=" not in link}
        kinds = {re.sub(r"\d+", "N", re.sub(r"=[^&]*", "", link)): link for link in sorted(ours)}
        walked[who] = len(kinds)
        assert {link for link in kinds.values() if client.get(link).status_code in (401, 403)} == set(), who
    assert walked.keys() == users.keys()
    assert min(walked.values()) > 20


def test_a_sweep_is_submitted_to_the_chosen_project(app: FastAPI, service: Service, users: dict[str, str]) -> None:
    service.people.add_project("faces", everyone=False)
    service.people.join("ben", "faces", Role.MEMBER)
    browser = TestClient(app, base_url=URL, headers={"Accept": "text/html"}, follow_redirects=False)
    browser.post("/login", data={"token": users["ben"]})
    assert '<select id="project"' in browser.get("/submit").text
    sent = browser.post("/submit", data={"spec": SPEC, "key": "k", "project": "faces"})
    assert sent.status_code == 303
    assert service.sweeps.get(int(sent.headers["location"].rpartition("/")[2])).project == "faces"
