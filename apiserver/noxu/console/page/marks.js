// The marks of the timeline: the newest of them, and what leads from one to another. Memory is bounded: the oldest are forgotten.

export const MOST_MARKS = 10000;
const SLACK = 2000; // so that a thousand new ones are one removal
const LONGEST_CHAIN = 500;

// A collection of marks in the order of their times. `version` changes with each change.
export function newMarks() {
  return { list: [], byKey: new Map(), byId: new Map(), version: 0, passed: 0 };
}

export function addMarks(marks, added) {
  const { list, byKey } = marks;
  let isInOrder = true;
  for (const mark of added) {
    if (byKey.has(mark.key) || isMerged(marks, mark)) continue;
    const caller = mark.caller && marks.byId.get(mark.caller);
    if (caller) Object.assign(mark, { at: Math.max(mark.at, caller.at), behind: (caller.revision || 0) + 0.5 });
    if (list.length && mark.at < list[list.length - 1].at) isInOrder = false;
    list.push(mark);
    byKey.set(mark.key, mark);
    marks.passed++;
  }
  if (!isInOrder) list.sort((a, b) => a.at - b.at || orderOf(a) - orderOf(b));
  if (list.length > MOST_MARKS + SLACK) for (const mark of list.splice(0, list.length - MOST_MARKS)) forget(marks, mark);
  marks.version++;
}

// Add what `GET /_noxu/console/timeline` answers. `began` is another one if another process answers, whose numbers begin anew.
export function addAnswer(marks, { marks: added, began }) {
  if (marks.began !== undefined && marks.began !== began) Object.assign(marks, { ...newMarks(), version: marks.version });
  marks.began = began;
  addMarks(marks, added);
}

// At the same time: revisions are in order, and the call of a webhook is drawn behind its write.
const orderOf = (mark) => mark.revision || mark.behind || 0;

// A write and its request may come in two lines, in any order: they are one mark.
function isMerged({ list, byKey, byId }, mark) {
  const known = mark.id && byId.get(mark.id);
  if (mark.id && (!known || known.what !== "write")) byId.set(mark.id, mark);
  if (!known || (known.what === "write") === (mark.what === "write")) return false;
  const [write, request] = mark.what === "write" ? [mark, known] : [known, mark];
  const { code, request: number, method, path, seconds } = request;
  Object.assign(write, { code, request: number, method, path, seconds });
  if (write === mark) {
    list.splice(list.indexOf(known), 1);
    byKey.delete(known.key);
    return false;
  }
  return true;
}

function forget({ byKey, byId }, mark) {
  byKey.delete(mark.key);
  if (byId.get(mark.id) === mark) byId.delete(mark.id);
}

// A watch has shown an event later than others.
export function receiveLate(marks, received) {
  for (const [revision, lane, at] of received) {
    const mark = marks.byKey.get(String(revision));
    if (!mark || mark.to.includes(lane)) continue;
    mark.to.push(lane);
    (mark.late ||= {})[lane] = at;
  }
  if (received.length) marks.version++;
}

// What a plan of an exploration has done to the run is always shown.
const OUTCOMES = { "": ["write", "refused", "unchanged", "call"], writes: ["write", "call"], refused: ["refused", "call"], all: ["write", "refused", "unchanged", "call", "read", "watch"] };
const NOISE = new Set(["leases.coordination.k8s.io", "events", "events.events.k8s.io"]);
// Who writes before the first request, and what every namespace and every definition has.
const UPKEEP = new Set([
  ...["bootstrap", "files", "template", "crd-establishing-controller", "kube-apiserver-autoregistration"].map((each) => `noxu ${each}`),
  ...["root-ca-certificate-publisher-controller", "serviceaccount-controller"].map((each) => `noxu ${each}`),
]);

