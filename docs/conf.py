"""Sphinx: ``sphinx-build -W --keep-going -b html docs docs/_build/html`` from the root of the repository."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.append(str(Path(__file__).parent))

from returns import complete, hide_fields

project = "cwb"
author = "the cwb authors"
copyright = "the cwb authors, MIT licence"
release = version = installed_version("cwb")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "jupyter_execute", "**.ipynb_checkpoints"]

# "--json" and quotes in examples stay what can be typed.
smartquotes = False

html_theme = "furo"
html_title = f"cwb {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

# What is copied of a block with commands are the commands, without the prompt and without what they print.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

# Pages are Markdown (MyST); notebooks are stored with their output, which `python docs/notebooks.py --check` compares.
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_merge_streams = True

# `sphinx-build -b linkcheck docs docs/_build/links`, by hand where there is a network. Some hosts refuse robots (403).
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_report_timeouts_as_broken = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Parameters that a docstring describes together stay together.
napoleon_use_param = False

# Links to types of other libraries, such as pandas.DataFrame. Their lists of names come from their sites, and builds
# need no network, so these links are made only where CWB_INTERSPHINX=1 is set.
if os.environ.get("CWB_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "networkx": ("https://networkx.org/documentation/stable", None),
        "pyomo": ("https://pyomo.readthedocs.io/en/stable", None),
    }


def setup(app: Sphinx) -> None:
    """Complete docstrings before napoleon, whose priority is 500, reads their sections."""
    app.connect("autodoc-process-docstring", complete, priority=400)
    app.connect("autodoc-process-signature", hide_fields)
