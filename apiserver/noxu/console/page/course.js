// The course of a write: what was sent, what each stage, webhook and policy did to it and why, and what was answered.
import { html, useState } from "./vendor/preact.js";
import { hrefOf } from "./router.js";
import { verbText } from "./marks.js";
import { Reasons, isWhole } from "./why.js";
import { Code, Problem, Yaml, useAsked } from "./widgets.js";

const NO_WRITES = ["get", "list", "watch"];
const MOST_CHANGES = 20; // of a stage

export function Course({ source, mark, hasView }) {
  const asked = useAsked(() => courseOf(source, mark), [mark.key]);
  if (!asked.value) return html`<${Problem} error=${asked.error} />`;
  const { sent, answered, reasons, steps, traced, code, note } = asked.value;
  if (note) return html`<p class="quiet">${note}</p>`;
  return html`<section class="course">
    ${reasons
      ? html`<h3>What became of it</h3>
          <${Reasons} reasons=${reasons.filter((each) => each.what !== "set")} />
          ${isWhole(sent) && hasView("why") ? html`<p><a href=${hrefOf("why", [mark.resource], { sent: mark.id })}>Change it and try again</a></p>` : null}
          ${traced ? null : html`<p class="quiet">It came among many others, of which only some are traced: the stages are not known.</p>`}`
      : null}
    ${steps && steps.length ? html`<${Folded} title="Stage by stage">${() => html`<ol class="stages">${steps.map((each) => html`<li><${Stage} stage=${each} /></li>`)}</ol>`}<//>` : null}
    <${Sent} title="What was sent" part=${sent} />
    <${Sent} title=${code ? `What was answered: ${code}` : "What was answered"} part=${answered} /></section>`;
}

// Of a server: what it keeps. Of a recording: the step.
async function courseOf(source, mark) {
  if (!source.isLive) {
    if (mark.request === undefined) return {};
    const { steps } = await source.get("/_noxu/console/recording");
    const step = steps.find((each) => each.step === mark.request);
    return step ? { sent: step, answered: step.expect, code: step.expect && step.expect.code } : {};
  }
  if (!mark.id || NO_WRITES.includes(verbText(mark))) return {};
  return source.get("/_noxu/console/request", { id: mark.id });
}

function Sent({ title, part }) {
  if (!part || (part.body === undefined && !part.omitted)) return null;
  return html`<${Folded} title=${title}>${() => (part.omitted ? html`<p class="quiet">It is too long to be kept.</p>` : html`<${Yaml} value=${part.body} />`)}<//>`;
}

// What is made when it is opened: bodies may be long.
function Folded({ title, children: made }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.target.open)}><summary>${title}</summary>${isOpen ? made() : null}</details>`;
}

function Stage({ stage: { stage, milliseconds, patch = [], notes = [] } }) {
  const lines = patch.slice(0, MOST_CHANGES).map(({ op, path, value }) => `${SIGNS_OF[op] || op} ${path}${value === undefined ? "" : `: ${JSON.stringify(value).slice(0, 200)}`}`);
  if (patch.length > MOST_CHANGES) lines.push(`… and ${patch.length - MOST_CHANGES} more`);
  return html`<strong>${stage.replaceAll("_", " ")}</strong> <small>${milliseconds} ms</small>
    ${notes.map((note) => html`<p>${note.path ? html`<code>${note.path}</code> ` : null}${note.message}${note.hint ? html` <small>${note.hint}</small>` : null}</p>`)}
    ${lines.length ? html`<${Code} text=${lines.join("\n")} />` : null}`;
}

const SIGNS_OF = { add: "+", remove: "−", replace: "~" };
