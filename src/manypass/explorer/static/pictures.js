// Traces and layouts: theory is lines with bands, simulation is symbols with bars.

import { correlated } from "./state.js";

export const LABELS = {
  R: "R", Q: "Q", F2: "⟨F²⟩", Eg: "E<sub>g</sub>", Et: "E<sub>t</sub>",
};
export const DASHES = ["dash", "dot", "dashdot", "longdash", "longdashdot"];
export const PATTERNS = { // the same outside Plotly
  dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4", longdashdot: "11 3 2 3",
};
const SHAPES = { R: "circle", Q: "square", F2: "triangle-up", Eg: "diamond", Et: "triangle-down" };
const ROUND = { simplify: false }; // else Plotly leaves out points, and peaks get corners
const CONFIG = { displayModeBar: false, responsive: true };

const palette = getComputedStyle(document.documentElement);
const css = (name) => palette.getPropertyValue(name).trim();
export const colour = (name) => css(`--${name}`);

/** What all pictures share. */
export function layout(x, y, more = {}) {
  const axis = {
    gridcolor: css("--line"), linecolor: css("--quiet"), zeroline: false, ticks: "outside",
    tickcolor: css("--line"), automargin: true, exponentformat: "power",
  };
  return {
    margin: { l: 48, r: 14, t: 10, b: 42 }, showlegend: false, uirevision: "same",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    legend: {
      orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11 },
      bgcolor: "rgba(0,0,0,0)",
    },
    ...more,
    xaxis: { ...axis, title: { text: x, standoff: 8 }, ...more.xaxis },
    yaxis: { ...axis, title: { text: y, standoff: 6 }, ...more.yaxis },
  };
}

/** A line, and a band of one standard error where there is one. */
export function line(x, result, name, style = {}) {
  const { dash = "solid", opacity = 1, label = LABELS[name], tint = colour(name) } = style;
  const y = result[name];
  const error = result[`${name}_se`];
  const traces = [{
    x, y, name: label, mode: style.mode ?? "lines", opacity,
    line: { ...ROUND, color: tint, width: 2, dash }, marker: { size: 4 },
    hovertemplate: `${label} = %{y:.4g}<extra></extra>`, showlegend: style.legend ?? true,
  }];
  if (error?.some((e) => e > 0)) {
    const known = x.map((_, i) => i).filter((i) => y[i] !== null && error[i] !== null);
    const above = known.map((i) => y[i] + error[i]);
    const below = known.map((i) => Math.max(y[i] - error[i], 0)).reverse();
    const there = known.map((i) => x[i]);
    traces.push({
      x: [...there, ...[...there].reverse()], y: [...above, ...below], fill: "toself",
      mode: "none", fillcolor: tint, opacity: 0.22 * opacity, name: `${label} ± error`,
      hoverinfo: "skip", showlegend: false,
    });
  }
  return traces;
}

export function symbols(result, name, style = {}) {
  const { label = LABELS[name], tint = colour(name), shape = SHAPES[name] } = style;
  return {
    x: result.t, y: result[name], name: `${label}, simulated`, mode: "markers", cliponaxis: false,
    marker: { symbol: `${shape}-open`, size: 8, color: tint, line: { width: 1.6 } },
    error_y: { array: result[`${name}_se`], color: tint, thickness: 1.2, width: 3 },
    hovertemplate: `${label} = %{y:.4g} (simulated)<extra></extra>`,
  };
}

/** Curves against time: present problem, its simulation, and the pins. */
export function timeCurves(names, shown, pins, state, growing, marks = []) {
  const traces = [];
  pins.forEach((pin, i) => {
    for (const name of names) {
      const result = pin.data?.curves?.[name] ? pin.data.curves : pin.data?.training;
      if (!result?.[name]) continue;
      const label = `${pin.letter}: ${LABELS[name]}`;
      traces.push(...line(result.t, result, name, { dash: DASHES[i], opacity: 0.8, label }));
    }
  });
  for (const name of names) {
    const from = shown.curves?.[name] ? shown.curves : shown.training;
    if (!from?.[name]) continue;
    traces.push(...line(from.t, from, name, { opacity: from.stale ? 0.25 : 1 }));
  }
  for (const name of names) {
    if (shown.simulation?.[name]) traces.push(symbols(shown.simulation, name));
  }
  // An empty picture has a range of its own, which must not outlive it.
  const fit = traces.length ? { autorange: true } : { range: [0, 1], autorange: false };
  const yaxis = state.log || growing ? { type: "log", autorange: true } : { rangemode: "tozero", ...fit };
  const xaxis = { range: [0, state.end] };
  const uirevision = `${state.end} ${yaxis.type} ${fit.autorange}`;
  return [traces, layout("time t", "", { xaxis, yaxis, hovermode: "x", uirevision, ...marked(marks) })];
}

