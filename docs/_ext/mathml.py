"""Formulas as MathML, which browsers draw themselves: no script, and a font that travels along."""

import html
from pathlib import Path

import latex2mathml.converter
import ziamath
from docutils import nodes
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
LETTERS = "U+20-7E,U+A0-FF,U+131,U+237,U+300-36F,U+370-3FF,U+2000-22FF,U+2308-230B,U+2329-232A,"
LETTERS += "U+23B0-23E1,U+25A0-25FF,U+27C0-27EF,U+2900-2AFF,U+1D400-1D7FF"
# What browsers draw too small, too high or with the wrong spaces around it.
BETTER = {
    '<mo stretchy="true">&#x000AF;</mo>': '<mo accent="true">&#x02015;</mo>',
    "<mo>&#x0005E;</mo>": '<mo stretchy="false">&#x002C6;</mo>',
    "<mo>&#x0221E;</mo>": "<mi>&#x0221E;</mi>",
    "<mo>min</mo>": "<mi>min</mi>",
    '<mo stretchy="false">&#x0007C;</mo>': '<mo stretchy="false" lspace="0" rspace="0">|</mo>',
    "<mo>&#x0003D;</mo><mo>&#x02212;</mo>": '<mo>=</mo><mo form="prefix">&#x02212;</mo>',
}


def convert(latex: str, display: str) -> str:
    """Return the MathML of a formula."""
    formula = latex2mathml.converter.convert(latex, display=display)
    for drawn, better in BETTER.items():
        formula = formula.replace(drawn, better)
    return formula


def visit_math(self, node):
    """Write a formula within a line."""
    self.body.append(f'<span class="math">{convert(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a displayed formula, a table of it if it has several lines."""
    latex = node.astext().strip()
    if "\\\\" in latex and "\\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    number = get_node_equation_number(self, node) if node.get("number") else ""
    label = f'<span class="eqno">({html.escape(number)})</span>' if number else ""
    ids = f' id="{node["ids"][0]}"' if node["ids"] else ""
    self.body.append(f'<div class="math"{ids}>{label}{convert(latex, "block")}</div>\n')
    raise nodes.SkipNode


def write_font(app: Sphinx, error: Exception | None) -> None:
    """Put the letters that formulas need beside the pages."""
    if error or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "math.woff"
    if target.exists():
        return
    chosen = ["--layout-features=*", "--flavor=woff", f"--unicodes={LETTERS}"]
    subset.main([str(FONT), f"--output-file={target}", *chosen])


def setup(app: Sphinx) -> dict[str, object]:
    """Register as the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_block, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
