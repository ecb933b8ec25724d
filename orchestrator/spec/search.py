"""What proposes the candidates of a sweep."""

from typing import Literal

from pydantic import Field

from workers.contract import Frozen

SearchName = Literal["grid", "random", "tpe", "gp", "cmaes", "qmc", "brute_force"]


class Search(Frozen):
    """What proposes candidates; `grid` proposes all of them, the others ask a study of Optuna's, one per cell."""

    name: SearchName = "grid"
    trials: int | None = Field(default=None, ge=1, le=10_000)
    """Candidates of each cell; needed by all but `grid` and `brute_force`."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    parallel: int = Field(default=1, ge=1, le=1_000)
    """Candidates of one cell that may be open at the same time; 1 follows the study's order strictly."""
    reproduce: int = Field(default=0, ge=0, le=1_000)
    """Further seeds with which the best candidate of a cell is trained once its search has ended (MLRC: 10)."""

    @property
    def adaptive(self) -> bool:
        """Whether candidates are proposed one by one."""
        return self.name != "grid"
