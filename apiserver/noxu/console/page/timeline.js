// Timeline of a reconcile: which client wrote what, who was shown it, and what each wrote next. Live, from one stream.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { go, hrefOf } from "./router.js";
import { LEFT, RIGHT, beginOf, draw, firstAt, heightOf, layoutOf, markNear, nameY } from "./drawing.js";
import { actionText, addAnswer, addMarks, chainOf, clockText, MOST_MARKS, newMarks, objectText, receiveLate, selectMarks, sentenceOf, sentencePartsOf, timeText, verbText } from "./marks.js";
import { BreakHere } from "./break.js";
import { Course } from "./course.js";
import { Choice, Cut, Diff, Empty, Field, Kubectl, Problem, Table, Tabs, Toolbar, countText, toYaml, useAsked } from "./widgets.js";

export const timelineView = { route: "timeline", title: "Timeline", component: Timeline, inRecordings: true };

const STEPS = { least: 0.125, most: 96, read: 64, zoom: 2 }; // pixels between two marks; from `read` on they have texts
const SPEEDS = { least: 1, most: 100000, read: 1, zoom: 3 }; // pixels in a second
const ROWS = 200; // of the table, the newest

// The marks of a source, kept while the page is open: another view may be looked at meanwhile.
const kept = new WeakMap();

function useMarks(source) {
  const [, setVersion] = useState(0);
  const [error, setError] = useState(null);
  const [answered, setAnswered] = useState(null);
  if (!kept.has(source)) kept.set(source, newMarks());
  const marks = kept.get(source);
  useLayoutEffect(() => { // it asks before the first paint, which may be long in coming
    let frame = 0;
    const changed = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion(marks.version);
      });
    };
    const load = () =>
      source.get("/_noxu/console/timeline", { limit: 2000 }).then(
        (answer) => {
          addAnswer(marks, answer);
          setError(null);
          setAnswered(answer);
          changed();
        },
        (problem) => setError(problem),
      );
    const end = source.follow((line) => {
      const isFirst = !line.marks.length && !line.received.length;
      if (isFirst || line.lost) load();
      addMarks(marks, line.marks);
      receiveLate(marks, line.received);
      changed();
    });
    if (!source.isLive) load();
    return () => {
      end();
      cancelAnimationFrame(frame);
    };
  }, [source]);
  return { marks, error, isLoaded: Boolean(answered), answered: answered || {} };
}

