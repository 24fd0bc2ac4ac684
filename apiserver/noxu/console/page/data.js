// Where the data come from. A view asks its source, and nothing else: a live server here, an opened recording elsewhere.
//
//     source.isLive                      whether something can be changed and followed
//     await source.get(path, query)      the JSON of a GET; raises Refused
//     await source.send(method, path, body)
//     await source.table(path, query)    a list as the API's Table
//     source.follow(listener)            calls it with each line of the live stream; returns what ends that
//     source.onState(listener)           calls it with "connecting", "live", "lost", "opened"; returns what ends that
//     source.first                       the view that it begins with, "" for the first one
//     await source.open(name, content)   the source of a recording, whose content is in base64; undefined: that needs a server
//
// All followers share one stream, which is open while there is one. After a break it begins again, a little later each time.

export class Refused extends Error {
  constructor(status) {
    super(status.message || `the server answers ${status.code}`);
    this.code = status.code;
    this.reason = status.reason || "";
    this.details = status.details || {};
  }
}

const AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const SLOWEST = 5000; // milliseconds between two attempts

// Asks the server of the page. `answered` is called as soon as it answers. Raises Refused.
async function askServer(method, path, body, accept, answered) {
  const headers = { Accept: accept || "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused({ code: 0, reason: "Unreachable", message: "the server does not answer: is it running?" });
  }
  answered();
  const text = await answer.text();
  const value = text ? parsed(text) : {};
  if (!answer.ok) throw new Refused({ code: answer.status, ...value });
  return value;
}

const openRecording = async (name, content) =>
  sourceOf(await askServer("POST", "/_noxu/console/open", { name, content }, "", () => undefined), true);

export function liveSource() {
  const followers = new Set();
  const observers = new Set();
  let state = "connecting";
  let stream = null;

  function setState(next) {
    state = next;
    observers.forEach((each) => each(state));
  }

  async function ask(...asked) {
    try {
      return await askServer(...asked, () => stream || setState("live")); // a view that follows nothing asks, too
    } catch (error) {
      if (!error.code && !stream) setState("lost");
      throw error;
    }
  }

  async function read(control) {
    let pause = 250;
    while (!control.signal.aborted) {
      try {
        const answer = await fetch("/_noxu/console/stream", { signal: control.signal });
        if (!answer.ok) throw new Refused({ code: answer.status });
        setState("live");
        pause = 250;
        for await (const line of linesOf(answer.body)) {
          const whole = withMarks(line);
          followers.forEach((each) => each(whole));
        }
      } catch (error) {
        if (control.signal.aborted) return;
      }
      setState("lost");
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, SLOWEST);
    }
  }

  return {
    isLive: true,
    first: "",
    open: openRecording,
    get: (path, query) => ask("GET", withQuery(path, query), undefined, ""),
    send: (method, path, body) => ask(method, path, body, ""),
    table: (path, query) => ask("GET", withQuery(path, query), undefined, AS_TABLE),
    follow(listener) {
      followers.add(listener);
      if (!stream) {
        stream = new AbortController();
        read(stream);
      }
      return () => {
        followers.delete(listener);
        if (!followers.size) {
          stream.abort();
          stream = null;
        }
      };
    },
    onState(listener) {
      observers.add(listener);
      listener(state);
      return () => observers.delete(listener);
    },
  };
}

// A recording: its answers are in the page itself. Null: the page has none.
export function recordedSource() {
  const element = document.getElementById("noxu-recording");
  return element && sourceOf(JSON.parse(element.textContent));
}

// A recording: its answers by their paths. `mayOpen`: who has served the page reads further ones.
function sourceOf(answers, mayOpen = answers["/_noxu/console/session"].mayOpen) {
  const refuse = () => Promise.reject(new Refused({ code: 404, reason: "NotFound", message: "the recording does not have this" }));
  const answer = (path) => (Object.hasOwn(answers, path) ? Promise.resolve(answers[path]) : null);
  return {
    isLive: false,
    first: Object.hasOwn(answers, "/_noxu/console/runs") ? "runs" : "",
    open: mayOpen ? openRecording : undefined,
    get: (path, query) => answer(withQuery(path, query)) || answer(path) || refuse(),
    send: refuse,
    async table(path) {
      const [, before, namespace, after] = /^(.*)\/namespaces\/([^/]+)(\/[^/]+)$/.exec(path) || [];
      const table = await (answer(path) || answer(before + after) || refuse());
      const isIn = (row) => !namespace || row.object.metadata.namespace === decodeURIComponent(namespace);
      return { ...table, rows: table.rows.filter(isIn) };
    },
    follow: () => () => undefined,
    onState(listener) {
      listener("opened");
      return () => undefined;
    },
  };
}

function withQuery(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined)).toString();
  return text ? `${path}?${text}` : path;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.slice(0, 300) };
  }
}

// A line has its writes as rows of columns, which is half of the bytes. Those who follow get them as marks, among the others.
function withMarks({ columns, writes, marks, ...rest }) {
  const made = writes.map((row) => markOf(columns, row));
  return { ...rest, marks: [...made, ...marks].sort((a, b) => a.at - b.at) };
}

function markOf(columns, row) {
  const mark = { key: String(row[columns.indexOf("revision")]), what: "write" };
  columns.forEach((name, n) => {
    if (row[n] !== null) mark[name] = row[n];
  });
  return mark;
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}
