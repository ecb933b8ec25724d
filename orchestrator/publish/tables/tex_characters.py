"""Plain text to TeX: ASCII that means the same in pdfLaTeX, XeLaTeX and LuaLaTeX, with any font encoding."""

import re
import unicodedata
from typing import Final

from orchestrator.publish.tables.plain import one_line

_PLAIN: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,",
    "–": "--", "—": "---", "‐": "-", "‑": "-", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''",
    "§": r"\S{}", "©": r"\copyright{}", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "†": r"\dag{}", "‡": r"\ddag{}",
}  # fmt: skip

_MATH: Final = {
    "±": r"\pm", "−": "-", "×": r"\times", "÷": r"\div", "·": r"\cdot", "∼": r"\sim", "≈": r"\approx", "≤": r"\leq",
    "≥": r"\geq", "≠": r"\neq", "∞": r"\infty", "→": r"\rightarrow", "←": r"\leftarrow", "↑": r"\uparrow",
    "↓": r"\downarrow", "⇑": r"\Uparrow", "⇓": r"\Downarrow",
    "°": r"^{\circ}", "•": r"\bullet", "∈": r"\in", "ℓ": r"\ell",
    "∥": r"\|", "‖": r"\|", "√": r"\surd", "¬": r"\neg", "²": "^{2}", "³": "^{3}", "¹": "^{1}", "µ": r"\mu",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "ζ": r"\zeta", "η": r"\eta",
    "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "ο": "o",
    "π": r"\pi", "ρ": r"\rho", "ς": r"\varsigma", "σ": r"\sigma", "τ": r"\tau", "υ": r"\upsilon", "φ": r"\varphi",
    "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda",
    "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip

_ACCENTS: Final = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip

_LIGATURES: Final = re.compile(r"-(?=-)|'(?=')|,(?=,)|[?!](?=`)")
"""ASCII pairs that TeX would join into another character."""
_INDEX: Final = re.compile(r"\b([A-Za-z])_([α-ω])(?!\w)")
"""A letter with a Greek index, such as the s_μ of a heading."""


def escape(text: str) -> str:
    """`text` for the body of a LaTeX document, on one line; a character that TeX has no sign for becomes [U+4E2D]."""
    return "".join(_word(word) if word != " " else " " for word in re.split("( )", one_line(text)))


def _word(word: str) -> str:
    if found := _INDEX.search(word):
        before, letter, index, after = word[: found.start()], *found.groups(), word[found.end() :]
        return f"{_word(before)}${letter}_{{{_MATH[index]}}}${_word(after)}"
    return "".join(_character(one) for one in _LIGATURES.sub(r"\g<0>" + "\u200b", unicodedata.normalize("NFC", word)))


def _character(character: str) -> str:
    if character == "\u200b":  # put there by `_word`; the text itself has none left
        return "{}"
    if character in _PLAIN:
        return _PLAIN[character]
    if character in _MATH:
        return f"${_MATH[character]}$"
    if character.isascii():
        return character
    return _accented(character) or f"[U+{ord(character):04X}]"


def _accented(character: str) -> str | None:
    parts = unicodedata.normalize("NFD", character)
    base, mark = parts[0], parts[1:]
    return rf"\{_ACCENTS[mark]}{{{base}}}" if mark in _ACCENTS and base.isascii() and base.isalpha() else None
