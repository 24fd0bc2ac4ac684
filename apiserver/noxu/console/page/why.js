// Why? A field or a refusal, explained; and beside it a place to try: change the object, or the definition with its rules, and
// see at once what the server would say, also about the objects that are stored. Nothing is stored.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { CodeJar } from "./vendor/codejar.js";
import { go, hrefOf } from "./router.js";
import { Choice, Cut, Empty, Field, Problem, Tabs, toYaml, tokensOf, useAsked, useWrites } from "./widgets.js";

export const whyView = { route: "why", title: "Why?", component: Why };

const TRY_PAUSE = 250; // milliseconds after the last key
const VERDICT_PAUSE = 1000; // milliseconds between two verdicts while objects change
const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
const MOST_STORED = 200;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const OF_SERVERS = ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];

// The address may name an object, or what a request has sent: #/why/widgets.example.com?sent=ID
function Why({ source, route }) {
  const [resource, namespace = "", name] = route.path;
  const { field, sent = "" } = route.query;
  const kinds = useAsked(() => source.get("/_noxu/console/kinds"), [source]);
  if (!kinds.value) return html`<${Problem} error=${kinds.error} />`;
  if (!source.isLive) return html`<${Empty} title="This needs a server"><p>What a write would do is asked of a server that runs.</p><//>`;
  const items = kinds.value.items.filter((each) => each.custom || each.resource === resource || each.count);
  const kind = items.find((each) => each.resource === resource);
  return html`<section aria-labelledby="why">
    <h1 id="why">${name ? html`Why is <${Cut} text=${name} /> as it is?` : "Why?"}</h1>
    <p class="quiet">Change something and see what the server would say. Nothing is stored.</p>
    ${kind && name
      ? null
      : html`<div class="toolbar">
          <${Choice} label="Kind" value=${resource || ""} change=${(next) => go(hrefOf("why", [next]))} options=${[["", "Choose a kind"], ...items.map((each) => [each.resource, each.resource])]} />
          ${kind && kind.count ? html`<${ChooseObject} key=${kind.resource} source=${source} kind=${kind} />` : null}
        </div>`}
    ${resource && !kind ? html`<${Empty} title=${`No kind ${resource} is served`} />` : null}
    ${kind ? html`<${Begin} key=${`${resource}/${namespace}/${name}/${sent}`} source=${source} kind=${kind} namespace=${namespace} name=${name} sent=${sent} field=${field} />` : null}
    ${resource ? null : html`<${Empty} title="Choose a kind, or come here from an object"><p>The field that was dropped, the default that came from somewhere, the rule that refuses it.</p><//>`}
  </section>`;
}

const MOST_OFFERED = 500; // objects to choose from

function ChooseObject({ source, kind }) {
  const table = useAsked(() => source.table(kind.path, { limit: MOST_OFFERED }), [source, kind.path]);
  const objects = ((table.value && table.value.rows) || []).map((row) => row.object.metadata);
  const textOfObject = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
  const chosen = (text) => {
    const found = objects.find((each) => textOfObject(each) === text);
    if (found) go(hrefOf("why", [kind.resource, found.namespace || "", found.name]));
  };
  return html`<${Choice} label="Object" value="" change=${chosen} options=${[["", "A new one"], ...objects.map((each) => [textOfObject(each), textOfObject(each)])]} />`;
}

function Begin({ source, kind, namespace, name, sent, field }) {
  const begun = useAsked(() => beginning(source, kind, namespace, name, sent), [source]);
  if (!begun.value) return html`<${Problem} error=${begun.error} />`;
  return html`${begun.value.note ? html`<p class="quiet">${begun.value.note}</p>` : null}<${Trial} source=${source} kind=${kind} begun=${begun.value} field=${field} />`;
}

// The texts with which the editors begin.
async function beginning(source, kind, namespace, name, sent) {
  const space = kind.namespaced && name ? `/namespaces/${encodeURIComponent(namespace || "default")}` : "";
  const collection = kind.path.replace(/\/([^/]+)$/, `${space}/$1`);
  const definition = kind.custom ? await source.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${encodeURIComponent(kind.resource)}`) : null;
  const request = sent ? await source.get("/_noxu/console/request", { id: sent }) : {};
  const object = name
    ? await source.get(`${collection}/${encodeURIComponent(name)}`)
    : isWhole(request.sent)
      ? placed(request, kind)
      : { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name: "example", ...(kind.namespaced ? { namespace: "default" } : {}) }, spec: {} };
  if (kind.resource === "secrets") delete object.data; // a page may be shown to others
  return { note: request.note, owners: object.metadata.managedFields || [], object: toYaml(asWritten(object)), definition: definition && toYaml(asWritten(definition)) };
}

