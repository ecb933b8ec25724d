"""How a number is printed: unit and decimals, rounded once for every format."""

import math
from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Final

from orchestrator.spec.unit import Unit

_LONG: Final = Decimal("1e7")  # from here on a number is printed with an exponent
_SHORT: Final = Decimal("1e-6")  # and below, where its decimals would not show it
_NOISE: Final = Decimal("1e-12")  # what two floats that mean the same may differ by
_FIRST_DIGIT: Final = Context(prec=1)
DECIMALS: Final = 2
"""Of percents, and of numbers from 1 on without a deviation."""
_MOST_DECIMALS: Final = 6


def decimals_of(values: Iterable[float], deviations: Iterable[float]) -> int:
    """How many decimals numbers that are no percents are printed with, together: in one column, for one comparison.

    Their median deviation gets two significant digits. Numbers without deviations get three decimals where all of
    them are below 1, else two.
    """
    spreads = sorted(one for one in deviations if math.isfinite(one) and one > _NOISE)
    if spreads:
        usual = spreads[(len(spreads) - 1) // 2]
        return min(max(1 - math.floor(math.log10(usual)), 0), _MOST_DECIMALS)
    sizes = [abs(one) for one in values if math.isfinite(one)]
    return DECIMALS + 1 if sizes and max(sizes) < 1 else DECIMALS


def printed(value: float, unit: Unit, decimals: int, *, signed: bool = False) -> str:
    """`value` (a fraction, or a plain number) with fixed decimals; percent are multiplied by 100, without a sign.

    A number that is not zero never reads as zero: it gets as many decimals as its first digit needs. `signed` writes
    the plus of what is more than zero.
    """
    # From the shortest decimal that names the float, so that 0.59855 rounds as a reader of the JSON would round it.
    exact = Decimal(repr(float(value)))
    if abs(exact) < _NOISE:
        exact = Decimal(0)
    if unit == "percent":
        exact = exact.scaleb(2)
    text = _text(exact, decimals)
    return f"+{text}" if signed and Decimal(text) > 0 else text


def _text(exact: Decimal, decimals: int) -> str:
    if abs(exact) >= _LONG:
        return f"{exact:.{decimals}e}"
    rounded = exact.quantize(Decimal(1).scaleb(-decimals))
    if rounded == 0 != exact:
        return f"{exact:.0e}" if abs(exact) < _SHORT else f"{_FIRST_DIGIT.plus(exact):f}"
    return f"{abs(rounded) if rounded == 0 else rounded:f}"  # never -0.00
