// The page: state → answers → pictures. Linear rules at once; others as their runs tell.

import * as api from "./api.js";
import * as controls from "./controls.js";
import * as pictures from "./pictures.js";
import * as head from "./head.js";
import * as layers from "./layers.js";
import { Pins } from "./pins.js";
import { Runs } from "./runs.js";
import { Simulation } from "./simulation.js";
import { drawInputs, drawRate } from "./rate.js";
import {
  DEFAULTS, fromHash, keyOf, layered, moving, nameOf, orderOf, problemOf, toHash, viewOf, withRule,
} from "./state.js";
import { byId, tell } from "./tell.js";
import * as tools from "./tools.js";
import { isGrowing, isLarge, warningOf } from "./warning.js";

let state = DEFAULTS;
let note = ""; // on the address; lasts until the first change
let shown = {}; // the newest of everything that was computed
let said = {}; // the last answer: v_c, the slow mode, which runs to start
let wanted = null; // a state whose answer is still to be asked for
let asking = false;
let latency = "";

const linear = (s) => ["adaline", "hebbian"].includes(s.rule);
const exact = () => said.exact ?? linear(state); // whether the exact theory answers
const steadyKey = (s) => { // of on-line Adaline all rates are shown
  const all = s.rule === "adaline" && s.mode === "online" && !moving(s);
  return JSON.stringify([{ ...problemOf(s), ...(all ? { rate: 0 } : {}) }, s.window]);
};

// Cards that are there for one layer, or for two; the first two are there for both.
const CURVES = ["order", "errors", "lengths", "specialization"];
const OF_ONE = ["steady", "relaxation", "activations", "worth"];

// --- drawing -------------------------------------------------------------------------------

const dirty = new Set();
let frame = null;

function redraw(...cards) {
  cards.forEach((card) => dirty.add(card));
  frame ??= new Promise((done) => {
    requestAnimationFrame(() => {
      frame = null;
      const drawn = [...dirty].map(drawCard);
      dirty.clear();
      Promise.all(drawn).then(done);
    });
  });
  return frame;
}

function drawCard(card) {
  if (byId(card).hidden) return null;
  const text = insteadOf(card);
  const [plot, instead] = ["plot", "instead"].map((c) => document.querySelector(`#${card} .${c}`));
  plot.hidden = text !== null;
  if (instead) instead.hidden = text === null;
  document.querySelector(`#${card} .tools`).hidden = text !== null;
  if (text !== null) {
    instead.querySelector("p").textContent = text;
    return null;
  }
  return pictures.draw(card, pictureOf(card));
}

function pictureOf(card) {
  const names = { order: ["R", "Q", "F2"], errors: ["Eg", "Et"] }[card];
  const two = layered(state);
  if (two && card in layers) return layers[card](shown, state, pins.pictures(state));
  if (!names) return pictures[card](shown, state);
  return pictures.timeCurves(
    names, shown, pins.pictures(state), state,
    card === "order" && (isGrowing(state, said) || isLarge(shown)),
    two ? layers.plateauMark(shown) : [],
  );
}

/** What a picture is of, in words: it may be looked at without this page. */
function titleOf(card) {
  const curves = CURVES.includes(card);
  const networks = curves && shown.simulation ? `; symbols: ${state.samples} networks, N ${state.n}` : "";
  const when = card === "activations" ? `, t ${state.end}` : "";
  const pinned = curves ? pins.pictures(state).map((pin) => `${pin.letter}: ${pin.name}`) : [];
  return [`${nameOf(state)}${when}${networks}`, ...pinned].join("<br>");
}

/** Words in place of a picture, or null. */
function insteadOf(card) {
  const title = document.querySelector("#steady h2");
  if (card === "steady") {
    const swept = !exact();
    title.textContent = "Steady state against v";
    byId("sweep").hidden = !swept || Boolean(shown.steady?.note);
    if (swept && shown.steady?.note) return shown.steady.note;
    if (swept && !shown.steadyRun) {
      return "The steady state of this rule has no closed theory. The mean-field solver finds it "
        + "for some fifteen learning rates, in a minute or less.";
    }
    return shown.steady?.note || null;
  }
  if (card === "relaxation" && moving(state)) {
    return "Modes relax at rates 2v(λ + h), which move as v does: see a constant rate.";
  }
  if (card === "relaxation" && !(linear(state) && orderOf(state) === "replacement")) {
    return "Only linear rules have modes that relax independently: see Adaline, with replacement.";
  }
  if (card === "specialization") return layers.nothingApart(state);
  if (card === "worth") {
    if (!exact()) return "What passes are worth is known of linear rules: see Adaline.";
    return shown.worth?.note || null;
  }
  if (card === "activations") {
    return shown.activationsNote ?? (shown.activations ? null : "Sampled after the curves.");
  }
  return null;
}