// Whether what was sent is an object, and no patch of one.
export const isWhole = (sent) => Boolean(sent && sent.body && sent.body.kind && sent.body.metadata);

// The object that a request has sent; its namespace may stand in the path only.
function placed({ path, sent: { body } }, kind) {
  const [, namespace] = /\/namespaces\/([^/?]+)\//.exec(path) || [];
  return { apiVersion: apiVersionOf(kind), ...body, metadata: { ...body.metadata, ...(namespace ? { namespace: decodeURIComponent(namespace) } : {}) } };
}

const apiVersionOf = (kind) => kind.path.replace(/^\/apis?\/(.*)\/[^/]+$/, "$1");

// An object as a person would write it: without what servers set, and without what kubectl has noted of the whole once more.
function asWritten({ status, metadata: { annotations, ...metadata }, ...object }) {
  const kept = Object.entries(metadata).filter(([name]) => !OF_SERVERS.includes(name));
  const noted = Object.entries(annotations || {}).filter(([name]) => name !== LAST_APPLIED);
  const { apiVersion, kind, ...rest } = object;
  const written = Object.fromEntries([...kept, ...(noted.length ? [["annotations", Object.fromEntries(noted)]] : [])]);
  return { apiVersion, kind, metadata: written, ...rest };
}

function Trial({ source, kind, begun, field }) {
  const [edited, setEdited] = useState("object");
  const [texts, setTexts] = useState(begun);
  const [asked, setAsked] = useState(texts);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(texts), TRY_PAUSE);
    return () => clearTimeout(timer);
  }, [texts]);
  const isChanged = asked.definition !== begun.definition;
  const verdict = useAsked(
    () => source.send("POST", "/_noxu/explain", { object: asked.object, ...(isChanged ? { definition: asked.definition, stored: MOST_STORED } : {}) }),
    [source, asked],
  );
  useWrites(source, (write) => write.resource === kind.resource || write.resource === DEFINITIONS, verdict.again, VERDICT_PAUSE, [source, kind.resource]);
  const tabs = [["object", "The object"], ...(begun.definition ? [["definition", isChanged ? "The definition (changed)" : "The definition"]] : [])];
  const change = (text) => setTexts((before) => ({ ...before, [edited]: text }));
  return html`<div class="trial">
    <div>
      <${Tabs} label="What is changed" tabs=${tabs} chosen=${edited} choose=${setEdited} />
      <${Editor} key=${edited} label=${edited === "object" ? "The object, as YAML" : "The definition, as YAML"} text=${texts[edited]} change=${change} />
      <p class="ways"><button type="button" class="quiet" disabled=${texts[edited] === begun[edited]} onClick=${() => setTexts((before) => ({ ...before, [edited]: begun[edited] }))}>Undo all changes</button></p>
    </div>
    <div aria-live="polite">
      <${Problem} error=${verdict.error} />
      ${verdict.value ? html`<div class=${verdict.error ? "stale" : ""}><${Verdict} verdict=${verdict.value} isChanged=${isChanged} kind=${kind} owners=${begun.owners} begins=${field} /></div>` : null}
    </div>
  </div>`;
}

