// A small picture of a rate that changes with time.

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
