// The whole state of the page is one flat object; the address bar holds it.

export const RULES = {
  adaline: [], hebbian: [], adatron: ["kappa"], logistic: [], huber: ["width"],
  perceptron: ["kappa"], committee: [],
};
// How the rate goes on from its first value: the parameters, and the text that the server reads.
export const SCHEDULES = {
  constant: { fields: [], text: (s) => s.rate },
  cosine: { fields: ["low", "until"], text: (s) => `cosine:${s.rate}:${s.low}:${s.until}` },
  "1/t": { fields: ["until"], text: (s) => `inverse:${s.rate}:${s.until}` },
  exponential: { fields: ["until"], text: (s) => `exponential:${s.rate}:${s.until}` },
  step: { fields: ["low", "until"], text: (s) => `steps:0:${s.rate}:${s.until}:${s.low}` },
  "warm-up": { fields: ["warm"], text: (s) => `warmup:${s.warm}:${s.rate}` },
  "warm-up, cosine": {
    fields: ["warm", "low", "until"],
    text: (s) => `warmup:${s.warm}:cosine:${s.rate}:${s.low}:${s.until}`,
  },
};
// What is known of the inputs: the parameters of a law, and what the server reads.
export const INPUTS = {
  uncorrelated: { fields: [], law: () => null },
  "power law": {
    fields: ["exponent", "power", "cutoff"],
    law: (s) => `powerlaw:${s.exponent}:${s.power}:${s.cutoff}`,
  },
  "two blocks": {
    fields: ["ratio", "share"],
    law: (s) => ({ values: [1, s.ratio], weights: [1 - s.share, s.share] }),
  },
};
export const CHOICES = {
  rule: { label: "rule", options: Object.keys(RULES) },
  units: { label: "units K", options: ["1", "2", "3"] },
  teachers: { label: "teacher M", options: ["1", "2", "3"] },
  activation: { label: "activation", options: ["erf", "relu", "tanh"] },
  examples: { label: "examples", options: ["repeated", "fresh"] },
  task: { label: "task", options: ["classification", "regression"] },
  mode: { label: "steps", options: ["online", "batch"] },
  sequence: { label: "order", options: ["replacement", "reshuffled", "fixed"] },
  inputs: { label: "inputs", options: Object.keys(INPUTS), place: "input-fields" },
  schedule: { label: "schedule", options: Object.keys(SCHEDULES), place: "schedule-fields" },
};
export const SLIDERS = {
  alpha: { symbol: "α", label: "examples per weight", low: 0.1, high: 10, log: true },
  rate: { symbol: "v", label: "learning rate", low: 0.02, high: 5, step: 0.01 },
  decay: { symbol: "λ", label: "weight decay", low: 0, high: 2, step: 0.01 },
  noise: { symbol: "ε", label: "noise in the targets", low: 0, high: 2, step: 0.01 },
  temperature: { symbol: "T", label: "noise in the weights", low: 0, high: 1, step: 0.01 },
  kappa: { symbol: "κ", label: "margin", low: -0.5, high: 2, step: 0.01 },
  width: { symbol: "w", label: "width of the Huber force", low: 0.1, high: 3, step: 0.01 },
  exponent: { symbol: "a", label: "of the eigenvalues", low: 0.1, high: 2, step: 0.05, place: "input-fields" },
  power: { symbol: "b", label: "of the teacher", low: 0, high: 3, step: 0.05, place: "input-fields" },
  cutoff: { symbol: "c", label: "cut-off", low: 0.01, high: 1, log: true, place: "input-fields" },
  ratio: { symbol: "μ₂/μ₁", label: "ratio", low: 1, high: 100, log: true, place: "input-fields" },
  share: { symbol: "w₂", label: "share of the larger", low: 0.02, high: 0.98, step: 0.02, place: "input-fields" },
  warm: { symbol: "t₀", label: "time of the warm-up", low: 0.1, high: 50, log: true, place: "schedule-fields" },
  low: { symbol: "v₁", label: "last rate", low: 0, high: 5, step: 0.01, place: "schedule-fields" },
  until: { symbol: "t₁", label: "time of the schedule", low: 0.1, high: 100, log: true, place: "schedule-fields" },
  R0: { symbol: "R₀", label: "overlap", low: -1, high: 2, step: 0.01, place: "start-fields" },
  Q0: { symbol: "Q₀", label: "length²", low: 0, high: 4, step: 0.01, place: "start-fields" },
  ...Object.fromEntries(["11", "12", "13", "21", "22", "23", "31", "32", "33"].map((at) => [`R${at}`, {
    symbol: `R${at.replace(/./g, (digit) => "₁₂₃"[digit - 1])}`, label: "", low: -1, high: 1, step: 0.01,
    place: "overlap-fields", word: "Rstart",
  }])),
  length: { symbol: "Q₀", label: "length² of each unit", low: 0.01, high: 4, step: 0.01, place: "length-fields" },
};
export const LOOK = {
  end: { symbol: "t", label: "curves up to time", low: 1, high: 100, log: true },
  window: { symbol: "τ", label: "averaging window", low: 0, high: 20, step: 0.1 },
};
export const NETWORKS = {
  n: { symbol: "N", label: "weights", low: 10, high: 2000, step: 10 },
  samples: { symbol: "S", label: "networks", low: 2, high: 500, step: 1 },
};
export const DEFAULTS = {
  rule: "adaline", task: "classification", mode: "online", sequence: "replacement",
  alpha: 1.2, rate: 1.9, decay: 0.8, noise: 0, temperature: 0, kappa: 1, width: 1,
  inputs: "uncorrelated", exponent: 1.2, power: 1.4, cutoff: 0.02, ratio: 8, share: 0.25,
  schedule: "constant", warm: 1, low: 0.1, until: 8, R0: 0, Q0: 0,
  units: "2", teachers: "2", activation: "erf", examples: "repeated", length: 0.25,
  R11: 0.12, R12: 0.02, R13: 0, R21: 0, R22: 0.1, R23: 0.02, R31: 0.02, R32: 0, R33: 0.08,
  end: 8, window: 5, n: 200, samples: 40, log: false, sim: false, pins: [],
};
const TICKS = ["log", "sim"];
const PINNED = [...Object.keys(CHOICES), ...Object.keys(SLIDERS), "end"];
const MOST_PINS = 5;