function Timeline({ source, route, hasView, session, askToken }) {
  const { marks, error, isLoaded, answered: { note, requestsMissBefore } } = useMarks(source);
  const query = route.query;
  const change = (changes) => go(hrefOf("timeline", [], { ...query, ...changes }), true);
  const shown = useMemo(() => selectMarks(marks.list, query), [marks.version, query.kind, query.client, query.object, query.outcome, query.noise]);
  const filters = Object.keys(CONDITIONS).filter((each) => query[each]);
  const chosen = marks.byKey.get(query.mark) || (query.request && marks.list.find((each) => each.id === query.request));
  const choose = (mark) => change({ mark: mark ? mark.key : "", request: "" });
  const kinds = [...new Set(marks.list.map((each) => each.resource))].filter(Boolean).sort();
  const clients = [...new Set(marks.list.map((each) => each.lane))].sort();
  return html`<h1 class="unseen">Timeline</h1>
    <${Toolbar} label="What is shown" folds=${filters.length ? `Shown: by ${filters.map((each) => CONDITIONS[each]).join(", ")}` : "Choose what is shown"}>
      <${Choice} label="Kind" value=${query.kind || ""} change=${(kind) => change({ kind })} options=${[["", "All kinds"], ...kinds.map((each) => [each, each])]} />
      <${Field} label="Object" value=${query.object || ""} change=${(object) => change({ object })} placeholder="default/a" />
      <${Choice} label="Client" value=${query.client || ""} change=${(client) => change({ client })} options=${[["", "All clients"], ...clients.map((each) => [each, each])]} />
      <${Choice} label="Outcome" value=${query.outcome || ""} change=${(outcome) => change({ outcome })} options=${[["", "Writes, refusals"], ["writes", "Writes"], ["refused", "Refusals"], ["all", "Also reads"]]} />
      <${Choice} label="Leases, Events, upkeep" value=${query.noise || ""} change=${(noise) => change({ noise })} options=${[["", "Hidden"], ["1", "Shown"]]} />
    <//>
    <${Tabs} label="How it is shown" tabs=${[["", "By order"], ["time", "By time"], ["table", "Table"]]} chosen=${query.by || ""} choose=${(by) => change({ by })} />
    <${Problem} error=${error} />
    ${note ? html`<p class="quiet">${note}</p>` : null}
    ${marks.passed >= MOST_MARKS ? html`<p class="quiet">The page keeps the newest ${countText(MOST_MARKS)} marks. Older ones are in the log: <code>noxu log</code></p>` : null}
    <div class=${chosen ? "with-detail open" : "with-detail"}>
      ${!shown.length
        ? isLoaded ? html`<${Nothing} isFiltered=${filters.length > 0} source=${source} session=${session} />` : null
        : query.by === "table"
          ? html`<${MarkTable} shown=${shown} query=${query} />`
          : html`<${Picture} marks=${marks} shown=${shown} isByTime=${query.by === "time"} chosen=${chosen} choose=${choose} />`}
      ${chosen ? html`<${Detail} key=${chosen.key} source=${source} mark=${chosen} marks=${marks} query=${query} close=${() => { choose(null); document.querySelector(".drawn")?.focus(); }} hasView=${hasView} session=${session} askToken=${askToken} />` : null}
    </div>
    ${requestsMissBefore ? html`<p class="quiet">Requests that wrote nothing, such as refusals, are known from ${clockText(requestsMissBefore)} on; of earlier ones, those that came while a page was open. <code>noxu serve --record-requests</code> knows them from the start.</p>` : null}`;
}

const CONDITIONS = { kind: "kind", object: "object", client: "client", outcome: "outcome", noise: "upkeep" };

function Nothing({ isFiltered, source, session }) {
  if (isFiltered) return html`<${Empty} title="Nothing matches"><p>${source.isLive ? "Choose fewer conditions, or wait: what comes is shown at once." : "Choose fewer conditions."}</p><//>`;
  if (!source.isLive) return html`<${Empty} title="Nothing has happened" />`;
  return html`<${Empty} title="Nothing has happened yet"><p>Start your controller, and change an object:</p><${Kubectl} session=${session} command="apply -f object.yaml" /><p>Each write becomes a mark, with an arrow to the clients that are shown it, and on to what they write next.</p><//>`;
}

// -- the picture ---------------------------------------------------------------------------------------------------

