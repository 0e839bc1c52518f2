"""`{computed}`: an equation's lines of code and the tests that check it, looked up in the sources.

A name that has moved, or lines that are not there, stop the build: this page cannot grow stale.
"""

import ast
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
SOURCE, TESTS = ROOT / "src" / "manypass", ROOT / "tests"


def definition(path: Path, name: str) -> ast.AST:
    """Return the node of a function, class or method in a file."""
    node: ast.AST = ast.parse(path.read_text("utf-8"))
    for part in name.split("."):
        inside = [child for child in ast.walk(node) if getattr(child, "name", None) == part]
        if not inside:
            raise LookupError(f"{path.relative_to(ROOT)} has no {name}")
        node = inside[0]
    return node


def lines_of(path: Path, name: str, first: str, count: int) -> tuple[int, str]:
    """Return `count` lines of a definition from the one that holds `first`, and their number."""
    node = definition(path, name)
    lines = path.read_text("utf-8").splitlines()[: node.end_lineno]
    body = range(node.lineno - 1, node.end_lineno)
    found = [i for i in body if first in lines[i]]
    if len(found) != 1:
        raise LookupError(f"{first!r} is on {len(found)} lines of {name} in {path.name}, not one")
    chosen = lines[found[0] : found[0] + count]
    indent = min(len(line) - len(line.lstrip()) for line in chosen if line.strip())
    return found[0] + 1, "\n".join(line[indent:] for line in chosen)


class Computed(SphinxDirective):
    """``{computed} exact/steady.py stationary`` with `from`, `lines` and `tests`."""

    required_arguments = 2
    option_spec: ClassVar = {
        "from": directives.unchanged_required,
        "lines": directives.positive_int,
        "tests": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the lines, where they are, and what checks them."""
        file, name = self.arguments
        path = SOURCE / file
        try:
            number, text = lines_of(path, name, self.options["from"], self.options.get("lines", 1))
            for test in self.options["tests"].split():
                definition(TESTS / test.split("::")[0], test.split("::")[1])
        except (LookupError, OSError) as error:
            raise self.error(str(error)) from error
        for seen in (path, *(TESTS / t.split("::")[0] for t in self.options["tests"].split())):
            self.env.note_dependency(str(seen))
        code = nodes.literal_block(text, text, language="python")
        where = nodes.paragraph(classes=["evidence"])
        where += [nodes.literal("", f"{file}:{number}"), nodes.Text(f", in {name}; checked by ")]
        for i, test in enumerate(self.options["tests"].split()):
            where += [nodes.Text(", " if i else ""), nodes.literal("", test)]
        return [nodes.container("", code, where, classes=["computed"])]


def setup(app: Sphinx) -> dict[str, object]:
    """Register the directive."""
    app.add_directive("computed", Computed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
