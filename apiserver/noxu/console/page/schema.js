// The schema of a kind as a tree: types, limits and defaults; what each rule costs of what it may cost; how stored objects use
// it. And what is wrong with a definition that is pasted. The address names the kind: #/schema/widgets.example.com
import { html, useEffect, useState } from "./vendor/preact.js";
import { go, hrefOf } from "./router.js";
import { Choice, Empty, Field, Kubectl, Problem, Toolbar, countText, useAsked, useWrites } from "./widgets.js";
import { Editor } from "./why.js";

export const schemaView = { route: "schema", title: "Schemas", component: Schemas };

const CHECK_PAUSE = 300; // milliseconds after the last key
const RULE_BUDGET = 10000000; // of one rule; all of a schema may have ten times that
const COUNT_PAUSE = 2000; // milliseconds between two counts while objects change
const OPEN_LEVELS = 2; // that are open at first

function Schemas({ source, route, session }) {
  const [resource] = route.path;
  const kinds = useAsked(() => source.get("/_noxu/console/kinds"), [source]);
  if (!kinds.value) return html`<${Problem} error=${kinds.error} />`;
  const custom = kinds.value.items.filter((each) => each.custom);
  const isPasted = route.query.paste === "1";
  return html`<div class=${resource || isPasted ? "beside chosen" : "beside"}>
    <nav aria-label="Kinds" class="list">${custom.length ? html`<h2>Yours</h2>` : null}
      <ul>${custom.map((each) => html`<li key=${each.resource}><a href=${hrefOf("schema", [each.resource])} aria-current=${each.resource === resource ? "page" : undefined} title=${each.resource}><span>${each.kind}</span></a></li>`)}
      ${source.isLive ? html`<li><a href=${hrefOf("schema", [], { paste: "1" })} aria-current=${isPasted ? "page" : undefined}><span>Check a definition…</span></a></li>` : null}</ul>
    </nav>
    <div>${resource || isPasted ? html`<p class="back"><a href=${hrefOf("schema")}>All kinds</a></p>` : null}
      ${isPasted
        ? html`<${Pasted} source=${source} query=${route.query} />`
        : resource
          ? html`<${OfKind} key=${resource} source=${source} resource=${resource} query=${route.query} />`
          : html`<${NoKind} hasKinds=${custom.length > 0} session=${session} />`}</div>
  </div>`;
}

function NoKind({ hasKinds, session }) {
  const check = html`<p>Or <a href=${hrefOf("schema", [], { paste: "1" })}>check a definition</a> that is not applied: what is wrong with it, and its tree.</p>`;
  if (hasKinds) return html`<${Empty} title="Choose a kind"><p>Its schema is shown, with what its rules cost and how its objects use it.</p>${check}<//>`;
  return html`<${Empty} title="This server has no kinds of yours yet"><p>Apply a CustomResourceDefinition. Its schema is shown here, with what its rules cost and how its objects use it:</p><${Kubectl} session=${session} command="apply -f crds/" />${check}<//>`;
}

function OfKind({ source, resource, query }) {
  const version = query.version || "";
  const [refusal, setRefusal] = useState(null);
  const schema = useAsked(() => source.get("/_noxu/schema", { type: resource, version }), [source, resource, version]);
  useWrites(source, (write) => write.resource === resource, schema.again, COUNT_PAUSE, [source, resource]);
  const isCounting = Boolean(schema.value && schema.value.writes !== undefined);
  const count = () => source.get("/_noxu/coverage").then(schema.again, setRefusal); // the first call begins to count
  return html`<section aria-labelledby="schema"><${Problem} error=${schema.error || refusal} />
    ${schema.value ? html`<${Shown} schema=${schema.value} query=${query} at=${[resource]}>${source.isLive && !isCounting ? html`<button type="button" class="quiet" onClick=${count}>Count writes from now on</button>` : null}<//>` : null}</section>`;
}

function Pasted({ source, query }) {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), CHECK_PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const schema = useAsked(
    () => (asked.trim() ? source.send("POST", "/_noxu/schema", { definition: asked, version: query.version || "" }) : Promise.resolve(null)),
    [source, asked, query.version],
  );
  return html`<section aria-labelledby="schema">
    ${schema.value ? null : html`<h1 id="schema">Check a definition</h1><p class="quiet">Paste a CustomResourceDefinition to see what is wrong with it, and its tree. Nothing is stored.</p>`}
    <div class=${schema.value ? "trial" : ""}>
      <${Editor} label="A CustomResourceDefinition, as YAML" placeholder="apiVersion: apiextensions.k8s.io/v1 …" text=${text} change=${setText} />
      <div aria-live="polite"><${Problem} error=${schema.error} />
        ${schema.value ? html`<${Shown} schema=${schema.value} query=${query} at=${[]} isPasted />` : null}</div>
    </div>
  </section>`;
}

