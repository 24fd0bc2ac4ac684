// One object over time: a slider over the writes that made it what it is, and of each its state, the difference to the one
// before, who wrote which line, and the Events about it. The address names the moment: #/at/812/widgets.example.com/default/a
import { html, useState } from "./vendor/preact.js";
import { go, hrefOf } from "./router.js";
import { Code, Copy, Cut, Empty, Problem, Tabs, UnifiedDiff, countText, useAsked, useWrites } from "./widgets.js";

export const objectView = { route: "at", title: "Object over time", isHidden: true, component: ObjectOverTime };

const MOST_WRITES = 1000;
const MOST_HAPPENINGS = 200;
const OBJECT_PAUSE = 300; // milliseconds between two looks while it changes
const OBJECT_TABS = [["diff", "Change"], ["state", "State"], ["blame", "Blame"], ["events", "Events and writes"]];

function ObjectOverTime({ source, route, hasView, session, askToken }) {
  const [moment = "now", resource, namespace = "", name] = route.path;
  const asked = { type: resource, namespace, name };
  const log = useAsked(() => source.get("/_noxu/log", { ...asked, limit: MOST_WRITES }), [source, resource, namespace, name]);
  const found = useAsked(() => (/^\d+$|^now$/.test(moment) ? Promise.resolve(null) : source.get(`/_noxu/at/${encodeURIComponent(moment)}`)), [source, moment]);
  useWrites(source, (write) => write.resource === resource && write.name === name && write.namespace === namespace, log.again, OBJECT_PAUSE, [source, resource, namespace, name]);
  const writes = (log.value && log.value.items) || [];
  const revision = moment === "now" ? Infinity : found.value ? found.value.revision : Number(moment);
  const before = writes.filter((each) => each.revision <= revision).length - 1;
  const chosen = Math.max(before, 0);
  const choose = (n) => go(hrefOf("at", [n === writes.length - 1 ? "now" : String(writes[n].revision), resource, namespace, name], route.query), true);
  if (!resource || !name) return html`<${Empty} title="No object is chosen"><p>The address names one, as in <code>#/at/now/widgets.example.com/default/a</code></p><//>`;
  return html`<article>
    <h1><${Cut} text=${name} /> <small>${resource}${namespace ? ` in ${namespace}` : ""}</small></h1>
    <${Problem} error=${log.error || found.error} />
    ${log.value && !writes.length ? html`<${Empty} title="Nothing is known about it"><p>It does not exist, or its past is no longer kept: ${log.value.first ? `the past begins at revision ${log.value.first}.` : "no write of it has been seen."}</p><//>` : null}
    ${writes.length && before < 0 ? html`<p class="quiet">At revision ${moment} it did not exist yet. This is its first state.</p>` : null}
    ${writes.length
      ? html`${writes.length > 1 ? html`<${Slider} writes=${writes} chosen=${chosen} choose=${choose} />` : null}
          <${Moment} source=${source} write=${writes[chosen]} previous=${writes[chosen - 1]} writes=${writes} asked=${asked} route=${route} hasView=${hasView} session=${session} askToken=${askToken} />
          ${writes.length >= MOST_WRITES ? html`<p class="quiet">These are its newest ${countText(MOST_WRITES)} writes. Older ones are in the log: <code>noxu log</code></p>` : log.value.note ? html`<p class="quiet">${log.value.note}</p>` : null}`
      : null}
  </article>`;
}

// -- the slider ----------------------------------------------------------------------------------------------------

function Slider({ writes, chosen, choose }) {
  const write = writes[chosen];
  const last = writes.length - 1; // at least 1
  return html`<div class="slider">
    <button type="button" class="step" disabled=${chosen === 0} onClick=${() => choose(chosen - 1)} aria-label="The write before">‹</button>
    <div class="track">
      <div class="ticks" aria-hidden="true">${writes.length <= 200 ? writes.map((each, n) => html`<i key=${each.revision} class=${tickClass(each, n === chosen)} style=${{ left: `${(n / last) * 100}%` }}></i>`) : null}</div>
      <input type="range" min="0" max=${last} value=${chosen} onInput=${(event) => choose(Number(event.target.value))} aria-label="Revision" aria-valuetext=${`revision ${write.revision}, ${write.verb} by ${writerName(write)}`} />
    </div>
    <button type="button" class="step" disabled=${chosen === last} onClick=${() => choose(chosen + 1)} aria-label="The write after">›</button>
    <p class="place">${chosen + 1} of ${writes.length}</p>
  </div>`;
}

const tickClass = (write, isChosen) => `${write.event.toLowerCase()}${isChosen ? " chosen" : ""}`;

// Who wrote: the best name that is known.
function writerName(write) {
  return write.manager || write.controller || write.user || write.userAgent || "an unknown client";
}

const VERBS = { create: "Created", update: "Updated", patch: "Patched", apply: "Applied", delete: "Deleted" };

function shownTime(time) {
  return time ? time.replace("T", " ").replace(/(?:(\.\d{3})\d*|\.\d*)?Z$/, "$1") : "";
}

// -- one moment ----------------------------------------------------------------------------------------------------

function Moment({ source, write, previous, writes, asked, route, hasView, session, askToken }) {
  const [isShown, setShown] = useState(false);
  const isSecret = asked.type === "secrets";
  const isDeleted = write.event === "DELETED";
  const at = isDeleted ? write.revision - 1 : write.revision; // the last state of one that is gone
  const hidden = isSecret && !isShown ? { mask: "true" } : {};
  const blame = useAsked(() => source.get("/_noxu/blame", { ...asked, at, ...hidden }), [source, at, asked.type, asked.namespace, asked.name, isShown]);
  const tab = route.query.tab || "diff";
  const next = writes[writes.indexOf(write) + 1];
  const until = next ? next.revision - 1 : "now"; // Events about a state come after it
  const kubectl = kubectlLine(session, asked, at);
  const who = [write.user, write.userAgent].filter(Boolean).join(", ");
  return html`
    <p class="write"><strong>${VERBS[write.verb] || write.verb}${write.subresource ? ` (${write.subresource})` : ""}</strong> by <strong>${writerName(write)}</strong> <span class="quiet">at revision ${write.revision}${write.time ? `, ${shownTime(write.time)}` : ""}${who ? ` (${who})` : ""}</span></p>
    <div class="line"><code tabindex="0" aria-label="The command for kubectl">${kubectl}</code> <${Copy} text=${kubectl} label="Copy as kubectl" /></div>
    <p class="ways">
      ${hasView("why") ? html`<a href=${hrefOf("why", [asked.type, asked.namespace, asked.name])}>Why is it so?</a>` : null}
      ${hasView("schema") && asked.type.includes(".") ? html`<a href=${hrefOf("schema", [asked.type])}>Its schema</a>` : null}
      ${hasView("timeline") ? html`<a href=${hrefOf("timeline", [], { kind: asked.type, object: asked.namespace ? `${asked.namespace}/${asked.name}` : asked.name })}>On the timeline</a>` : null}
      ${isSecret ? html`<button type="button" class="quiet" onClick=${() => (isShown ? setShown(false) : session && session.mayWrite ? setShown(true) : askToken())}>${isShown ? "Hide the data" : "Show the data"}</button>` : null}
    </p>
    <${Tabs} label="What is shown of it" tabs=${OBJECT_TABS} chosen=${tab} choose=${(next) => go(hrefOf("at", route.path, { ...route.query, tab: next === "diff" ? "" : next }), true)} />
    <${Problem} error=${blame.error} />
    ${tab === "diff" ? html`<${Change} key=${write.revision} source=${source} asked=${asked} write=${write} previous=${previous} lines=${blame.value && blame.value.lines} hidden=${hidden} />` : null}
    ${tab === "state" && blame.value ? html`${isDeleted ? html`<p class="quiet">Its last state:</p>` : null}<${Code} text=${textOf(blame.value.lines)} language="yaml" />` : null}
    ${tab === "blame" && blame.value ? html`<${BlameLines} blame=${blame.value} at=${at} asked=${asked} route=${route} />` : null}
    ${tab === "events" ? html`<${Happenings} source=${source} asked=${asked} at=${write.revision} until=${until} writes=${writes} route=${route} kind=${blame.value && blame.value.object.kind} />` : null}`;
}

const textOf = (lines) => lines.map((each) => each.text).join("\n");

function kubectlLine(session, { type, namespace, name }, at) {
  const server = (session && session.url) || location.origin;
  const plain = (word) => (/^[\w.:@/-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  return `kubectl --server ${server}/_noxu/at/${at} get ${plain(type)} ${plain(name)}${namespace ? ` -n ${plain(namespace)}` : ""} -o yaml`;
}

function Change({ source, asked, write, previous, lines, hidden }) {
  const isFirst = write.event === "ADDED" || !previous;
  const diff = useAsked(
    () => (isFirst ? Promise.resolve(null) : source.get("/_noxu/diff", { ...asked, from: previous.revision, to: write.revision, ...hidden })),
    [source, write.revision, hidden.mask],
  );
  if (isFirst) {
    if (!lines) return null;
    return html`<p class="quiet">${write.event === "ADDED" ? "It was created with this:" : "What was before is no longer kept. This is the oldest state that is:"}</p>
      <${UnifiedDiff} text=${lines.map((each) => `+${each.text}`).join("\n")} />`;
  }
  const item = diff.value && diff.value.items[0];
  return html`<${Problem} error=${diff.error} />
    ${item ? html`<${UnifiedDiff} text=${item.diff.split("\n").slice(2).join("\n")} />` : null}
    ${diff.value && !item ? html`<p class="quiet">Nothing that is shown has changed: only its resourceVersion, or who owns which field${hidden.mask ? ", or a value that is masked" : ""}.</p>` : null}`;
}

function BlameLines({ blame, at, asked, route }) {
  const writers = new Map(blame.writes.map((each) => [each.revision, each]));
  const revisions = [...writers.keys()].sort((a, b) => a - b);
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Who wrote each line"><table class="blame">
    <caption class="unseen">The lines of the object, and the write that each comes from</caption>
    <thead><tr><th scope="col">Revision</th><th scope="col">Time</th><th scope="col">Who</th><th scope="col">Line</th></tr></thead>
    <tbody>${blame.lines.map((line, n) => {
      const isNew = !n || blame.lines[n - 1].revision !== line.revision;
      const writer = writers.get(line.revision) || {};
      const age = revisions.length < 2 ? 0 : revisions.indexOf(line.revision) / (revisions.length - 1);
      return html`<tr class=${`${isNew ? "first" : ""} ${line.revision === at ? "here" : ""}`} style=${{ "--age": age.toFixed(2) }}>
        <td class="number">${isNew ? html`<a href=${hrefOf("at", [String(line.revision), asked.type, asked.namespace, asked.name], route.query)}>${line.revision}</a>` : null}</td>
        <td>${isNew ? shownTime(writer.time).slice(11, 19) : null}</td>
        <td>${isNew ? writerName(writer) : null}</td>
        <td class="text"><code>${line.text}</code></td>
      </tr>`;
    })}</tbody>
  </table></div>
  ${blame.complete ? null : html`<p class="quiet">Its oldest states are no longer kept: lines of the first revision here may be older.</p>`}`;
}