function redrawAll() {
  return redraw(...CURVES, ...OF_ONE);
}

// --- words ---------------------------------------------------------------------------------

/** Say what is wrong with the problem; the pictures, which belong to the last one, fade. */
function fail(text) {
  tell("error", text);
  byId("pictures").classList.toggle("broken", text !== "");
  if (!text) return;
  for (const id of ["warning", "fraction"]) tell(id, "");
  tell("status", "Nothing to draw.");
}

function showWords() {
  const limit = said.critical_rate;
  const share = said.rate ? "A constant rate diverges above" : `v = ${(state.rate / limit).toFixed(3)} v_c, with`;
  tell("fraction", limit ? `${share} v_c = ${limit.toFixed(4)}` : "");
  drawRate(said.rate, limit);
  drawInputs(said.inputs);
  tell("warning", [note, warningOf(state, said, shown)].filter(Boolean).join(" "));
  byId("python").textContent = (state.sim ? said.code_simulated : said.code) ?? "";
  byId("toml").textContent = said.toml ?? "";
}

function busy(word) {
  const theory = exact() ? "Exact theory" : said.note ? "No theory" : "Mean-field theory";
  byId("status").classList.toggle("busy", word !== null);
  tell("status", word === null
    ? `${theory}${exact() ? latency : ""}.` : `${theory}${exact() ? "; now" : ":"} ${word} …`);
}

// --- asking --------------------------------------------------------------------------------

function refresh(since = performance.now()) {
  wanted = { s: state, since };
  if (!asking) ask();
}

async function ask() {
  asking = true;
  while (wanted) {
    const { s, since } = wanted;
    wanted = null;
    try {
      await askFor(s, since);
      fail("");
    } catch (error) {
      runs.drop();
      fail(error.message);
    }
  }
  asking = false;
}

/** Ask for everything there is of a state, the curves first. */
async function askFor(s, since) {
  const view = viewOf(s);
  const answer = await api.answer(view, "curves");
  said = answer;
  if (answer.curves) shown.curves = { ...answer.curves, key: keyOf(s) };
  else if (!answer.runs.includes("curves")) delete shown.curves;
  if (!answer.runs.includes("training")) delete shown.training;
  shown.relaxation = answer.relaxation;
  await redraw(...CURVES);
  const taken = Math.round(performance.now() - since);
  latency = since === null ? "" : `, drawn ${taken} ms after the input`;
  document.body.dataset.latency = taken;
  document.body.dataset.drawn = keyOf(s);
  byId("pictures").classList.toggle("nonlinear", !answer.exact);
  showWords();
  busy(null);
  redraw("relaxation", "steady");
  if (wanted) return;
  if (layered(s)) return runs.plan(jobsOf(s));
  if (shown.steady?.key !== steadyKey(s)) {
    shown.steady = { ...await api.answer(view, "steady"), key: steadyKey(s) };
  }
  redraw("steady");
  const key = JSON.stringify(problemOf(s));
  if (!wanted && answer.exact && shown.worth?.key !== key) {
    shown.worth = { ...await api.answer(view, "worth"), key };
  }
  redraw("worth");
  if (!wanted) runs.plan(jobsOf(s));
}

function jobsOf(s) {
  const view = viewOf(s);
  const word = { curves: "solving", training: "sampling E_t" };
  const job = (kind, text) => ({ kind, view, key: `${kind} ${keyOf(s)}`, word: text });
  return [
    ...said.runs.map((kind) => job(kind, word[kind])),
    ...pins.jobs(s),
    ...(layered(s) ? [] : [job("activations", "sampling activations")]),
    ...(layered(s) ? [] : shown.steady?.runs ?? []).map((kind) => (
      { ...job(kind, "sampling E_t against v"), key: `${kind} ${steadyKey({ ...s, window: 0 })}` }
    )),
  ];
}

// --- runs ----------------------------------------------------------------------------------

const runs = new Runs({
  busy,
  heard(job, message) {
    if (job.pin) pins.heard(job, message);
    else if (message.curves) shown[job.kind] = { ...message.curves, key: keyOf(state) };
    else if (message.steady) shown.steadyRun = withStart(message.steady);
    else if (message.activations) {
      shown.activations = message.activations;
      shown.activationsNote = null;
    }
    const cards = message.curves ? CURVES : [message.steady ? "steady" : "activations"];
    redraw(...cards).then(() => {
      document.body.dataset.heard = `${job.kind} ${message.done ? "done" : "so far"}`;
    });
    if (message.done) showWords();
    if (message.note) tell("warning", message.note);
  },
  failed(job, text) {
    if (job.kind === "activations") {
      shown.activationsNote = text;
      redraw("activations");
    } else if (!job.pin) tell("error", text);
  },
});

