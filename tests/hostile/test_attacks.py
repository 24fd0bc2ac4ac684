"""Expensive requests: each is answered in bounded processor time and does not block the event loop.

(Hazards S1, S6, S9, S11, S13, S14.) Times are processor time, the best of five tries; `LoopMonitor` does not count what
other processes do.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from noxu.api.codec import MAX_BODY
from noxu.registry.write.store import MAX_REQUEST
from noxu.testing.handle import Noxu
from tests.hostile.loop_monitor import TICK, LoopMonitor, longest_block
from tests.hostile.raw_http import JSON, YAML, Reply, Target, custom_resource, definition, parse_answer, path_of
from tests.timing import HANGS_AFTER

MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DROPS = path_of("drops")
BLOCKED = 0.05  # seconds for which the loop may be blocked, as promised for the machine that this was written on
ROOM = 3  # times a promised processor time: processors differ, and share caches with other programs
TRIES = 5  # of which the best counts
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ints": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array",
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "object": {"type": "object", "properties": {"a": {"type": "string"}}},
        "pattern": {"type": "string", "pattern": "^(a+)+$"},
        "defaulted": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(
        tmp_path_factory.mktemp("attacks"), [definition("drops", SPEC), custom_resource("Drop", "p", {"any": [1]})]
    ) as running:
        yield running


def body(spec: object, name: str = "x") -> bytes:
    return json.dumps(custom_resource("Drop", name, spec), separators=(",", ":")).encode()


def raw(spec: bytes) -> bytes:
    return body("SPEC").replace(b'"SPEC"', spec)


class Attack:
    """An expensive request. `make` returns its body, before anything is measured; `seconds` is what is promised for it."""

    def __init__(
        self, status: int, make: Callable[[], bytes], *, path: str = f"{DROPS}?dryRun=All", method: str = "POST",
        media_type: str = JSON, seconds: float = 2.0, accept: str = JSON,
    ) -> None:  # fmt: skip
        self.status, self.make, self.path, self.method, self.seconds = status, make, path, method, seconds
        self.headers = {"Content-Type": media_type, "Accept": accept}


def patch(make: Callable[[], bytes], media_type: str, status: int, **more: Any) -> Attack:
    path = f"{DROPS}/p?dryRun=All" + ("&fieldManager=m&force=true" if media_type == APPLY else "")
    return Attack(status, make, path=path, method="PATCH", media_type=media_type, **more)


def crd(make: Callable[[], Any], status: int = 201, **more: Any) -> Attack:
    path = f"{DEFINITIONS}?dryRun=All"
    return Attack(status, lambda: definition_with(make()), path=path, **more)


def definition_with(schema: object) -> bytes:
    """A definition with this schema of `spec`, or these bytes of one."""
    written = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return json.dumps(definition("bombs", "SCHEMA")).encode().replace(b'"SCHEMA"', written)


def many_copies() -> bytes:
    start = {"op": "add", "path": "/spec/any", "value": {"a": "x" * 100}}
    return json.dumps(
        [start, *({"op": "copy", "from": "/spec/any", "path": f"/spec/any/b{n}"} for n in range(40))]
    ).encode()


def nested(levels: int) -> bytes:
    """A schema that is too deep for the encoder of Python 3.12, whose limit cannot be raised."""
    return b'{"type": "object", "properties": {"a": ' * levels + b'{"type": "string"}' + b"}}" * levels


ATTACKS: dict[str, Attack] = {
    # S14: many errors, big sets
    "100,000 wrong items": Attack(422, lambda: body({"ints": ["a"] * 100_000}), seconds=1.0),
    "100,000 wrong items of a set": Attack(422, lambda: body({"set": [f"a{n}" for n in range(100_000)]}), seconds=1.0),
    "a set of 100,000": Attack(201, lambda: body({"set": list(range(100_000))}), seconds=1.0),
    "a set of 100,000 equal ones": Attack(422, lambda: body({"set": [1] * 100_000}), seconds=1.0),
    "a map of 20,000": Attack(201, lambda: body({"map": [{"k": str(n)} for n in range(20_000)]}), seconds=1.5),
    "60,000 items without their key": Attack(422, lambda: body({"map": [{}] * 60_000}), seconds=1.0),
    "100,000 unknown fields": Attack(201, lambda: body({"object": {f"u{n}": 1 for n in range(100_000)}})),
    "100,000 unknown fields, strictly": Attack(
        400, lambda: body({"object": {f"u{n}": 1 for n in range(100_000)}}), path=f"{DROPS}?fieldValidation=Strict"
    ),
    "60,000 bad labels": Attack(
        422, lambda: json.dumps(custom_resource("Drop", "x") | {"metadata": {"name": "x", "labels": {f"a!{n}": "b!" for n in range(60_000)}}}).encode()
    ),
    "60,000 bad finalizers": Attack(
        422, lambda: json.dumps(custom_resource("Drop", "x") | {"metadata": {"name": "x", "finalizers": [f"A!{n}" for n in range(60_000)]}}).encode()
    ),
    "60,000 empty owners": Attack(
        422, lambda: json.dumps(custom_resource("Drop", "x") | {"metadata": {"name": "x", "ownerReferences": [{}] * 60_000}}).encode()
    ),
    # S1, S5: many small things in a body
    "700,000 numbers": Attack(201, lambda: raw(b'{"any":[' + b"1," * 700_000 + b"1]}")),
    "480,000 empty objects": Attack(201, lambda: raw(b'{"any":[' + b"{}," * 480_000 + b"1]}")),
    "500,000 times the same key": Attack(201, lambda: raw(b'{"any":{' + b'"a":1,' * 500_000 + b'"a":1}}'), seconds=4.0),
    "200,000 objects to be defaulted": Attack(201, lambda: body({"defaulted": [{}] * 170_000})),
    "9,900 levels": Attack(201, lambda: raw(b'{"any":' * 1 + b'{"a":' * 9_900 + b"1" + b"}" * 9_901)),
    "10,001 levels": Attack(400, lambda: raw(b'{"any":' + b'{"a":' * 10_001 + b"1" + b"}" * 10_002)),
    "a flat list in YAML": Attack(
        201, lambda: b"apiVersion: hostile.example.com/v1\nkind: Drop\nmetadata: {name: x}\nspec:\n  any:\n" + b"  - a\n" * 330_000,
        media_type=YAML, seconds=6.0,
    ),
    # S11
    "a megabyte for a pattern": Attack(422, lambda: body({"pattern": "a" * 1_000_000 + "!"}), seconds=0.5),
    # S6: patches
    "10,000 operations": patch(lambda: json.dumps([{"op": "add", "path": "/spec/any/-", "value": 1}] * 10_000).encode(), JSON_PATCH, 200),
    "10,001 operations": patch(lambda: json.dumps([{"op": "add", "path": "/spec/any/-", "value": 1}] * 10_001).encode(), JSON_PATCH, 413, seconds=0.5),
    "10,000 insertions in front": patch(lambda: json.dumps([{"op": "add", "path": "/spec/any/0", "value": 1}] * 10_000).encode(), JSON_PATCH, 200),
    "copies of copies": patch(many_copies, JSON_PATCH, 422, seconds=0.2),
    "a wide merge patch": patch(lambda: json.dumps({"spec": {"any": {f"k{n}": {"a": 1} for n in range(40_000)}}}).encode(), MERGE, 200, seconds=4.0),
    "a wide apply": patch(lambda: body({"any": {f"k{n}": {"a": 1} for n in range(40_000)}}, "p"), APPLY, 200, seconds=4.0),
    # S13: schemas
    "20,000 properties": crd(lambda: {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, seconds=2.0),
    "20,000 wrong properties": crd(lambda: {"type": "object", "properties": {f"p{n}": {"type": "no"} for n in range(20_000)}}, 422, seconds=3.0),
    "10,000 alternatives": crd(lambda: {"type": "object", "properties": {"a": {"type": "integer", "anyOf": [{"minimum": n} for n in range(10_000)]}}}),
    "100,000 values": crd(lambda: {"type": "object", "properties": {"a": {"type": "string", "enum": [f"e{n}" for n in range(100_000)]}}}),
    "a large default": crd(lambda: {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}, "default": list(range(90_000))}}}),
    "400 levels of schema": crd(lambda: nested(400)),
    "3,000 levels of schema": crd(lambda: nested(3_000), 400),
    "a reference": crd(lambda: {"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}}, 422),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_expensive_request_is_answered_soon_and_does_not_block_the_loop(
    target: Target, loop_monitor: LoopMonitor, name: str
) -> None:
    attack = ATTACKS[name]
    sent = attack.make()
    assert len(sent) <= MAX_BODY
    longest = longest_block()
    blocked = took = 1e9
    for _ in range(TRIES):
        loop_monitor.reset()
        began = time.process_time()
        answer = target.send(attack.method, attack.path, sent, attack.headers)
        took, blocked = min(took, time.process_time() - began), min(blocked, loop_monitor.longest)
        assert answer.status == attack.status, answer.message[:500]
        if took < attack.seconds and blocked < BLOCKED:
            break
    assert took < ROOM * attack.seconds
    assert blocked < longest


@pytest.mark.parametrize("others", [0, 8])
def test_the_loop_monitor_notices_a_blocking_callback(noxu: Noxu, loop_monitor: LoopMonitor, others: int) -> None:
    """However many threads of this process wait for a processor meanwhile. They hash, for which they do not need the GIL."""
    done = threading.Event()
    data = bytes(10_000_000)

    def hash_() -> None:
        while not done.is_set():
            hashlib.sha256(data)

    async def block() -> float:
        """The longest block that was noticed."""
        loop_monitor.reset()
        end = time.thread_time() + 2 * BLOCKED
        while time.thread_time() < end:
            pass
        await asyncio.sleep(10 * TICK)
        return loop_monitor.longest

    threads = [threading.Thread(target=hash_) for _ in range(others)]
    for thread in threads:
        thread.start()
    try:
        assert asyncio.run_coroutine_threadsafe(block(), noxu._loop).result(HANGS_AFTER) > BLOCKED
    finally:
        done.set()
        for thread in threads:
            thread.join()


# -- S1: how large a body may be, to the byte


def chunked(data: bytes, size: int = 65_536) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("how", ["with its length", "in chunks"])
@pytest.mark.parametrize(
    ("method", "path", "media_type", "sent"),
    [
        ("POST", f"{DROPS}?dryRun=All", JSON, body({})),
        ("PUT", f"{DROPS}/p?dryRun=All", JSON, b"{}"),
        ("PATCH", f"{DROPS}/p?dryRun=All", MERGE, b"{}"),
        ("PATCH", f"{DROPS}/p?dryRun=All", JSON_PATCH, b"[]"),
        ("DELETE", f"{DROPS}/p?dryRun=All", JSON, b"{}"),
    ],
    ids=["create", "update", "merge patch", "JSON patch", "delete"],
)
def test_a_body_may_have_three_mebibytes(
    target: Target, how: str, method: str, path: str, media_type: str, sent: bytes
) -> None:
    def send(size: int) -> Reply:
        data = sent + b" " * (size - len(sent))
        return target.send(method, path, data if "length" in how else chunked(data), {"Content-Type": media_type})

    assert MAX_BODY == 3 * 1024 * 1024
    assert send(MAX_BODY).status != 413
    refused = send(MAX_BODY + 1)
    assert refused.status == 413
    assert refused.message == "Request entity too large: limit is 3145728"


def test_a_body_in_chunks_is_refused_before_all_of_it_has_arrived(target: Target) -> None:
    head = f"POST {DROPS} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in target.send_raw(head.encode() + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 49)


def test_a_content_length_that_is_too_large_is_refused_before_the_body_is_sent(target: Target) -> None:
    head = f"POST {DROPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    assert b" 413 " in target.send_raw(head.encode())


@pytest.mark.parametrize(("more", "status"), [(0, 201), (1, 500)], ids=["just fits", "a byte too much"])
def test_an_object_may_be_as_large_as_etcd_allows(target: Target, more: int, status: int) -> None:
    name = f"etcd{more}"
    small = target.send("POST", f"{DROPS}?dryRun=All", body({"any": ""}, name)).body
    key = f"/registry/apiextensions.kubernetes.io/hostile.example.com/drops/default/{name}"
    room = MAX_REQUEST - 41 - 2 * len(key) - (len(small) - 1)  # without the end of the line
    answer = target.send("POST", DROPS, body({"any": "x" * (room + more)}, name))
    assert answer.status == status
    if status == 500:
        assert answer.message == "etcdserver: request is too large"


# -- S9: text from clients does not reach headers and logs unescaped

FIELD_NAMES = {
    "the end of a line": "a\r\nX-Evil: 1",
    "only LF": "a\nX-Evil: 1",
    "quotes": 'a"b\\c',
    "a line separator": "a\u2028b\u2029",
    "a null": "a\x00b",
    "an escape sequence": "a\x1b[31m",
    "beyond ASCII": "é\u202e\U0001f600",
    "a lone surrogate": "\ud800",
    "long": "x" * 5_000,
}


@pytest.mark.parametrize("field", FIELD_NAMES)
@pytest.mark.parametrize("mode", ["Warn", "Strict"])
def test_the_name_of_a_field_adds_no_header_and_no_log_line(
    target: Target, caplog: pytest.LogCaptureFixture, field: str, mode: str
) -> None:
    sent = body({"object": {FIELD_NAMES[field]: 1}})
    head = f"POST {DROPS}?dryRun=All&fieldValidation={mode} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    received = target.send_raw(f"{head}Content-Type: {JSON}\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
    answer = parse_answer(received)
    assert answer.status == (201 if mode == "Warn" else 400)
    assert "X-Evil" not in answer.headers
    lines = received.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert all(b": " in line and not set(line) & set(range(0x20)) for line in lines[1:])
    assert sum(len(text) for text in answer.warnings) <= 4096 + 100
    answer.body.decode()
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_thousands_of_warnings_are_cut_at_four_kilobytes(target: Target) -> None:
    answer = target.send("POST", f"{DROPS}?dryRun=All", body({"object": {f"unknown{n}": 1 for n in range(5_000)}}))
    assert answer.status == 201
    assert 3_000 < sum(len(text) for text in answer.warnings) < 4_096 + 20 * len(answer.warnings)


@pytest.mark.parametrize("header", ["Audit-Id", "User-Agent", "Accept", "Content-Type"])
@pytest.mark.parametrize("value", [b"a\xff\xfe", b'"\\', b"\t", b"x" * 9_000], ids=["bytes", "quotes", "a tab", "long"])
def test_a_strange_header_does_not_break_the_answer(target: Target, header: str, value: bytes) -> None:
    sent = body({}, "h")
    head = (
        f"POST {DROPS}?dryRun=All HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(sent)}\r\n"
    )
    received = target.send_raw(head.encode() + header.encode() + b": " + value + b"\r\n\r\n" + sent)
    answer = parse_answer(received)
    assert answer.status in (201, 400, 406, 415)
    assert all(b": " in line or line.endswith(b":") for line in received.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:])


# -- lists of large objects


@pytest.fixture(scope="module")
def crowded(noxu: Noxu) -> Noxu:
    noxu.apply(*(custom_resource("Drop", f"big{n}", {"any": ["x" * 10] * 60_000}) for n in range(8)))
    noxu.apply(*(custom_resource("Drop", f"small{n}", {"object": {"a": "x"}}) for n in range(1_500)))
    return noxu


LISTS = {
    "selected by thousands of labels": (f"{DROPS}?labelSelector={','.join(f'l{n}!%3Dv' for n in range(6_000))}", {}),
    "selected by thousands of values": (f"{DROPS}?labelSelector=a+notin+({','.join(f'v{n}' for n in range(6_000))})", {}),
    "JSON": (DROPS, {}),
    "a table": (DROPS, {"Accept": TABLE}),
    "YAML": (f"{DROPS}?limit=2", {"Accept": YAML}),
    "indented": (f"{DROPS}?pretty=1", {}),
    "compressed": (DROPS, {"Accept-Encoding": "gzip"}),
    "selected by label": (f"{DROPS}?labelSelector=a!%3Db", {}),
    "watched": (f"{DROPS}?watch=1&timeoutSeconds=1", {}),
    "watched as a table": (f"{DROPS}?watch=1&timeoutSeconds=1", {"Accept": TABLE}),
}  # fmt: skip


@pytest.mark.parametrize("selector", ["labelSelector", "fieldSelector"])
def test_the_length_of_a_selector_is_limited(target: Target, selector: str) -> None:
    fits = target.send("GET", f"{DROPS}?{selector}=metadata.name!%3D{chr(97) * (128 * 1024 - 20)}")
    assert fits.status in (200, 400)
    assert "too long: may" not in fits.message
    refused = target.send("GET", f"{DROPS}?{selector}=metadata.name!%3D{'a' * (128 * 1024)}")
    assert refused.status == 400
    assert refused.message == f"{selector}: too long: may not be more than 131072 characters"


@pytest.mark.parametrize("how", LISTS)
def test_a_list_of_large_objects_does_not_block_the_loop(
    crowded: Noxu, target: Target, loop_monitor: LoopMonitor, how: str
) -> None:
    path, headers = LISTS[how]
    longest = longest_block()
    blocked = 1e9
    for _ in range(TRIES):
        loop_monitor.reset()
        assert target.send("GET", path, headers=headers).status == 200
        blocked = min(blocked, loop_monitor.longest)
        if blocked < BLOCKED:
            break
    assert blocked < longest
