"""The site: `make docs` builds it into build/docs/html, running every page's code."""

import hashlib
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))
# Pages call `manypass` as readers do, and find it whatever shell built them.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from docutils import nodes  # noqa: E402

import manypass  # noqa: E402

project, author = "manypass", "The manypass developers"
copyright = author
version = release = manypass.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "mathml",
    "evidence",
    "running",
]
exclude_patterns = ["_ext"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 3

nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_render_markdown_format = "myst"


def _sources() -> str:
    """Name the state of the program: its pages are run again when it changes."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


nb_execution_cache_path = str(ROOT / "build" / "docs" / "ran" / _sources())

default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "manypass"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../src/manypass/explorer/static/icon.svg"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c8f",
        "color-brand-content": "#0b5c8f",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
        "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cb8e6",
        "color-brand-content": "#6cb8e6",
    },
}


def plain_bars(app, what, name, obj, options, lines):
    """Take |J|² in a docstring for what it is, not for a substitution of reStructuredText."""
    lines[:] = [re.sub(r"(?<![\\`|])\|(?=\S)", r"\\|", line) for line in lines]


def link_papers(app, name, source):
    """Let the number of a paper be a link to it."""
    paper = r"(?<![\[/])arXiv[\s:](\d{4}\.\d{5}|cond-mat/\d{7})"
    source[0] = re.sub(paper, r"[arXiv \1](https://arxiv.org/abs/\1)", source[0])


def as_read(app, doctree):
    """Show commands as one types them in a shell, and name pictures by the page they are on."""
    for block in doctree.findall(nodes.literal_block):
        if block.astext().startswith("%%bash -e\n"):
            text = block.astext().removeprefix("%%bash -e\n")
            block.children, block.rawsource = [nodes.Text(text)], text
            block["language"] = "bash"
    title = next((t.astext() for t in doctree.findall(nodes.title)), "")
    for picture in doctree.findall(nodes.image):
        if "jupyter_execute" in picture["uri"]:
            picture["alt"] = f"Figure: {title}"


def setup(app):
    """Connect what is above."""
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("source-read", link_papers)
    app.connect("doctree-read", as_read)