function Picture({ marks, shown, isByTime, chosen, choose }) {
  const canvas = useRef(null);
  const frame = useRef({ left: 0, follows: true });
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState(null); // pixels between two marks, or in a second; null: as much as fits well
  const [hovered, setHovered] = useState(null);
  const scales = isByTime ? SPEEDS : STEPS;
  const bounded = (scale) => Math.min(Math.max(scale, scales.least), scales.most);
  const length = isByTime ? shown[shown.length - 1].at - beginOf(shown) : shown.length - 1;
  const fitting = bounded(Math.max(width - LEFT - RIGHT, 0) / Math.max(length, 0.001));
  const at = bounded(zoom ?? Math.max(fitting, scales.read));
  const layout = useMemo(() => layoutOf(shown, at, isByTime), [shown, at, isByTime]);
  const chain = useMemo(() => chosen && chainOf(marks, chosen), [chosen, marks.version]);
  const height = heightOf(layout);
  const most = Math.max(layout.width - width, 0);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    observer.observe(canvas.current.parentNode);
    return () => observer.disconnect();
  }, []);
  useEffect(() => setZoom(null), [isByTime]);
  useLayoutEffect(() => {
    if (chosen && width && layout.index.has(chosen.key)) reveal(chosen); // as when its address was pasted
  }, [chosen && chosen.key, width]); // it becomes narrower when the details are shown beside it

  const paint = () => {
    const { current } = canvas;
    if (!current || !width) return;
    const ratio = devicePixelRatio || 1;
    if (current.width !== Math.round(width * ratio) || current.height !== Math.round(height * ratio)) {
      current.width = Math.round(width * ratio);
      current.height = Math.round(height * ratio);
    }
    const state = frame.current;
    state.left = state.follows ? most : Math.min(Math.max(state.left, 0), most);
    const context = current.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, layout, { width, height, left: state.left, chosen: chosen && chosen.key, chain }, coloursOf(current), TEXTS);
  };
  useLayoutEffect(paint);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", paint);
    return () => dark.removeEventListener("change", paint);
  });

  const scroll = (by) => {
    const state = frame.current;
    state.left = Math.min(Math.max(state.left + by, 0), most);
    state.follows = state.left >= most;
    requestAnimationFrame(paint);
  };
  const reveal = (mark) => {
    const x = layout.xs[layout.index.get(mark.key)];
    const state = frame.current;
    const left = state.follows ? most : state.left;
    if (x < left + 60 || x > left + width - 60) {
      state.follows = false;
      state.left = x - width / 2;
    }
  };
  const zoomTo = (next) => {
    const scale = bounded(next);
    const state = frame.current;
    const n = Math.min(firstAt(layout.xs, state.left + width / 2), shown.length - 1);
    if (!state.follows) state.left = layoutOf(shown, scale, isByTime).xs[n] - width / 2;
    setZoom(scale);
  };
  const [zoomIn, zoomOut] = [() => zoomTo(at * scales.zoom), () => zoomTo(at / scales.zoom)];
  const found = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return markNear(layout, event.clientX - box.left + frame.current.left, event.clientY - box.top);
  };
  const drag = useRef(null);
  const pointer = {
    onPointerDown: (event) => (drag.current = { x: event.clientX, moved: 0 }),
    onPointerMove: (event) => {
      if (drag.current && event.buttons) {
        scroll(drag.current.x - event.clientX);
        drag.current.moved += Math.abs(drag.current.x - event.clientX);
        drag.current.x = event.clientX;
      } else setHovered(found(event));
    },
    onPointerUp: (event) => {
      if (drag.current && drag.current.moved < 5) choose(found(event));
      drag.current = null;
    },
    onPointerLeave: () => setHovered(null),
    onWheel: (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        if (event.deltaY < 0) zoomIn();
        else zoomOut();
      } else if (event.deltaX || event.shiftKey) {
        event.preventDefault();
        scroll(event.deltaX || event.deltaY);
      }
    },
  };
  const keyed = (event) => {
    const next = neighbour(layout, chosen, event.key);
    if (event.key === "+") zoomIn();
    else if (event.key === "-") zoomOut();
    else if (event.key === "Escape") choose(null);
    else if (event.key === "Enter") document.querySelector("#detail")?.focus();
    else if (next) {
      reveal(next);
      choose(next);
    } else return;
    event.preventDefault();
  };
  return html`<div>
    <div class="drawn" tabindex="0" role="application" aria-label="Timeline. Arrows move between marks, Enter opens one, plus and minus zoom. The tab Table has the same as text." onKeyDown=${keyed}>
      <canvas ref=${canvas} style=${{ height: `${height}px` }} aria-hidden="true" ...${pointer}></canvas>
      ${[...layout.lanes.keys()].map((lane) => html`<span class="lane" key=${lane} style=${{ top: `${nameY(layout, lane)}px` }}>${lane}</span>`)}
    </div>
    <div class="below">
      <p class="said" role="status">${hovered || chosen ? sentenceOf(hovered || chosen) : `${countText(shown.length)} ${shown.length === 1 ? "mark" : "marks"}`}</p>
      <span class="buttons">
        <button type="button" class="quiet" onClick=${zoomOut} aria-label="Zoom out">−</button>
        <button type="button" class="quiet" onClick=${zoomIn} aria-label="Zoom in">+</button>
        <button type="button" class="quiet" onClick=${() => { frame.current.follows = true; setZoom(fitting); }}>Fit</button>
        <button type="button" class="quiet" onClick=${() => { frame.current.follows = true; paint(); setHovered(null); }}>Newest</button>
      </span>
    </div>
    <p class="legend" aria-hidden="true"><span class="of">write</span><span class="of refused">refused</span><span class="of unchanged">changed nothing</span><span class="of call">webhook called</span></p>
  </div>`;
}

