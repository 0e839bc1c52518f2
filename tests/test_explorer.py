"""The explorer in a real browser: what a user sees, moves, downloads and shares."""

import contextlib
import http.client
import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import manypass as mp
from manypass.explorer.view import View

CHROMIUM = os.environ.get("MANYPASS_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 90.0  # seconds; a shared machine may be slow
STILL = {"reduced_motion": "reduce"}  # drawing a pulse again and again takes a core
# No page is started in advance that nobody opens.
ARGUMENTS = ["--no-sandbox", "--disable-features=SpareRendererForSitePerProcess"]


class Page:
    """A page of the explorer, by what is seen on it."""

    def __init__(self, page):
        self.page, self.errors, self.requests = page, [], []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def until(self, condition, what=None):
        """Wait inside the page until an expression holds; its policy forbids Playwright's way."""
        found = self.page.evaluate(
            f"""async (what) => {{
                const end = Date.now() + {1000 * PATIENCE};
                const holds = {condition if "=>" in condition[:8] else f"() => ({condition})"};
                while (!holds(what) && Date.now() < end)
                    await new Promise((again) => setTimeout(again, 20));
                return holds(what);
            }}""",
            what,
        )
        assert found, (condition, self.page.inner_text("main"), self.errors)
        return found

    def go(self, address):
        self.page.goto(address)
        self.until("document.body.dataset.drawn")
        return self

    def move(self, name, value):
        """Move a slider as a hand would, and wait for the picture."""
        old = self.page.evaluate("document.body.dataset.drawn")
        self.page.evaluate(
            """([name, value]) => {
                const slider = document.getElementById(`${name}-range`);
                slider.value = value;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            [name, value],
        )
        self.until("old => document.body.dataset.drawn !== old", old)

    def traces(self, card):
        """Curves of a picture by name."""
        found = self.page.evaluate(
            """card => document.querySelector(`#${card} .plot`).data.map(({ name, x, y, mode,
                error_y }) => ({ name, x, y, mode, error: error_y?.array }))""",
            card,
        )
        return {trace["name"]: trace for trace in found}

    def idle(self):
        self.until(
            """!document.getElementById("status").classList.contains("busy")
            && document.body.dataset.heard?.endsWith("done")"""
        )

    def download(self, card, text):
        with self.page.expect_download(timeout=PATIENCE * 1000) as found:
            self.page.click(f"{card} button:text-is('{text}')")
        return found.value.path()


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("no Chromium found: the explorer was not tested in a browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def usual(chromium):
    """One browser session for all pages that ask for nothing special: it keeps scripts compiled."""
    return chromium.new_context(**STILL)


@pytest.fixture
def opened(chromium, usual, explorer):
    """Open a page of the explorer; at the end nothing went wrong and nothing was asked outside."""
    contexts, pages = [], []

    def make(link="", **options):
        if options:
            contexts.append(chromium.new_context(**STILL, **options))
        pages.append(Page((contexts[-1] if options else usual).new_page()))
        return pages[-1].go(f"{explorer}/#{link}")

    yield make
    for page in pages:
        assert page.errors == []
        outside = [u for u in page.requests if not u.startswith((explorer + "/", "blob:", "data:"))]
        assert outside == []
        page.page.close()
    for context in contexts:
        context.close()


def same(found, expected):
    """Equal up to the rounding of linear algebra on one thread or several."""
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-11, atol=1e-14)


def solved(**problem):
    entries = {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.9, "decay": 0.8}
    view = View.from_dict({"problem": {**entries, **problem}})
    return mp.solve(view.problem, view.times)


def test_a_slider_moves_the_curves(opened):
    page = opened()
    before = page.traces("order")
    same(before["R"]["y"], solved().R)
    latencies = []
    for rate in (0.5, 1.0, 1.5, 2.0, 2.5):
        page.move("rate", rate)
        latencies.append(int(page.page.evaluate("document.body.dataset.latency")))
        same(page.traces("order")["Q"]["y"], solved(rate=rate).Q)
    print(f"slider to picture: {sorted(latencies)[2]} ms (median)")
    assert page.page.input_value("#rate") == "2.5"
    assert "v = 0.809" in page.page.inner_text("#fraction")
    corners = page.page.evaluate(
        "document.querySelector('#order .js-line').getAttribute('d').split('L').length"
    )
    assert corners == 241  # Plotly has left out no point
    page.page.fill("#decay", "0.4")
    page.until("JSON.parse(document.body.dataset.drawn)[0].decay === 0.4")
    same(page.traces("errors")["E<sub>g</sub>"]["y"], solved(rate=2.5, decay=0.4).Eg)
    page.until("document.body.dataset.heard?.startsWith('steady')")
    assert {"E<sub>t</sub>"} < set(page.traces("errors"))  # sampled, and there by now
    steady = page.traces("steady")
    assert {"now", "averaged, τ = 5", "mean force", "batch", "E<sub>t</sub> "} <= set(steady)
    assert {"x, ỹ = +1", "h, ỹ = −1"} < set(page.traces("activations"))
    assert page.traces("relaxation")["band"]


def test_keyboard_and_words(opened):
    page = opened()
    page.page.focus("#rate-range")
    page.page.keyboard.press("ArrowRight")
    page.until("JSON.parse(document.body.dataset.drawn)[0].rate === 1.91")
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.textContent") == "λ"
    page.page.keyboard.press("Enter")
    assert "shrinks the weights" in page.page.inner_text("#word")
    page.page.keyboard.press("Escape")
    page.until("!document.getElementById('word').matches(':popover-open')")
    named = page.page.evaluate("""[...document.querySelectorAll(".symbol")].every(
        (button) => button.ariaLabel.startsWith("What is "))""")
    assert named
    assert page.page.locator(".symbol").count() >= 25


def test_adatron_fills_in_and_is_dropped_when_a_slider_moves(opened):
    page = opened("end=2")
    page.page.select_option("#rule", "adatron")
    page.until("document.body.dataset.heard === 'curves so far'")
    first = page.traces("order")
    assert len(first["R"]["y"]) == 81
    low, high = page.page.evaluate("document.querySelector('#order .plot')._fullLayout.yaxis.range")
    assert low == 0
    assert 1 <= high < 1.2  # the curves fill the picture
    page.until("document.querySelector('#order .plot').data.some((t) => t.name === 'Q ± error')")
    assert "Mean-field theory: error" in page.page.inner_text("#status")
    started = [u for u in page.requests if u.endswith("/run")]
    aborted = []
    page.page.on("requestfailed", lambda request: aborted.append(request.url))
    page.move("rate", 0.5)  # before it is done
    page.until("document.body.dataset.heard === 'curves done'")
    assert [u for u in page.requests if u.endswith("/run")] > started
    assert any(u.endswith("/run") for u in aborted)
    problem = {"rule": {"name": "adatron", "kappa": 1.0}, "rate": 0.5, "decay": 0.8}
    view = View.from_dict({"problem": {"data": {"alpha": 1.2}, **problem}, "end": 2.0})
    theory = mp.solve(view.problem, view.times, mp.DMFT(rtol=0.01, memory=2.0))
    table = pd.read_csv(page.download("#order", "CSV"), comment="#")
    for name in ("t", "R", "Q_se", "F2", "Et", "Et_se"):
        same(table[name], theory[name])
    same(page.traces("order")["⟨F²⟩"]["y"], theory.F2)


def test_simulation_lies_over_the_lines_and_can_be_stopped(opened, tmp_path):
    page = opened("end=2&n=100&samples=20")
    page.page.click("#simulate")
    page.until("document.body.dataset.simulated === '20 networks'")
    shown = page.traces("order")["Q, simulated"]
    view = View.from_dict(
        {
            "problem": {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.9, "decay": 0.8},
            "end": 2.0,
            "n": 100,
            "samples": 20,
        }
    )
    data = mp.solve(view.problem, view.symbols, mp.Simulation(n=100, samples=20))
    assert shown["mode"] == "markers"
    same(shown["y"], data.Q)
    same(shown["error"], data.Q_se)
    file = tmp_path / "simulation.nc"
    file.write_bytes(page.download("#controls .files", "netCDF").read_bytes())
    assert mp.load(file).identical(data)
    page.page.fill("#n", "1000")
    page.page.fill("#samples", "500")
    page.until("!document.querySelector('#order .plot').data.some((t) => t.mode === 'markers')")
    page.page.click("#simulate")
    page.until("document.body.dataset.simulated.includes(' of 500')")
    page.page.click("#stop")
    assert page.page.is_disabled("#stop")
    assert "of 500 networks" in page.page.inner_text("#simulation-word")


def test_a_link_gives_the_same_view_with_pins(opened, explorer):
    page = opened("end=4&n=50&samples=4")
    page.page.click("#pin")
    page.move("rate", 1.0)
    page.page.select_option("#task", "regression")
    page.until("JSON.parse(document.body.dataset.drawn)[0].data.task === 'regression'")
    page.page.check("#log")
    page.page.click("#simulate")
    page.until("document.body.dataset.simulated === '4 networks'")
    page.idle()
    page.until(
        "document.querySelector('#errors .plot').data.some((t) => t.name === 'A: E<sub>t</sub>')"
    )
    address = page.page.evaluate("location.href")
    again = opened(address.split("#")[1])
    again.until("document.body.dataset.simulated === '4 networks'")
    again.idle()
    again.until(
        "document.querySelector('#errors .plot').data.some((t) => t.name === 'A: E<sub>t</sub>')"
    )
    for card in ("order", "errors", "steady", "relaxation", "activations"):
        assert again.traces(card) == page.traces(card)
    assert "A: R" in again.traces("order")
    assert again.page.evaluate("location.href") == address
    for field in ("#rate", "#n", "#task"):
        assert again.page.input_value(field) == page.page.input_value(field)
    assert 'mode = "online"' in again.page.inner_text("#toml")
    assert "mp.Simulation(n=50, samples=4)" in again.page.inner_text("#python")
    again.page.click("#pins .name")
    again.until("JSON.parse(document.body.dataset.drawn)[0].rate === 1.9")
    again.page.click("#pins li button:last-child")
    again.until("document.querySelectorAll('#pins li').length === 0")


def test_a_schedule_and_a_start_have_curves_a_picture_and_words(opened):
    page = opened("task=regression&end=4")
    assert page.page.is_hidden("#rate-picture")
    page.page.select_option("#schedule", "cosine")
    page.page.fill("#R0", "0.5")
    page.until("JSON.parse(document.body.dataset.drawn)[0].start?.Q === 0.25")  # Q ≥ R²
    page.move("low", 0.3)
    page.move("rate", 3.5)
    problem = {"rate": "cosine:3.5:0.3:8", "start": {"R": 0.5, "Q": 0.25}}
    view = View.from_dict(
        {
            "problem": {"data": {"alpha": 1.2, "task": "regression"}, "rule": "adaline"}
            | {"decay": 0.8, **problem},
            "end": 4.0,
        }
    )
    same(page.traces("order")["Q"]["y"], mp.solve(view.problem, view.times).Q)
    assert "v(t) is above the critical rate" in page.page.inner_text("#warning")
    label = page.page.get_attribute("#rate-picture", "aria-label")
    assert label == "v against time: 3.5 at first, 1.9 at t = 4"
    assert len(page.page.get_attribute("#rate-picture polyline", "points").split()) == 121
    page.until("document.getElementById('steady').textContent.includes('no steady state of a sch')")
    assert "see a constant rate" in page.page.inner_text("#relaxation")
    assert "rate='cosine:3.5:0.3:8'" in page.page.text_content("#python")
    assert "start=mp.Start(R=0.5, Q=0.25)" in page.page.text_content("#python")
    assert "start = { R = 0.5, Q = 0.25 }" in page.page.text_content("#toml")
    page.page.click("#pin")
    page.page.fill("#Q0", "0.1")
    page.until("!document.getElementById('error').hidden")
    assert "`Q` = 0.1 must be at least R² = 0.25" in page.page.inner_text("#error")
    page.page.fill("#Q0", "1")
    page.page.select_option("#schedule", "warm-up, cosine")
    rate = "warmup:1:cosine:3.5:0.3:8"
    page.until("rate => JSON.parse(document.body.dataset.drawn)[0].rate === rate", rate)
    again = opened(page.page.evaluate("location.hash").removeprefix("#"))
    again.until("document.querySelector('#order .plot').data.length === 6")
    assert again.traces("order") == page.traces("order")
    assert again.page.input_value("#schedule") == "warm-up, cosine"
    name = "A  adaline, regression: α 1.2, v cosine:3.5:0.3:8, λ 0.8, from R 0.5, Q 0.25"
    assert again.page.text_content("#pins .name") == name
    scale = "document.querySelector('#order .plot')._fullLayout.yaxis.type"
    assert again.page.evaluate(scale) == "linear"
    again.page.select_option("#schedule", "step")  # above v_c all the time
    again.move("rate", 5)
    again.until(f"{scale} === 'log'")
    again.move("rate", 1)
    again.page.select_option("#schedule", "constant")
    again.until("document.querySelector('#steady .plot').data?.length > 0")
    assert again.page.is_hidden("#rate-picture")


def test_inputs_have_a_picture_and_repetition_its_worth(opened):
    page = opened("task=regression&end=4&rate=0.5&decay=0.01&noise=0.1&alpha=1")
    assert page.page.is_hidden("#inputs-picture")
    assert page.page.is_hidden("#cutoff")
    page.page.select_option("#inputs", "power law")
    law = "powerlaw:1.2:1.4:0.02"
    page.until("law => JSON.parse(document.body.dataset.drawn)[0].data.inputs === law", law)
    problem = {"data": {"alpha": 1.0, "task": "regression", "noise": 0.1, "inputs": law}}
    view = View.from_dict(
        {"problem": {**problem, "rule": "adaline", "rate": 0.5, "decay": 0.01}, "end": 4.0}
    )
    same(page.traces("errors")["E<sub>g</sub>"]["y"], mp.solve(view.problem, view.times).Eg)
    assert page.page.is_visible("#cutoff")
    label = page.page.get_attribute("#inputs-picture", "aria-label")
    mu = view.problem.data.inputs.drawn(400)[0]
    assert label == f"Eigenvalues from {mu.max():.3g} to {mu.min():.3g} against their rank"
    page.until("document.querySelector('#worth .plot').data?.length === 3")
    drawn = page.traces("worth")["effective data"]
    found = mp.effective_data(view.problem, drawn["x"])
    np.testing.assert_allclose(drawn["y"], found.effective_data, rtol=1e-6)
    scale = "document.querySelector('#relaxation .plot')._fullLayout.xaxis.type"
    page.until(f"{scale} === 'log'")
    again = opened(page.page.evaluate("location.hash").removeprefix("#"))
    assert again.page.input_value("#inputs") == "power law"
    assert again.traces("order") == page.traces("order")
    assert f"inputs='{law}'" in again.page.text_content("#python")
    again.page.select_option("#inputs", "two blocks")
    again.until("JSON.parse(document.body.dataset.drawn)[0].data.inputs?.values?.[1] === 8")
    again.page.select_option("#rule", "adatron")
    again.until("document.getElementById('worth').textContent.includes('known of linear rules')")


def test_two_layers_have_overlaps_lengths_and_a_plateau(opened):
    page = opened()
    assert page.page.is_hidden("#specialization")
    assert page.page.is_hidden("#units")
    page.page.select_option("#rule", "committee")
    page.until("document.getElementById('order').querySelector('.plot').data?.length === 4")
    for card in ("steady", "relaxation", "activations", "worth", "input-section"):
        assert page.page.is_hidden(f"#{card}")
    for field in ("#mode", "#alpha", "#R0", "#R13"):
        assert page.page.is_hidden(field)
    shown = {"rate": "1.5", "decay": "0", "end": "40", "examples": "fresh", "R11": "0.12"}
    assert {name: page.page.input_value(f"#{name}") for name in shown} == shown
    page.move("rate", 1)
    view = View.from_dict(
        {
            "problem": {
                "data": {"alpha": "inf", "task": "regression", "hidden": 2},
                "rule": {"name": "committee", "hidden": 2, "activation": "erf"},
                "rate": 1.0,
                "start": {"R": [[0.12, 0.02], [0, 0.1]], "Q": [[0.25, 0], [0, 0.25]]},
            },
            "end": 40.0,
        }
    )
    found = mp.solve(view.problem, view.times)
    R, Q = page.traces("order"), page.traces("lengths")
    np.testing.assert_allclose(R["R<sub>12</sub>"]["y"], found.R[:, 0, 1], rtol=1e-9)
    np.testing.assert_allclose(Q["Q<sub>12</sub>"]["y"], found.Q[:, 0, 1], rtol=1e-9, atol=1e-12)
    looks = page.page.evaluate(
        """document.querySelector('#order .plot').data.map(({ name, line }) => [name, line])"""
    )
    looks = {name: (line["color"], line["dash"]) for name, line in looks}
    assert looks["R<sub>11</sub>"][0] == looks["R<sub>12</sub>"][0] != looks["R<sub>21</sub>"][0]
    assert looks["R<sub>11</sub>"][1] == looks["R<sub>21</sub>"][1] != looks["R<sub>12</sub>"][1]
    assert page.page.inner_text("#order .keys").split("\n") == [
        "unit 1",
        "unit 2",
        "teacher 1",
        "teacher 2",
    ]
    end = float(mp.specialization(view.problem, view.times).time[0])
    for card in ("order", "errors", "lengths", "specialization"):
        marks = page.page.evaluate(
            "card => document.querySelector(`#${card} .plot`).layout.annotations[0].text", card
        )
        assert marks == f"t = {end:.3g}"
    page.page.click("#pin")
    page.page.fill("#R11", "0.1")
    page.page.fill("#R12", "0")
    page.page.fill("#R21", "0.1")
    page.page.fill("#R22", "0")
    page.until("document.getElementById('warning').textContent.includes('1 and 2 alike')")
    said = page.page.evaluate(
        "document.querySelector('#specialization .plot').layout.annotations.at(-1).text"
    )
    assert said == "not specialised by t = 40"
    assert "A: S" in page.traces("specialization")
    page.page.fill("#length", "0.001")
    page.until("!document.getElementById('error').hidden")
    assert "`start` is of no weights" in page.page.inner_text("#error")
    page.page.fill("#length", "0.25")
    page.page.select_option("#units", "1")
    page.until("document.getElementById('specialization').textContent.includes('A single unit')")
    page.page.select_option("#rule", "adaline")
    page.until("document.querySelector('#steady .plot').data?.length > 0")
    assert page.page.input_value("#task") == "classification"
    assert page.page.input_value("#rate") == "1"  # it was chosen
    assert page.page.is_hidden("#lengths")


def test_repeated_examples_of_two_layers_on_a_phone_as_their_address_says(opened):
    link = "rule=committee&task=regression&alpha=2&rate=1&decay=0&end=1&units=3&n=30&samples=3"
    page = opened(link, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.until("document.body.dataset.heard === 'curves done'")
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.page.inner_text("#status").startswith("Mean-field theory")
    assert len([name for name in page.traces("order") if "error" not in name]) == 6
    page.page.click("#simulate")
    page.until("document.body.dataset.simulated === '3 networks'")
    for card, name in (("order", "R<sub>32</sub>"), ("lengths", "Q<sub>13</sub>")):
        assert page.traces(card)[f"{name}, simulated"]["mode"] == "markers"
    table = pd.read_csv(page.download("#lengths", "CSV"), comment="#")
    assert len(table) > 80
    drawing = page.download("#specialization", "SVG").read_bytes().decode()
    assert "committee, 3 of 2, erf, regression: α 2, v 1, from R 0.12 0.02; 0 0.1" in drawing
    again = opened(page.page.evaluate("location.hash").removeprefix("#").replace("&sim=true", ""))
    again.until("document.body.dataset.heard === 'curves done'")
    same(again.traces("order")["R<sub>32</sub>"]["y"], page.traces("order")["R<sub>32</sub>"]["y"])
    again.page.select_option("#sequence", "fixed")
    again.until("document.getElementById('warning').textContent.includes('press Simulate')")


def test_an_address_that_cannot_be_read_falls_back_to_the_defaults_with_a_note(opened):
    page = opened("alpha=junk&rule=magic&rate=1.5&colour=red&pin=rate%3Djunk")
    note = page.page.inner_text("#warning")
    assert "cannot be read: rate = junk, alpha = junk, rule = magic, …. Defaults" in note
    assert page.page.evaluate("document.getElementById('error').hidden")
    assert page.page.input_value("#alpha") == "1.2"
    same(page.traces("order")["R"]["y"], solved(rate=1.5).R)
    page.move("rate", 1.0)
    page.until("document.getElementById('warning').hidden")
    assert page.page.evaluate("location.hash") == "#rate=1&pin="


def test_downloads(opened):
    page = opened("rate=1.5")
    table = pd.read_csv(page.download("#order", "CSV"), comment="#")
    for name in ("t", "R", "Q", "F2", "Eg"):
        same(table[name], solved(rate=1.5)[name])
    page.until("document.querySelector('#steady .plot').data?.length > 0")
    drawing = io.BytesIO(page.download("#steady", "SVG").read_bytes()).read().decode()
    assert drawing.startswith("<svg")
    assert "mean force" in drawing


def test_pictures_are_saved_on_white_with_their_parameters(opened, tmp_path):
    page = opened("rate=1.5&noise=0.3&n=50&samples=4&pin=rate%3D1", color_scheme="dark")
    page.page.click("#simulate")
    page.until("document.body.dataset.simulated === '4 networks'")
    shutil.copy(page.download("#order", "PNG"), tmp_path / "order.png")
    pixels = np.asarray(Image.open(tmp_path / "order.png").convert("RGB"))
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    assert (pixels < 64).all(axis=-1).sum() > 1000  # words are dark, though the page is, too
    drawing = page.download("#order", "SVG").read_bytes().decode()
    assert "adaline: α 1.2, v 1.5, λ 0.8, ε 0.3; symbols: 4 networks, N 50" in drawing
    assert "A: adaline: α 1.2, v 1, λ 0.8" in drawing
    assert page.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_errors_and_divergence_are_said_in_words(opened):
    page = opened()
    page.page.fill("#rate", "-1")
    page.until("!document.getElementById('error').hidden")
    said = page.page.inner_text("#error")
    assert "`rate` must be a number from 1e-12 to 1e+06" in said
    assert said.endswith("got -1")
    page.page.fill("#rate", "")
    page.until("document.getElementById('error').textContent.includes('None')")
    page.page.fill("#rate", "3.4")
    page.until("document.getElementById('error').hidden")
    page.until("!document.getElementById('warning').hidden")
    said = page.page.inner_text("#warning").replace("\n", "")
    assert "v = 3.4 is above the critical rate" in said
    assert "There is no steady state" in said
    Q = page.traces("order")["Q"]["y"]
    assert Q[-1] > 1e4
    page.page.select_option("#rule", "perceptron")
    page.page.select_option("#mode", "batch")  # no theory where a force jumps
    page.until("document.getElementById('warning').textContent.includes('press Simulate')")


def test_an_order_has_its_theory_and_can_be_simulated(opened):
    page = opened("n=30&samples=4&end=2.4&sequence=fixed")
    page.until("document.getElementById('status').textContent.startsWith('Exact theory')")
    page.page.select_option("#sequence", "reshuffled")
    page.until("document.querySelector('#steady .plot').data?.length > 0")
    assert "Q" in page.traces("order")
    assert page.page.is_hidden("#warning")
    assert "with replacement" in page.page.inner_text("#relaxation")
    page.until("document.getElementById('toml').textContent.includes('\"reshuffled\"')")
    assert "sequence='reshuffled'" in page.page.text_content("#python")
    page.page.click("#simulate")
    page.until(
        """document.querySelector('#order .plot').data
        ?.some(({ name }) => name.includes('simulated'))"""
    )
    assert "sequence=reshuffled" in page.page.url
    page.page.select_option("#mode", "batch")  # takes all examples at once: there is no order
    page.until("document.getElementById('warning').hidden")
    assert not page.page.is_visible("#sequence")
    assert "Q" in page.traces("order")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_windows_and_dark_rooms(opened, scheme):
    link = "task=regression&schedule=cosine"
    page = opened(link, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.page.evaluate(background) == "rgb(20, 23, 26)"
    assert dark == (scheme == "dark")
    picture = page.page.locator("#rate-picture")
    ink = picture.locator("polyline").evaluate("line => getComputedStyle(line).stroke")
    assert ink == ("rgb(230, 228, 223)" if dark else "rgb(34, 38, 43)")
    assert 200 < picture.bounding_box()["width"] < 360
    places = [page.page.locator(f).bounding_box()["y"] for f in ("#sliders", "#order", "#look")]
    assert places == sorted(places)  # curves are directly below the problem
    page.page.click("#theme")
    assert (page.page.evaluate(background) == "rgb(20, 23, 26)") != dark


def test_foreign_pages_get_nothing_and_own_pages_ask_nobody_else(opened, chromium, explorer):
    class Foreign(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    ask = """async ([address, how]) => fetch(address, how).then((r) => r.text(), (e) => e.name)"""
    body = '{"view": {"problem": {}}, "want": "curves"}'
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = chromium.new_context(**STILL)
        page = context.new_page()
        foreign = f"http://127.0.0.1:{server.server_port}/"
        page.goto(foreign)
        statuses = []
        page.on("response", lambda response: statuses.append(response.status))
        for how in (
            {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}},
            {"method": "POST", "body": body},
            {"method": "GET"},
        ):
            assert page.evaluate(ask, [f"{explorer}/answer", how]) == "TypeError"
        page.evaluate(ask, [f"{explorer}/answer", {"method": "POST", "mode": "no-cors"}])
        assert set(statuses) <= {403}
        context.close()
        own = opened()
        assert own.page.evaluate(ask, [foreign, {"mode": "no-cors"}]) == "TypeError"
        server.shutdown()


def test_quick_answers_during_a_run_that_ends_when_its_browser_leaves(explorer):
    """Without a browser: who waits for the long run, or for its share, loses his patience."""
    problem = {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.9, "decay": 0.8}
    long = {"problem": problem, "n": 2000, "samples": 500, "end": 100.0}
    short = {"problem": problem, "n": 20, "samples": 3, "end": 1.0}

    @contextlib.contextmanager
    def request(path, **entries):
        connection = http.client.HTTPConnection(explorer.removeprefix("http://"), timeout=PATIENCE)
        headers = {"Content-Type": "application/json", "Cookie": "manypass-browser=busy"}
        connection.request("POST", path, json.dumps(entries), headers)
        yield connection.getresponse()
        connection.close()

    with request("/run", view=long, kind="simulation") as run:
        assert json.loads(run.readline())["simulation"]["t"]
        with request("/answer", view={"problem": problem}, want="curves") as answer:
            assert answer.status == 200
        with request("/run", view=long, kind="simulation"):
            pass  # leaves at once
    with request("/run", view=short, kind="simulation") as run:
        assert json.loads(run.read().splitlines()[-1])["done"]


@pytest.mark.endurance
def test_ctrl_c_during_a_run_ends_in_silence():
    command = [sys.executable, "-m", "manypass", "explore", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        address = re.search(r"127\.0\.0\.1:\d+", running.stdout.readline())[0]
        problem = {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.9}
        body = json.dumps({"view": {"problem": problem}, "kind": "training"})
        connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        connection.request("POST", "/run", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=20)
        assert json.loads(response.read()) == {"error": "the explorer has ended"}
        connection.close()
    assert (rest.strip(), running.returncode) == ("", 0)
