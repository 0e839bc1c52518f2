// Problems that are pinned: their curves stay, each with its own dashes.

import * as api from "./api.js";
import { DASHES, PATTERNS } from "./pictures.js";
import { keyOf, mayPin, nameOf, pinOf, viewOf } from "./state.js";

export class Pins {
  /** `changed(pins)` when the list changes, `restore(pin)` to look at one, `drawn()` to redraw. */
  constructor({ changed, restore, drawn }) {
    Object.assign(this, { changed, restore, drawn });
    this.data = new Map();
    this.list = document.getElementById("pins");
  }

  /** Show the list; ask for curves that are not here yet. */
  show(state) {
    document.getElementById("pin").disabled = !mayPin(state);
    this.list.replaceChildren(...state.pins.map((pin, i) => this.row(state, pin, i)));
    for (const pin of state.pins) this.load(pin);
  }

  row(state, pin, i) {
    const item = document.createElement("li");
    item.innerHTML = '<svg viewBox="0 0 32 8" aria-hidden="true"><path d="M0 4H32" '
      + 'stroke="currentColor" stroke-width="2"/></svg>'
      + '<button type="button" class="name"></button><button type="button">✕</button>';
    item.querySelector("path").setAttribute("stroke-dasharray", PATTERNS[DASHES[i]]);
    const [name, remove] = item.querySelectorAll("button");
    name.textContent = `${letter(i)}  ${nameOf(pin)}`;
    name.title = "Look at this problem again";
    name.addEventListener("click", () => this.restore(pin));
    remove.setAttribute("aria-label", `Remove pin ${letter(i)}`);
    remove.addEventListener("click", () => {
      this.changed(state.pins.filter((other) => other !== pin));
    });
    return item;
  }

  add(state) {
    if (mayPin(state)) this.changed([...state.pins, pinOf(state)]);
  }

  async load(pin) {
    const key = keyOf(pin);
    if (this.data.has(key)) return;
    const held = { runs: [] };
    this.data.set(key, held);
    try {
      const { curves, runs } = await api.answer(viewOf(pin), "curves");
      Object.assign(held, { curves, runs });
      this.drawn(runs.length > 0);
    } catch { /* a pin from a broken link: it stays in the list, without curves */ }
  }

  /** Runs that pins still need. */
  jobs(state) {
    return state.pins.flatMap((pin) => (this.data.get(keyOf(pin))?.runs ?? []).map((kind) => ({
      kind, view: viewOf(pin), key: `pin ${kind} ${keyOf(pin)}`, pin: keyOf(pin),
      word: "curves of a pin",
    })));
  }

  heard({ pin, kind }, message) {
    this.data.get(pin)[kind] = message.curves;
    if (message.done) this.data.get(pin).runs = [];
  }

  /** What the pictures need. */
  pictures(state) {
    return state.pins.map((pin, i) => (
      { letter: letter(i), name: nameOf(pin), data: this.data.get(keyOf(pin)) }
    ));
  }
}

const letter = (i) => "ABCDE"[i];