// -- the editor ----------------------------------------------------------------------------------------------------

// An editor of YAML. Tab leaves it, as it leaves every other field.
export function Editor({ label, text, change, placeholder = "", language = "yaml" }) {
  const element = useRef(null);
  const jar = useRef(null);
  const changed = useRef(change);
  const known = useRef(text); // what both sides know: any other text comes from outside
  changed.current = change;
  useEffect(() => {
    const paint = (each) => each.replaceChildren(...tokensOf(each.textContent, language, MOST_PAINTED).map(elementOf));
    jar.current = CodeJar(element.current, paint, { tab: "  ", catchTab: false, addClosing: false });
    jar.current.updateCode(text, false);
    const compare = () => {
      if (element.current.querySelector("br, div")) jar.current.updateCode(plainText(element.current), false); // a browser has broken lines
      const next = jar.current.toString();
      if (next === known.current) return;
      known.current = next;
      changed.current(next);
    };
    jar.current.onUpdate(compare);
    element.current.addEventListener("input", compare); // not every input has a key: paste by menu, dictation, phones
    return () => jar.current.destroy();
  }, []);
  useEffect(() => {
    if (known.current === text) return;
    known.current = text;
    jar.current.updateCode(text, false);
  }, [text]);
  return html`<div ref=${element} class="code editor" role="textbox" aria-multiline="true" aria-label=${label} aria-placeholder=${placeholder || undefined} data-placeholder=${placeholder} tabindex="0"></div>`;
}

// The text of what a browser may put into an editable element: lines as elements, or with breaks.
function plainText(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
  if (node.nodeName === "BR") return "\n";
  return [...node.childNodes].map((each) => (each.nodeName === "DIV" && each.previousSibling ? "\n" : "") + plainText(each)).join("");
}

const MOST_PAINTED = 100000; // characters: an editor is painted after each key

// A token as a node of the document: its content stays text.
function elementOf(token) {
  if (typeof token === "string") return document.createTextNode(token);
  const made = document.createElement("span");
  made.className = `token ${token.type}`;
  made.append(...[].concat(token.content).map(elementOf));
  return made;
}

// -- the verdict ---------------------------------------------------------------------------------------------------

const GROUPS = [
  ["refused", ""],
  ["forgiven", "Wrong, and forgiven as long as it does not change"],
  ["pruned", "Dropped"],
  ["defaulted", "Filled in"],
  ["changed", "Changed by admission"],
  ["said", "Said"],
];

function Verdict({ verdict, isChanged, kind, owners, begins }) {
  const [field, setField] = useState(begins || "");
  const { definition, object, stored } = verdict;
  if (definition && !definition.accepted) {
    return html`<p class="verdict refused">The definition is refused</p><${Reasons} reasons=${definition.reasons} />`;
  }
  if (!object) return null;
  return html`
    <p class=${`verdict ${object.accepted ? "accepted" : "refused"}`}>${object.accepted ? "Accepted" : "Refused"}${isChanged ? html` <small>by the changed definition</small>` : null}</p>
    <${Reasons} reasons=${object.reasons} choose=${setField} />
    ${stored ? html`<${Stored} stored=${stored} kind=${kind} />` : null}
    ${object.result ? html`<${Result} result=${object.result} reasons=${object.reasons} owners=${owners} field=${field} choose=${setField} />` : null}`;
}

export function Reasons({ reasons, choose }) {
  const groups = GROUPS.map(([what, title]) => [what, title, reasons.filter((each) => each.what === what)]).filter(([, , each]) => each.length);
  if (!groups.length) return html`<p class="quiet">Nothing is dropped, filled in or changed, but for what the server sets.</p>`;
  return groups.map(([what, title, each]) => html`${title ? html`<h2>${title}</h2>` : null}<ul class=${`reasons ${what}`}>${each.map((reason) => html`<li><${Reason} reason=${reason} choose=${choose} /></li>`)}</ul>`);
}

