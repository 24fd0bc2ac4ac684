"""Measures what attacks cost the server: each named attack runs against a server in a process of its own.

    python -m benchmarks.attacks [NAME ...] [--scale FRACTION] [--seconds S]

Prints for each attack how long the event loop was blocked, how long another client waited at most for an answer, on a new
connection each time, the processor time of the server, how much its memory grew at most and when the attacker had left, the
statuses of the answers, and how many of the attacker's connections are still open at the end. The other client GETs an object,
where PROBES says nothing else. Attacks on the stop print the time from SIGTERM to the end of the process instead.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import gc
import json
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from noxu.config import Config
from noxu.garbage import OF_A_SERVER
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from tests.hostile.heads import HEADS
from tests.hostile.loop_monitor import LoopMonitor
from tests.hostile.raw_http import JSON, YAML, Target, custom_resource, definition, path_of
from tests.timing import cpu_seconds_of

ROOT: Final = Path(__file__).parents[1]
MEBIBYTE: Final = 1024 * 1024
MAPS: Final = "/api/v1/namespaces/default/configmaps"
DROPS: Final = path_of("drops")
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STEP: Final = 0.25  # seconds between two measurements of the memory


class Measured(NamedTuple):
    """A server in a process of its own. `longest_block` returns the seconds since the last call, and resets them."""

    target: Target
    process: subprocess.Popen[str]

    def longest_block(self) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def memory(self) -> int:
        """Resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0