// -- a schema ------------------------------------------------------------------------------------------------------

const EACH = "[*]"; // the name of the node of items and values
const FILTERS = [["", "All fields"], ["unused", "Never set"], ["rules", "With rules"]];

function Shown({ schema, query, at, isPasted, children }) {
  const change = (changes) => go(hrefOf("schema", at, { ...query, ...changes }), true);
  const costs = costsOf(schema.tree);
  const counted = schema.counted;
  return html`<h1 id="schema">${schema.kind || "A definition"} <small>${schema.name}</small></h1>
    <${Findings} findings=${schema.findings} isPasted=${isPasted} />
    ${schema.tree
      ? html`<${Toolbar} label="What is shown">
          <${Field} label="Field" value=${query.find || ""} change=${(find) => change({ find })} placeholder="Search fields" />
          <${Choice} label="Only" value=${query.only || ""} change=${(only) => change({ only })} options=${counted ? FILTERS : FILTERS.filter(([each]) => each !== "unused")} />
          ${schema.versions.length > 1 ? html`<${Choice} label="Version" value=${schema.version} change=${(version) => change({ version })} options=${schema.versions.map((each) => [each, each])} />` : null}
        <//>
        <p class="quiet">${summaryOf(schema, costs)} ${children}</p>
        <div class="tree"><${Nodes} nodes=${schema.tree.fields || []} above=${schema.tree} isCounted=${Boolean(counted && counted.objects)} level=${0} wanted=${wantedBy(query)} /></div>`
      : html`<p class="quiet">This version has no schema.</p>`}`;
}

function summaryOf({ counted, writes, tree }, costs) {
  const many = (number, one, more) => `${countText(number)} ${number === 1 ? one : more}`;
  const sentences = [costs.rules ? `${many(costs.rules, "rule costs", "rules cost")} ${Number.isNaN(costs.total) ? "what is known once its schema is structural" : `${countText(costs.total)} of ${countText(RULE_BUDGET * 10)} together`}.` : "It has no rules."];
  if (counted) sentences.push(`Used by ${many(counted.objects, "stored object", "stored objects")}${counted.remaining ? `, and ${countText(counted.remaining)} more that are not counted` : ""}.`);
  if (writes !== undefined) sentences.push(`Seen in ${many(writes, "write", "writes")}.`);
  return sentences.join(" ");
}

function Findings({ findings, isPasted }) {
  if (!findings.length) return isPasted ? html`<p class="verdict accepted">Nothing is wrong with it</p>` : null;
  return html`<ul class="reasons findings">${findings.map(
    (each) => html`<li class=${each.level === "error" ? "refused" : "forgiven"}><code>${each.path.replace(/^spec\.versions\[(\d+)\]\.schema\.openAPIV3Schema\.?/, (_, n) => `[${n}] `)}</code> ${each.message}${each.advice ? html`<br /><span class="quiet">${each.advice}</span>` : null}</li>`,
  )}</ul>`;
}

function costsOf(node) {
  const own = ((node && node.rules) || []).map((each) => (each.cost === undefined ? NaN : each.cost)); // NaN: not known
  const below = ((node && node.fields) || []).map(costsOf);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return { rules: own.length + sum(below.map((each) => each.rules)), total: sum(own) + sum(below.map((each) => each.total)) };
}

// A function that says whether a node, or one below it, is looked for; null: all are shown.
function wantedBy({ find = "", only = "" }) {
  if (!find && !only) return null;
  const text = find.toLowerCase();
  const isWanted = (node) =>
    (node.path.toLowerCase().includes(text) && (only !== "unused" || isUnused(node)) && (only !== "rules" || Boolean(node.rules))) || (node.fields || []).some(isWanted);
  return isWanted;
}

const isUnused = (node) => !node.used && !(node.written && (node.written.set || node.written.defaulted));

function Nodes({ nodes, above, isCounted, level, wanted }) {
  const shown = wanted ? nodes.filter(wanted) : nodes;
  if (!shown.length) return level ? null : html`<p class="quiet">No field is like that.</p>`;
  return html`<ul>${shown.map((node) => html`<li key=${node.path}><${SchemaNode} node=${node} above=${above} isCounted=${isCounted} level=${level} wanted=${wanted} /></li>`)}</ul>`;
}

