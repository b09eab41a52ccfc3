"""Settings that Sphinx reads from the report's source folder: nothing executed, nothing fetched."""

import re
import sys

sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema does without; it takes a second
project = "osnb"
html_title = "osnb: an open-set workbook"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3  # notebooks link to words of the glossary
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
# a notebook's headings may leave a level out, and its code may be no Python
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
napoleon_use_ivar = True  # attributes of a class are described once
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # scripts from elsewhere, and dead without a kernel
highlight_language = "text"  # where a block names none
html_theme = "furo"
html_css_files = ["report.css"]
html_static_path = ["_static"]
html_copy_source = False
html_show_copyright = False
pygments_dark_style = "github-dark"
mathjax_path = "mathjax/tex-chtml.js"


def equations(app, what, name, thing, options, lines):  # noqa: ARG001 (Sphinx calls it)
    """Keep the lines of an equation, an indented block of a docstring, as they are written."""
    text = re.sub(r"^(\S.*)\n\n(?= {4}\S)", r"\1\n\n::\n\n", "\n".join(lines), flags=re.M)
    lines[:] = text.split("\n")


def field(app, what, name, thing, skip, options):  # noqa: ARG001 (Sphinx calls it)
    """Leave out what a NamedTuple says of a field by itself: its class describes it."""
    return (getattr(thing, "__doc__", None) or "").startswith("Alias for field number") or None


def setup(app):
    """Called by Sphinx; `equations` sees a docstring before napoleon does."""
    app.connect("autodoc-process-docstring", equations, priority=400)
    app.connect("autodoc-skip-member", field)