/** Whether there are hidden units, how many of both networks, and whether examples are fresh. */
export const layered = (s) => s.rule === "committee";
export const unitsOf = (s) => [Number(s.units), Number(s.teachers)];
export const fresh = (s) => layered(s) && s.examples === "fresh";
export const modeOf = (s) => (layered(s) ? "online" : s.mode);

// What is worth a first look differs: a plateau needs time, and no decay.
const FIRST = { task: "regression", examples: "fresh", rate: 1.5, decay: 0, alpha: 5, end: 40 };

/** What else changes with the rule: what nobody has chosen yet is set for hidden units, or back. */
export function withRule(s, rule) {
  if (layered(s) === (rule === "committee")) return { rule };
  const [from, to] = layered(s) ? [FIRST, DEFAULTS] : [DEFAULTS, FIRST];
  const untouched = Object.keys(FIRST).filter((name) => s[name] === from[name]);
  return { rule, ...Object.fromEntries(untouched.map((name) => [name, to[name]])) };
}

/** The order of the examples; where every step takes all of them, or new ones, there is none. */
export const orderOf = (s) => (modeOf(s) === "batch" || fresh(s) ? "replacement" : s.sequence);

/** Whether the rate changes with time. */
export const moving = (s) => s.schedule !== "constant";

/** What the server calls a rate: a number, or the text of a schedule. */
const rateOf = (s) => SCHEDULES[s.schedule].text(s);

/** Whether inputs are correlated, and what the server calls their law. */
export const correlated = (s) => s.inputs !== "uncorrelated" && !layered(s);
const lawOf = (s) => INPUTS[s.inputs].law(s);

/** Overlaps at the start of K units with M of the teacher; the units are orthogonal, equally long. */
function startOf(s) {
  if (!layered(s)) return s.R0 || s.Q0 ? { start: { R: s.R0, Q: s.Q0 } } : {};
  const [K, M] = unitsOf(s);
  const table = (size, value) => Array.from({ length: K }, (_, k) => (
    Array.from({ length: size }, (__, m) => value(k, m))));
  const R = table(M, (k, m) => s[`R${k + 1}${m + 1}`]);
  return { start: { R, Q: table(K, (k, m) => (k === m ? s.length : 0)) } };
}