// The mark that a key leads to: the one before or after, or the nearest of the lane above or below.
function neighbour(layout, chosen, key) {
  const { marks, xs, index, lanes } = layout;
  const at = chosen ? index.get(chosen.key) : undefined;
  if (key === "Home") return marks[0];
  if (key === "End" || (at === undefined && key.startsWith("Arrow"))) return marks[marks.length - 1];
  if (key === "ArrowLeft" || key === "ArrowRight") return marks[at + (key === "ArrowRight" ? 1 : -1)];
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const names = [...lanes.keys()];
  for (let lane = lanes.get(chosen.lane) + (key === "ArrowDown" ? 1 : -1); names[lane]; lane += key === "ArrowDown" ? 1 : -1) {
    const candidates = marks.map((mark, n) => n).filter((n) => marks[n].lane === names[lane]);
    if (candidates.length) return marks[candidates.reduce((best, n) => (Math.abs(xs[n] - xs[at]) < Math.abs(xs[best] - xs[at]) ? n : best))];
  }
  return undefined;
}

const TEXTS = {
  small: '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
  time: timeText,
  of: (mark, room) => {
    const most = Math.floor(room / 7.4);
    const action = actionText(mark);
    const text = action.length > most ? mark.name || mark.resource : action;
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  },
};

let palette = null;

function coloursOf(element) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (palette && palette.isDark === isDark) return palette;
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const accent = of("accent");
  palette = { isDark, ground: of("ground"), line: of("line"), text: of("text"), faint: of("faint"), arrow: of("arrow"), accent, write: accent, refused: of("removed"), unchanged: of("warning"), read: of("faint"), watch: of("faint"), plan: of("removed"), call: accent };
  return palette;
}

// -- the table -----------------------------------------------------------------------------------------------------

function MarkTable({ shown, query }) {
  const newest = shown.slice(-ROWS).reverse();
  const columns = [["When", "short"], ["Client", "wraps"], ["Did"], ["Object", "wraps"], ["Outcome"], ["Because of", "wide"], ["Shown to", "wide wraps"]].map(([title, className]) => ({ title, className }));
  return html`<div><${Table} caption="What happened, the newest first" columns=${columns} rows=${newest.map((mark) => ({
    key: mark.key,
    href: hrefOf("timeline", [], { ...query, mark: mark.key }),
    cells: [
      timeText(mark.at),
      mark.lane,
      verbText(mark),
      objectText(mark),
      mark.what === "write" ? `revision ${mark.revision}` : mark.what === "refused" ? `${mark.code} ${mark.reason || ""}` : mark.what === "call" ? mark.message || (mark.changes ? "changed it" : "let it pass") : mark.what,
      (mark.because || []).join(", "),
      (mark.to || []).join(", "),
    ],
  }))} />${shown.length > ROWS ? html`<p class="quiet">The newest ${ROWS} of ${countText(shown.length)}.</p>` : null}</div>`;
}

// -- one mark ------------------------------------------------------------------------------------------------------