function Happenings({ source, asked, at, until, writes, route, kind }) {
  const path = `/_noxu/at/${until}/api/v1/${asked.namespace ? `namespaces/${encodeURIComponent(asked.namespace)}/` : ""}events`;
  const events = useAsked(
    () => source.get(path, { fieldSelector: `involvedObject.name=${asked.name}${kind ? `,involvedObject.kind=${kind}` : ""}` }),
    [source, path, asked.name, kind],
  );
  const happened = [
    ...((events.value && events.value.items) || []).map((each) => ({
      key: each.metadata.uid,
      time: each.lastTimestamp || each.eventTime || each.metadata.creationTimestamp || "",
      what: each.reason || "Event",
      who: (each.source && each.source.component) || each.reportingComponent || "",
      text: `${each.message || ""}${each.count > 1 ? ` (${each.count} times)` : ""}`,
      isWarning: each.type === "Warning",
    })),
    ...writes.filter((each) => each.revision <= at).map((each) => ({
      key: each.revision,
      time: each.time,
      what: VERBS[each.verb] || each.verb,
      who: writerName(each),
      text: each.changed.join(", "),
      href: hrefOf("at", [String(each.revision), asked.type, asked.namespace, asked.name], { ...route.query, tab: "" }),
    })),
  ].sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
  return html`<${Problem} error=${events.error} />
    <div class="scrolls" tabindex="0" role="region" aria-label="What happened to it"><table class="happenings">
      <caption class="unseen">What happened to the object until then, the newest first</caption>
      <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Who</th><th scope="col">About</th></tr></thead>
      <tbody>${happened.slice(0, MOST_HAPPENINGS).map((each) => html`<tr key=${each.key} class=${each.isWarning ? "warning" : ""}>
        <td>${shownTime(each.time).slice(0, 19)}</td>
        <td>${each.href ? html`<a href=${each.href}>${each.what}</a>` : html`<span class="event">${each.what}</span>`}</td>
        <td>${each.who}</td><td class="wraps">${each.text}</td>
      </tr>`)}</tbody>
    </table></div>
    ${happened.length > MOST_HAPPENINGS ? html`<p class="quiet">The newest ${MOST_HAPPENINGS} of ${countText(happened.length)} are listed. The slider goes through all writes.</p>` : null}`;
}
