"""How the documentation becomes a site: `make guide` builds it, strictly, for the service to show at /docs/guide/.

The pages stay plain Markdown, which GitHub shows as well: what only a site can have is added to them on the way.
"""

import importlib.metadata
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import docstrings
import navigation
import operations

project = "metricsweep"
version = release = importlib.metadata.version("metricsweep")
project_copyright = ""
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["site"]

myst_heading_anchors = 4
nitpicky = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "metricsweep"
html_favicon = "../../dashboards/static/icon.svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    # The fonts are those of the machine: nothing is fetched.
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#74b6f4", "color-brand-content": "#74b6f4"},
    "announcement": '<a href="/">metricsweep: to the sweeps</a>',
}


def setup(app: Sphinx) -> None:
    """Add to the pages what they hold of the code, and put them in order."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", navigation.add)
    app.connect("source-read", operations.add)
    app.connect("autodoc-process-docstring", docstrings.as_markup)
