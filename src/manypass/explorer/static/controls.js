// The left side: choices, sliders with typed values, and the words behind each symbol.

import {
  CHOICES, INPUTS, LOOK, NETWORKS, RULES, SCHEDULES, SLIDERS, fresh, layered, modeOf, unitsOf,
} from "./state.js";
import { WORDS } from "./words.js";

const STEPS = 400; // of a logarithmic slider

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A button that explains a symbol. */
export function symbolButton(name, text, plain = false) {
  const button = element("button", { type: "button", className: "symbol", textContent: text });
  button.classList.toggle("plain", plain);
  button.setAttribute("aria-label", `What is ${WORDS[name][0]}?`);
  button.addEventListener("click", () => explain(name));
  return button;
}

function explain(name) {
  const box = document.getElementById("word");
  [box.querySelector("h3").textContent, box.querySelector("p").textContent] = WORDS[name];
  box.showPopover();
  box.querySelector("button").focus();
}

function toPosition({ low, high, log }, value) {
  return log ? STEPS * Math.log(value / low) / Math.log(high / low) : value;
}

function fromPosition({ low, high, log }, position) {
  if (!log) return position;
  return Number((low * (high / low) ** (position / STEPS)).toPrecision(3));
}

function slider(name, field, change) {
  const { symbol, label, low, high, log, step, word = name } = field;
  const typed = element("input", { type: "number", id: name, step: "any", inputMode: "decimal" });
  const range = element("input", { type: "range", id: `${name}-range` });
  Object.assign(range, log ? { min: 0, max: STEPS, step: 1 } : { min: low, max: high, step });
  range.setAttribute("aria-label", `${label}, ${symbol}`);
  typed.setAttribute("aria-label", `${label} ${symbol}`.trim());
  range.addEventListener("input", () => change(name, fromPosition(field, Number(range.value))));
  typed.addEventListener("input", () => {
    change(name, typed.value.trim() === "" ? NaN : Number(typed.value), typed);
  });
  const text = element("label", { htmlFor: name }, ` ${label}`);
  const head = element("span", {}, symbolButton(word, symbol), text);
  const row = element("div", { className: "slider" }, head, typed, range);
  const show = (value) => {
    if (document.activeElement !== typed || Number(typed.value) !== value) {
      typed.value = Number.isFinite(value) ? value : "";
    }
    range.value = toPosition(field, value);
    range.setAttribute("aria-valuetext", String(value));
  };
  return { row, show };
}

function choice(name, { label, options }, change) {
  const select = element("select", { id: name });
  for (const option of options) select.append(element("option", { value: option }, option));
  select.addEventListener("change", () => change(name, select.value));
  const head = element("span", {}, symbolButton(name, label, true));
  select.setAttribute("aria-label", label);
  return {
    row: element("div", { className: "choice" }, head, select),
    show: (value) => { select.value = value; },
  };
}

/** Build all controls; returns a function that makes them show a state. */
export function build(change) {
  const made = {};
  const places = [["choices", CHOICES, choice], ["sliders", SLIDERS, slider],
    ["look", LOOK, slider], ["networks", NETWORKS, slider]];
  for (const [place, fields, make] of places) {
    for (const [name, field] of Object.entries(fields)) {
      made[name] = make(name, field, change);
      document.getElementById(field.place ?? place).append(made[name].row);
    }
  }
  document.querySelector("#word button").addEventListener("click", () => {
    document.getElementById("word").hidePopover();
  });
  const log = document.getElementById("log");
  log.addEventListener("change", () => change("log", log.checked));
  return (state) => {
    for (const [name, { show }] of Object.entries(made)) show(state[name]);
    for (const name of ["kappa", "width"]) {
      made[name].row.hidden = !(RULES[state.rule] ?? []).includes(name);
    }
    for (const name of ["warm", "low", "until"]) {
      made[name].row.hidden = !SCHEDULES[state.schedule].fields.includes(name);
    }
    for (const name of ["exponent", "power", "cutoff", "ratio", "share"]) {
      made[name].row.hidden = !INPUTS[state.inputs].fields.includes(name);
    }
    const two = layered(state);
    const [K, M] = unitsOf(state);
    for (const name of ["units", "teachers", "activation", "examples", "length"]) made[name].row.hidden = !two;
    for (const name of ["mode", "R0", "Q0", "window"]) made[name].row.hidden = two;
    for (const [k, m] of [1, 2, 3].flatMap((unit) => [1, 2, 3].map((other) => [unit, other]))) {
      made[`R${k}${m}`].row.hidden = !two || k > K || m > M;
    }
    document.getElementById("overlap-fields").style.setProperty("--columns", M);
    document.getElementById("input-section").hidden = two;
    made.alpha.row.hidden = fresh(state);
    made.sequence.row.hidden = modeOf(state) === "batch" || fresh(state);
    log.checked = state.log;
  };
}