export const upright = (x, text, tint, dash, more = {}) => ({
  shape: {
    type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: tint, width: 1.5, dash },
  },
  annotation: {
    x, y: 1, yref: "paper", yanchor: "top", xanchor: "left", xshift: 3, showarrow: false, text,
    bgcolor: css("--card"), font: { color: tint, size: 12 }, ...more,
  },
});

export function marked(marks) {
  return { shapes: marks.map((m) => m.shape).filter((s) => s.type), annotations: marks.map((m) => m.annotation) };
}

/** E_g and E_t for t → ∞ against v. */
export function steady(shown, state) {
  const { now, averaged, mean_force: approximate, batch, critical_rate: limit } = shown.steady ?? {};
  const sampled = shown.steadyRun;
  const traces = [];
  const both = (result, word, style) => { // colours are in the head of the card
    for (const name of ["Eg", "Et"]) {
      if (!result?.[name]) continue;
      const legend = name === "Eg" && word !== "";
      const label = legend ? word : `${LABELS[name]} ${word}`;
      traces.push(...line(result.rate, result, name, { ...style, label, legend }));
    }
  };
  both(now, now ? "now" : "", {});
  both(now?.Et ? null : sampled, "", { mode: "lines+markers" });
  if (averaged) {
    traces.push(...line(averaged.rate, averaged, "Eg", {
      dash: "dash", label: `averaged, τ = ${state.window}`,
    }));
  }
  both(approximate, "mean force", { dash: "dot" });
  const last = Math.max(limit ? 1.1 * limit : 0, ...(now?.rate ?? sampled?.rate ?? [state.rate]));
  if (batch) {
    const flat = { rate: [0, last], Eg: [batch.Eg, batch.Eg], Et: [batch.Et, batch.Et] };
    both(flat, "batch", { dash: "longdash", opacity: 0.55 });
  }
  const marks = [upright(state.rate, "v", colour("quiet"), "solid", { xanchor: "right", xshift: -3 })];
  if (limit) marks.push(upright(limit, "v<sub>c</sub>", colour("bad"), "dash"));
  const xaxis = { range: [0, Math.max(last, 1.05 * state.rate)] };
  const yaxis = state.log ? { type: "log" } : { rangemode: "tozero" };
  return [traces, layout("learning rate v", "", {
    xaxis, yaxis, showlegend: true, hovermode: "x", margin: { l: 48, r: 14, t: 28, b: 42 },
    uirevision: `${last}`, ...marked(marks),
  })];
}

/** The band of relaxation rates and the collective mode. */
export function relaxation({ relaxation: found }, state) {
  const { rate, density, lines = [], edge, slow_mode: slow } = found ?? {};
  if (rate && correlated(state)) return manyScales(found);
  const traces = rate ? [{
    x: rate, y: density, mode: "lines", fill: "tozeroy", line: { ...ROUND, color: colour("R"), width: 2 },
    fillcolor: `${colour("R")}33`, name: "band", hovertemplate: "rate %{x:.4g}<extra></extra>",
  }] : [];
  const marks = lines.map(([at, share]) => upright(
    at, share < 1 ? `${share.toPrecision(2)} of all` : "all modes", colour("R"), "solid",
    { y: 0.85, font: { color: colour("R"), size: 11 } },
  ));
  const apart = rate && slow < edge * (1 - 1e-9) - 1e-12;
  if (apart) {
    const text = `λ<sub>σ</sub> = ${slow.toPrecision(3).replace("-", "−")}${slow < 0 ? ", growing" : ""}`;
    marks.push(upright(slow, text, colour(slow < 0 ? "bad" : "Q"), "dash"));
  }
  if (rate && !apart) {
    const text = "no collective mode below the band";
    marks.push({ shape: {}, annotation: {
      x: 1, xref: "paper", xanchor: "right", y: 1, yref: "paper", showarrow: false, text,
      font: { color: colour("quiet"), size: 12 },
    } });
  }
  const points = [0, ...(rate ?? []), ...lines.map(([at]) => at * 1.3), ...(apart ? [slow] : [])];
  const [low, high] = [Math.min(...points), Math.max(...points, 0.1)];
  const pad = 0.06 * (high - low);
  const from = low < 0 ? low - pad : 0;
  return [traces, layout("relaxation rate 2v(λ + h)", "density", {
    xaxis: { range: [from, high + pad], zeroline: true, zerolinecolor: colour("line") },
    yaxis: { rangemode: "tozero" }, uirevision: `${high}`, ...marked(marks),
  })];
}

