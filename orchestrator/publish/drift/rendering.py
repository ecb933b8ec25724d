"""The difference of two tables as a file: text, HTML, LaTeX or JSON."""

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape as html
from typing import Final

from orchestrator.publish.labels import axis_title
from orchestrator.publish.tables.tex_characters import escape as tex
from orchestrator.publish.tables.tex_characters import unicode_note
from orchestrator.views.drift import CellDrift, DriftNumber, DriftView
from orchestrator.views.errors import NotFoundError
from orchestrator.views.files import Rendered
from workers.catalog import unknown

_HEADINGS: Final = ("cell", "metric", "before", "after", "difference", "by", "noise")
_MINUS: Final = re.compile(r"^-(?=[\d.])")


def render(view: DriftView, format_name: str) -> Rendered:
    """The difference in a format; NotFoundError names the formats there are."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a difference", format_name, _FORMATS))
    media_type, suffix, write = _FORMATS[format_name]
    return Rendered(content=write(view).encode(), media_type=media_type, filename=f"drift-{view.table}{suffix}")


def _line(cell: CellDrift) -> tuple[str, ...]:
    place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in cell.labels.items()) or "the only cell"
    by = "; ".join(f"{one.kind}: {one.said}" for one in cell.causes) or cell.change
    noise = cell.loudness if cell.p is None else f"{cell.loudness} (p = {cell.p:.2g})"
    return place, cell.title or cell.metric, _shown(cell.before), _shown(cell.after), cell.shown, by, noise


def _shown(one: DriftNumber | None) -> str:
    if one is None:
        return "none"
    return f"{one.text} ({one.n})" if one.n else one.text or "none"


def _lead(view: DriftView) -> str:
    count = len(view.cells)
    loud = sum(one.loudness == "more than noise" for one in view.cells)
    moved = f"{count} number{'s' * (count != 1)} of table {view.table} changed, {loud} by more than noise"
    return f"From {view.before} to {view.after}: {moved}; {view.unchanged} are as they were."


def _text(view: DriftView) -> str:
    return "\n".join(_lines(view)) + "\n"


def _lines(view: DriftView) -> Iterator[str]:
    yield _lead(view)
    for cell in view.cells:
        place, title, before, after, difference, _, noise = _line(cell)
        yield ""
        yield f"{place}: {title}"
        yield f"  {before} → {after}" + (f", {difference}, {noise}: {cell.why}" if difference else f", {cell.change}")
        yield from (f"  {one.kind}: {one.said}" for one in cell.causes)
    if view.cells:
        yield ""
        yield f"In brackets the number of runs. {view.said}"


def _html(view: DriftView) -> str:
    head = "".join(f'<th scope="col">{one}</th>' for one in _HEADINGS)
    rows = []
    for cell in view.cells:
        place, *others = _line(cell)
        kind = cell.loudness.replace(" ", "-")
        cells = "".join(f"<td>{html(one)}</td>" for one in others)
        rows.append(f'<tr class="{kind}"><th scope="row">{html(place)}</th>{cells}</tr>')
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table>\n"
    caption = f'<p class="caption">{html(_lead(view))} In brackets the number of runs. {html(view.said)}</p>'
    body = table if view.cells else ""
    return f'<figure class="metricsweep-drift">\n{body}<figcaption>{caption}</figcaption>\n</figure>\n'


def _latex(view: DriftView) -> str:
    lead = tex(f"{_lead(view)} In brackets the number of runs. {view.said}")
    if not view.cells:
        return f"% Nothing changed.\n{lead}\n"
    lines = [
        "{\\footnotesize\\setlength{\\tabcolsep}{3pt}\\raggedright",
        "\\begin{longtable}{>{\\raggedright\\arraybackslash}p{.17\\linewidth}"
        ">{\\raggedright\\arraybackslash}p{.1\\linewidth}rrr"
        ">{\\raggedright\\arraybackslash}p{.2\\linewidth}>{\\raggedright\\arraybackslash}p{.12\\linewidth}}",
        f"  \\caption{{{lead}}}\\\\",
        "  \\toprule",
        "  Cell & Metric & Before & After & Diff. & By & Noise \\\\",
        "  \\midrule\\endfirsthead",
        "  \\toprule Cell & Metric & Before & After & Diff. & By & Noise \\\\ \\midrule\\endhead",
        "  \\bottomrule\\endlastfoot",
        *(f"  {' & '.join(_tex(one) for one in _line(cell))} \\\\" for cell in view.cells),
        "\\end{longtable}}",
    ]
    head = ("% Needs \\usepackage{booktabs,longtable,array}.", *unicode_note(lines))
    return "\n".join((*head, *lines)) + "\n"


def _tex(text: str) -> str:
    """A column in TeX; a number below zero has a minus, and no hyphen."""
    return _MINUS.sub("$-$", tex(text))


def _json(view: DriftView) -> str:
    return view.model_dump_json(indent=2) + "\n"


_FORMATS: Final[Mapping[str, tuple[str, str, Callable[[DriftView], str]]]] = {
    "text": ("text/plain; charset=utf-8", ".txt", _text),
    "html": ("text/html; charset=utf-8", ".html", _html),
    "latex": ("application/x-tex", ".tex", _latex),
    "json": ("application/json", ".json", _json),
}
