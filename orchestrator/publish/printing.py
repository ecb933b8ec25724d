"""How a number is printed: unit and decimals, rounded once for every format."""

from decimal import Decimal

from orchestrator.publish.layout import Unit

_LONG = Decimal("1e7")  # from here on a number is printed with an exponent


def printed(value: float, unit: Unit, decimals: int, *, signed: bool = False) -> str:
    """`value` (a fraction, or a plain number) with fixed decimals; percent are multiplied by 100, without a sign.

    `signed` writes the plus of what is printed as more than zero.
    """
    # From the shortest decimal that names the float, so that 0.59855 rounds as a reader of the JSON would round it.
    exact = Decimal(repr(float(value)))
    if unit == "percent":
        exact = exact.scaleb(2)
    if abs(exact) >= _LONG:
        text = f"{exact:.{decimals}e}"
    else:
        rounded = exact.quantize(Decimal(1).scaleb(-decimals))
        text = f"{abs(rounded) if rounded == 0 else rounded:f}"  # never -0.00
    return f"+{text}" if signed and Decimal(text) > 0 else text
