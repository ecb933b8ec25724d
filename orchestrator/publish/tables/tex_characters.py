"""Plain text to TeX: ASCII for every engine where there are commands for it, else Unicode for XeLaTeX and LuaLaTeX.

Latin text, Greek symbols and common mathematical signs become commands that need no package and no font encoding.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from orchestrator.publish.tables.plain import one_line

_PLAIN: Final = {
    "\u200b": "{}",  # put between ligatures by `_word`; the text itself has none left
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
    "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega", "ϵ": r"\epsilon",
    "ϑ": r"\vartheta", "ϕ": r"\phi", "ϱ": r"\varrho", "ϖ": r"\varpi", "⊕": r"\oplus", "⊗": r"\otimes",
    "⊙": r"\odot", "⋆": r"\star", "∗": r"\ast", "∀": r"\forall", "∃": r"\exists", "∂": r"\partial",
    "∇": r"\nabla", "∑": r"\Sigma", "∏": r"\Pi", "∫": r"\smallint", "⊂": r"\subset", "⊆": r"\subseteq",
    "∪": r"\cup", "∩": r"\cap", "∧": r"\wedge", "∨": r"\vee", "∅": r"\emptyset", "≡": r"\equiv",
    "∝": r"\propto", "⟨": r"\langle", "⟩": r"\rangle", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow",
    "⇔": r"\Leftrightarrow", "′": r"^{\prime}", "⊤": r"\top", "⊥": r"\bot", "∉": r"\notin", "≪": r"\ll",
    "≫": r"\gg", "≃": r"\simeq", "∘": r"\circ", "✓": r"\surd", "✔": r"\surd", "✗": r"\times", "✘": r"\times",
    "★": r"\star", "◊": r"\diamond",
    **{sign: f"^{{{n}}}" for n, sign in zip("0456789+-", "⁰⁴⁵⁶⁷⁸⁹⁺⁻", strict=True)},
    **{sign: f"_{{{n}}}" for n, sign in zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True)},
}  # fmt: skip

_ACCENTS: Final = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip

_LIGATURES: Final = re.compile(r"-(?=-)|'(?=')|,(?=,)|[?!](?=`)")
"""ASCII pairs that TeX would join into another character."""
_INDEX: Final = re.compile(r"\b([A-Za-z])_([α-ω])(?!\w)")
"""A letter with a Greek index, such as the s_μ of a heading."""


_GREEK: Final = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+")
_CHARACTERS: Final = re.compile(f"[A-Za-z][{''.join(_ACCENTS)}]|.", re.DOTALL)
"""A letter with an accent for which there is no single character, or one character."""
_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Variation selectors, which say how the character before them is drawn and which TeX's fonts do not know."""
_NO_FONT: Final = frozenset({"Cn", "Co"})  # unassigned and private characters
_OPTION: Final = "[*"
"""What TeX takes for an option where it follows the end of a row or a rule."""

UNICODE_NOTE: Final = (
    "% This text is not Latin alone: compile it with XeLaTeX or LuaLaTeX, with \\usepackage{fontspec} and a",
    "% \\setmainfont that has these characters.",
)
"""Comment lines for a file that holds more than ASCII."""


def escape(text: str) -> str:
    """`text` for the body of a LaTeX document, on one line, wherever in a row, a caption or an argument it begins.

    The result is ASCII where TeX has commands for all of it. Other scripts stay as Unicode, which pdfLaTeX refuses.
    What no font has (unassigned and private characters, emoji) becomes [U+1F680].
    """
    line = _SELECTORS.sub("", one_line(text)).strip()
    written = "".join(_word(word) if word != " " else " " for word in re.split("( )", line))
    return f"{{{written[0]}}}{written[1:]}" if written[:1] and written[0] in _OPTION else written


def unicode_note(lines: Iterable[str]) -> tuple[str, ...]:
    """The comment that says which engines read these lines; empty where pdfLaTeX does too."""
    return () if all(line.isascii() for line in lines) else UNICODE_NOTE


def _word(word: str) -> str:
    if found := _INDEX.search(word):
        before, letter, index, after = word[: found.start()], *found.groups(), word[found.end() :]
        return f"{_word(before)}${letter}_{{{_MATH[index]}}}${_word(after)}"
    plain = _LIGATURES.sub(r"\g<0>" + "\u200b", unicodedata.normalize("NFC", word))
    # A Greek word with a letter that mathematics lacks is text, all of it.
    parts = re.split(f"({_GREEK.pattern})", plain)
    return "".join(
        part
        if _GREEK.fullmatch(part) and not all(one in _MATH for one in part)
        else "".join(map(_character, _CHARACTERS.findall(part)))
        for part in parts
    )


def _character(character: str) -> str:
    if character in _PLAIN:
        return _PLAIN[character]
    if character in _MATH:
        return f"${_MATH[character]}$"
    if character.isascii():
        return character
    if len(character) > 1:
        return rf"\{_ACCENTS[character[1]]}{{{character[0]}}}"
    category = unicodedata.category(character)
    if category in _NO_FONT or (category == "So" and ord(character) > 0xFFFF):
        return f"[U+{ord(character):04X}]"
    return _accented(character) or character


def _accented(character: str) -> str | None:
    parts = unicodedata.normalize("NFD", character)
    base, mark = parts[0], parts[1:]
    return rf"\{_ACCENTS[mark]}{{{base}}}" if mark in _ACCENTS and base.isascii() and base.isalpha() else None