async def serve() -> None:
    """The server's process: print the URL; for each line on stdin, print how long the loop was blocked since the last."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: lines.put_nowait(sys.stdin.readline()))
    async with Server(Config(port=0)) as server:
        gc.collect()
        gc.set_threshold(*OF_A_SERVER)
        gc.freeze()  # as `noxu serve` does
        monitor = LoopMonitor()
        running = asyncio.create_task(monitor.run())
        print(server.url, flush=True)
        while await lines.get():
            print(monitor.longest, flush=True)
            monitor.reset()
        running.cancel()


@contextlib.contextmanager
def measured_server() -> Iterator[Measured]:
    command = [sys.executable, "-m", "benchmarks.attacks", "--serve"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Measured(Target(process.stdout.readline().strip()), process)
        finally:
            process.kill()


# -- the attacks: each sends requests, and returns the connections that it leaves open ----------------------------------

Sockets = list[socket.socket]
Attack = Callable[[Measured, float], Sockets]


def _created(server: Measured, path: str, *values: dict[str, Any]) -> None:
    for value in values:
        reply = server.target.send("POST", path, json.dumps(value).encode())
        assert reply.status == 201, reply.message


def _connected(server: Measured, count: int, *requests: bytes) -> Sockets:
    """Connections that send requests, and do not read."""
    peers = []
    for n in range(count):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect((server.target.host, server.target.port))
        with contextlib.suppress(ConnectionError):  # disconnected meanwhile
            peer.sendall(requests[n % len(requests)])
        peers.append(peer)
    return peers


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _large(name: str) -> dict[str, Any]:
    return custom_resource("Drop", name, {"text": "x" * 1_400_000})


def readers_that_stall(server: Measured, scale: float) -> Sockets:
    """1,500 connections GET 1.4 MB and read nothing."""
    _created(server, DEFINITIONS, definition("drops"))
    _created(server, DROPS, _large("large"))
    return _connected(server, int(1500 * scale), _get(f"{DROPS}/large"))


def idle_connections(server: Measured, scale: float) -> Sockets:
    """10,000 connections, idle after a request."""
    return _connected(server, int(10_000 * scale), _get("/livez"))


def half_requests(server: Measured, scale: float) -> Sockets:
    """2,000 connections send 100 KB of a head, and no more."""
    return _connected(server, int(2_000 * scale), b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)


def readers_of_lists_that_stall(server: Measured, scale: float) -> Sockets:
    """400 connections list 28 MB, indented, and read nothing."""
    _created(server, DEFINITIONS, definition("drops"))
    _created(server, DROPS, *(_large(f"large{n}") for n in range(20)))
    return _connected(server, int(400 * scale), _get(f"{DROPS}?pretty=1"))


def readers_that_pipeline(server: Measured, scale: float) -> Sockets:
    """500 connections send 1,000 requests each, and read no answer."""
    return _connected(server, int(500 * scale), _get("/openapi/v3") * 1_000)


def _selector(seed: int) -> str:
    return ",".join(f"k{seed}-{n}" for n in range(12_000))[:98_000].rpartition(",")[0]


def watches_with_one_huge_selector(server: Measured, scale: float) -> Sockets:
    """200 watches with the same selector of 98 KB."""
    return _connected(server, int(200 * scale), _get(f"{MAPS}?watch=1&labelSelector={_selector(0)}"))


def watches_with_huge_selectors(server: Measured, scale: float) -> Sockets:
    """200 watches, each with its own selector of 98 KB."""
    requests = [_get(f"{MAPS}?watch=1&labelSelector={_selector(n)}") for n in range(200)]
    return _connected(server, int(200 * scale), *requests)


def any_of_times_integers(server: Measured, scale: float) -> Sockets:
    """500 integers against 5,000 alternatives."""
    numbers = {"type": "array", "items": {"type": "integer", "anyOf": [{"minimum": 10 + n} for n in range(5_000)]}}
    _created(server, DEFINITIONS, definition("drops", {"type": "object", "properties": {"numbers": numbers}}))
    body = json.dumps(custom_resource("Drop", "x", {"numbers": [5] * 500})).encode()
    return _posted(server, DROPS, body, int(8 * scale))


def depth_in_yaml(server: Measured, scale: float) -> Sockets:
    """3 MB of nested brackets in YAML."""
    _created(server, DEFINITIONS, definition("drops"))
    body = b"a: " + b"[" * 9_000 + b"1," * 1_500_000
    return _posted(server, DROPS, body, int(8 * scale), YAML)


def defaults(server: Measured, scale: float) -> Sockets:
    """5,000 objects, each with a default of 10 KB."""
    items = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 10_000}}}
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": items}}}
    _created(server, DEFINITIONS, definition("drops", schema))
    body = json.dumps(custom_resource("Drop", "x", {"list": [{}] * 5_000})).encode()
    return _posted(server, DROPS, body, int(20 * scale))


def repeated_classes(server: Measured, scale: float) -> Sockets:
    """Definitions with patterns that repeat Unicode classes."""
    return _patterns(server, scale, [f"\\pL{{90{n}}}\\pL{{900}}" for n in range(8)])


def patterns(server: Measured, scale: float) -> Sockets:
    """Definitions whose patterns are too large."""
    return _patterns(server, scale, ["a{1000}" * 70 + f"b{{{n}}}" for n in range(8)])


def _patterns(server: Measured, scale: float, found: list[str]) -> Sockets:
    properties = {f"p{n}": {"type": "string", "pattern": pattern} for n, pattern in enumerate(found)}
    body = json.dumps(definition("drops", {"type": "object", "properties": properties})).encode()
    return _posted(server, f"{DEFINITIONS}?dryRun=All", body, int(8 * scale))


def alternatives(server: Measured, scale: float) -> Sockets:
    """Six requests of 1.3 KB, each on a connection of its own, against 1,500 alternatives, again and again."""
    numbers = {"type": "array", "items": {"type": "integer", "anyOf": [{"minimum": 10 + n} for n in range(1_500)]}}
    schema = {"type": "object", "properties": {"numbers": numbers, "text": {"type": "string"}}}
    _created(server, DEFINITIONS, definition("drops", schema))
    body = json.dumps(custom_resource("Drop", "x", {"numbers": [5] * 400})).encode()
    return _posted(server, DROPS, body, int(6 * scale), times=20)


def medium_creates(server: Measured) -> None:
    """Create an object of 26 KB, and delete it."""
    body = json.dumps(custom_resource("Drop", "medium", {"text": "x" * 26_000})).encode()
    reply = server.target.send("POST", DROPS, body)
    assert reply.status == 201, reply.message
    server.target.send("DELETE", f"{DROPS}/medium")


def names_from_a_policy(server: Measured, scale: float) -> Sockets:
    """Applies that create an object, which a policy gives a name that exists."""
    _created(server, DEFINITIONS, definition("drops"))
    _created(server, DROPS, custom_resource("Drop", "other"))
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["drops"]}]
    renaming = {"expression": "[JSONPatch{op: 'add', path: '/metadata/name', value: 'other'}]"}
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": renaming}],
    }
    api = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
    _created(server, f"{policies}ies", {**api, "kind": "MutatingAdmissionPolicy", "spec": spec})
    _created(
        server, f"{policies}ybindings", {**api, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "p"}}
    )
    body = json.dumps(custom_resource("Drop", "mine")).encode()
    head = (
        f"PATCH {DROPS}/mine?fieldManager=m HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/apply-patch+yaml\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return _connected(server, int(100 * scale), head.encode() + body)


def watches_of_many_clients(server: Measured, scale: float) -> Sockets:
    """1,000 watches, each with its own selector of 3,000 requirements."""
    selectors = [",".join(f"k{n}-{one}" for one in range(3_000)) for n in range(int(1000 * scale))]
    return _connected(server, len(selectors), *(_get(f"{MAPS}?watch=1&labelSelector={text}") for text in selectors))


def watches_of_many_fields(server: Measured, scale: float) -> Sockets:
    """1,000 watches, each with its own selector of 3,000 fields."""
    selectors = [",".join(f"metadata.name!=k{n}-{one}" for one in range(3_000)) for n in range(int(1000 * scale))]
    return _connected(server, len(selectors), *(_get(f"{MAPS}?watch=1&fieldSelector={text}") for text in selectors))


def endless_trailers(server: Measured, scale: float) -> Sockets:
    """40 connections with a body in chunks whose trailers do not end."""
    _created(server, DEFINITIONS, definition("drops"))
    head = f"POST {DROPS} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n".encode()
    peers = _connected(server, int(40 * scale), head)
    piece = b"".join(b"X%d: %b\r\n" % (n, b"x" * 4_000) for n in range(4))
    for _ in range(500):
        for peer in peers:
            peer.settimeout(0.05)
            with contextlib.suppress(OSError):
                peer.sendall(piece)
    return peers


def empty_frames(server: Measured, scale: float) -> Sockets:
    """20 watches over WebSockets, whose clients send a megabyte of empty fragments of one message."""
    upgrade = (
        f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Origin: {server.target.origin}\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    peers = _connected(server, int(20 * scale), upgrade)
    for peer in peers:
        peer.settimeout(5)
        with contextlib.suppress(OSError):
            peer.recv(4096)
            peer.sendall(b"\x01\x80\x00\x00\x00\x00" + b"\x00\x80\x00\x00\x00\x00" * 170_000)
    return peers


def index_of_many_versions(server: Measured, scale: float) -> Sockets:
    """40 definitions with 150 versions each; the index of OpenAPI, again after each of them, and the other documents."""
    count = max(1, int(40 * scale))
    for n in range(count):
        versions = [
            {
                "name": f"v{number}",
                "served": True,
                "storage": number == 1,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
            for number in range(1, 151)
        ]
        value = definition(f"drops{n}s")
        value["spec"]["versions"] = versions
        _created(server, DEFINITIONS, value)
        server.target.send("GET", "/openapi/v3")
    documents = ("/openapi/v3", "/openapi/v2", "/apis", "/apis/hostile.example.com")
    return _connected(server, 8, *map(_get, documents))


def _posted(server: Measured, path: str, body: bytes, count: int, media_type: str = JSON, *, times: int = 1) -> Sockets:
    """Connections that POST the same body at the same time, and so often one after the other."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return _connected(server, max(1, count), (head.encode() + body) * times)


