"""By which names engines are put through their conformance suite."""

import pytest

ENGINES = ("inline", "ray_tune", "tests.run.threads:engine")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = metafunc.config.getoption("--engine") or ENGINES
        marks = {"ray_tune": [pytest.mark.ray]}
        metafunc.parametrize("engine_name", [pytest.param(name, marks=marks.get(name, [])) for name in names])
