// What does not depend on the problem: symbols in the heads of the cards, light and dark.

import { symbolButton } from "./controls.js";
import { LABELS } from "./pictures.js";
import { byId } from "./tell.js";

const CHIPS = {
  R: "R", Q: "Q", F2: "⟨F²⟩", Eg: "E<sub>g</sub>", Et: "E<sub>t</sub>", vc: "v<sub>c</sub>",
  batch: "batch", mean_force: "mean force", window: "τ", band: "band",
  collective: "collective mode", x: "x", h: "h", effective_data: "effective data", fit: "R*",
  Rkm: "R<sub>km</sub>", Qkl: "Q<sub>kl</sub>", S: "S", plateau: "plateau",
};

/** Symbols that explain themselves; those of curves carry the curve's colour. */
export function buildChips() {
  for (const chips of document.querySelectorAll(".chips")) {
    for (const name of chips.dataset.names.split(" ")) {
      const chip = symbolButton(name, "", name.length > 2 && name !== "window");
      chip.innerHTML = CHIPS[name];
      if (LABELS[name]) {
        chip.dataset.name = name;
        chip.style.color = `var(--${name})`;
      }
      chips.append(chip);
    }
  }
}

/** What is made for paper has the colours of the light page. */
export function inLight(make) {
  const { dataset } = document.documentElement;
  const { theme } = dataset;
  dataset.theme = "light";
  try { return make(); } finally { dataset.theme = theme; }
}

export function buildTheme(redraw) {
  byId("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("manypass-theme", theme);
    redraw();
  });
  addEventListener("themechange", redraw);
}
