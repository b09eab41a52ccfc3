"""Settings that Sphinx reads from the report's source folder: nothing executed, nothing fetched."""

project = "osnb"
html_title = "osnb: an open-set workbook"
extensions = ["myst_nb"]
myst_heading_anchors = 3  # notebooks link to words of the glossary
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
# a notebook's headings may leave a level out, and its code may be no Python
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # scripts from elsewhere, and dead without a kernel
html_theme = "furo"
html_css_files = ["report.css"]
html_static_path = ["_static"]
html_copy_source = False
html_show_copyright = False
pygments_dark_style = "github-dark"
mathjax_path = "mathjax/tex-chtml.js"
