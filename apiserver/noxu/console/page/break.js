// Break it from here: faults that are on, snapshots, the clock. What can be done to a mark is in the timeline's detail.
import { html, useEffect, useState } from "./vendor/preact.js";
import { asPytest, faultsOfArrow, faultsOfWrite, plainRule } from "./faults.js";
import { objectText } from "./marks.js";
import { Choice, Code, Copy, Field, Problem, toYaml, useAsked } from "./widgets.js";

export const breakView = { route: "break", title: "Break", component: Break };

const FAULTS = "/_noxu/faults";
const PAUSE_OF_LOOKS = 2000; // milliseconds: hits and the clock change without a write

function Break({ source, session, askToken }) {
  const [problem, setProblem] = useState(null);
  const act = (work) => async () => {
    const { mayWrite } = session || (await source.get("/_noxu/console/session"));
    if (!mayWrite) return askToken();
    setProblem(null);
    await work().catch(setProblem);
  };
  return html`<h1>Break it on purpose</h1>
    <${Problem} error=${problem} />
    <div class="columns"><${Faults} source=${source} act=${act} /><div><${Snapshots} source=${source} act=${act} /><${ClockPart} source=${source} act=${act} /></div></div>`;
}

// -- faults --------------------------------------------------------------------------------------------------------

const EFFECTS = [
  ["conflict", "refuse: Conflict", { error: "Conflict" }],
  ["unavailable", "refuse: 503", { error: "ServiceUnavailable" }],
  ["delay", "answer 2 s late", { delay: "2s" }],
  ["reset", "break the connection after the write", { reset: "after" }],
  ["close", "end the watch", { watch: "close" }],
  ["drop", "drop an event", { watch: "drop", "breaks-contract": true }],
  ["freeze", "freeze the view", { view: "freeze" }],
];
const ofWatches = new Set(["close", "drop", "freeze"]);

function Faults({ source, act }) {
  const faults = useAsked(() => source.get(FAULTS), [source]);
  const fired = useAsked(() => source.get(`${FAULTS}/fired`, { limit: 10 }), [source]);
  const [known, setKnown] = useState([]); // rules that were on: those that are not can be turned on again
  const again = () => {
    faults.again();
    fired.again();
  };
  useEffect(() => {
    const timer = setInterval(again, PAUSE_OF_LOOKS);
    return () => clearInterval(timer);
  }, [source]);
  const rules = (faults.value && faults.value.rules) || [];
  const off = known.filter((each) => !rules.some((rule) => rule.name === each.name));
  const keep = (kept) => setKnown([...known.filter((each) => !kept.some((rule) => rule.name === each.name)), ...kept.map(plainRule)]);
  const turnOff = (rule) => act(async () => {
    await source.send("DELETE", `${FAULTS}/${encodeURIComponent(rule.name)}`);
    keep([rule]);
    again();
  });
  const turnOn = (rule) => act(async () => {
    await source.send("POST", FAULTS, { rules: [rule] });
    again();
  });
  const plan = () => `${toYaml({ seed: (faults.value && faults.value.seed) || 0, rules: rules.map(plainRule) })}`;
  return html`<section aria-labelledby="faults">
    <h2 id="faults">Faults</h2>
    <${Problem} error=${faults.error} />
    ${rules.length || off.length
      ? html`<ul class="faults">${[...rules.map((rule) => [rule, true]), ...off.map((rule) => [rule, false])].map(
          ([rule, isOn]) => html`<li key=${rule.name}>
            <button type="button" role="switch" aria-checked=${isOn} aria-label=${rule.name} onClick=${isOn ? turnOff(rule) : turnOn(rule)}></button>
            <span><code>${ruleText(rule)}</code><small>${isOn ? hitsText(rule) : "off"}</small></span>
          </li>`,
        )}</ul>
        <p class="buttons">
          <${Copy} label="Copy as pytest" text=${() => asPytest(rules)} />
          <a download="plan.yaml" href=${`data:application/yaml,${encodeURIComponent(plan())}`}>Save as plan.yaml</a>
          ${rules.length ? html`<button type="button" class="quiet" onClick=${act(async () => { await source.send("DELETE", FAULTS); keep(rules); again(); })}>All off</button>` : null}
        </p>`
      : faults.value ? html`<p class="quiet">None is on. Add one here, or from a mark of the timeline: there it is about that client and that object.</p>` : null}
    <${NewFault} source=${source} act=${act} added=${again} />
    <${Fired} fired=${fired.value} />
  </section>`;
}

