// Manners: what clients do badly, as sentences with ways into the timeline, and the least roles that they need.
import { html } from "./vendor/preact.js";
import { hrefOf } from "./router.js";
import { Code, Copy, Cut, Empty, Problem, Table, countText, toYaml, useAsked, useWrites } from "./widgets.js";

export const mannersView = { route: "manners", title: "Manners", component: Manners };

const PAUSE_OF_REPORTS = 2000; // milliseconds between two reports while something happens

function Manners({ source, route }) {
  const report = useAsked(() => source.get("/_noxu/report"), [source]);
  useWrites(source, () => true, report.again, PAUSE_OF_REPORTS, [source]);
  if (!report.value) return html`<h1>Manners</h1><${Problem} error=${report.error} />`;
  const clients = report.value.clients.filter((each) => !each.userAgent.startsWith("Mozilla/"));
  const asked = clients.find((each) => keyOf(each) === route.path[0]);
  const chosen = asked || clients[0];
  return html`<h1>Manners</h1>
    ${report.value.notes.map((note) => html`<p class="quiet">${note}</p>`)}
    ${!clients.length
      ? html`<${Empty} title="No client has asked for anything yet"><p>Start your controller. What it does too often, in vain or against another client is said here, with what to change.</p><//>`
      : html`<div class=${asked ? "beside chosen" : "beside"}>
          <nav aria-label="Clients" class="list"><ul>${clients.map(
            (each) => html`<li key=${keyOf(each)}><a href=${hrefOf("manners", [keyOf(each)])} aria-current=${each === chosen ? "page" : undefined}><span>${nameOf(each)}</span><span class="count">${each.habits.length || ""}</span></a></li>`,
          )}</ul></nav>
          <div>${asked ? html`<p class="back"><a href=${hrefOf("manners")}>All clients</a></p>` : null}<${Client} key=${keyOf(chosen)} source=${source} client=${chosen} /></div>
        </div>`}`;
}

const keyOf = (client) => `${client.userAgent} ${client.user}`;
const nameOf = (client) => `${client.userAgent.split(" ")[0] || "?"}${client.user === "system:anonymous" ? "" : ` ${client.user}`}`;

function Client({ source, client }) {
  return html`<section aria-labelledby="client">
    <h2 id="client" class="large"><${Cut} text=${nameOf(client)} /></h2>
    <p>${countText(client.requests)} ${client.requests === 1 ? "request" : "requests"}, ${client.errors ? `${countText(client.errors)} of them refused` : "none refused"}.</p>
    ${client.habits.length ? client.habits.map((habit) => html`<${Habit} key=${habit.habit} habit=${habit} />`) : html`<p class="good">Its manners are good: no loops, no writes in vain, no fights.</p>`}
    <h2>What it asks for</h2>
    <${Table} caption=${`What ${nameOf(client)} asks for`} columns=${[{ title: "Verb" }, { title: "Resource" }, { title: "Requests", className: "number" }, { title: "Refused", className: "number" }]}
      rows=${client.asked.map((each) => ({ key: `${each.verb} ${each.resource}`, cells: [each.verb, each.resource, countText(each.requests), each.errors ? countText(each.errors) : ""] }))} />
    <${LeastRoles} source=${source} client=${client} />
  </section>`;
}

function Habit({ habit }) {
  const isFine = habit.tolerated !== null && habit.tolerated !== undefined && habit.count <= habit.tolerated;
  return html`<article class=${isFine ? "habit fine" : "habit"}>
    <h3>${habit.title} <small>${habit.count === 1 ? "once" : `${countText(habit.count)} times`}${isFine ? ", which is tolerated" : ""}</small></h3>
    <p>${habit.advice}</p>
    <ul class="plain">${habit.seen.slice(0, 5).map(
      (seen) => html`<li>${seen.note}${seen.requests.slice(0, 1).map((request) => html` · <a href=${hrefOf("timeline", [], { outcome: "all", noise: "1", request: request.requestID })}>show it on the timeline</a>`)}</li>`,
    )}</ul>
  </article>`;
}

function LeastRoles({ source, client }) {
  const roles = useAsked(() => source.get("/_noxu/rbac", { client: client.userAgent, user: client.user }), [client.userAgent, client.user]);
  if (!roles.value) return html`<${Problem} error=${roles.error} />`;
  const text = roles.value.items.map((each) => toYaml(each)).join("---\n").trimEnd();
  return html`<h2>The least role for it</h2>
    ${text ? html`<p class="buttons"><${Copy} label="Copy" text=${text} /></p><${Code} text=${text} language="yaml" />` : html`<p class="quiet">It needs none.</p>`}`;
}