/** The same of correlated inputs, whose rates differ by powers of ten. */
function manyScales({ rate, density, lines, edge, slow_mode: slow }) {
  const traces = [{
    x: rate, y: density.map((value) => value || null), mode: "lines", name: "band",
    line: { ...ROUND, color: colour("R"), width: 2 }, hovertemplate: "rate %{x:.4g}<extra></extra>",
  }];
  const at = (x, text, tint, dash) => upright(x, text, tint, dash, { x: Math.log10(x) });
  const marks = lines.filter(([x]) => x > 0)
    .map(([x, share]) => at(x, `${share.toPrecision(2)} of all`, colour("R"), "solid"));
  if (slow > 0 && slow < edge * (1 - 1e-9)) {
    marks.push(at(slow, `λ<sub>σ</sub> = ${slow.toPrecision(3)}`, colour("Q"), "dash"));
  }
  const points = [...rate, ...marks.map(({ shape }) => shape.x0)];
  const [low, high] = [Math.min(...points), Math.max(...points)].map(Math.log10);
  const axis = { type: "log", dtick: 1 };
  return [traces, layout("relaxation rate 2v(λ + h)", "density", {
    xaxis: { ...axis, range: [low - 0.1, high + 0.1] }, yaxis: axis, uirevision: `${low} ${high}`, ...marked(marks),
  })];
}

/** Densities of x and h given the class. */
export function activations({ activations: found }) {
  const traces = (found ?? []).map(({ name, target, at, density }) => {
    const given = target === null ? "" : `, ỹ = ${target > 0 ? "+" : "−"}1`;
    const tint = colour(target === null ? "Eg" : target > 0 ? "R" : "Q");
    return {
      x: at, y: density, mode: "lines", name: `${name}${given}`, opacity: found.stale ? 0.25 : 1,
      line: { ...ROUND, color: tint, width: name === "x" ? 2 : 1.4, dash: name === "x" ? "solid" : "dash" },
      hovertemplate: "%{y:.3g}<extra></extra>",
    };
  });
  return [traces, layout("activation", "density", {
    showlegend: true, margin: { l: 48, r: 14, t: 28, b: 42 }, yaxis: { rangemode: "tozero" },
  })];
}

/** What passes over the data are worth, beside what as many fresh data would be. */
export function worth({ worth: found }) {
  const { passes: k = [], effective_data: D = [], fit = [], R_star: R } = found ?? {};
  const drawn = (y, name, more) => ({
    x: k, y, name, mode: "lines", hovertemplate: "%{y:.4g}<extra></extra>", opacity: found?.stale ? 0.25 : 1, ...more,
  });
  const known = D.filter((value) => value !== null);
  const traces = known.length ? [
    drawn(k, "fresh data", { line: { color: colour("quiet"), width: 1.2, dash: "dash" }, hoverinfo: "skip" }),
    ...(R === null ? [] : [drawn(fit, `fit, R* = ${R.toPrecision(3)}`, { line: { ...ROUND, color: colour("Q"), width: 1.6, dash: "dot" } })]),
    drawn(D, "effective data", { mode: "lines+markers", line: { ...ROUND, color: colour("R"), width: 2 }, marker: { size: 5 } }),
  ] : [];
  const ticks = [0.5, 1, 2, 4, 8, 16, 32, 64, 128];
  const axis = { type: "log", tickvals: ticks, ticktext: ticks.map(String) };
  const top = Math.max(2, ...known) * 1.6;
  return [traces, layout("passes k", "", {
    showlegend: true, hovermode: "x", margin: { l: 48, r: 14, t: 28, b: 42 }, uirevision: `${top}`,
    xaxis: { ...axis, range: [-0.03, Math.log10(70)] },
    yaxis: { ...axis, range: [Math.log10(Math.min(0.9, ...known)) - 0.04, Math.log10(top)] },
  })];
}

const plotIn = (card) => document.querySelector(`#${card} .plot`);

export function draw(card, [traces, made]) {
  return Plotly.react(plotIn(card), traces, made, CONFIG);
}

/** A picture to keep: on white, with its parameters. */
export function image([data, made], title, format) {
  const white = "#ffffff";
  const lines = title.split("<br>").length;
  const layout = {
    ...made, paper_bgcolor: white, plot_bgcolor: white, showlegend: true,
    annotations: made.annotations?.map((note) => ({ ...note, bgcolor: white })),
    margin: { ...made.margin, t: 58 + 18 * lines },
    title: {
      text: title, font: { size: 13 }, x: 0, xref: "paper", y: 1, yanchor: "top",
      pad: { t: 1 + 9 * lines }, // Plotly centres the lines around the first one's place
    },
  };
  return Plotly.toImage({ data, layout }, { format, width: 720, height: 460, scale: 2 });
}
