"""Small bodies that multiply with their schema: they neither block the loop nor occupy a thread for long.

(Hazards S1, S6.) The server of these tests allows a request less processor time than others do.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from noxu.registry import turns
from noxu.registry.offload import SLOTS
from noxu.registry.turns import THREADS, TOO_MUCH_WORK
from noxu.testing.handle import Noxu
from tests.hostile.loop_monitor import LoopMonitor
from tests.hostile.raw_http import JSON, Target, custom_resource, definition, path_of
from tests.timing import eventually

BLOCKED = 3 * 0.05  # seconds: three times the limit that is documented
TRIES = 5  # of which the best counts
SECONDS = 0.4  # of processor time that a request may take in a thread here
DROPS = path_of("drops")
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"

ALTERNATIVES = [{"minimum": 10 + n} for n in range(5_000)]
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "numbers": {"type": "array", "items": {"type": "integer", "anyOf": ALTERNATIVES}},
        "valid": {"type": "array", "items": {"type": "integer", "anyOf": [*ALTERNATIVES, {"minimum": 0}]}},
        "exclusive": {"type": "array", "items": {"type": "integer", "oneOf": ALTERNATIVES}},
        "all": {"type": "array", "items": {"type": "integer", "allOf": [{"minimum": -n} for n in range(5_000)]}},
        "lists": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": "integer"},
                "anyOf": [{"items": {"minimum": n}} for n in range(2_000)],
            },
        },
        "patterns": {
            "type": "array",
            "items": {"type": "string", "anyOf": [{"pattern": f"^(a|b)*c{{{n}}}$"} for n in range(1, 400)]},
        },
        "presence": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "anyOf": [{"required": [f"a{n}"]} for n in range(5_000)],
            },
        },
        "constants": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "enum": [{"a": n} for n in range(5_000)],
            },
        },
    },
}

SPECS: dict[str, dict[str, Any]] = {
    "integers against alternatives": {"numbers": [5] * 500},
    "valid integers": {"valid": [5] * 500},
    "exclusive alternatives": {"exclusive": [5] * 500},
    "everything must hold": {"all": [5] * 500},
    "lists against alternatives of their items": {"lists": [[0] * 200] * 10},
    "strings against patterns": {"patterns": ["abababababab"] * 400},
    "objects against required fields": {"presence": [{}] * 500},
    "objects against an enum": {"constants": [{"a": -1}] * 500},
}


def body(spec: object, name: str = "x") -> bytes:
    return json.dumps(custom_resource("Drop", name, spec), separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "MAX_THREAD_SECONDS", SECONDS)
        with Noxu(tmp_path_factory.mktemp("schema"), [definition("drops", SPEC), custom_resource("Drop", "p")]) as noxu:
            yield noxu


def longest_block(
    loop_monitor: LoopMonitor, target: Target, method: str, path: str, sent: bytes, media_type: str
) -> float:
    """The best of some tries: the first ones compile the schema."""
    blocked = []
    for _ in range(TRIES):
        loop_monitor.reset()
        reply = target.send(method, path, sent, {"Content-Type": media_type})
        assert reply.status in (200, 201, 422, 500, 504), reply.message
        blocked.append(loop_monitor.longest)
        if blocked[-1] < BLOCKED:
            break
    return min(blocked)


@pytest.mark.parametrize(
    ("spec", "how"),
    [*((spec, "create") for spec in SPECS), ("valid integers", "merge patch"), ("valid integers", "JSON patch")],
)
def test_a_small_body_against_a_large_schema_does_not_block_the_loop(
    target: Target, loop_monitor: LoopMonitor, spec: str, how: str
) -> None:
    if how == "create":
        sent = body(SPECS[spec])
        request = ("POST", f"{DROPS}?dryRun=All", sent, JSON)
    elif how == "merge patch":
        request = ("PATCH", f"{DROPS}/p?dryRun=All", json.dumps({"spec": SPECS[spec]}).encode(), MERGE)
    else:
        operations = [{"op": "add", "path": "/spec", "value": SPECS[spec]}]
        request = ("PATCH", f"{DROPS}/p?dryRun=All", json.dumps(operations).encode(), JSON_PATCH)
    assert len(request[2]) <= 16 * 1024
    assert longest_block(loop_monitor, target, *request) < BLOCKED


def test_defaults_of_a_definition_do_not_block_the_loop(target: Target, loop_monitor: LoopMonitor) -> None:
    numbers = {
        "type": "array",
        "items": {"type": "integer", "anyOf": [{"minimum": n} for n in range(10, 400)]},
        "default": [1] * 1_000,
    }
    crd = json.dumps(definition("bombs", {"type": "object", "properties": {"numbers": numbers}})).encode()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    assert longest_block(loop_monitor, target, "POST", path, crd, JSON) < BLOCKED


def defaulted(size: int) -> dict[str, Any]:
    """Widgets with a list of objects, whose field `a` has a default of this size."""
    items = {"type": "object", "properties": {"a": {"type": "string", **({"default": "x" * size} if size else {})}}}
    return {"type": "object", "properties": {"list": {"type": "array", "items": items}}}


def test_defaults_do_not_multiply_a_body(noxu: Noxu, target: Target, loop_monitor: LoopMonitor) -> None:
    noxu.apply(definition("large", defaulted(10_000)))
    sent = json.dumps(custom_resource("Large", "x", {"list": [{}] * 5_000}), separators=(",", ":")).encode()
    assert len(sent) <= 16 * 1024
    for _ in range(20):  # the first objects are left to the readable path
        reply = target.send("POST", path_of("large"), sent)
        assert (reply.status, reply.message) == (500, "etcdserver: request is too large")
    assert longest_block(loop_monitor, target, "POST", f"{path_of('large')}?dryRun=All", sent, JSON) < BLOCKED
    fits = json.dumps(custom_resource("Large", "x", {"list": [{}] * 100})).encode()
    assert len(target.send("POST", path_of("large"), fits).body) > 1_000_000


def test_a_default_that_is_added_later_does_not_multiply_a_stored_object(noxu: Noxu, target: Target) -> None:
    """What is too much is not filled in; the object can still be read and deleted."""
    noxu.apply(definition("later", defaulted(0)), custom_resource("Later", "x", {"list": [{}] * 5_000}))
    noxu.apply(definition("later", defaulted(10_000)))
    for path in (f"{path_of('later')}/x", path_of("later")):
        reply = target.send("GET", path)
        assert reply.status == 200
        assert 1_500_000 < len(reply.body) < 1_700_000
    assert target.send("DELETE", f"{path_of('later')}/x").status == 200


def patterns_of(*patterns: str) -> bytes:
    properties = {f"p{n}": {"type": "string", "pattern": pattern} for n, pattern in enumerate(patterns)}
    return json.dumps(definition("bombs", {"type": "object", "properties": properties})).encode()


PATTERNS = {
    "one that is too large": (["a{1000}" * 200], "expression too large"),
    "several that are too large together": (
        ["a{1000}" * 70 + f"b{{{n}}}" for n in range(8)],
        "a definition may have at most 500000",
    ),
    "several with repeated Unicode classes": ([f"\\pL{{90{n}}}\\pL{{900}}" for n in range(8)], None),
}


@pytest.mark.parametrize(("patterns", "error"), PATTERNS.values(), ids=PATTERNS)
def test_large_patterns_neither_block_the_loop_nor_stay_in_memory(
    target: Target, loop_monitor: LoopMonitor, patterns: list[str], error: str | None
) -> None:
    crd = patterns_of(*patterns)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    assert longest_block(loop_monitor, target, "POST", path, crd, JSON) < BLOCKED
    reply = target.send("POST", path, crd, {"Content-Type": JSON})
    assert reply.status == 201 if error is None else error in reply.message


def test_a_pattern_takes_bounded_memory() -> None:
    """What compiling takes at most, as the operating system reports it, in a process of its own."""
    code = (
        "import resource; from noxu.schema import patterns; patterns.size('a');"
        "usage = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; before = usage();"
        "[patterns.size('\\\\pL{40%d}' % n) for n in range(5)]; print(usage() - before)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(ran.stdout) < 100 * 1024  # KiB


def test_work_in_a_thread_ends(target: Target) -> None:
    """30,000 integers against 5,000 alternatives are 150 million checks."""
    began = time.process_time()
    reply = target.send("POST", f"{DROPS}?dryRun=All", body({"numbers": [5] * 30_000}))
    assert (reply.status, reply.json["reason"]) == (504, "Timeout")
    assert reply.message == f"Timeout: {TOO_MUCH_WORK.format(seconds=SECONDS)}"
    assert time.process_time() - began < 3 * SECONDS


def start_endless_work(target: Target) -> socket.socket:
    """The connection of a request that a thread is working on."""
    sent = body({"numbers": [5] * 30_000})
    head = f"POST {DROPS}?dryRun=All HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n\r\n"
    connection = target.connect()
    working = time.process_time()
    connection.sendall(head.encode() + sent)
    eventually(lambda: time.process_time() > working + 0.1)
    return connection


@pytest.mark.parametrize("count", [1, 3 * THREADS], ids=["one", "more than there are threads, or slots"])
def test_a_large_request_does_not_wait_for_others(target: Target, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Each of them is a client of its own, which takes turns with the others."""
    monkeypatch.setattr(turns, "MAX_THREAD_SECONDS", 1000.0)
    assert count == 1 or count > SLOTS
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(start_endless_work(target)) for _ in range(count)]
        large = body({"numbers": []}) + b" " * 20_000
        for _ in range(3):
            assert target.send("POST", f"{DROPS}?dryRun=All", large).status == 201
        assert select.select(slow, [], [], 0)[0] == []  # they are not answered yet
    eventually(_rests)


@pytest.mark.parametrize("leaves", ["the client leaves", "the server stops"])
def test_work_ends_with_its_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, leaves: str
) -> None:
    monkeypatch.setattr(turns, "MAX_THREAD_SECONDS", 1000.0)
    with Noxu(tmp_path_factory.mktemp("leaves"), [definition("drops", SPEC)]) as noxu:
        target = Target(noxu.url)
        connection = start_endless_work(target)
        if leaves == "the client leaves":
            connection.close()
        else:
            noxu.stop()
            connection.close()
        eventually(_rests)


def _rests() -> bool:
    """Whether this process uses little processor time."""
    before = time.process_time()
    time.sleep(0.05)
    return time.process_time() - before < 0.02
