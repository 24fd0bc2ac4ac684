// Kinds and their objects, as they are now: the way into everything else. The lists are the API's own tables.
import { html, useState } from "./vendor/preact.js";
import { go, hrefOf } from "./router.js";
import { Choice, Empty, Field, Kubectl, Problem, Table, Toolbar, countText, useAsked, useWrites } from "./widgets.js";

export const kindsView = { route: "kinds", title: "Objects", component: Kinds, inRecordings: true };

const MOST_ROWS = 500; // that are shown, and how many more a click shows
const MOST_SEARCHED = 10000; // objects
const PAUSE = 300; // milliseconds between two looks while objects change

function Kinds({ source, route, hasView, session }) {
  const kinds = useAsked(() => source.get("/_noxu/console/kinds"), [source]);
  useWrites(source, () => true, kinds.again, PAUSE, [source]);
  const query = route.query;
  const change = (changes) => go(hrefOf("kinds", route.path, { ...query, ...changes }), true);
  if (!kinds.value) return html`<${Problem} error=${kinds.error} />`;
  const items = kinds.value.items;
  const chosen = items.find((each) => each.resource === route.path[0]);
  const search = (query.kind || "").toLowerCase();
  const shown = items.filter((each) =>
    search ? `${each.resource} ${each.kind}`.toLowerCase().includes(search) : each.count || each.custom || query.all || each === chosen,
  );
  return html`<div class=${chosen ? "beside chosen" : "beside"}>
    <nav aria-label="Kinds" class="list">
      <${Field} label="Kind" value=${query.kind || ""} change=${(kind) => change({ kind })} placeholder="Search kinds" />
      <${KindList} title="Yours" items=${shown.filter((each) => each.custom)} chosen=${chosen} />
      <${KindList} title="Built in" items=${shown.filter((each) => !each.custom)} chosen=${chosen} />
      ${search ? null : html`<button type="button" class="quiet" onClick=${() => change({ all: query.all ? "" : "1" })}>${query.all ? "Hide kinds without objects" : "Show all kinds"}</button>`}
    </nav>
    ${chosen
      ? html`<${Objects} key=${chosen.resource} source=${source} kind=${chosen} query=${query} change=${change} hasView=${hasView} />`
      : html`<${Welcome} items=${items} source=${source} session=${session} />`}
  </div>`;
}

function KindList({ title, items, chosen }) {
  if (!items.length) return null;
  const isOnly = ({ kind }) => items.filter((each) => each.kind === kind).length === 1;
  return html`<h2>${title}</h2><ul>${items.map(
    (each) => html`<li key=${each.resource}><a href=${hrefOf("kinds", [each.resource])} aria-current=${each === chosen ? "page" : undefined} title=${each.resource}><span>${each.kind}${isOnly(each) ? null : html` <small>${groupOf(each)}</small>`}</span><span class="count">${countText(each.count)}</span></a></li>`,
  )}</ul>`;
}

const groupOf = ({ resource }) => resource.split(".").slice(1).join(".") || "core";

function Welcome({ items, source, session }) {
  const custom = items.filter((each) => each.custom);
  if (!source.isLive && !items.some((each) => each.count)) return html`<${Empty} title="No object was left at the end" />`;
  if (custom.length || !source.isLive) return html`<${Empty} title="Choose a kind"><p>Its objects are listed here${source.isLive ? ", and the list follows what happens" : " as they were at the end"}.</p><//>`;
  return html`<${Empty} title="This server has no kinds of yours yet"><p>Apply a CustomResourceDefinition; it is served at once, and listed here:</p><${Kubectl} session=${session} command="apply -f crds/" /><//>`;
}

function Objects({ source, kind, query, change, hasView }) {
  const path = query.namespace && kind.namespaced ? kind.path.replace(/\/([^/]+)$/, `/namespaces/${encodeURIComponent(query.namespace)}/$1`) : kind.path;
  const [shownOf, setShownOf] = useState({ path, most: MOST_ROWS });
  const most = shownOf.path === path ? shownOf.most : MOST_ROWS;
  const search = (query.name || "").toLowerCase();
  const limit = search ? MOST_SEARCHED : most;
  const table = useAsked(() => source.table(path, { limit }).then((value) => ({ ...value, limit })), [source, path, limit]);
  const spaces = useAsked(() => (kind.namespaced ? source.table("/api/v1/namespaces") : Promise.resolve({ rows: [] })), [source, kind.namespaced]);
  useWrites(source, (write) => write.resource === kind.resource, table.again, PAUSE, [source, path, kind.resource]);
  const found = ((table.value && table.value.rows) || []).map(rowOf).filter((row) => !search || row.searched.includes(search));
  const rows = found.slice(0, most);
  const shown = ((table.value && table.value.columnDefinitions) || []).map((each, n) => ({ ...each, n })).filter((each) => !each.priority);
  const hasNamespaces = kind.namespaced && !query.namespace;
  const columns = [...shown.slice(0, 1), ...(hasNamespaces ? [{ name: "Namespace", n: -1 }] : []), ...shown.slice(1)];
  const names = ((spaces.value && spaces.value.rows) || []).map((row) => row.cells[0]);
  const left = (table.value && table.value.metadata.remainingItemCount) || 0;
  const isComplete = table.value && (table.value.limit >= limit || !left); // else the answer to the search is on its way
  const hidden = found.length - rows.length + (search ? 0 : left);
  return html`<section aria-labelledby="kind">
    <p class="back"><a href=${hrefOf("kinds")}>All kinds</a></p>
    <h1 id="kind">${kind.kind} <small>${kind.resource}</small></h1>
    <${Toolbar} label="What is listed">
      <${Field} label="Name" value=${query.name || ""} change=${(name) => change({ name })} placeholder="Search names" />
      ${kind.namespaced ? html`<${Choice} label="Namespace" value=${query.namespace || ""} change=${(namespace) => change({ namespace })} options=${[["", "All namespaces"], ...names.map((each) => [each, each])]} />` : null}
    <//>
    <${Problem} error=${table.error} />
    ${isComplete && !rows.length
      ? html`<${Empty} title=${search ? `No ${kind.kind} has such a name` : `No ${kind.kind} exists`} />`
      : html`<${Table}
          caption=${`Objects of the kind ${kind.kind}`}
          columns=${columns.map((each) => ({ title: each.name, className: ["integer", "number"].includes(each.type) ? "number" : "" }))}
          rows=${rows.map((row) => ({
            key: row.key,
            href: hasView("at") ? hrefOf("at", ["now", kind.resource, row.namespace, row.name]) : undefined,
            cells: columns.map((each) => (each.n < 0 ? row.namespace : each.n === 0 ? row.name : cellText(row.cells[each.n]))),
          }))}
        />`}
    ${hidden ? html`<p class="quiet">${countText(hidden)} more are not shown. <button type="button" class="quiet" onClick=${() => setShownOf({ path, most: most + MOST_ROWS })}>Show ${countText(Math.min(hidden, MOST_ROWS))} more</button></p>` : null}
    ${search && left && isComplete ? html`<p class="quiet">Only the first ${countText(MOST_SEARCHED)} were searched: choose a namespace.</p>` : null}
  </section>`;
}

function rowOf(row) {
  const { namespace = "", name, uid } = (row.object && row.object.metadata) || {};
  return { key: uid || `${namespace}/${name || row.cells[0]}`, namespace, name: name || row.cells[0], cells: row.cells, searched: `${namespace}/${name}`.toLowerCase() };
}

const cellText = (cell) => (cell === null || cell === undefined ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell));
