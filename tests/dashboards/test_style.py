"""The style sheet: contrast in both schemes, a style for every state, nothing from elsewhere."""

import re

from dashboards import rendering
from orchestrator.views.states import SweepState


def style() -> str:
    return (rendering.static("style.css") or b"").decode()


def schemes() -> dict[str, dict[str, str]]:
    light, dark = (
        dict(re.findall(r"--([\w-]+):\s*(#\w{6})", block)) for block in re.findall(r":root {(.*?)}", style(), re.DOTALL)
    )
    return {"light": light, "dark": light | dark}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_text_and_shapes_have_the_contrast_that_wcag_asks_for() -> None:
    """All possible pairs: axe checks only those that a page shows."""
    inks = ("text", "muted", "accent", "alert", "best")
    pairs = [(ink, ground, 4.5) for ink in inks for ground in ("page", "raised", "soft", "alert-page", "mild-page")]
    pairs += [("accent-text", "accent", 4.5), ("page", "alert", 4.5)]
    pairs += [(edge, "raised", 3) for edge in ("finished", "running", "failed", "diverged-edge", "waiting")]
    pairs += [("sign", filled, 4.5) for filled in ("failed", "diverged")]  # their signs are dark on them
    poor = [
        (scheme, *pair)
        for scheme, colours in schemes().items()
        for pair in pairs
        if contrast((colours | {"sign": "#14171a"})[pair[0]], colours[pair[1]]) < pair[2]
    ]
    assert poor == []


def test_every_kind_has_a_shape() -> None:
    for kind in {*rendering.KINDS, *SweepState}:
        assert f".sq.{kind}" in style(), kind


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name in ("style.css", "refresh.js", "figure.js", "sweep_figures.js", "icon.svg"):
        text = (rendering.static(name) or b"").decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(|eval\(|new Function", text), name


def test_paper_is_neither_dark_nor_a_phone() -> None:
    """A page of A4 is 718 pixels wide between its margins, and the screen may be dark."""
    for sheet in ("style.css", "listing.css", "catalog.css", "submit.css"):
        rules = re.findall(r"@media ([^{]+) {", (rendering.static(sheet) or b"").decode())
        assert [one for one in rules if "screen" not in one and ("width" in one or "color-scheme" in one)] == [], sheet
