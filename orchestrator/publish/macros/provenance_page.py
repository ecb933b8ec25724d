"""A page by itself that says where each number of a table is from: one file, no script, nothing fetched."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from orchestrator.publish.tables.plain import one_line
from orchestrator.views.macros import ChecklistView, MacroRun, MacroSource, MacrosView

_STYLE: Final = """
:root { color-scheme: light dark; --page: #fafaf8; --text: #1d2125; --muted: #59616a; --line: #dcdfe3; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --text: #e3e6e9; --muted: #9ca5ae; --line: #333a41; } }
body { margin: 0 auto; max-width: 1100px; padding: 16px; background: var(--page); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 28px; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } .muted { color: var(--muted); }
table { border-collapse: collapse; font-size: 13px; } th, td { padding: 3px 14px 3px 0; text-align: left;
  border-bottom: 1px solid var(--line); vertical-align: top; }
details { margin: 6px 0; border-top: 1px solid var(--line); padding-top: 6px; }
summary { cursor: pointer; } dt { font-weight: 600; margin-top: 8px; } dd { margin: 0 0 0 16px; }
"""


def provenance_page(view: MacrosView, found: Sequence[MacroSource], checklist: ChecklistView) -> str:
    """The page; each number stands under the name of its macro, which is its anchor."""
    return "\n".join(_lines(view, found, checklist)) + "\n"


def _lines(view: MacrosView, found: Sequence[MacroSource], checklist: ChecklistView) -> Iterator[str]:
    title = f"Where the numbers of table {view.table} are from"
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_text(title)}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>"
    yield f"<p>Sweep {view.sweep} ({_text(view.sweep_name)}), <code>{_text(view.uid)}</code>.</p>"
    yield f"<p>{_text(view.caption)}</p>"
    yield "<h2>Numbers</h2>"
    for number in found:
        yield from _number(number)
    yield "<h2>Answers to a reproducibility checklist</h2>"
    yield '<p class="muted">Drafted from the records. What they do not know is said; read before you hand in.</p>\n<dl>'
    for answer in checklist.answers:
        yield f"<dt>{_text(answer.question)}</dt><dd>{_text(answer.answer)}"
        yield (f'<br><span class="muted">To add: {_text(answer.open)}</span>' if answer.open else "") + "</dd>"
    yield "</dl>\n</main>\n</body>\n</html>"


def _number(one: MacroSource) -> Iterator[str]:
    number = one.number
    place = ", ".join(f"{axis} {label}" for axis, label in number.labels.items()) or "the only cell"
    yield f'<details id="{number.name}"><summary><code>\\{number.name}</code> <b>{_text(number.value)}</b>'
    yield f" {_text(number.metric)}, {_text(place)}</summary>"
    chosen = ", ".join(f"{axis} {label}" for axis, label in one.selected.items()) or "untuned"
    yield f"<p>95 % interval {_text(number.interval)}, standard deviation {_text(number.std)}, runs {number.seeds}. "
    yield f"Selected: {_text(chosen)}, of {one.candidates}. Cell {number.cell} of sweep {number.sweep}.</p>"
    if one.runs:
        headings = ("trial", "repeat", "value", "recipe", "data set", "commit", "device", "versions", "seconds")
        yield '<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table><thead><tr>'
        yield "".join(f'<th scope="col">{heading}</th>' for heading in headings)
        yield "</tr></thead><tbody>"
        yield from (f"<tr>{''.join(f'<td>{_text(text)}</td>' for text in _run(run))}</tr>" for run in one.runs)
        yield "</tbody></table></div>"
    yield "</details>"


def _run(run: MacroRun) -> tuple[str, ...]:
    repeat = ", ".join(f"{axis} {label}" for axis, label in run.labels.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        str(run.trial), repeat, "none" if run.value is None else f"{run.value:.6g}", run.fingerprint,
        run.data_hash or "unknown", run.git_commit or "unknown", run.device or "unknown", versions or "unknown",
        "unknown" if run.seconds is None else f"{run.seconds:.0f}",
    )  # fmt: skip


def _text(text: str) -> str:
    return escape(one_line(text))
