// Small pieces that views share. All of them show text as text: nothing that comes from a server becomes markup.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Prism } from "./vendor/prism.js";

// -- asking --------------------------------------------------------------------------------------------------------

// What `ask` answers: {value, error, again}. It is asked again when one of `inputs` changes; an answer that comes
// after that is dropped, and the last one is shown meanwhile.
export function useAsked(ask, inputs) {
  const [answer, setAnswer] = useState({});
  const [turn, setTurn] = useState(0);
  const took = useRef(0);
  useEffect(() => {
    let isWanted = true;
    const began = performance.now();
    const asked = ask();
    asked.finally(() => (took.current = performance.now() - began)).catch(() => null);
    asked.then(
      (value) => isWanted && setAnswer({ value }),
      (error) => isWanted && setAnswer((before) => ({ value: before.value, error })),
    );
    return () => (isWanted = false);
  }, [...inputs, turn]);
  const again = () => setTurn((before) => before + 1);
  again.rest = () => PART_OF_TIME * took.current;
  return { ...answer, again };
}

const PART_OF_TIME = 20; // what is asked again and again takes a twentieth of the time, however large the answer is

// Calls `changed` at most every `pause` milliseconds while the stream has writes that `matches` accepts; an `again` of
// `useAsked` less often if its answers take long.
export function useWrites(source, matches, changed, pause, inputs) {
  useEffect(() => {
    let timer = 0;
    const end = source.follow((line) => {
      if (!timer && (line.lost || line.marks.some((mark) => mark.what === "write" && matches(mark)))) {
        timer = setTimeout(() => {
          timer = 0;
          changed();
        }, Math.max(pause, changed.rest ? changed.rest() : 0));
      }
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, inputs);
}

// 12345 as 12,345. By hand, as the times of marks: the first look of a page at its language takes 40 ms.
export const countText = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

// -- showing -------------------------------------------------------------------------------------------------------

const SHORT_ENOUGH = 90; // characters: two lines of a heading on a phone, hardly more

// A text that may be as long as a name: three lines of it are seen, all of it is said, copied and printed.
export const Cut = ({ text }) => (text.length > SHORT_ENOUGH ? html`<span class="cut" title=${text}>${text}</span>` : text);

export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${error.message}</p>` : null;
}

// A command for this server. `session`: null until it is known.
export function Kubectl({ session, command }) {
  return html`<pre class="code" tabindex="0"><code>kubectl --server ${(session && session.url) || location.origin} ${command}</code></pre>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

// `folds`: what a button says that shows it on a phone, where it would fill the page; "" for one that is always shown.
export function Toolbar({ children, label, folds = "" }) {
  const [isOpen, setOpen] = useState(false);
  return html`${folds ? html`<button type="button" class="fold quiet" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"} ${folds}</button>` : null}<div class="toolbar" role="group" aria-label=${label}>${children}</div>`;
}

export function Field({ label, value, change, type = "search", isShort, ...rest }) {
  return html`<label class=${isShort ? "field short" : "field"}><span>${label}</span>
    <input type=${type} value=${value} spellcheck=${false} autocomplete="off" onInput=${(event) => change(event.target.value)} ...${rest} /></label>`;
}

export function Choice({ label, value, change, options }) {
  return html`<label class="field"><span>${label}</span>
    <select value=${value} onChange=${(event) => change(event.target.value)}>
      ${options.map(([each, text]) => html`<option value=${each} selected=${each === value}>${text}</option>`)}
    </select></label>`;
}

export function Tabs({ tabs, chosen, choose, label }) {
  const keyed = (event) => {
    const at = tabs.findIndex(([name]) => name === chosen);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    const to = (next + tabs.length) % tabs.length;
    choose(tabs[to][0]);
    event.currentTarget.children[to].focus();
    event.preventDefault();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${keyed}>
    ${tabs.map(
      ([name, title]) => html`<button role="tab" type="button" aria-selected=${name === chosen} tabindex=${name === chosen ? 0 : -1} onClick=${() => choose(name)}>${title}</button>`,
    )}
  </div>`;
}

const LONGEST_LINE = 48; // characters of a cell; longer ones may be broken, too

// `columns`: [{title, className}]; `rows`: [{key, cells, href}], where `href` makes the first cell a link. A `className` is "number",
// "wide" for what a phone leaves out, "wraps" for what may be broken into lines, "short" for a first cell that is not a name.
export function Table({ columns, rows, caption }) {
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map((each) => html`<th scope="col" class=${each.className}>${each.title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr key=${row.key}>${row.cells.map(
        (cell, n) => html`<td class=${`${columns[n].className || ""} ${String(cell).length > LONGEST_LINE ? "wraps" : ""}`}>${n === 0 && row.href ? html`<a href=${row.href}>${cell}</a>` : cell}</td>`,
      )}</tr>`,
    )}</tbody>
  </table></div>`;
}

export function Copy({ text, label = "Copy" }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? await text() : text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}><span aria-live="polite">${isCopied ? "Copied" : label}</span></button>`;
}

// A dialog over the page; Escape and the button close it.
export function Dialog({ title, close, children }) {
  const element = useRef(null);
  useEffect(() => element.current.showModal(), []);
  return html`<dialog ref=${element} onClose=${close} aria-label=${title}>
    <header><h2>${title}</h2><button type="button" class="quiet" onClick=${() => element.current.close()} aria-label="Close">✕</button></header>
    ${children}
  </dialog>`;
}

// -- YAML ----------------------------------------------------------------------------------------------------------

export function Yaml({ value }) {
  return html`<${Code} text=${typeof value === "string" ? value : toYaml(value)} language="yaml" />`;
}

export function Code({ text, language }) {
  return html`<pre class="code" tabindex="0"><code>${highlighted(text, language)}</code></pre>`;
}

const LONGEST_HIGHLIGHTED = 200000; // characters; longer texts are shown plain, at once

// The tokens of a text, as Prism finds them: the text itself if it is longer than `most`.
export function tokensOf(text, language, most) {
  const grammar = Prism.languages[language];
  return grammar && text.length <= most ? Prism.tokenize(text, grammar) : [text];
}

// Preact makes the nodes, so the text stays text.
const highlighted = (text, language) => tokensOf(text, language, LONGEST_HIGHLIGHTED).map(tokenNode);

function tokenNode(token) {
  if (typeof token === "string") return token;
  const content = Array.isArray(token.content) ? token.content.map(tokenNode) : tokenNode(token.content);
  return html`<span class=${`token ${token.type}`}>${content}</span>`;
}

// YAML as kubectl prints it: lists are not indented, text is quoted where it would be something else.
export function toYaml(value, indent = "") {
  if (Array.isArray(value)) {
    return value.length ? value.map((item) => `${indent}- ${behind(item, indent)}`).join("") : `${indent}[]\n`;
  }
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value);
    return fields.length ? fields.map(([name, item]) => `${indent}${scalar(name)}:${field(item, indent)}`).join("") : `${indent}{}\n`;
  }
  return `${indent}${scalar(value, indent)}\n`;
}

// What stands in the line of a "- " or of a name; its other lines are below that.
const behind = (item, indent) => toYaml(item, `${indent}  `).trimStart();

function field(item, indent) {
  const isFull = item !== null && typeof item === "object" && Object.keys(item).length;
  if (!isFull) return ` ${behind(item, indent)}`;
  return `\n${toYaml(item, Array.isArray(item) ? indent : `${indent}  `)}`;
}

const PLAIN = /^(?!\.\d)[A-Za-z_./][\w ./@+-]*$/;
const OTHER = /^(true|false|yes|no|on|off|null|~|y|n|\.inf|\.nan)$/i;

function scalar(value, indent = "") {
  if (typeof value !== "string") return String(value);
  if (PLAIN.test(value) && !OTHER.test(value) && !value.endsWith(" ")) return value;
  if (value.includes("\n") && !/[^\S\n]\n|^\s|\t|\n\n$/.test(value)) {
    return `|${value.endsWith("\n") ? "" : "-"}\n${value.replace(/\n$/, "").replace(/^(?=.)/gm, indent)}`;
  }
  return JSON.stringify(value);
}

// -- differences ---------------------------------------------------------------------------------------------------

// The lines of a unified diff, [sign, text] each, with `around` unchanged lines beside each change; ["@", ""] where some are left out.
function diffLines(before, after, around = 3) {
  const [a, b] = [before, after].map((text) => (text ? text.split("\n") : []));
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) first++;
  let last = 0;
  while (last < a.length - first && last < b.length - first && a[a.length - 1 - last] === b[b.length - 1 - last]) last++;
  const middle = changedLines(a.slice(first, a.length - last), b.slice(first, b.length - last));
  const all = [...a.slice(0, first).map((text) => [" ", text]), ...middle, ...a.slice(a.length - last).map((text) => [" ", text])];
  const near = all.map((_, n) => all.slice(Math.max(n - around, 0), n + around + 1).some(([sign]) => sign !== " "));
  return all.flatMap((line, n) => (near[n] ? [line] : near[n - 1] || n === 0 ? [["@", ""]] : []));
}

const MOST_COMPARED = 4000000; // pairs of lines; beyond that everything between the first and the last change has changed

function changedLines(a, b) {
  if (a.length * b.length > MOST_COMPARED) return [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1)); // lengths of common subsequences
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i++]]);
      j++;
    } else if (i < a.length && (j === b.length || common[i + 1][j] >= common[i][j + 1])) {
      lines.push(["-", a[i++]]);
    } else {
      lines.push(["+", b[j++]]);
    }
  }
  return lines;
}

const SIGNS = { "+": ["added", "added: "], "-": ["removed", "removed: "], " ": ["same", ""], "@": ["left-out", ""] };

export function Diff({ before, after }) {
  const lines = diffLines(before, after);
  if (!lines.some(([sign]) => sign === "+" || sign === "-")) return html`<p class="quiet">Nothing differs.</p>`;
  return html`<${DiffLines} lines=${lines} />`;
}

// The text of a unified difference, without its two first lines.
export function UnifiedDiff({ text }) {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => (line[0] === "@" ? ["@", ""] : [line[0] || " ", line.slice(1)]));
  return html`<${DiffLines} lines=${lines[0][0] === "@" ? lines.slice(1) : lines} />`;
}

function DiffLines({ lines }) {
  return html`<pre class="code diff" tabindex="0">${lines.map(([sign, text]) => {
    const [name, said] = SIGNS[sign] || SIGNS[" "];
    return html`<span class=${name}><span class="unseen">${said}</span><span aria-hidden="true">${sign === "@" ? "⋯" : sign} </span>${text}${"\n"}</span>`;
  })}</pre>`;
}
