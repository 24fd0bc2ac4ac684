// Opening a recording: a file that is chosen, or dropped anywhere on the page. It is sent compressed, read, and not kept.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Problem } from "./widgets.js";

const MOST_SENT = 2250000; // bytes of a compressed file: in base64 as much as the server takes

export function Opening({ source, opened }) {
  const [isOver, setOver] = useState(false);
  const [problem, setProblem] = useState(null);
  const input = useRef(null);
  const open = async (file) => {
    setProblem(null);
    try {
      if (!source.open) throw new Error(`this page is a file, which reads no other one: noxu open ${file.name}`);
      opened(await source.open(file.name, await contentOf(file)), file.name);
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => {
    const isFile = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
    const over = (event) => {
      if (!isFile(event)) return;
      event.preventDefault(); // else the browser shows the file itself
      setOver(event.type === "dragover");
    };
    const drop = (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      setOver(false);
      if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
    };
    const left = (event) => event.relatedTarget || setOver(false);
    const listeners = { dragover: over, drop, dragleave: left };
    Object.entries(listeners).forEach(([name, each]) => addEventListener(name, each));
    return () => Object.entries(listeners).forEach(([name, each]) => removeEventListener(name, each));
  }, [source]);
  const chosen = (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // the same one may be chosen again
    if (file) open(file);
  };
  return html`
    ${source.open ? html`<button type="button" class="quiet" onClick=${() => input.current.click()}>Open a recording…</button><input ref=${input} type="file" hidden aria-label="A recording" onChange=${chosen} />` : null}
    ${isOver ? html`<div class="dropping" role="status">Drop a recording to open it</div>` : null}
    ${problem ? html`<div class="floating"><${Problem} error=${problem} /><button type="button" class="quiet" onClick=${() => setProblem(null)} aria-label="Close">✕</button></div>` : null}`;
}

// A file in base64, compressed unless it is. Raises Error.
async function contentOf(file) {
  const begins = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isCompressed = begins[0] === 0x1f && begins[1] === 0x8b;
  const body = isCompressed ? file : await new Response(file.stream().pipeThrough(new CompressionStream("gzip"))).blob();
  if (body.size > MOST_SENT) throw new Error(`${file.name} is too large for a page: noxu open ${file.name}`);
  const bytes = new Uint8Array(await body.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}
