"""Imports without looks for garbage: a look goes through all that was loaded before, and nothing of it is garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage in this process until the end of the block, where it was looked for."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()
