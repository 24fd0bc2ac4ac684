// A recording: what clients asked and were answered, what was written, and one step or write of it.
import { html } from "./vendor/preact.js";
import { go, hrefOf } from "./router.js";
import { objectText, verbText } from "./marks.js";
import { Choice, Cut, Diff, Empty, Field, Problem, Table, Tabs, Toolbar, Yaml, countText, toYaml, useAsked } from "./widgets.js";

export const recordingView = { route: "recording", title: "Recording", component: RecordingView, ofRecordings: true };

const MOST_RECORDED = 1000;

function RecordingView({ source, route }) {
  const asked = useAsked(() => source.get("/_noxu/console/recording"), [source]);
  if (!asked.value) return html`<${Problem} error=${asked.error} />`;
  const { steps, began, version, cut } = asked.value;
  const [, revision] = /^write-(\d+)$/.exec(route.path[0]) || [];
  if (revision) return html`<${RecordedChange} key=${revision} source=${source} revision=${revision} />`;
  const step = steps.find((each) => String(each.step) === route.path[0]);
  if (step) return html`<${RecordedStep} step=${step} />`;
  const by = steps.length ? route.query.by || "" : "writes"; // a run of an exploration has no requests
  return html`<h1>Recording <small>${began.slice(0, 19).replace("T", " ")} · Noxu ${version}</small></h1>
    ${cut ? html`<p class="quiet">The server was killed: the last line of the recording is not whole.</p>` : null}
    ${steps.length ? html`<${Tabs} label="What is listed" tabs=${[["", "Requests"], ["writes", "Writes"]]} chosen=${by} choose=${(next) => go(hrefOf("recording", [], { by: next }), true)} />` : null}
    ${by ? html`<${RecordedWrites} source=${source} />` : html`<${RecordedSteps} recording=${asked.value} query=${route.query} />`}`;
}

function RecordedSteps({ recording, query }) {
  const change = (changes) => go(hrefOf("recording", [], { ...query, ...changes }), true);
  const search = (query.text || "").toLowerCase();
  const agents = [...new Set(recording.steps.map((each) => each.client.agent))].filter(Boolean).sort();
  const found = recording.steps.filter(
    (each) =>
      (!search || `${each.method} ${each.path}`.toLowerCase().includes(search)) &&
      (!query.client || each.client.agent === query.client) &&
      (!query.outcome || codeOfStep(each) >= 400),
  );
  return html`<${Toolbar} label="Which requests">
      <${Field} label="Request" value=${query.text || ""} change=${(text) => change({ text })} placeholder="Search requests" />
      <${Choice} label="Client" value=${query.client || ""} change=${(client) => change({ client })} options=${[["", "All clients"], ...agents.map((each) => [each, each])]} />
      <${Choice} label="Outcome" value=${query.outcome || ""} change=${(outcome) => change({ outcome })} options=${[["", "All answers"], ["refused", "Refusals"]]} />
    <//>
    ${found.length
      ? html`<${Table}
          caption="Requests, in the order of their answers"
          columns=${[{ title: "Request" }, { title: "Answer", className: "number" }, { title: "Client", className: "wide" }, { title: "Seconds", className: "number wide" }]}
          rows=${found.slice(0, MOST_RECORDED).map((each) => ({
            key: each.step,
            href: hrefOf("recording", [String(each.step)]),
            cells: [`${each.method} ${each.path}`, answerOfStep(each), each.client.agent || "unnamed", each.at.toFixed(3)],
          }))}
        />`
      : html`<${Empty} title=${recording.steps.length ? "No request is like this" : "No client has asked anything"} />`}
    ${found.length > MOST_RECORDED || recording.left ? html`<p class="quiet">${countText(Math.max(found.length - MOST_RECORDED, 0) + recording.left)} more are not shown.</p>` : null}`;
}

const codeOfStep = (step) => (step.expect ? step.expect.code : 200);
const answerOfStep = (step) => (step.events ? `${step.events.length} events` : String(codeOfStep(step)));

function RecordedStep({ step }) {
  const { user, agent } = step.client;
  return html`<p><a href=${hrefOf("recording")}>All requests</a></p>
    <h1>${step.method} <small><${Cut} text=${step.path} /></small></h1>
    <p>${agent || "A client"} as ${user}, after ${step.at.toFixed(3)} s: ${answerOfStep(step)}</p>
    <${RecordedPart} title="Sent" body=${step.body} omitted=${step.omitted} />
    ${step.expect ? html`<${RecordedPart} title="Answer" body=${step.expect.body} omitted=${step.expect.omitted} />` : null}
    ${step.expect && step.expect.warnings ? html`<h2>Warnings</h2><ul>${step.expect.warnings.map((each) => html`<li>${each}</li>`)}</ul>` : null}
    ${(step.events || []).map((event) => html`<h2>${event.type}</h2><${Yaml} value=${event.object || event} />`)}`;
}

function RecordedPart({ title, body, omitted }) {
  if (omitted) return html`<h2>${title}</h2><p class="quiet">${countText(omitted)} bytes, which the recording leaves out.</p>`;
  return body === undefined || body === null ? null : html`<h2>${title}</h2><${Yaml} value=${body} />`;
}

function RecordedWrites({ source }) {
  const asked = useAsked(() => source.get("/_noxu/console/timeline"), [source]);
  if (!asked.value) return html`<${Problem} error=${asked.error} />`;
  const writes = asked.value.marks.filter((each) => each.what === "write");
  if (!writes.length) return html`<${Empty} title="Nothing was written" />`;
  return html`<${Table}
    caption="Writes, in their order"
    columns=${[{ title: "Object" }, { title: "Write" }, { title: "Client" }, { title: "Shown before", className: "wide" }, { title: "Revision", className: "number wide" }]}
    rows=${writes.slice(-MOST_RECORDED).map((each) => ({
      key: each.key,
      href: hrefOf("recording", [`write-${each.revision}`]),
      cells: [objectText(each), verbText(each), each.lane, each.because.slice(0, 5).join(", "), String(each.revision)],
    }))}
  />`;
}

function RecordedChange({ source, revision }) {
  const asked = useAsked(() => source.get("/_noxu/console/change", { revision }), [source, revision]);
  return html`<p><a href=${hrefOf("recording", [], { by: "writes" })}>All writes</a></p>
    <h1>Revision ${revision}</h1>
    <${Problem} error=${asked.error} />
    ${asked.value ? html`<${Diff} before=${textOfState(asked.value.before)} after=${textOfState(asked.value.after)} />` : null}`;
}

const textOfState = (value) => (value ? toYaml(value) : "");
