// Faults as data: those that can be had from a mark of the timeline, and what is made of them. Pure.

// What the user agent of a lane begins with; "" for the server's own controllers and for webhooks, which are no clients.
const agentOf = (lane) => (/^(noxu|webhook) /.test(lane) ? "" : `${lane.split(" ")[0]}*`);

const VERBS_OF_RULES = { apply: "patch" };

// [title, rule] of what can be done to a client that was shown a write.
export function faultsOfArrow(mark, lane) {
  if (!agentOf(lane)) return [];
  const match = placeOf(mark, lane);
  return [
    ["Drop its next event of this object", { match, watch: "drop", "breaks-contract": true, times: 1 }],
    ["Delay its events of this object by 2 s", { match, watch: { late: "2s" } }],
    ["Freeze its view of this object", { match, view: "freeze" }],
  ];
}

// [title, rule] of what can be done to the client that wrote.
export function faultsOfWrite(mark) {
  if (!agentOf(mark.lane)) return [];
  const match = { verbs: [VERBS_OF_RULES[mark.verb] || mark.verb], ...placeOf(mark, mark.lane) };
  if (mark.verb === "create") delete match.name; // it is in the body, which rules do not see
  if (mark.subresource) match.subresource = mark.subresource;
  return [
    ["Refuse the next one: Conflict", { match, error: "Conflict", times: 1 }],
    ["Break the connection after the next one", { match, reset: "after", times: 1 }],
    ["Crash after the next one", { match, process: { kill: "after" }, times: 1 }],
  ];
}

function placeOf(mark, lane) {
  const [, ...user] = lane.split(" ");
  return {
    resource: mark.resource,
    ...(mark.namespace ? { namespace: mark.namespace } : {}),
    ...(mark.name ? { name: mark.name } : {}),
    userAgent: agentOf(lane),
    ...(user.length ? { user: user.join(" ") } : {}),
  };
}

// A rule as it was given: without what the server adds about it.
export function plainRule(rule) {
  const { hit: _hit, matched: _matched, ...rest } = rule;
  return rest;
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/-/g, "_");

function python(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${python(each)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// A test with these rules, for the handle of the pytest fixture. Only a program that it starts can be killed.
export function asPytest(rules) {
  const lines = ["def test_it_survives(noxu):"];
  let indent = "    ";
  const hasProgram = rules.some((rule) => rule.process);
  if (hasProgram) lines.push(`${indent}operator = noxu.program(["./operator"], restart=True)`);
  for (const rule of rules.map(plainRule)) {
    const { match = {}, name: _, ...effect } = rule;
    const fields = Object.entries({ ...match, ...effect }).map(([name, value]) => `${snake(name)}=${python(value)}`);
    lines.push(`${indent}with noxu.fault(${fields.join(", ")}):`);
    indent += "    ";
  }
  if (hasProgram) {
    lines.push(`${indent}with operator:`);
    indent += "    ";
  }
  lines.push(`${indent}...  # what your controller is asked to do`, "    noxu.idle()", "    assert ...  # what has to be true in the end");
  return `${lines.join("\n")}\n`;
}