function Detail({ source, mark, marks, query, close, hasView, session, askToken }) {
  const changed = useAsked(() => (mark.revision ? source.get("/_noxu/console/change", { revision: mark.revision }) : Promise.resolve(null)), [mark.key]);
  const to = (key) => hrefOf("timeline", [], { ...query, mark: key });
  const effects = marks.list.filter((each) => mark.revision && (each.because || []).includes(mark.revision));
  const calls = marks.list.filter((each) => mark.id && each.caller === mark.id);
  const caller = marks.byId.get(mark.caller);
  const causes = (mark.because || []).map((revision) => marks.byKey.get(String(revision)) || { key: "", revision });
  const [asked, end] = sentencePartsOf(mark);
  return html`<aside id="detail" class="detail" tabindex="-1" aria-label="The chosen mark">
    <header><h2><${Cut} text=${asked} />${end}</h2><button type="button" class="quiet" onClick=${close} aria-label="Close">✕</button></header>
    ${mark.message && mark.what !== "call" ? html`<p class="problem">${mark.message}</p>` : null}
    <dl>
      <dt>When</dt><dd>${timeText(mark.at)}${mark.revision ? `, revision ${mark.revision}` : ""}</dd>
      ${mark.path ? html`<dt>Request</dt><dd><code><${Cut} text=${`${mark.method} ${mark.path}`} /></code></dd><dt>Answer</dt><dd>${mark.code || "none yet"}${mark.seconds ? ` after ${(mark.seconds * 1000).toFixed(1)} ms` : ""}</dd>` : null}
      ${mark.manager ? html`<dt>Field manager</dt><dd>${mark.manager}</dd>` : null}
      ${mark.traceparent ? html`<dt>Trace</dt><dd><code>${mark.traceparent}</code></dd>` : null}
      ${caller ? html`<dt>Called by</dt><dd><a href=${to(caller.key)}>${sentenceOf(caller)}</a></dd>` : null}
      ${calls.length ? html`<dt>It called</dt><dd>${calls.map((each) => html`<a href=${to(each.key)}>${sentenceOf(each)}</a>`)}</dd>` : null}
      ${causes.length ? html`<dt>${mark.what === "plan" ? "Just after" : "It had been shown"}</dt><dd>${causes.map((each) => (each.key ? html`<a href=${to(each.key)}>${sentenceOf(each)}</a>` : html`<span>revision ${each.revision}</span>`))}</dd>` : null}
      ${mark.to && mark.to.length ? html`<dt>Shown to</dt><dd>${mark.to.map((lane) => html`<span>${lane}${mark.late && mark.late[lane] ? `, ${(mark.late[lane] - mark.at).toFixed(1)} s later` : ""}</span>`)}</dd>` : null}
      ${effects.length ? html`<dt>What followed</dt><dd>${effects.slice(0, 20).map((each) => html`<a href=${to(each.key)}>${sentenceOf(each)}</a>`)}</dd>` : null}
      ${hasView("at") && mark.revision ? html`<dt>Object</dt><dd><a href=${hrefOf("at", [String(mark.revision), mark.resource, mark.namespace, mark.name])}>at revision ${mark.revision}</a>${mark.event === "DELETED" ? null : html`<a href=${hrefOf("why", [mark.resource, mark.namespace, mark.name])}>why it is as it is</a>`}</dd>` : null}
    </dl>
    <${BreakHere} source=${source} mark=${mark} session=${session} askToken=${askToken} />
    <${Problem} error=${changed.error} />
    ${changed.value ? html`<h3>What it changed</h3><${Diff} before=${yamlOf(changed.value.before)} after=${yamlOf(changed.value.after)} />` : null}
    <${Course} source=${source} mark=${mark.caller ? { ...mark, id: mark.caller } : mark} hasView=${hasView} />
  </aside>`;
}

// Without managedFields: they change with every write, and say who, which is known here.
function yamlOf(value) {
  if (!value) return "";
  const { managedFields: _, ...metadata } = value.metadata || {};
  return toYaml({ ...value, metadata }).trimEnd();
}