def long_heads(server: Measured, scale: float) -> Sockets:
    """Each head of the largest size once: those that have a long part, or one of many pieces."""
    made = [head.make() for head in HEADS.values()]
    return _connected(server, max(1, int(len(made) * scale)), *made)


# -- values of CEL, cells of tables, errors -----------------------------------------------------------------------------

POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
RULED: Final = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}},
}
SMALL: Final = {"text": "x" * 8_000, "list": list(range(1_000))}


def _grown(start: str, step: str, count: int) -> str:
    """An expression whose value grows `count` times, each time to `step` of the one before, `_`."""
    return f"[{start}]" + "".join(f".map(a{n}, {step.replace('_', f'a{n}')})" for n in range(count)) + "[0]"


def _ruled(server: Measured, scale: float, rule: str) -> Sockets:
    schema = {**RULED, "x-kubernetes-validations": [{"rule": rule}]}
    _created(server, DEFINITIONS, definition("drops", schema))
    body = json.dumps(custom_resource("Drop", "x", SMALL)).encode()
    return _posted(server, f"{DROPS}?dryRun=All", body, int(8 * scale))


def rule_that_doubles_lists(server: Measured, scale: float) -> Sockets:
    """A rule that adds a list to itself, 30 times."""
    return _ruled(server, scale, _grown("[1]", "_ + _", 30) + ".size() > 0")