const hitsText = (rule) => (rule.hit ? `has hit ${rule.hit} of ${rule.matched}` : "on, and has hit nothing yet");

function ruleText(rule) {
  const { name: _, match = {}, ...effect } = plainRule(rule);
  const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  return [...Object.entries(effect), ...Object.entries(match)].map(([name, value]) => `${name}=${text(value)}`).join(" ");
}

function NewFault({ source, act, added }) {
  const [fault, setFault] = useState({ effect: "conflict", resource: "", userAgent: "", times: "1" });
  const field = (name) => ({ value: fault[name], change: (value) => setFault((before) => ({ ...before, [name]: value })) });
  const add = act(async () => {
    const [name, , effect] = EFFECTS.find(([each]) => each === fault.effect);
    const match = { ...(fault.resource ? { resource: fault.resource } : {}), ...(fault.userAgent ? { userAgent: fault.userAgent } : {}) };
    if (!ofWatches.has(name)) match.verbs = ["write"];
    const times = name !== "freeze" && Number(fault.times) > 0 ? { times: Number(fault.times) } : {};
    await source.send("POST", FAULTS, { rules: [{ match, ...effect, ...times }] });
    added();
  });
  return html`<form class="toolbar" aria-label="Add a fault" onSubmit=${(event) => { event.preventDefault(); add(); }}>
    <${Choice} label="Effect" ...${field("effect")} options=${EFFECTS.map(([name, title]) => [name, title])} />
    <${Field} label="Kind" ...${field("resource")} placeholder="widgets" />
    <${Field} label="Client" ...${field("userAgent")} placeholder="operator/*" />
    <${Field} label="Times" ...${field("times")} type="number" min="0" isShort />
    <button type="submit">Add</button>
  </form>`;
}

function Fired({ fired }) {
  if (!fired || !fired.fired.length) return null;
  return html`<h2>What was hit</h2><ul class="plain">${[...fired.fired].reverse().map(
    (hit) => html`<li><code>${hit.rule}</code> ${requestText(hit.request)}</li>`,
  )}</ul>`;
}

function requestText(request) {
  if (!request) return "";
  if (typeof request === "string") return request;
  const { verb, method, resource = "", namespace, name, userAgent } = request;
  return [verb || method, objectText({ resource, namespace, name }), userAgent ? `by ${userAgent}` : ""].filter(Boolean).join(" ");
}

// -- snapshots and the clock ---------------------------------------------------------------------------------------

