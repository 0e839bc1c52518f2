"""The site that `make docs` has built: its links, its pages in a browser, its notebooks."""

import html.parser
import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import manypass as mp

SITE = Path(__file__).parents[1] / "build" / "docs" / "html"
CHROMIUM = os.environ.get("MANYPASS_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="there is no site: make docs builds it")


class Reader(html.parser.HTMLParser):
    """Names that a page can be entered at, where it leads, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        wanted = given.get("src") or (tag == "link" and given.get("href"))
        if wanted and given.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.loads.append(wanted)


@pytest.fixture(scope="module")
def pages():
    found = {path: Reader(path) for path in SITE.rglob("*.html")}
    assert len(found) > 40
    return found


def own_pages():
    """All but listings of source code."""
    if not SITE.exists():
        return []
    paths = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
    return sorted(str(path) for path in paths if path.parts[0] != "_modules")


def local(page, link):
    """The file a link leads to, and the place in it."""
    address, place = urldefrag(link)
    return (page.parent / unquote(address)).resolve() if address else page, unquote(place)


def test_no_link_is_broken(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"https?:|mailto:", link):
                continue
            target, place = local(path, link)
            known = pages[target].ids if target in pages else ()
            if not target.exists() or (place and target in pages and place not in known):
                broken.append((str(path.relative_to(SITE)), link))
    assert not broken


def test_nothing_is_loaded_from_elsewhere(pages):
    for path, page in pages.items():
        for wanted in page.loads:
            assert not re.match(r"https?:|//", wanted), (path, wanted)
            if not wanted.startswith("data:"):
                assert local(path, wanted.split("?")[0])[0].exists(), (path, wanted)
    for sheet in SITE.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import ['\"]http", sheet.read_text("utf-8"))


def test_every_public_name_is_in_the_reference(pages):
    ids = set().union(*(page.ids for path, page in pages.items() if "reference" in path.parts))
    plotted = [f"plot.{name}" for name in mp.plot.__all__]
    modules = {"inputs", "plot", "problem", "results", "rules", "schedules", "spectrum"}
    for name in [*{*mp.__all__} - modules, *plotted]:
        assert f"manypass.{name}" in ids, name


@pytest.mark.parametrize("folder", ["tutorials", "questions"])
def test_every_page_downloads_as_a_notebook_that_ran(pages, folder):
    for path, page in pages.items():
        if path.parent.name != folder or path.stem == "index":
            continue
        link = next(link for link in page.links if link.endswith(f"{path.stem}.ipynb"))
        notebook = json.loads(local(path, link)[0].read_text("utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert code, path
        outputs = [output for cell in code for output in cell["outputs"]]
        assert outputs, path
        assert all(output["output_type"] != "error" for output in outputs)


def test_formulas_are_drawn_by_the_browser_itself(pages):
    text = (SITE / "theory" / "equations.html").read_text("utf-8")
    assert text.count("<math") > 40
    for path in pages:
        if path.parts[-2] != "manypass":
            assert not re.search(r">\s*\$\$|\\frac\{", path.read_text("utf-8")), path


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM:
        pytest.skip("no Chromium: pages are not looked at")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_in_a_browser(browser, width):
    """No error, nothing asked of another machine, nothing wider than the window, all pictures."""
    wide, high = WIDTHS[width]
    page = browser.new_page(viewport={"width": wide, "height": high})
    errors, asked = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("requestfailed", lambda request: errors.append(request.url))
    page.on("request", lambda request: asked.append(request.url))
    for name in own_pages():
        page.goto((SITE / name).as_uri())
        assert not errors, (name, errors)
        assert page.evaluate("document.documentElement.scrollWidth") <= wide, name
        pictures = page.evaluate(
            "Promise.all([...document.images].map((i) => i.decode().then(() => true, () => i.src)))"
        )
        assert all(picture is True for picture in pictures), (name, pictures)
        assert name == "search.html" or page.inner_text("h1").strip(), name
    assert all(address.startswith(("file:", "data:")) for address in asked)
    assert any(address.endswith("math.woff") for address in asked)
    page.close()


def test_a_search_finds(browser):
    page = browser.new_page()
    page.goto((SITE / "search.html").as_uri() + "?q=reshuffled")
    page.wait_for_selector("ul.search li", timeout=30_000)
    page.close()
