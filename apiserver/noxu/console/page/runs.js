// Two runs side by side: the sentence, their writes with the first one that differs, and the objects that differ at the end.
import { html, useEffect, useRef } from "./vendor/preact.js";
import { Diff, Empty, Problem, toYaml, useAsked } from "./widgets.js";

export const runsView = { route: "runs", title: "Two runs", component: TwoRuns, ofRecordings: true };

function TwoRuns({ source }) {
  const asked = useAsked(() => source.get("/_noxu/console/runs").catch((error) => (error.code === 404 ? { pairs: null } : Promise.reject(error))), [source]);
  if (!asked.value) return html`<${Problem} error=${asked.error} />`;
  const { pairs, first, objects, titles, sentence } = asked.value;
  if (!pairs) return html`<${Empty} title="One recording is open"><p>Two are compared by:</p><pre class="code"><code>noxu open one.noxu other.noxu</code></pre><//>`;
  return html`<h1>Two runs</h1>
    <p class="verdict">${sentence}</p>
    <h2>Writes</h2>
    ${pairs.length ? html`<${RunPairs} pairs=${pairs} first=${first} titles=${titles} />` : html`<p class="quiet">No client has written.</p>`}
    <h2>At the end</h2>
    ${objects.length
      ? objects.map((each) => html`<section key=${each.place}><h3>${each.place}</h3><p class="quiet">${presenceOf(each, titles)}</p><${Diff} before=${each.one ? toYaml(each.one) : ""} after=${each.other ? toYaml(each.other) : ""} /></section>`)
      : html`<p class="quiet">Nothing differs.</p>`}`;
}

function presenceOf({ one, other }, titles) {
  if (!one) return `Only in ${titles[1]}`;
  return other ? `− ${titles[0]}, + ${titles[1]}` : `Only in ${titles[0]}`;
}

// The table begins at the first difference: what is before it is the same, and can be scrolled to.
function RunPairs({ pairs, first, titles }) {
  const row = useRef(null);
  useEffect(() => {
    if (row.current) row.current.closest(".scrolls").scrollTop = Math.max(row.current.offsetTop - 120, 0);
  }, []);
  return html`<div class="scrolls runs" tabindex="0" role="region" aria-label="The writes of both runs"><table>
    <caption class="unseen">The writes of both runs, beside each other</caption>
    <thead><tr><th scope="col"><span class="unseen">What differs</span></th>${titles.map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
    <tbody>${pairs.map(
      ([one, other], n) => html`<tr key=${n} ref=${n === first ? row : undefined} class=${one === other ? "" : "differs"}>
        <td>${n === first ? "first difference" : one === other ? "" : "differs"}</td><td>${one || "—"}</td><td>${other || "—"}</td></tr>`,
    )}</tbody>
  </table></div>`;
}
