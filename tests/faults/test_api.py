"""The API is killed while clients submit sweeps: each sweep is stored whole and once."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from api.connection import Unreachable
from tests.faults.conftest import Note, moments
from tests.faults.disturbing import whole
from tests.faults.evidence import rows, total
from tests.faults.installation import Installation
from tests.faults.sweeps import spec

pytestmark = pytest.mark.faults


@moments("api", 1.2, most=3)
def test_the_api_is_killed_while_sweeps_are_submitted(
    empty: Callable[..., Installation], note: Note, moment: float
) -> None:
    installation = empty(None)
    installation.start_api()
    installation.start_conductor()
    body = spec(steps=5, seeds=1) + b"# a long spec takes a while to be read\n" * 10_000
    keys = [uuid.uuid4().hex for _ in range(3)]

    def submit(key: str) -> int | None:
        try:
            return installation.client.submit(body, key).id
        except Unreachable:
            return None

    with ThreadPoolExecutor(len(keys)) as pool:
        told = [pool.submit(submit, key) for key in keys]
        time.sleep(moment)
        installation.kill("api")
        answers = [one.result() for one in told]
    query = "SELECT id, text, total FROM sweep WHERE idempotency_key = :key"
    stored = [rows(installation.settings.database, query, key=key) for key in keys]
    assert all(row.text == body.decode() and row.total == 2 for found in stored for row in found), "nothing is half"
    seconds = installation.until(lambda: submit(keys[0]), "the API answers again")
    sweeps = [installation.client.submit(body, key) for key in keys]
    assert not any(one.created and found for one, found in zip(sweeps, stored, strict=True))
    assert all(answer in (None, one.id) for answer, one in zip(answers, sweeps, strict=True)), "what was told holds"
    assert [[row.id for row in rows(installation.settings.database, query, key=key)] for key in keys] == [
        [one.id] for one in sweeps
    ], "one sweep for each key"
    found = [whole(installation, one.id, body) for one in sweeps]
    note("SIGKILL of the API during a submit", total(found), moment=moment, seconds=seconds)
