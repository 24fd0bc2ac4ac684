// Two runs side by side: the sentence, their writes with the first one that differs, and the objects that differ at the end.
// A finding of an exploration is compared with a run without its plan.
import { html, useEffect, useRef } from "./vendor/preact.js";
import { hrefOf } from "./router.js";
import { timeText } from "./marks.js";
import { Code, Copy, Diff, Empty, Problem, toYaml, useAsked } from "./widgets.js";

export const runsView = { route: "runs", title: "Two runs", component: TwoRuns, ofRecordings: true };

const NO_RUNS = { pairs: null, plan: null };

function TwoRuns({ source }) {
  const asked = useAsked(() => source.get("/_noxu/console/runs").catch((error) => (error.code === 404 ? NO_RUNS : Promise.reject(error))), [source]);
  if (!asked.value) return html`<${Problem} error=${asked.error} />`;
  const { pairs, plan, finding } = asked.value;
  if (!pairs && !plan) return html`<${Empty} title="One recording is open"><p>Two are compared by:</p><pre class="code"><code>noxu open one.noxu other.noxu</code></pre><//>`;
  return html`<h1>${finding ? finding.sentence : plan ? plan.title : "Two runs"}</h1>
    ${plan ? html`<${Finding} source=${source} finding=${finding} plan=${plan} output=${asked.value.output} />` : null}
    ${pairs ? html`<${Comparison} runs=${asked.value} />` : html`<p class="quiet">The file has no run without the plan, which earlier versions did not keep: <code>noxu explore --plan</code> makes a new one.</p>`}`;
}

// What was done to the run, when, and what is wrong.
function Finding({ source, finding, plan, output }) {
  const marks = useAsked(() => source.get("/_noxu/console/timeline"), [source]);
  const moments = ((marks.value && marks.value.marks) || []).filter((each) => each.what === "plan");
  const lines = finding ? [...finding.details, ...finding.others.map((each) => `also: ${each}`)] : [];
  const text = toYaml(plan);
  return html`
    ${lines.length ? html`<ul class="plain">${lines.map((each) => html`<li>${each}</li>`)}</ul>` : null}
    ${finding && !finding.stable ? html`<p class="quiet">It did not show again when the plan was run once more: it depends on time, too.</p>` : null}
    <p>It happened when ${plan.title}.</p>
    ${moments.length ? html`<h2>When the plan struck</h2><ul class="plain">${moments.map((each) => html`<li><a href=${hrefOf("timeline", [], { mark: each.key })}>${timeText(each.at)}</a> ${each.verb}</li>`)}</ul>` : null}
    <details><summary>The plan</summary><${Code} text=${text.trimEnd()} language="yaml" /><p class="buttons"><${Copy} label="Copy the plan" text=${text} /> <${Copy} label="Copy as command" text="noxu explore explore.yaml --plan plan.yaml --repeat 20 -- ./operator" /></p></details>
    ${output ? html`<details><summary>What the program said</summary><pre class="code" tabindex="0"><code>${output}</code></pre></details>` : null}`;
}

function Comparison({ runs }) {
  const { pairs, first, objects, titles, sentence } = runs;
  return html`<p class="verdict">${sentence}</p>
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
