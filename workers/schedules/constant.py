"""A constant learning rate."""


class Constant:
    """The learning rate does not change."""

    label = "Constant"

    def __call__(self, step: int) -> float:
        return 1.0
