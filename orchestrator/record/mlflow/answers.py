"""What MLflow's answers mean to us: that it refused, that it does not answer, that a run is in its trash."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mlflow.exceptions import MlflowException

from orchestrator.views.errors import UnavailableError


class TrackerRefusedError(UnavailableError):
    """MLflow answered and refused; waiting alone will not help, but the row may be tried again."""


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn MLflow's and the network's errors into ours; programming errors pass."""
    try:
        yield
    except MlflowException as error:
        first = str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__
        if error.get_http_status_code() < 500:
            raise TrackerRefusedError(f"MLflow at {url} refused: {first}") from error
        raise UnavailableError(f"MLflow at {url} does not answer: {first}") from error
    except OSError as error:  # requests' errors are OSErrors; artifacts raise them as they are
        raise UnavailableError(f"MLflow at {url} does not answer: {error}") from error


def is_deleted(error: MlflowException) -> bool:
    """Whether the run (not its experiment) is in MLflow's trash, which has no error code of its own."""
    return re.search(r"\bThe run \S+ must be in the 'active' state", str(error.message)) is not None