def rule_that_shares_lists(server: Measured, scale: float) -> Sockets:
    """A rule that compares 2^30 numbers in shared lists."""
    shared = _grown("[1]", "[_, _]", 30)
    return _ruled(server, scale, f"{shared} == {shared}")


def _policed(server: Measured, scale: float, spec: dict[str, Any], kind: str = "ValidatingAdmissionPolicy") -> Sockets:
    """Objects under a policy for all custom resources."""
    _created(server, DEFINITIONS, definition("drops", RULED))
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["drops"]}]
    meta = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "p"}}
    actions = {"validationActions": ["Deny"]} if kind == "ValidatingAdmissionPolicy" else {}
    binding = {**meta, "kind": f"{kind}Binding", "spec": {"policyName": "p", **actions}}
    plural = "validatingadmissionpolicies" if kind == "ValidatingAdmissionPolicy" else "mutatingadmissionpolicies"
    spec = {"matchConstraints": {"resourceRules": rules}, **spec}
    _created(server, f"{POLICIES}/{plural}", {**meta, "spec": spec})
    _created(server, f"{POLICIES}/{plural.removesuffix('ies')}ybindings", binding)
    body = json.dumps(custom_resource("Drop", "x", SMALL)).encode()
    return _posted(server, f"{DROPS}?dryRun=All", body, int(8 * scale))


def _doubled(start: str) -> list[dict[str, str]]:
    later = [{"name": f"v{n}", "expression": f"variables.v{n - 1} + variables.v{n - 1}"} for n in range(1, 28)]
    return [{"name": "v0", "expression": start}, *later]


def variables_that_double_lists(server: Measured, scale: float) -> Sockets:
    """28 variables of a policy, each twice the one before: a list."""
    validations = [{"expression": "variables.v27.size() > 0"}]
    return _policed(server, scale, {"variables": _doubled("[1]"), "validations": validations})


def variables_that_double_texts(server: Measured, scale: float) -> Sockets:
    """28 variables of a policy, each twice the one before: a text of 100 characters."""
    validations = [{"expression": "variables.v27.size() > 0"}]
    return _policed(
        server, scale, {"variables": _doubled("object.spec.text.substring(0, 100)"), "validations": validations}
    )


def conditions_that_double_lists(server: Measured, scale: float) -> Sockets:
    """A match condition that adds a list to itself, 30 times."""
    condition = {"name": "c", "expression": _grown("[1]", "_ + _", 30) + ".size() > 0"}
    return _policed(server, scale, {"matchConditions": [condition], "validations": [{"expression": "true"}]})