function SchemaNode({ node, above, isCounted, level, wanted }) {
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS - 1);
  const hasMore = Boolean(node.fields || node.cut);
  const opened = isOpen || Boolean(wanted && node.fields && node.fields.some(wanted));
  return html`<div class="node">
      ${hasMore
        ? html`<button type="button" class="turn" aria-expanded=${opened} aria-label=${`Fields of ${node.path}`} onClick=${() => setOpen(!opened)}>${opened ? "▾" : "▸"}</button>`
        : html`<span class="turn"></span>`}
      <code class="name">${node.name === EACH ? (above.type.startsWith("list") ? "each item" : "each value") : node.name}</code>
      <span class="type">${node.type}${node.required ? html` <strong>required</strong>` : null}${node.nullable ? ", may be null" : ""}${node.default === undefined ? null : html` <code>= ${JSON.stringify(node.default).slice(0, 60)}</code>`}</span>
      ${isCounted ? html`<${Use} node=${node} above=${above} />` : null}
    </div>
    <div class="about">
      ${node.enum ? html`<p class="enum">${node.enum.map((each) => html`<${EnumValue} value=${each} used=${node.used} isCounted=${isCounted} />`)}</p>` : null}
      ${node.limits ? html`<p class="quiet">${node.limits.join(", ")}</p>` : null}
      ${node.about ? html`<p class="quiet said">${node.about}</p>` : null}
      ${(node.rules || []).map((rule) => html`<${Rule} rule=${rule} />`)}
    </div>
    ${opened && node.fields ? html`<${Nodes} nodes=${node.fields} above=${node} isCounted=${isCounted} level=${level + 1} wanted=${wanted} />` : null}
    ${opened && node.cut ? html`<p class="quiet">${node.cut} fields are not shown: the schema is too large.</p>` : null}`;
}

// How often a field is set where it may be, in stored objects and in writes.
function Use({ node, above }) {
  const used = node.used || { set: 0 };
  const most = (above.used && above.used.set) || 0;
  const isMany = node.name === EACH;
  const part = most ? Math.min(used.set / most, 1) : 0;
  const ofDefault = used.default ? `, ${used.default === used.set ? "always" : share(used.default / used.set)} the default` : "";
  const said = isMany ? `${used.set} in all` : used.set ? `${share(part)} set${ofDefault}` : "never set";
  return html`<span class=${`use ${isUnused(node) ? "unused" : ""}`}>${isMany ? null : html`<${Bar} part=${part} />`}${said}${writtenUse(node.written)}</span>`;
}

function writtenUse(written) {
  if (!written) return "";
  const times = [["set", written.set], ["filled in", written.defaulted]].filter(([, each]) => each !== undefined);
  return html` <small>in writes ${times.map(([word, each]) => `${word} ${each}×`).join(", ")}</small>`;
}

function EnumValue({ value, used, isCounted }) {
  const times = (used && used.values && used.values[JSON.stringify(value)]) || 0;
  return html`<code class=${isCounted && !times ? "unused" : ""}>${JSON.stringify(value)}${isCounted ? html` <small>${times || "never"}</small>` : null}</code>`;
}

function Rule({ rule }) {
  return html`<div class=${`costs ${rule.expensive ? "expensive" : ""}`}>
    <pre class="rule"><code>${rule.rule}</code></pre>
    ${rule.message ? html`<p class="quiet">${rule.message}</p>` : null}
    ${rule.cost === undefined ? null : html`<p class="use"><${Bar} part=${logarithmic(rule.cost)} isBad=${rule.expensive} />costs ${countText(rule.cost)} of ${countText(RULE_BUDGET)}</p>`}
    ${rule.stored ? html`<p class="use">${outcomesText(rule.stored, "stored objects")}</p>` : null}
    ${rule.written ? html`<p class=${`use ${rule.written.true && rule.written.false ? "" : "unused"}`}>${outcomesText(rule.written, "writes")}${rule.written.true ? "" : ": never seen true"}${rule.written.false ? "" : ": never seen false"}</p>` : null}
  </div>`;
}

const outcomesText = (outcomes, what) => `true in ${countText(outcomes.true)}, false in ${countText(outcomes.false)} ${what}`;

// Costs differ by powers of ten: a bar that is half full costs 3162, a full one the whole budget.
const logarithmic = (cost) => Math.min(Math.max(Math.log10(cost || 1) / Math.log10(RULE_BUDGET), 0.02), 1);

function Bar({ part, isBad }) {
  return html`<span class=${`bar ${isBad ? "bad" : ""}`} aria-hidden="true"><i style=${{ width: `${Math.round(part * 100)}%` }}></i></span>`;
}

// A part as a percentage with as many digits as are of use.
export function share(part) {
  if (part === 0) return "0 %";
  if (part < 0.0001) return "less than 0.01 %";
  return `${(part * 100).toFixed(part < 0.01 ? 2 : part < 0.1 ? 1 : 0)} %`;
}
