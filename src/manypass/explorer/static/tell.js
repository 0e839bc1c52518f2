// Words on the page.

export const byId = (id) => document.getElementById(id);

/** Put plain text into an element, v_c and E_t with their subscripts; banners hide when empty. */
export function tell(id, text) {
  const safe = Object.assign(document.createElement("span"), { textContent: text }).innerHTML;
  byId(id).innerHTML = safe.replace(/\b([vE])_(\w)\b/g, "<i>$1</i><sub>$2</sub>");
  if (["error", "warning"].includes(id)) byId(id).hidden = !text;
}