export function selectMarks(list, { kind, client, object, outcome, noise }) {
  const whats = OUTCOMES[outcome || ""] || OUTCOMES[""];
  const [namespace, name] = object && object.includes("/") ? object.split("/") : ["", object];
  return list.filter(
    (mark) =>
      mark.what === "plan" ||
      (whats.includes(mark.what) &&
      (mark.what !== "call" || outcome !== "refused" || mark.message) &&
      (kind ? mark.resource === kind : noise || !NOISE.has(mark.resource)) &&
      (client ? mark.lane === client || mark.from === client || (mark.to || []).includes(client) : noise || (mark.at && !UPKEEP.has(mark.lane))) &&
      (!name || mark.name.includes(name)) &&
      (!namespace || mark.namespace === namespace)),
  );
}

// The keys of all marks that lead to one, and that follow from it. Events of its own writes are nothing new to a client: they
// would tie everything that it ever did together.
export function chainOf(marks, mark) {
  const caller = marks.byId.get(mark.caller);
  const found = new Set([mark.key]);
  if (caller) return new Set([...chainOf(marks, caller), mark.key]);
  const before = [mark];
  while (before.length && found.size < LONGEST_CHAIN) {
    const effect = before.pop();
    for (const revision of effect.because || []) {
      const cause = marks.byKey.get(String(revision));
      if (cause && cause.lane !== effect.lane && !found.has(cause.key)) {
        found.add(cause.key);
        before.push(cause);
      }
    }
  }
  const following = new Map(mark.revision ? [[mark.revision, mark.lane]] : []);
  for (const later of marks.list) {
    if (found.size >= LONGEST_CHAIN) break;
    if (later.what === "call" && found.has((marks.byId.get(later.caller) || later).key)) found.add(later.key);
    if ((later.because || []).some((revision) => following.has(revision) && following.get(revision) !== later.lane)) {
      found.add(later.key);
      if (later.revision) following.set(later.revision, later.lane);
    }
  }
  return found;
}

// A time of 0 is not known: what was there when the server began to look.
export const timeText = (at) => {
  if (!at) return "at the start";
  const time = new Date(at * 1000);
  const [hours, minutes, seconds] = [time.getHours(), time.getMinutes(), time.getSeconds()].map((each) => String(each).padStart(2, "0"));
  return `${hours}:${minutes}:${seconds}.${String(time.getMilliseconds()).padStart(3, "0")}`;
};

// To the second, with the day unless it is today.
export function clockText(at) {
  const [time, today] = [new Date(at * 1000), new Date()];
  const day = [time.getFullYear(), time.getMonth() + 1, time.getDate()].map((each) => String(each).padStart(2, "0")).join("-");
  return `${time.toDateString() === today.toDateString() ? "" : `${day} `}${timeText(at).slice(0, 8)}`;
}

export const verbText = (mark) => (mark.subresource ? `${mark.verb} ${mark.subresource}` : mark.verb);
export function objectText({ resource, namespace, name }) {
  if (!name) return namespace ? `${resource} in ${namespace}` : resource;
  return `${resource} ${namespace ? `${namespace}/` : ""}${name}`;
}

const ENDS = {
  write: () => "",
  refused: (mark) => `, refused: ${mark.code} ${mark.reason || ""}`,
  unchanged: () => ", which changed nothing",
  read: (mark) => (mark.code === 404 ? ", which is not there" : ""),
  watch: () => "",
  plan: () => "",
  call: (mark) => (mark.message ? `, which says: ${mark.message}` : mark.changes ? ", and changes it" : ", and lets it pass"),
};

// A mark in words: `kubectl/v1.37.0: update status of widgets.example.com default/a`.
export const sentenceOf = (mark) => sentencePartsOf(mark).join("");
// What was asked, and how it ended.
export const sentencePartsOf = (mark) => [`${mark.lane}: ${verbText(mark)} ${objectText(mark)}`, ENDS[mark.what](mark)];
export const actionText = (mark) => `${verbText(mark)} ${mark.name || mark.resource}`;