function Reason({ reason, choose }) {
  const values = Object.entries(reason.values || {});
  return html`
    ${!reason.path ? null : choose ? html`<button type="button" class="path" onClick=${() => choose(reason.path)}>${reason.path}</button> ` : html`<code>${reason.path}</code> `}${reasonText(reason)}
    ${reason.what === "defaulted" && reason.hint ? html`<span class="from">from ${reason.hint}</span>` : null}
    ${reason.rule ? html`<pre class="rule"><code>${reason.rule}</code></pre>` : null}
    ${values.length ? html`<dl class="values">${values.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>` : null}`;
}

const FOLLOWS = { add: "adds it", replace: "sets it", remove: "removes it" };

// A reason as a sentence about its field.
function reasonText({ what, path, message = "", hint = "", by, stage, op, value, rule }) {
  const shown = value === undefined ? "" : `: ${JSON.stringify(value).slice(0, 120)}`;
  if (what === "changed") return `${stage.startsWith("policy") ? "the policy" : "the webhook"} ${by} ${FOLLOWS[op] || op}${shown}`;
  if (what === "set") return `the server ${FOLLOWS[op] || op}${shown}`;
  if (what === "said") return `${by ? `${stage}: ` : ""}${message}`;
  const advice = what === "forgiven" || what === "defaulted" || !hint ? "" : `. ${hint[0].toUpperCase()}${hint.slice(1)}`;
  return `${rule || !path ? message.replace(/^Invalid value: ("?object"?: |null: )?/, "") : message}${advice}`;
}

// -- the stored objects --------------------------------------------------------------------------------------------

const MOST_NAMES = 12; // of objects with the same reason

function Stored({ stored, kind }) {
  if (!stored.checked) return html`<h2>Stored objects</h2><p class="quiet">There are none.</p>`;
  const all = stored.checked === 1 ? "the one stored object" : `all ${stored.checked} stored objects`;
  const said = stored.items.length ? `${stored.items.length} of ${stored.checked} stored objects are affected:` : `It makes no difference for ${all}.`;
  return html`<h2>Stored objects</h2>
    <p>${said}${stored.remaining ? ` ${stored.remaining} more were not looked at.` : ""}</p>
    <ul class="reasons stored">${byReason(stored.items).map(
      ({ reason, items }) => html`<li class=${reason.what}><strong>${items.length}×</strong> ${reason.path ? html`<code>${reason.path}</code> ` : null}${WORDS_OF[reason.what]}: ${reasonText(reason)}
        <p class="quiet">${items.slice(0, MOST_NAMES).map((each, n) => html`${n ? ", " : ""}<a href=${hrefOf("at", ["now", kind.resource, each.namespace, each.name])}>${each.namespace ? `${each.namespace}/` : ""}${each.name}</a>`)}${items.length > MOST_NAMES ? ` and ${items.length - MOST_NAMES} more` : ""}</p></li>`,
    )}</ul>`;
}

const WORDS_OF = { refused: "is refused", forgiven: "is wrong from now on, and forgiven while it does not change", pruned: "is dropped" };

// Objects with the same reason once: most of them have the same. The items of a list count as one place.
function byReason(items) {
  const found = new Map();
  for (const item of items) {
    for (const reason of item.reasons) {
      const key = JSON.stringify([reason.what, reason.path.replace(/\[\d+\]/g, "[*]"), reason.rule]);
      if (!found.has(key)) found.set(key, { reason, items: [] });
      const same = found.get(key).items;
      if (same[same.length - 1] !== item) same.push(item);
    }
  }
  return [...found.values()].sort((a, b) => b.items.length - a.items.length);
}

// -- the result ----------------------------------------------------------------------------------------------------

const MARKS = { defaulted: ["+", "filled in"], changed: ["~", "changed by admission"], set: ["·", "set by the server"], forgiven: ["!", "wrong, and forgiven"] };

// The object as it would be stored. A field that is chosen says why it is there.
function Result({ result, reasons, owners, field, choose }) {
  const lines = useMemo(() => linesWithPaths(shownResult(result)), [result]);
  const given = reasons.filter((each) => each.path && each.what !== "pruned");
  const why = (path) => {
    const found = given.filter((each) => covering(each.path, path));
    return found.length || !OF_SERVERS.includes(path.replace("metadata.", "")) ? found : [{ what: "set", path, op: "replace" }];
  };
  const chosen = field && why(field);
  const reachable = Math.max(lines.findIndex((each) => each.path === field), 0); // with Tab: arrows lead to the others
  return html`<h2>As it would be stored</h2>
    <p class="because">${field ? html`<code>${field}</code> ${chosen.length ? chosen.map(reasonText).join("; ") : lines.some((each) => each.path === field) ? "is what you have written." : "is not in the object."}${ownersText(owners, field)}` : "Choose a line to see where it comes from."}</p>
    <div class="code result" role="group" aria-label="The lines of the object. Arrows move between them." onKeyDown=${moveBetweenLines}>${lines.map(({ text, path }, n) => {
      const [reason] = why(path);
      const [mark, said] = (reason && MARKS[reason.what]) || ["", ""];
      return html`<button type="button" class=${`${reason ? reason.what : ""} ${path === field ? "chosen" : ""}`} aria-pressed=${path === field} tabindex=${n === reachable ? 0 : -1} onClick=${() => choose(path)}><span aria-hidden="true" class="mark-of">${mark}</span><span>${text}</span>${said ? html`<span class="unseen">, ${said}</span>` : null}</button>`;
    })}</div>`;
}

function moveBetweenLines(event) {
  const { target, key } = event;
  const to = { ArrowDown: target.nextElementSibling, ArrowUp: target.previousElementSibling, Home: target.parentNode.firstElementChild, End: target.parentNode.lastElementChild }[key];
  if (!to) return;
  to.focus();
  event.preventDefault();
}

function ownersText(owners, field) {
  const owning = owners.filter((each) => owns(each.fieldsV1 || {}, field.match(/[^.[\]]+/g) || []));
  const names = owning.map(({ manager, operation, subresource, time }) => `${manager} (${operation}${subresource ? ` of its ${subresource}` : ""}${time ? `, ${time}` : ""})`);
  return names.length ? ` In the stored object it is owned by ${names.join(" and ")}.` : "";
}

// Whether a set of fields (fieldsV1) has a field. Items of lists have keys there: what is below a list counts for the list.
function owns(fields, [name, ...below]) {
  const found = fields[`f:${name}`];
  if (!found) return false;
  return !below.length || /^\d+$/.test(below[0]) || !Object.keys(found).length || owns(found, below);
}

function shownResult({ apiVersion, kind, metadata, ...object }) {
  const { managedFields, ...rest } = metadata;
  return { apiVersion, kind, metadata: rest, ...object };
}

const covering = (above, path) => path === above || (path.startsWith(above) && ".[".includes(path[above.length]));

// The lines of an object in YAML, each with the path of its field.
function linesWithPaths(value, path = "", indent = "") {
  const isList = Array.isArray(value);
  return Object.entries(value).flatMap(([name, item]) => {
    const below = isList ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    const isFull = item !== null && typeof item === "object" && Object.keys(item).length;
    if (!isFull) {
      const texts = toYaml(isList ? [item] : { [name]: item }, indent).replace(/\n$/, "").split("\n");
      return texts.map((text) => ({ text, path: below }));
    }
    const lines = linesWithPaths(item, below, isList || !Array.isArray(item) ? `${indent}  ` : indent);
    if (!isList) return [{ text: `${indent}${toYaml({ [name]: {} }).replace(/: \{\}\n$/, ":")}`, path: below }, ...lines];
    const [first, ...others] = lines;
    return [{ ...first, text: `${indent}- ${first.text.slice(indent.length + 2)}` }, ...others];
  });
}
