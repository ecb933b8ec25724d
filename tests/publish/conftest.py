"""Golden files: what a format wrote when a person last looked at it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, bytes], None]:
    """Compares with golden/<name>; METRICSWEEP_WRITE_GOLDEN=1 writes it instead (then look at the difference)."""

    def check(name: str, content: bytes) -> None:
        path = GOLDEN / name
        if os.environ.get("METRICSWEEP_WRITE_GOLDEN"):
            path.write_bytes(content)
        assert content == path.read_bytes(), f"{path.name} has changed"

    return check