def replacements(server: Measured, scale: float) -> Sockets:
    """Every character of a text is replaced by the text, twice."""
    variables = [
        {"name": "s", "expression": "object.spec.text"},
        {"name": "t", "expression": "variables.s.replace('', variables.s)"},
    ]
    validations = [{"expression": "variables.t.replace('', variables.s).size() > 0"}]
    return _policed(server, scale, {"variables": variables, "validations": validations})


def formatted_lists(server: Measured, scale: float) -> Sockets:
    """A format of lists that share lists: 2^28 numbers."""
    return _policed(
        server, scale, {"validations": [{"expression": f"'%s'.format([{_grown('[1]', '[_, _]', 28)}]).size() > 0"}]}
    )


def patch_of_a_list_of_itself(server: Measured, scale: float) -> Sockets:
    """A mutating policy that adds a list of lists: each of a thousand items becomes all of them."""
    expression = "[JSONPatch{op: 'add', path: '/spec/lists', value: object.spec.list.map(x, object.spec.list)}]"
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    spec = {"mutations": [mutation], "reinvocationPolicy": "Never"}
    return _policed(server, scale, spec, "MutatingAdmissionPolicy")


def columns_that_descend(server: Measured, scale: float) -> Sockets:
    """Tables of an object of 300 levels with 150 columns of ..a..a..a."""
    columns = [{"name": f"c{n}", "type": "string", "jsonPath": "..a..a..a"} for n in range(150)]
    made = definition("drops")
    made["spec"]["versions"][0]["additionalPrinterColumns"] = columns
    _created(server, DEFINITIONS, made)
    nested: Any = {}
    for _ in range(300):
        nested = {"a": nested}
    _created(server, DROPS, custom_resource("Drop", "x", nested))
    ask = f"GET {DROPS} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n\r\n"
    return _connected(server, int(8 * scale), ask.encode())


def missing_fields(server: Measured, scale: float) -> Sockets:
    """900 empty items of a list that is a map by 200 required keys: 180,000 errors."""
    keys = [f"k{n}" for n in range(200)]
    items = {"type": "object", "required": keys, "properties": {key: {"type": "string"} for key in keys}}
    listed = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    _created(server, DEFINITIONS, definition("drops", {"type": "object", "properties": {"list": listed}}))
    body = json.dumps(custom_resource("Drop", "x", {"list": [{}] * 900})).encode()
    return _posted(server, DROPS, body, int(20 * scale))


ATTACKS: Final[dict[str, Attack]] = {
    "long heads": long_heads,
    "idle connections": idle_connections,
    "half requests": half_requests,
    "readers that stall": readers_that_stall,
    "readers of lists that stall": readers_of_lists_that_stall,
    "readers that pipeline": readers_that_pipeline,
    "watches with one huge selector": watches_with_one_huge_selector,
    "watches with huge selectors": watches_with_huge_selectors,
    "anyOf × integers": any_of_times_integers,
    "YAML depth": depth_in_yaml,
    "defaults": defaults,
    "repeated classes": repeated_classes,
    "patterns": patterns,
    "alternatives": alternatives,
    "names from a policy": names_from_a_policy,
    "watches of many clients": watches_of_many_clients,
    "watches of many fields": watches_of_many_fields,
    "endless trailers": endless_trailers,
    "empty frames": empty_frames,
    "index of many versions": index_of_many_versions,
    "rule that doubles lists": rule_that_doubles_lists,
    "rule that shares lists": rule_that_shares_lists,
    "variables that double lists": variables_that_double_lists,
    "variables that double texts": variables_that_double_texts,
    "conditions that double lists": conditions_that_double_lists,
    "replacements": replacements,
    "formatted lists": formatted_lists,
    "patch of a list of itself": patch_of_a_list_of_itself,
    "columns that descend": columns_that_descend,
    "missing fields": missing_fields,
}


def _reads(server: Measured) -> None:
    """GET an object that does not exist."""
    server.target.send("GET", f"{MAPS}/none")


PROBES: Final[dict[str, Callable[[Measured], None]]] = {"alternatives": medium_creates}
"""What another client does meanwhile, by the attack."""


