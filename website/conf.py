"""Sphinx's settings for the website; `build.py` calls Sphinx with them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import take_docstring

from maskwright.version import version as maskwright_version

project = "maskwright"
copyright = "the authors of maskwright; Apache-2.0"
version = release = maskwright_version()
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
suppress_warnings = ["config.cache", "misc.highlighting_failure", "ref.python"]
default_role = "code"
highlight_language = "none"

html_theme = "furo"
html_title = "maskwright"
html_static_path, html_favicon = ["static"], "static/icon.svg"
html_css_files = ["site.css"]
html_show_sphinx = html_copy_source = html_show_sourcelink = False
pygments_style, pygments_dark_style = "default", "github-dark"

# links as GitHub reads them
myst_heading_anchors = 6
myst_all_links_external = False

# notebooks run anew with each build, in an empty folder; an error in one ends it
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
autosummary_generate = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"


def setup(app):  # type: ignore[no-untyped-def]
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", take_docstring)
