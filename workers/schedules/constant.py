"""The learning rate stays."""


class Constant:
    """The learning rate does not change."""

    label = "Constant"
    version = 1

    def __call__(self, step: int) -> float:
        """The factor at iteration `step`, from 0: always 1."""
        return 1.0
