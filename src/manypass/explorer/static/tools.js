// Buttons: pictures, files, links, copies.

import * as api from "./api.js";

function button(text, title, action) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text, title });
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

function files(what, kind, view, failed) {
  return [["CSV", "csv"], ["netCDF", "nc"]].map(([text, format]) => button(
    text, `Download ${what} as ${text}`,
    () => api.download(view(), kind(), format).catch((error) => failed(error.message)),
  ));
}

/** The buttons of every card: `kindOf(card)` names its data, `image(card, format)` draws it. */
export function build(view, kindOf, image, failed) {
  for (const card of ["order", "errors", "lengths", "specialization", "steady", "relaxation", "activations", "worth"]) {
    const tools = document.querySelector(`#${card} .tools`);
    const what = document.querySelector(`#${card} h2`).textContent.toLowerCase();
    for (const format of ["png", "svg"]) {
      tools.append(button(format.toUpperCase(), `Save ${what} as ${format.toUpperCase()}`, () => {
        image(card, format)
          .then((address) => {
            api.save(URL.createObjectURL(blobOf(address)), `manypass-${card}.${format}`);
          })
          .catch((error) => failed(error.message));
      }));
    }
    if (card !== "relaxation") tools.append(...files(what, () => kindOf(card), view, failed));
  }
  const simulated = document.querySelector(".files[data-kind=simulation]");
  simulated.append(...files("the simulation", () => "simulation", view, failed));

  for (const copy of document.querySelectorAll("[data-copy]")) {
    copy.addEventListener("click", () => {
      copyText(copy, document.getElementById(copy.dataset.copy).textContent);
    });
  }
  const link = document.getElementById("copy-link");
  link.addEventListener("click", () => copyText(link, location.href));
}

/** The bytes of a data: address, without asking the network. */
function blobOf(address) {
  const comma = address.indexOf(",");
  const [head, body] = [address.slice(0, comma), address.slice(comma + 1)];
  const type = head.slice(5).split(";")[0];
  const bytes = head.endsWith("base64")
    ? Uint8Array.from(atob(body), (c) => c.charCodeAt(0))
    : new TextEncoder().encode(decodeURIComponent(body));
  return new Blob([bytes], { type });
}

async function copyText(control, text) {
  const label = control.textContent;
  try {
    await navigator.clipboard.writeText(text);
    control.textContent = "Copied";
  } catch {
    control.textContent = "Not allowed";
  }
  setTimeout(() => { control.textContent = label; }, 1200);
}