class Probe:
    """Another client, which sends one request after the other. `longest` are the seconds that one took at most."""

    def __init__(self, server: Measured, ask: Callable[[Measured], None]) -> None:
        self.longest = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server, ask))
        self._thread.start()

    def _run(self, server: Measured, ask: Callable[[Measured], None]) -> None:
        while not self._ends.wait(0.01):
            began = time.monotonic()
            try:
                ask(server)
            except AssertionError:
                continue  # what it needs does not exist yet
            self.longest = max(self.longest, time.monotonic() - began)

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()


def run_attack(name: str, scale: float, seconds: float) -> str:
    """Run one attack for so long; a line with what it cost the server."""
    with measured_server() as server:
        server.target.send("GET", MAPS)
        before, cpu = server.memory(), cpu_seconds_of(server.process.pid)
        server.longest_block()
        start = time.monotonic()
        probe = Probe(server, PROBES.get(name, _reads))
        peers = ATTACKS[name](server, scale)
        peak = server.memory()
        while time.monotonic() - start < seconds:
            time.sleep(STEP)
            peak = max(peak, server.memory())
        probe.stop()
        block, cpu = server.longest_block(), cpu_seconds_of(server.process.pid) - cpu
        statuses = collections.Counter(_status(peer) for peer in peers)
        still_open = sum(map(_is_open, peers))
        for peer in peers:
            peer.close()
        time.sleep(8 * STEP)
        after = server.memory()
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    return (
        f"{name:32} loop blocked {block * 1000:5.0f} ms   others wait {probe.longest * 1000:5.0f} ms   {cpu:5.1f} s CPU   "
        f"+{(peak - before) / MEBIBYTE:5.0f} MiB, then +{(after - before) / MEBIBYTE:.0f}   "
        f"{still_open:4} of {len(peers)} open   answers: {answers}"
    )


def _status(peer: socket.socket) -> str:
    """The status of the first answer."""
    peer.setblocking(False)
    try:
        head = peer.recv(64, socket.MSG_PEEK)
    except BlockingIOError:
        return "none"
    except OSError:
        return "reset"
    return head.split(b" ", 2)[1].decode() if head.startswith(b"HTTP/") else "closed"


def _is_open(peer: socket.socket) -> bool:
    """Whether the server has the connection still open: it has neither ended nor reset it."""
    poll = select.poll()
    poll.register(peer, select.POLLRDHUP)
    return not poll.poll(0)


# -- the stop -----------------------------------------------------------------------------------------------------------


def seconds_to_stop(requests: list[bytes], count: int, objects: int = 0) -> float:
    """From SIGTERM to the end of `noxu serve`, with connections that have sent these requests and read the answers."""
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        server = Measured(Target(found[0]), process)
        _created(server, DEFINITIONS, definition("drops"))
        _created(server, DROPS, *(custom_resource("Drop", f"a{n}", {"text": "x" * 2_000}) for n in range(objects)))
        peers = _connected(server, count, *requests)
        for peer in peers:
            peer.recv(65536)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait()
        return time.monotonic() - start


STOPS: Final[dict[str, Callable[[float], float]]] = {
    "stop": lambda _: seconds_to_stop([b""], 0),
    "stop, with idle connections": lambda scale: seconds_to_stop([_get("/livez")], int(1000 * scale)),
    "stop, with watches": lambda scale: seconds_to_stop([_get(f"{MAPS}?watch=1")], int(1000 * scale)),
    "stop, with a large heap": lambda scale: seconds_to_stop([b""], 0, int(10_000 * scale)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or: {', '.join([*ATTACKS, *STOPS])}")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of connections")
    parser.add_argument("--seconds", type=float, default=15.0, help="for which each attack is observed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
            runner.run(serve())
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in options.names or [*ATTACKS, *STOPS]:
        if name in STOPS:
            print(f"{name:32} {STOPS[name](options.scale):5.2f} s", flush=True)
        else:
            print(run_attack(name, options.scale, options.seconds), flush=True)


if __name__ == "__main__":
    main()
