// Small pictures: a rate that changes with time, and the eigenvalues of the inputs.

import { byId } from "./tell.js";

const SVG = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 264, 8, 74];

function part(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

const short = (number) => String(Number(number.toPrecision(3)));

/** Draw v(t), with v_c where it is near; without a rate there is no picture. */
export function drawRate(rate, limit) {
  const picture = byId("rate-picture");
  picture.toggleAttribute("hidden", !rate);
  if (!rate) return;
  const { t, v } = rate;
  const [end, most] = [t.at(-1), Math.max(...v) || 1];
  const near = limit && limit < 1.6 * most;
  const top = 1.06 * Math.max(most, near ? limit : 0);
  const x = (time) => LEFT + (RIGHT - LEFT) * time / end;
  const y = (value) => BOTTOM - (BOTTOM - TOP) * value / top;
  const points = t.map((time, i) => `${x(time).toFixed(1)},${y(v[i]).toFixed(1)}`).join(" ");
  const mark = (value, text, kind = "") => part(
    "text", { x: LEFT - 5, y: y(value) + 3.5, "text-anchor": "end", class: kind }, text,
  );
  const critical = mark(limit, "v", "limit");
  critical.append(part("tspan", { dy: 2, "font-size": 8 }, "c"));
  picture.setAttribute("aria-label", `v against time: ${short(v[0])} at first, ${short(v.at(-1))} at t = ${short(end)}`);
  picture.replaceChildren(
    part("path", { d: `M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}`, class: "axes" }),
    ...(near ? [part("path", { d: `M${LEFT} ${y(limit)}H${RIGHT}`, class: "limit" }),
      critical] : []),
    part("polyline", { points }),
    ...(near && Math.abs(y(most) - y(limit)) < 11 ? [] : [mark(most, short(most))]),
    mark(0, "0"),
    part("text", { x: LEFT, y: BOTTOM + 13, "text-anchor": "middle" }, "0"),
    part("text", { x: RIGHT, y: BOTTOM + 13, "text-anchor": "end" }, short(end)),
    part("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 14, "text-anchor": "middle" }, "v(t) against t"),
  );
}

/** Draw μ and the teacher's power against the rank, both logarithmic; without a law nothing. */
export function drawInputs(found) {
  const picture = byId("inputs-picture");
  picture.toggleAttribute("hidden", !found);
  if (!found) return;
  const { rank, mu, P } = found;
  const shown = [...mu, ...P].filter((value) => value > 0).map(Math.log10);
  const [low, high] = [Math.floor(Math.min(...shown)), Math.ceil(Math.max(...shown))];
  const bottom = 86;
  const first = Math.log10(rank[0]);
  const x = (u) => LEFT + (RIGHT - LEFT) * (1 - Math.log10(u) / first);
  const y = (value) => bottom - (bottom - TOP) * (Math.log10(value) - low) / Math.max(high - low, 1);
  const points = (values) => rank.map((u, i) => [u, values[i]]).filter(([, value]) => value > 0)
    .map(([u, value]) => `${x(u).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const mark = (power) => part("text", { x: LEFT - 5, y: y(10 ** power) + 3.5, "text-anchor": "end" }, short(10 ** power));
  picture.setAttribute("aria-label", `Eigenvalues from ${short(mu[0])} to ${short(mu.at(-1))} against their rank`);
  picture.replaceChildren(
    part("path", { d: `M${LEFT} ${TOP}V${bottom}H${RIGHT}`, class: "axes" }),
    part("polyline", { points: points(P), class: "power" }),
    part("polyline", { points: points(mu) }),
    mark(low), mark(high),
    part("text", { x: LEFT, y: bottom + 13, "text-anchor": "middle" }, short(rank[0])),
    part("text", { x: RIGHT, y: bottom + 13, "text-anchor": "end" }, "1"),
    part("text", { x: (LEFT + RIGHT) / 2, y: bottom + 14, "text-anchor": "middle" }, "rank"),
    part("text", { x: LEFT + 8, y: bottom - 20 }, "eigenvalues μ"),
    part("text", { x: LEFT + 8, y: bottom - 7, class: "power" }, "power of the teacher"),
  );
}
