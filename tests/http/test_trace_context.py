"""The trace that a client says a request belongs to: what is accepted of it, who keeps it, and who is called with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from noxu.config import Config
from noxu.http.recent_requests import RecentRequests
from noxu.http.trace_context import MAX_TRACESTATE, TraceContext, parse_traceparent, parse_tracestate, received
from noxu.process.server import Server
from noxu.registry.authors import Author
from tests.http.exchanges import MAPS, serving_app
from tests.http.test_auditing import audited
from tests.http.test_webhook_client import answering, http, serving
from tests.rows import rows

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT: Final = "00f067aa0ba902b7"
SENT: Final = f"00-{TRACE}-{PARENT}-01"

ACCEPTED: list[tuple[str, str, str]] = [
    ("sampled", SENT, SENT),
    ("not sampled", f"00-{TRACE}-{PARENT}-00", f"00-{TRACE}-{PARENT}-00"),
    ("a random trace", f"00-{TRACE}-{PARENT}-03", f"00-{TRACE}-{PARENT}-03"),
    ("unknown flags", f"00-{TRACE}-{PARENT}-ff", f"00-{TRACE}-{PARENT}-03"),
    ("a later version", f"cc-{TRACE}-{PARENT}-01", SENT),
    ("a later version with more", f"cc-{TRACE}-{PARENT}-01-what-will-come", SENT),
]


@rows("what, sent, expected", ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_what_is_accepted_has_version_0(what: str, sent: str, expected: str) -> None:
    assert parse_traceparent([sent]) == expected


IGNORED: list[tuple[str, list[str]]] = [
    ("none", []),
    ("nothing", [""]),
    ("two", [SENT, SENT]),
    ("two in one", [f"{SENT},{SENT}"]),
    ("version ff", [f"ff-{TRACE}-{PARENT}-01"]),
    ("version 0 with more", [f"{SENT}-00"]),
    ("a later version with more, without a dash", [f"cc-{TRACE}-{PARENT}-01.00"]),
    ("too long", [SENT + "0" * 10_000]),
    ("too short", [SENT[:-1]]),
    ("upper case", [SENT.upper()]),
    ("no hexadecimal number", [SENT.replace("4b", "4g")]),
    ("other digits", [SENT.replace("4", "٤")]),
    ("trace 0", [f"00-{'0' * 32}-{PARENT}-01"]),
    ("parent 0", [f"00-{TRACE}-{'0' * 16}-01"]),
    ("other separators", [SENT.replace("-", "_")]),
    ("a line end", [f"{SENT}\n"]),
    ("spaces", [f" {SENT}"]),
]


@rows("what, sent", IGNORED, ids=[row[0] for row in IGNORED])
def test_what_is_invalid_is_ignored(what: str, sent: list[str]) -> None:
    assert parse_traceparent(sent) == ""


def member(number: int, length: int) -> str:
    return f"k{number}=".ljust(length, "x")


STATES: list[tuple[str, list[str], str]] = [
    ("one", ["rojo=00f067aa0ba902b7"], "rojo=00f067aa0ba902b7"),
    ("two headers", ["a=1", "b=2"], "a=1,b=2"),
    ("spaces between members", ["a=1 ,\tb=2"], "a=1 ,\tb=2"),
    ("empty members", ["a=1,,b=2,"], "a=1,,b=2,"),
    ("a tenant", ["t0@vendor=x y"], "t0@vendor=x y"),
    ("32 members", [",".join(f"k{n}=v" for n in range(32))], ",".join(f"k{n}=v" for n in range(32))),
    ("33 members", [",".join(f"k{n}=v" for n in range(33))], ""),
    ("the same key twice", ["a=1,a=2"], ""),
    ("no value", ["a"], ""),
    ("an empty value", ["a="], ""),
    ("upper case", ["A=1"], ""),
    ("a control character", ["a=\x01"], ""),
    ("a key of 257 characters", ["k" * 257 + "=1"], ""),
    ("a value of 257 characters", ["k=" + "v" * 257], ""),
    ("too long: a long member is left out", [f"{member(1, 200)},{','.join(member(n, 100) for n in range(2, 6))}"],
     ",".join(member(n, 100) for n in range(2, 6))),
    ("too long: the last is left out", [",".join(member(n, 110) for n in range(6))],
     ",".join(member(n, 110) for n in range(4))),
    ("a hundred thousand members", ["a=1," * 100_000], ""),
]  # fmt: skip


@rows("what, sent, expected", STATES, ids=[row[0] for row in STATES])
def test_a_state_is_handed_on_unchanged_within_its_limits(what: str, sent: list[str], expected: str) -> None:
    assert parse_tracestate(sent) == expected
    assert len(expected) <= MAX_TRACESTATE


def headers(**sent: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(sent))


def test_a_state_needs_a_parent_and_a_bad_one_leaves_the_parent() -> None:
    assert received(headers(tracestate="a=1")) is None
    assert received(headers(traceparent=SENT, tracestate="=")) == TraceContext(SENT)
    assert received(headers(traceparent=SENT, tracestate="a=1")) == TraceContext(SENT, "a=1")


# -- where it is kept -------------------------------------------------------------------------------------------------


async def test_a_request_has_it_and_the_next_one_on_the_connection_does_not() -> None:
    async with serving_app() as served:
        for sent in (
            {"traceparent": SENT},
            {},
            {"traceparent": "00-no"},
            {"traceparent": SENT, "Host": "evil.example"},
        ):
            await served.send("GET", MAPS, **sent)
        assert [exchange.traceparent for exchange in served.exchanges] == [SENT, "", "", SENT]


ANSWERED: list[tuple[str, str, Any]] = [
    ("GET", MAPS, None),
    ("POST", MAPS, {"metadata": {"name": "a"}}),
    ("POST", MAPS, {"metadata": {"name": "a"}}),
    ("GET", f"{MAPS}/b", None),
    ("GET", "/version", None),
    ("GET", "/nothing", None),
]


async def test_no_answer_depends_on_it() -> None:
    answers = []
    for sent in ({}, {"traceparent": SENT, "tracestate": "a=1"}, {"traceparent": "no", "tracestate": "="}):
        async with serving_app() as served:
            replies = [await served.send(*request, **{"Audit-Id": "x"}, **sent) for request in ANSWERED]
        answers.append([(reply.code, [*reply.headers]) for reply in replies])
    assert answers[0] == answers[1] == answers[2]


async def test_the_requests_of_a_test_show_it() -> None:
    recent = RecentRequests()
    async with Server(Config(port=0), observer=recent) as server, aiohttp.ClientSession(server.url) as session:
        for sent in ({"traceparent": SENT}, {}):
            async with session.get(MAPS, headers=sent) as answer:
                await answer.read()
    assert [recorded.traceparent for recorded in recent.since()] == [SENT, ""]


async def test_the_author_of_a_write_has_it() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    async with Server(Config(port=0)) as server, aiohttp.ClientSession(server.url) as session:
        async with session.post(MAPS, json=config_map, headers={"traceparent": f"{SENT[:-2]}fd"}) as answer:
            revision = int((await answer.json())["metadata"]["resourceVersion"])
        authors: dict[int, Author] = {number: author for number, _, author in server.plane.persistence.journal.writes}
        assert authors[revision].traceparent == SENT


async def test_the_audit_log_annotates_it(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        await server.ask("GET", MAPS, traceparent=SENT)
        await server.ask("GET", MAPS)
        await server.ask("GET", MAPS, traceparent="00-no")
        found = [event["annotations"].get("noxu.dev/traceparent") for event in await server.events()
                 if event["stage"] == "ResponseComplete"]  # fmt: skip
        assert found == [SENT, None, None]


# -- webhooks ----------------------------------------------------------------------------------------------------------


def sent_traces(requests: list[bytes]) -> list[list[str]]:
    heads = [request.split(b"\r\n\r\n")[0].decode().lower().split("\r\n") for request in requests]
    return [[line for line in head if line.startswith("trace")] for head in heads]


async def test_admission_webhooks_are_called_with_it() -> None:
    seen: list[bytes] = []
    async with (
        serving(answering(http(), seen)) as port,
        Server(Config(port=0)) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        hook = {
            "name": "a.example.com",
            "clientConfig": {"url": f"http://127.0.0.1:{port}/x"},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        async with session.post(configurations, json={"metadata": {"name": "a"}, "webhooks": [hook]}) as answer:
            assert answer.status == 201, await answer.text()
        for n, sent in enumerate(
            ({"traceparent": SENT, "tracestate": "a=1,b=2"}, {"traceparent": SENT}, {}, {"traceparent": "-"})
        ):
            async with session.post(MAPS, json={"metadata": {"name": f"m{n}"}}, headers=sent) as answer:
                assert answer.status == 201, await answer.text()
    given = f"traceparent: {SENT}"
    assert sent_traces(seen) == [[given, "tracestate: a=1,b=2"], [given], [], []]


VERSIONED: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v2",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
            for name in ("v1", "v2")
        ],
    },
}


async def test_conversion_webhooks_are_called_with_it() -> None:
    seen: list[bytes] = []
    async with (
        serving(answering(http(), seen)) as port,
        Server(Config(port=0)) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        webhook = {"clientConfig": {"url": f"http://127.0.0.1:{port}/x"}, "conversionReviewVersions": ["v1"]}
        spec = {**VERSIONED["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with session.post(definitions, json={**VERSIONED, "spec": spec}) as answer:
            assert answer.status == 201, await answer.text()
        widgets = "/apis/example.com/{}/namespaces/default/widgets"
        stored = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}}
        async with session.post(widgets.format("v2"), json=stored) as answer:
            assert answer.status == 201, await answer.text()
        for sent in ({"traceparent": SENT}, {}):
            for path in (widgets.format("v1"), widgets.format("v1") + "/a"):
                async with session.get(path, headers=sent) as answer:
                    assert answer.status == 500, await answer.text()
    assert sent_traces(seen) == [[f"traceparent: {SENT}"], [f"traceparent: {SENT}"], [], []]