/** What the server calls a problem. */
export function problemOf(s) {
  const rule = { name: s.rule };
  for (const name of RULES[s.rule] ?? []) rule[name] = s[name];
  const data = { alpha: fresh(s) ? "inf" : s.alpha, task: s.task, noise: s.noise };
  if (correlated(s)) data.inputs = lawOf(s);
  if (layered(s)) {
    [rule.hidden, data.hidden] = unitsOf(s);
    rule.activation = s.activation;
  }
  return {
    data, rule, rate: rateOf(s), decay: s.decay, temperature: s.temperature, mode: modeOf(s),
    sequence: orderOf(s), ...startOf(s),
  };
}

/** What the server calls a view. */
export function viewOf(s) {
  return { problem: problemOf(s), end: s.end, window: s.window, n: s.n, samples: s.samples };
}

/** Two states with the same key have the same curves. */
export const keyOf = (s) => JSON.stringify([problemOf(s), s.end]);

function pairs(s, names) {
  return names.filter((name) => s[name] !== DEFAULTS[name]).map((name) => [name, s[name]]);
}

/** The part after # of a link to this state: what is not default. */
export function toHash(s) {
  const names = Object.keys(DEFAULTS).filter((name) => name !== "pins");
  const query = new URLSearchParams(pairs(s, names));
  for (const pin of s.pins) {
    query.append("pin", new URLSearchParams(pairs(pin, PINNED)).toString());
  }
  return query.toString();
}

/** The value that a text stands for, or undefined. */
function parsed(name, text) {
  if (name in CHOICES) return CHOICES[name].options.find((option) => option === text);
  if (TICKS.includes(name)) return ["false", "true"].includes(text) ? text === "true" : undefined;
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
}

/** What a query says of these fields; what it does not say well is added to `unread`. */
function fromQuery(query, names, unread) {
  const s = {};
  for (const [name, text] of query) {
    const value = names.includes(name) ? parsed(name, text) : undefined;
    if (value === undefined) unread.push(`${name} = ${text}`.slice(0, 60));
    else s[name] = value;
  }
  return s;
}

/** The state that a link holds, and a note on what in it could not be read. */
export function fromHash(hash) {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const names = Object.keys(DEFAULTS).filter((name) => name !== "pins");
  const unread = [];
  const pins = query.getAll("pin").slice(0, MOST_PINS)
    .map((text) => pinOf({ ...DEFAULTS, ...fromQuery(new URLSearchParams(text), PINNED, unread) }));
  query.delete("pin");
  const state = { ...DEFAULTS, ...fromQuery(query, names, unread), pins };
  const some = `${unread.slice(0, 3).join(", ")}${unread.length > 3 ? ", …" : ""}`;
  const note = unread.length ? `The address holds what cannot be read: ${some}. Defaults are shown instead.` : "";
  return { state, note };
}

/** What a pin remembers of a state. */
export function pinOf(s) {
  return { ...DEFAULTS, ...Object.fromEntries(PINNED.map((name) => [name, s[name]])) };
}

export const mayPin = (s) => s.pins.length < MOST_PINS
  && !s.pins.some((pin) => keyOf(pin) === keyOf(s));

/** A short name of a problem: the rule and what differs from zero. */
export function nameOf(s) {
  const shown = ["alpha", "rate", "decay", "noise", "temperature", ...(RULES[s.rule] ?? [])]
    .filter((name) => s[name] !== 0 && !(name === "alpha" && fresh(s)))
    .map((name) => `${SLIDERS[name].symbol} ${name === "rate" ? rateOf(s) : s[name]}`);
  const { R, Q } = startOf(s).start ?? {};
  if (layered(s)) shown.push(`from R ${R.map((row) => row.join(" ")).join("; ")}, Q ${s.length}`);
  else if (R || Q) shown.push(`from R ${R}, Q ${Q}`);
  if (correlated(s)) {
    const law = INPUTS[s.inputs].fields.map((name) => `${SLIDERS[name].symbol} ${s[name]}`);
    shown.push(`${s.inputs} ${law.join(", ")}`);
  }
  const hidden = layered(s) ? [`${s.units} of ${s.teachers}`, s.activation, ...(fresh(s) ? ["fresh"] : [])] : [];
  const kind = [s.rule, ...hidden, ...(s.task === "regression" ? ["regression"] : []),
    ...(modeOf(s) === "batch" ? ["batch"] : []),
    ...(orderOf(s) === "replacement" ? [] : [orderOf(s)])];
  return `${kind.join(", ")}: ${shown.join(", ")}`;
}
