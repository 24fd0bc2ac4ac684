// The shell: the views and the ways between them, the state of the connection, the token.
//
// A view is a module that exports one object, and has a line in VIEWS:
//
//     export const kindsView = { route: "kinds", title: "Objects", component: Kinds };
//
// Its component gets {source, route, hasView, session, askToken}. `isHidden`: there are ways to it, but none in the navigation.
// An opened recording has the views with `inRecordings`, and those `ofRecordings`, which a server has not.
// The page loads all modules joined into one: a name is at top level once over all of them and none of the browser's, no export is
// a default, no import renames, and each import is on a line of its own.
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { go, hrefOf, useRoute } from "./router.js";
import { liveSource, recordedSource } from "./data.js";
import { Dialog, Field, Problem } from "./widgets.js";
import { Opening } from "./opening.js";
import { timelineView } from "./timeline.js";
import { kindsView } from "./kinds.js";
import { objectView } from "./objects.js";
import { whyView } from "./why.js";
import { breakView } from "./break.js";
import { mannersView } from "./manners.js";
import { schemaView } from "./schema.js";
import { recordingView } from "./recording.js";
import { runsView } from "./runs.js";

const VIEWS = [timelineView, kindsView, objectView, whyView, breakView, mannersView, schemaView, recordingView, runsView];
const viewsOf = (source) => VIEWS.filter((each) => (source.isLive ? !each.ofRecordings : each.ofRecordings || each.inRecordings));

// The page with the source that it was loaded with, or with a recording that was opened since.
function Root({ source }) {
  const [recording, setRecording] = useState(null);
  const opened = (next, name) => {
    setRecording({ source: next, name });
    go(hrefOf(firstView(next).route));
  };
  const close = () => {
    setRecording(null);
    go(hrefOf(firstView(source).route));
  };
  return html`<${App} key=${recording ? recording.name : ""} source=${recording ? recording.source : source} recording=${recording} opened=${opened} close=${close} />`;
}

const firstView = (source) => viewsOf(source).find((each) => each.route === source.first) || viewsOf(source)[0];

function App({ source, recording, opened, close }) {
  const route = useRoute();
  const [session, setSession] = useState(null);
  const [isAsking, setAsking] = useState(false);
  const shown = useRef(null);
  const about = () => source.get("/_noxu/console/session").then(setSession, () => setSession({ mayWrite: false }));
  useEffect(() => {
    givenToken(source).then(about);
  }, [source]);
  const views = viewsOf(source);
  const hasView = (name) => views.some((each) => each.route === name);
  const view = views.find((each) => each.route === route.name) || firstView(source);
  useEffect(() => {
    document.title = `${view.title} · Noxu`;
    const isLost = shown.current && document.activeElement === document.body; // the link that was followed is gone
    shown.current = view;
    if (isLost) document.getElementById("main").focus({ preventScroll: true });
  }, [view]);
  return html`
    <a class="skip" href="#main" onClick=${skipToMain}>Skip to the content</a>
    <header class="top">
      <a class="mark" href=${hrefOf(firstView(source).route)}>Noxu</a>
      <nav aria-label="Views">${views.filter((each) => !each.isHidden).map(
        (each) => html`<a href=${hrefOf(each.route)} aria-current=${each === view ? "page" : undefined}>${each.title}</a>`,
      )}</nav>
      <div class="state">
        <${Opening} source=${source} opened=${opened} />
        ${recording ? html`<button type="button" class="quiet" onClick=${close}>Close ${recording.name}</button>` : null}
        ${source.isLive && session && !session.mayWrite ? html`<button type="button" class="quiet" onClick=${() => setAsking(true)}>Read only</button>` : null}
        <${Connection} source=${source} />
      </div>
    </header>
    <main id="main" tabindex="-1"><${view.component} source=${source} route=${route} hasView=${hasView} session=${session} askToken=${() => setAsking(true)} /></main>
    ${isAsking ? html`<${Token} source=${source} close=${() => setAsking(false)} begun=${about} />` : null}`;
}

// A link to #main would be another view's address.
function skipToMain(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

const STATES = { connecting: "Connecting", live: "Live", lost: "No connection", opened: "Recording" };

function Connection({ source }) {
  const [state, setState] = useState("connecting");
  useEffect(() => source.onState(setState), [source]);
  return html`<span class=${`connection ${state}`} role="status">${STATES[state]}</span>`;
}

// The token in the address of the banner, which disappears from the address at once.
async function givenToken(source) {
  const [, token] = /^#token=(\w+)$/.exec(location.hash) || [];
  if (!token) return;
  go(hrefOf(firstView(source).route), true);
  await source.send("POST", "/_noxu/console/session", { token }).catch(() => null); // then the page is read only, and says so
}

function Token({ source, close, begun }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(null);
  const send = (event) => {
    event.preventDefault();
    source
      .send("POST", "/_noxu/console/session", { token: token.replace(/^.*#token=/, "").trim() })
      .then(begun)
      .then(close, setError);
  };
  return html`<${Dialog} title="Change something" close=${close}><form onSubmit=${send}>
    <p>A page needs a token to change something. <code>noxu serve</code> prints it with the address of the console.</p>
    <${Field} label="Token" value=${token} change=${setToken} type="text" required />
    <${Problem} error=${error} />
    <p><button type="submit">Use this token</button></p>
  </form><//>`;
}

render(html`<${Root} source=${recordedSource() || liveSource()} />`, document.getElementById("app"));