function Snapshots({ source, act }) {
  const snapshots = useAsked(() => source.get("/_noxu/snapshots"), [source]);
  const [said, setSaid] = useState("");
  const path = (name) => `/_noxu/snapshots/${encodeURIComponent(name)}`;
  const items = (snapshots.value && snapshots.value.items) || [];
  return html`<section aria-labelledby="snapshots"><h2 id="snapshots">Snapshots</h2>
    <${Problem} error=${snapshots.error} />
    ${items.length ? html`<ul class="plain">${items.map((each) => html`<li key=${each.name}><code>${each.name}</code> <small>revision ${each.revision}</small>
        <span class="buttons">
          <button type="button" class="quiet" aria-label=${`Restore ${each.name}`} onClick=${act(async () => {
            const done = await source.send("POST", `${path(each.name)}/restore`);
            setSaid(`${each.name}: ${done.deleted} deleted, ${done.created} created again, ${done.changed} changed back.`);
            snapshots.again();
          })}>Restore</button>
          <button type="button" class="quiet" aria-label=${`Delete ${each.name}`} onClick=${act(async () => { await source.send("DELETE", path(each.name)); snapshots.again(); })}>Delete</button>
        </span></li>`)}</ul>`
      : snapshots.value ? html`<p class="quiet">A snapshot is the state of all objects. A restore makes them what they were, while the server runs.</p>` : null}
    <p><button type="button" onClick=${act(async () => { await source.send("POST", "/_noxu/snapshots", {}); snapshots.again(); })}>Take a snapshot</button></p>
    <p role="status" class="quiet">${said}</p>
  </section>`;
}

const MODES = { real: "is that of the machine", frozen: "stands still", offset: "is ahead of the machine's", speed: "goes on from there" };

function ClockPart({ source, act }) {
  const clock = useAsked(() => source.get("/_noxu/clock"), [source]);
  useEffect(() => {
    const timer = setInterval(clock.again, PAUSE_OF_LOOKS);
    return () => clearInterval(timer);
  }, [source]);
  const set = (method, path, body) => act(async () => {
    await source.send(method, path, body);
    clock.again();
  });
  const { mode, now } = clock.value || {};
  return html`<section aria-labelledby="clock"><h2 id="clock">Clock</h2>
    <${Problem} error=${clock.error} />
    ${mode ? html`<p><span class="clock">${now}</span> <small>${MODES[mode] || mode}</small></p>` : null}
    <p class="buttons">
      ${mode === "frozen"
        ? html`<button type="button" class="second" onClick=${set("PUT", "/_noxu/clock", { mode: "speed", speed: 1 })}>Let it go on</button>`
        : html`<button type="button" class="second" onClick=${set("PUT", "/_noxu/clock", { mode: "frozen" })}>Freeze</button>`}
      <button type="button" class="second" onClick=${set("POST", "/_noxu/clock/advance", { by: "1h" })}>+1 h</button>
      <button type="button" class="second" onClick=${set("POST", "/_noxu/clock/advance", { by: "24h" })}>+1 day</button>
    </p></section>`;
}

// -- from a mark ---------------------------------------------------------------------------------------------------

// What can be broken at a mark: by the client that wrote, and by each client that was shown it.
export function BreakHere({ source, mark, session, askToken }) {
  const [said, setSaid] = useState(null);
  const [error, setError] = useState(null);
  if (!source.isLive || !mark.resource) return null;
  const groups = [
    [mark.lane, mark.verb && mark.what !== "read" && mark.what !== "watch" ? faultsOfWrite(mark) : []],
    ...(mark.to || []).map((lane) => [lane, faultsOfArrow(mark, lane)]),
  ].filter(([, faults]) => faults.length);
  if (!groups.length) return null;
  const add = (title, rule) => async () => {
    if (session && !session.mayWrite) return askToken();
    setError(null);
    await source.send("POST", FAULTS, { rules: [rule] }).then(() => setSaid([title, rule]), setError);
  };
  return html`<details class="break"><summary>Break it here</summary>
    ${groups.map(([lane, faults]) => html`<h3>${lane}</h3><ul class="plain">${faults.map(
      ([title, rule]) => html`<li><button type="button" class="quiet" onClick=${add(title, rule)}>${title}</button></li>`,
    )}</ul>`)}
    <${Problem} error=${error} />
    <div role="status">${said ? html`<p>On: ${said[0]}. <a href="#/break">All faults</a></p><${Code} text=${toYaml({ rules: [said[1]] }).trimEnd()} language="yaml" /><p class="buttons"><${Copy} label="Copy as pytest" text=${asPytest([said[1]])} /></p>` : null}</div>
  </details>`;
}
