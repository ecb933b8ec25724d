"""Chromium as pages are tested with it: without windows of its own where it is here as such, or whole."""

import os
import shutil
from typing import Final

import pytest
from playwright.sync_api import Browser, Playwright

FLAGS: Final = [
    "--no-sandbox", "--disable-background-networking", "--disable-quic", "--no-first-run",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WINDOWLESS: Final = "chromium-headless-shell"
"""The same engine for a third of the processor's time; it knows no notifications."""


def launched(playwright: Playwright, *names: str) -> Browser:
    """The first of these programs that is here, or the one that METRICSWEEP_TEST_CHROMIUM names."""
    named = os.environ.get("METRICSWEEP_TEST_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no chromium on this machine")
    return playwright.chromium.launch(executable_path=program, args=FLAGS)
