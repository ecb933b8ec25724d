"""A request has one thread for all of its work: that of its route's function, where the function is no coroutine."""

import inspect

import fastapi.concurrency
import fastapi.dependencies.utils
import fastapi.routing
import pytest
from fastapi.testclient import TestClient

from api.answers import threads
from api.routes import sweeps
from tests.api.played import SPEC, YAML, Conductor

PATHS = (
    "/v1/sweeps", "/v1/sweeps/1", "/v1/sweeps/1/trials?limit=2", "/v1/trials/1", "/v1/sweeps/1/tables/main",
    "/v1/trials?where=state=finished",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_request_takes_one_thread(
    http: TestClient, conductor: Conductor, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    conductor.begin()
    taken: list[object] = []

    async def counted(function: object, *given: object, **named: object) -> object:
        taken.append(function)
        return await run(function, *given, **named)  # type: ignore[arg-type]

    run = fastapi.concurrency.run_in_threadpool
    for module in (threads, fastapi.routing, fastapi.dependencies.utils):
        monkeypatch.setattr(module, "run_in_threadpool", counted)
    assert http.get(path).status_code == 200
    assert len(taken) == 1


def test_a_coroutine_stays_as_it_is_and_a_function_keeps_its_signature() -> None:
    async def already() -> None:
        pass

    assert threads._in_thread(already) is already
    assert inspect.signature(threads._in_thread(sweeps.sweep)) == inspect.signature(sweeps.sweep)
