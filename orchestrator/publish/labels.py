"""What a table prints for axes, labels and metrics, as one printable line or escaped for TeX."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.spec.layouts import PLACE
from workers.catalog import Catalog
from workers.contract import KINDS

GREEK: Mapping[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "omega": "ω",
}  # fmt: skip


def axis_title(axis: str) -> str:
    """The heading of an axis: `loss` -> Loss, `regularizer.eta` -> η, `optimizer.weight_decay` -> Weight decay."""
    last = axis.rpartition(".")[2]
    if last in GREEK:
        return GREEK[last]
    words = last.replace("_", " ").strip()
    return words if words == "lr" else words[:1].upper() + words[1:]


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """The catalog's facts on a metric for print, such as title, unit and better direction."""

    name: str  # of its part: `recall` of `recall@1`
    title: str  # in print: `recall@1` -> R@1, `map@r` -> MAP@R
    better: str  # higher, lower or none, also of a metric that the catalog does not know
    unit: str | None  # `number` for a metric that is no share, such as a norm; None means that the table decides
    over_queries: bool  # whether it is a mean over queries, whose scores trainings keep
    rule: str  # by which rule it is computed, where its title does not say so; a caption's words


def metric_facts(metric: str, parts: Catalog) -> MetricFacts:
    """Looks up a metric named `file` or `file@k` in the catalog."""
    name, _, cut = metric.partition("@")
    entry = parts.get("metric", name)
    facts = entry.facts if entry else {}
    label = entry.label if entry else name.replace("_", " ")
    better = str(facts.get("better", "none"))
    unit = facts.get("unit")
    return MetricFacts(
        name=name,
        title=f"{label.partition('@')[0]}@{cut.upper()}" if cut else label,
        better=better,
        unit=str(unit) if unit is not None else "number" if better == "none" else None,
        over_queries=facts.get("over") == "queries",
        rule=str(facts.get("caption") or ""),
    )


NO_LABEL: Final = "–"
"""What is printed where an axis does not apply."""
_ORDINAL: Final = "-+.0123456789"

Key = tuple[str, str]
"""An axis and one of its labels."""


@dataclass(frozen=True, slots=True)
class Names:
    """The printed names of a table's axes and labels: from its layout, or else from the catalog."""

    parts: Catalog
    labels: Mapping[str, Mapping[str, str]]
    titles: Mapping[str, str | None]

    def heads(self, axis: str) -> bool:
        """Whether the table prints headings for an axis; an axis whose title is null only separates rows or columns."""
        return self.titles.get(axis, "") is not None

    def title(self, axis: str) -> str:
        """The printed heading of an axis, which may be empty."""
        given = self.titles.get(axis)
        return axis_title(axis) if given is None else given

    def axis_name(self, axis: str) -> str:
        """The printed name of an axis in running text, never empty."""
        return self.titles.get(axis) or axis_title(axis)

    def template(self, axis: str, label: str) -> str | None:
        """The layout's printed text of a label, with placeholders such as `{regularizer.eta}`; None if it has none."""
        return self.labels.get(axis, {}).get(label)

    def label(self, axis: str, label: str) -> str:
        """The printed text of a label in a sentence: from the layout, the catalog's label of a part, or the label
        itself.

        A template or an empty text is passed over. The label is "" where the axis does not apply.
        """
        given = self.template(axis, label)
        if given and not PLACE.search(given):
            return given
        if not label:
            return NO_LABEL
        entry = self.parts.get(axis, label) if axis in KINDS else None
        return entry.label if entry else label

    def named(self, axis: str, label: str, text: str, title: str) -> str:
        """The printed text of a label without its axis; a bare value is preceded by the axis's title, `lr = 0.01`."""
        bare = axis not in KINDS and label[:1] in _ORDINAL and self.template(axis, label) is None
        return f"{title} = {text}" if bare and label and title else text

    def headings(self, axes: Sequence[str], points: Sequence[Sequence[str]], *, over: bool) -> dict[Key, str]:
        """The printed headings of labels, by axis and label, `over` columns or next to rows; templates are left out."""
        found = {}
        for level, axis in enumerate(axes):
            title = self.title(axis)
            for label in {point[level] for point in points}:
                if self.template(axis, label) is None:
                    text = self.label(axis, label)
                    found[axis, label] = self.named(axis, label, text, title) if over else text
        return found

    def point(self, axes: Sequence[str], point: Sequence[str]) -> tuple[str, ...]:
        """The printed labels of a point of several axes, for a sentence."""
        pairs = zip(axes, point, strict=True)
        return tuple(self.named(axis, label, self.label(axis, label), self.axis_name(axis)) for axis, label in pairs)


_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs"})  # control characters, direction marks, half surrogates
_FIXED_BLANKS: Final = "\u00a0\u2009\u202f"
_NARROW: Final = frozenset(" ijlftrI.,:;!|/()[]'")
_FIRST_WIDE: Final = 0x2E80  # from here on (Chinese, Japanese, Korean, emoji) characters fill a square


def one_line(text: str) -> str:
    """Reduces a text to one printable line (and valid XML), with single spaces and none at the ends."""
    blanks = "".join(" " if one.isspace() and one not in _FIXED_BLANKS else one for one in text)
    kept = (one for one in blanks if unicodedata.category(one) not in _UNPRINTABLE and one not in "\ufffe\uffff")
    return re.sub(" +", " ", "".join(kept)).strip()


def width(text: str, size: float) -> float:
    """Estimates the width of a text in a sans-serif font of that size, in the size's unit."""
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
"""Variation selectors, which say how the character before them is drawn, and which TeX's fonts lack."""
_NO_FONT: Final = frozenset({"Cn", "Co"})  # unassigned and private characters
_OPTION: Final = "[*"
"""What TeX takes for an option where it follows the end of a row or a rule."""

UNICODE_NOTE: Final = (
    "% This text is not Latin alone: compile it with XeLaTeX or LuaLaTeX, with \\usepackage{fontspec} and a",
    "% \\setmainfont that has these characters.",
)
"""Comment lines for a file that holds more than ASCII, which pdfLaTeX may not read."""


def escape(text: str) -> str:
    """Escapes a text for the body of a LaTeX document, on one line, wherever it begins in a row, caption or argument.

    The result is ASCII where TeX has commands for all of it. Other scripts stay as Unicode, which pdfLaTeX refuses.
    What no font has (unassigned and private characters, emoji) becomes [U+1F680].
    """
    line = _SELECTORS.sub("", one_line(text)).strip()
    written = "".join(_word(word) if word != " " else " " for word in re.split("( )", line))
    return f"{{{written[0]}}}{written[1:]}" if written[:1] and written[0] in _OPTION else written


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
    parts = unicodedata.normalize("NFD", character)
    base, mark = parts[0], parts[1:]
    return rf"\{_ACCENTS[mark]}{{{base}}}" if mark in _ACCENTS and base.isascii() and base.isalpha() else character
