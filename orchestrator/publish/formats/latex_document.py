"""LaTeX as a document of its own: one page as large as the table, which compiles with pdflatex."""

from orchestrator.publish.formats import latex
from orchestrator.publish.tables.table_data import Table

media_type = latex.media_type
suffix = latex.suffix


def render(table: Table) -> bytes:
    """The document, in ASCII."""
    return latex.render_standalone(table)
