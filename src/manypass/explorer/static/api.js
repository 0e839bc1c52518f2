// Talking to the server: quick answers, runs that stream, files.

async function post(path, body, signal) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST", body: JSON.stringify(body), signal,
      headers: { "Content-Type": "application/json" },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer does not answer: is `manypass explore` still running?");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = `the server answered ${response.status}`;
  try { message = JSON.parse(text).error; } catch { /* not from us: keep the number */ }
  throw new Error(message);
}

export async function answer(view, want) {
  return (await post("/answer", { view, want })).json();
}

/** Call `heard` with every message of a run; returns when it ends or is aborted. */
export async function run(view, kind, signal, heard) {
  const response = await post("/run", { view, kind }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.error) throw new Error(message.error);
      heard(message);
    }
  }
}

export async function download(view, kind, format) {
  const blob = await (await post("/data", { view, kind, format })).blob();
  save(URL.createObjectURL(blob), `manypass-${kind}.${format}`);
}

/** Let the browser save what an address holds. */
export function save(address, name) {
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
