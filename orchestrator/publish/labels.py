"""What a table prints for axes, labels and metrics, as one printable line or escaped for TeX."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.spec.layouts import PLACE
from workers.catalog import Catalog, Entry
from workers.contract import KINDS

GREEK: Mapping[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "omega": "ω",
}  # fmt: skip

_SHORT: Mapping[str, str] = {"lr": "lr"}


def axis_title(axis: str) -> str:
    """The heading of an axis: `loss` -> Loss, `regularizer.eta` -> η, `optimizer.weight_decay` -> Weight decay."""
    last = axis.rpartition(".")[2]
    if last in GREEK:
        return GREEK[last]
    words = last.replace("_", " ").strip()
    return _SHORT.get(last, words[:1].upper() + words[1:])


def choice_label(axis: str, label: str, parts: Catalog) -> str:
    """A choice in print: a bare part name by its label in the catalog, anything else as the spec writes it."""
    entry = parts.get(axis, label) if axis in KINDS else None
    return entry.label if entry else label


def metric_entry(metric: str, parts: Catalog) -> Entry | None:
    """The catalog entry of a metric named `file` or `file@k`."""
    return parts.get("metric", metric.partition("@")[0])


def metric_title(metric: str, parts: Catalog) -> str:
    """A metric in print: `recall@1` -> R@1, `map@r` -> MAP@R."""
    name, _, cut = metric.partition("@")
    entry = metric_entry(metric, parts)
    label = entry.label if entry else name.replace("_", " ")
    return f"{label.partition('@')[0]}@{cut.upper()}" if cut else label


def metric_better(metric: str, parts: Catalog) -> str:
    """`higher`, `lower` or `none`; `none` too for a metric that the catalog does not know."""
    entry = metric_entry(metric, parts)
    return str(entry.facts.get("better", "none")) if entry else "none"


def metric_over_queries(metric: str, parts: Catalog) -> bool:
    """Whether it is a mean over queries, of each of which trainings keep the score."""
    entry = metric_entry(metric, parts)
    return entry is not None and entry.facts.get("over") == "queries"


def metric_unit(metric: str, parts: Catalog) -> str | None:
    """`number` for a metric that is no share of anything (norms, singular values); none: the table decides."""
    entry = metric_entry(metric, parts)
    unit = entry.facts.get("unit") if entry else None
    return str(unit) if unit is not None else ("number" if metric_better(metric, parts) == "none" else None)


Fill = Callable[[str], str]
"""From the path in a template, such as `regularizer.eta`, to the text that takes its place."""

NO_LABEL: Final = "–"
"""What is printed where an axis does not apply."""
_ORDINAL: Final = "-+.0123456789"


@dataclass(frozen=True, slots=True)
class Names:
    """What one table calls axes and their labels: as its layout says, else as the catalog does."""

    parts: Catalog
    labels: Mapping[str, Mapping[str, str]]
    titles: Mapping[str, str | None]

    def heads(self, axis: str) -> bool:
        """Whether an axis has headings of its own; one whose title is null only tells rows or columns apart."""
        return self.titles.get(axis, "") is not None

    def title(self, axis: str) -> str:
        """The heading of an axis, which may be empty."""
        given = self.titles.get(axis)
        return axis_title(axis) if given is None else given

    def said(self, axis: str) -> str:
        """The name of an axis in running text, never empty."""
        return self.titles.get(axis) or axis_title(axis)

    def label(self, axis: str, label: str, fill: Fill | None = None) -> str:
        """A label in print, with what `fill` gives in the places of its template; "" is where the axis does not apply.

        Without `fill`, for running text, a template or an empty text is passed over for the catalog's label.
        """
        given = self.labels.get(axis, {}).get(label)
        if fill is None and given is not None and (not given or PLACE.search(given)):
            given = None
        if given is None:
            return choice_label(axis, label, self.parts) if label else NO_LABEL
        return given if fill is None else PLACE.sub(lambda found: fill(found[1]), given)

    def point(self, axes: Sequence[str], point: Sequence[str], fill: Fill | None = None) -> tuple[str, ...]:
        """The labels of a point of axes as headings over columns: a bare value gets the name of its axis."""
        printed = []
        for axis, label in zip(axes, point, strict=True):
            text = self.label(axis, label, fill)
            bare = axis not in KINDS and label[:1] in _ORDINAL and label not in self.labels.get(axis, {})
            title = self.title(axis) if fill else self.said(axis)
            printed.append(f"{title} = {text}" if bare and label and title else text)
        return tuple(printed)


_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs"})  # control characters, direction marks, half surrogates
_FIXED_BLANKS: Final = "\u00a0\u2009\u202f"
_NARROW: Final = frozenset(" ijlftrI.,:;!|/()[]'")
_FIRST_WIDE: Final = 0x2E80  # from here on (Chinese, Japanese, Korean, emoji) characters fill a square


def one_line(text: str) -> str:
    """`text` without what cannot be printed (or not in XML), every run of blanks one space, none at the ends."""
    blanks = "".join(" " if one.isspace() and one not in _FIXED_BLANKS else one for one in text)
    kept = (one for one in blanks if unicodedata.category(one) not in _UNPRINTABLE and one not in "\ufffe\uffff")
    return re.sub(" +", " ", "".join(kept)).strip()


def width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif font of that size, in the same unit."""
    return size * sum(_advance(character) for character in text)


def _advance(character: str) -> float:
    if ord(character) >= _FIRST_WIDE or character in "…—":
        return 1.0
    if character in _NARROW:
        return 0.3
    return 0.7 if character.isupper() or character in "mw%@" else 0.55


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
