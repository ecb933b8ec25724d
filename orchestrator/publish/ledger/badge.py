"""A badge of a paper's ledger as SVG: how many of its numbers are reproduced, in a picture for a README."""

from html import escape
from typing import Final

from orchestrator.publish.tables.letter_widths import width
from orchestrator.views.ledger import LedgerSummary

_SIZE: Final = 11
_HIGH: Final = 20
_PAD: Final = 6
_GREY, _GREEN, _RED, _AMBER = "#555555", "#2c7a34", "#b3261e", "#8a5a00"
"""On all of them white letters have a contrast of 4.5 or more."""


def badge(found: LedgerSummary) -> str:
    """The badge: grey while nothing has been run, red once a number was not reproduced."""
    counts = found.counts
    left, right = f"{found.paper} reproduced", f"{counts.reproduced} of {counts.total:,}"
    if counts.not_reproduced:
        right, colour = f"{right}, {counts.not_reproduced} not", _RED
    elif counts.reproduced:
        colour = _GREEN
    else:
        colour = _AMBER if counts.underpowered else _GREY
    title = f"{found.paper}: " + ", ".join(f"{count} {word}" for word, count in counts.by_standing.items())
    first, second = (round(width(text, _SIZE) + 2 * _PAD) for text in (left, right))
    letters = f'font-family="Helvetica,Arial,Liberation Sans,sans-serif" font-size="{_SIZE}" fill="#ffffff"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{_HIGH}" role="img" '
        f'aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{first}" height="{_HIGH}" fill="#333333"/>\n'
        f'<rect x="{first}" width="{second}" height="{_HIGH}" fill="{colour}"/>\n'
        f'<g {letters}><text x="{_PAD}" y="14">{escape(left)}</text>'
        f'<text x="{first + _PAD}" y="14">{escape(right)}</text></g>\n</svg>\n'
    )
