// Light or dark before anything is painted: what was chosen here, else what the system says.
const chosen = localStorage.getItem("manypass-theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
dark.addEventListener("change", () => {
  if (localStorage.getItem("manypass-theme")) return;
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  dispatchEvent(new Event("themechange"));
});
