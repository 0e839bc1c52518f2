// Pictures of hidden units: colours are units of the student, dashes are those of the teacher.

import { DASHES, PATTERNS, colour, layout, line, marked, symbols, upright } from "./pictures.js";
import { unitsOf } from "./state.js";

const UNITS = ["R", "Q", "F2"]; // whose colours they have
const TEACHERS = ["solid", "dash", "dot"];
const SHAPES = ["circle", "square", "triangle-up"];
const BETWEEN = { 12: "dash", 13: "dot", 23: "dashdot" }; // of two units

const upTo = (count) => Array.from({ length: count }, (_, i) => i + 1);
const tintOf = (k) => colour(UNITS[k - 1]);

/** What is drawn of R: a name in the results, and how it looks. */
function overlapsOf(state) {
  const [K, M] = unitsOf(state);
  return upTo(K).flatMap((k) => upTo(M).map((m) => [`R${k}${m}`, {
    label: `R<sub>${k}${m}</sub>`, tint: tintOf(k), dash: TEACHERS[m - 1], shape: SHAPES[m - 1],
  }]));
}

/** And of Q. */
function lengthsOf(state) {
  const [K] = unitsOf(state);
  const own = upTo(K).map((k) => [`Q${k}${k}`, {
    label: `Q<sub>${k}${k}</sub>`, tint: tintOf(k), dash: "solid", shape: "circle",
  }]);
  const pairs = Object.keys(BETWEEN).filter((at) => Number(at[1]) <= K);
  return [...own, ...pairs.map((at) => [`Q${at}`, {
    label: `Q<sub>${at}</sub>`, tint: colour("quiet"), dash: BETWEEN[at], shape: "x-thin",
  }])];
}

/** Where the plateau ends, as a mark across a picture; nothing while it lasts. */
export function plateauMark({ curves }) {
  if (!curves?.plateau || curves.stale) return [];
  return [upright(curves.plateau, `t = ${curves.plateau.toPrecision(3)}`, colour("quiet"), "dash")];
}

function against(drawn, shown, state) {
  const traces = [];
  for (const [name, style] of drawn) {
    if (shown.curves?.[name]) {
      traces.push(...line(shown.curves.t, shown.curves, name, { ...style, opacity: shown.curves.stale ? 0.25 : 1 }));
    }
  }
  for (const [name, style] of drawn) {
    if (shown.simulation?.[name]) traces.push(symbols(shown.simulation, name, style));
  }
  const fit = traces.length ? { autorange: true } : { range: [0, 1], autorange: false };
  return [traces, layout("time t", "", {
    xaxis: { range: [0, state.end] }, yaxis: fit, hovermode: "x",
    uirevision: `${state.end} ${fit.autorange}`, ...marked(plateauMark(shown)),
  })];
}

export const order = (shown, state) => against(overlapsOf(state), shown, state);
export const lengths = (shown, state) => against(lengthsOf(state), shown, state);

/** S(t), the plateau below ½, and when it ends; pins beside it. */
export function specialization(shown, state, pins) {
  const drawn = [["S", { label: "S", tint: colour("Eg"), shape: "diamond" }]];
  const [traces, made] = against(drawn, shown, state);
  pins.forEach(({ letter, data }, i) => {
    if (!data?.curves?.S) return;
    traces.push(...line(data.curves.t, data.curves, "S", {
      dash: DASHES[i], opacity: 0.8, label: `${letter}: S`, tint: colour("Eg"),
    }));
  });
  const half = {
    type: "line", xref: "paper", x0: 0, x1: 1, y0: 0.5, y1: 0.5,
    line: { color: colour("quiet"), width: 1, dash: "dot" },
  };
  const { curves } = shown;
  const alike = curves?.S && !curves.stale && curves.plateau === null
    ? [{
      x: 1, xref: "paper", xanchor: "right", y: 0.5, yanchor: "bottom", showarrow: false,
      text: `not specialised by t = ${state.end}`, font: { color: colour("quiet"), size: 12 },
    }] : [];
  return [traces, {
    ...made, yaxis: { ...made.yaxis, autorange: false, range: [0, 1.05] },
    shapes: [...made.shapes, half], annotations: [...made.annotations, ...alike],
  }];
}

/** Words instead of that, or null. */
export const nothingApart = (state) => (Math.min(...unitsOf(state)) > 1 ? null
  : "A single unit, of the student or of the teacher, leaves nothing to tell apart.");

/** What colours and dashes mean, in the heads of the cards. */
export function showKeys(state) {
  const [K, M] = unitsOf(state);
  const unit = (k) => [`unit ${k}`, `var(--${UNITS[k - 1]})`, "solid"];
  const rows = {
    order: [...upTo(K).map(unit), ...upTo(M).map((m) => [`teacher ${m}`, "var(--ink)", TEACHERS[m - 1]])],
    lengths: [...upTo(K).map(unit), ...Object.entries(BETWEEN).filter(([at]) => Number(at[1]) <= K)
      .map(([at, dash]) => [`${at[0]} and ${at[1]}`, "var(--quiet)", dash])],
  };
  for (const [card, keys] of Object.entries(rows)) {
    document.querySelector(`#${card} .keys`).replaceChildren(...keys.map(([text, tint, dash]) => {
      const key = document.createElement("span");
      key.innerHTML = '<svg viewBox="0 0 28 8" aria-hidden="true"><path d="M0 4H28" stroke-width="2.5"/></svg>';
      key.querySelector("path").setAttribute("stroke-dasharray", PATTERNS[dash] ?? "");
      key.querySelector("path").style.stroke = tint;
      key.append(text);
      return key;
    }));
  }
}
