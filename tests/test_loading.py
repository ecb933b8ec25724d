"""While modules load nobody looks for garbage, and afterwards as before."""

import gc

import pytest

from orchestrator.host.loading import loading


def test_nothing_is_looked_through_meanwhile() -> None:
    with loading():
        assert not gc.isenabled()
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_module_that_does_not_load_leaves_it_as_it_was() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