/** A training error against v begins, at v → 0, with the batch value. */
function withStart(found) {
  const start = shown.steady?.batch;
  if (!start) return found;
  return { rate: [0, ...found.rate], Et: [start.Et, ...found.Et], Et_se: [0, ...found.Et_se] };
}

const simulation = new Simulation((found) => {
  shown.simulation = found;
  return redraw(...CURVES);
});

// --- changes -------------------------------------------------------------------------------

function change(patch) {
  const before = state;
  if (Object.keys(patch).length) note = "";
  state = { ...state, ...patch };
  const networks = before.n !== state.n || before.samples !== state.samples;
  if (keyOf(before) !== keyOf(state) || networks) forget(before, networks);
  history.replaceState(null, "", `#${toHash(state)}`);
  showControls(state);
  showCards();
  pins.show(state);
  if (JSON.stringify(viewOf(before)) !== JSON.stringify(viewOf(state))) refresh();
  else redrawAll().then(showWords);
}

/** Show the cards that there are for one layer or for two, with what their colours mean. */
function showCards() {
  const two = layered(state);
  byId("pictures").classList.toggle("layered", two);
  byId("curves-title").textContent = two ? "Overlaps with the teacher" : "Order parameters";
  for (const card of ["lengths", "specialization"]) byId(card).hidden = !two;
  for (const card of OF_ONE) byId(card).hidden = two;
  layers.showKeys(state);
}

/** Take away what belongs to another problem; what will soon be replaced fades. */
function forget(before, networksOnly) {
  simulation.forget();
  delete shown.simulation;
  state.sim = false;
  if (keyOf(before) === keyOf(state) && networksOnly) return;
  runs.drop();
  if (shown.worth) shown.worth.stale = true;
  const same = ["rule", "task", "end", "units", "teachers"].every((name) => before[name] === state[name]);
  for (const name of ["curves", "training", "activations"]) {
    if (!same) delete shown[name];
    else if (shown[name]) shown[name].stale = true;
  }
  delete shown.activationsNote;
  const other = { ...before, window: 0 };
  if (steadyKey(other) !== steadyKey({ ...state, window: 0 })) delete shown.steadyRun;
}

function go(next, word = "") {
  state = next;
  note = word;
  shown = {};
  simulation.forget();
  runs.drop();
  change({});
  refresh(null);
  if (state.sim) simulation.start(viewOf(state));
}

const pins = new Pins({
  changed: (list) => change({ pins: list }),
  restore: (pin) => go({ ...state, ...pin, pins: state.pins, window: state.window, sim: false }),
  drawn: (runsNeeded) => {
    redraw(...CURVES);
    if (runsNeeded && !asking && said.runs) runs.plan(jobsOf(state));
  },
});

const showControls = controls.build((name, value, typed) => {
  if (typed) typed.setAttribute("aria-invalid", Number.isNaN(value));
  const tooShort = name === "R0" && state.Q0 < value ** 2; // a start has Q ≥ R²
  if (name === "rule") change(withRule(state, value));
  else change({ [name]: value, ...(tooShort ? { Q0: Math.ceil(value ** 2 * 1e4) / 1e4 } : {}) });
});

// --- the page ------------------------------------------------------------------------------

head.buildChips();
tools.build(
  () => viewOf(state),
  (card) => {
    if (card === "errors") return said.runs?.[0] ?? "curves";
    if (card === "steady") return exact() ? "steady" : "sweep";
    return ["activations", "worth"].includes(card) ? card : "curves";
  },
  (card, format) => head.inLight(() => pictures.image(pictureOf(card), titleOf(card), format)),
  (text) => tell("error", text),
);
byId("simulate").addEventListener("click", () => {
  change({ sim: true });
  simulation.start(viewOf(state));
});
byId("stop").addEventListener("click", () => {
  simulation.stop();
  change({ sim: false });
});
byId("sweep").addEventListener("click", () => {
  runs.plan([{ kind: "sweep", view: viewOf(state), key: `sweep ${keyOf(state)}`, word: "sweeping v" }]);
});
byId("pin").addEventListener("click", () => pins.add(state));
byId("reset").addEventListener("click", () => go({ ...DEFAULTS }));
byId("controls").addEventListener("submit", (event) => event.preventDefault());
head.buildTheme(redrawAll);
function follow() {
  const link = fromHash(location.hash);
  go(link.state, link.note);
}
addEventListener("hashchange", follow);
follow();
