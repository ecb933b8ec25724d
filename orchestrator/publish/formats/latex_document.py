"""LaTeX as a document of its own: one page as large as the table, for pdflatex, or for XeLaTeX where it needs that."""

from orchestrator.publish.formats import latex
from orchestrator.publish.tables.table_data import Table

media_type = latex.media_type
suffix = latex.suffix


def render(table: Table) -> bytes:
    """Writes a table as a LaTeX document: in ASCII if pdflatex can compile it, otherwise in UTF-8 for XeLaTeX."""
    return latex.render_standalone(table)
