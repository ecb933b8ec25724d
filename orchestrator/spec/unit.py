"""The unit in which a number is printed."""

from typing import Literal

Unit = Literal["percent", "fraction", "number"]
