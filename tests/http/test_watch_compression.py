"""Watches that begin with all objects are compressed, if their client accepts it (upstream's gate WatchListCompression)."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from collections.abc import Iterator

import pytest

from noxu.testing.handle import Noxu
from tests.hostile.raw_http import Reply, Target

MAPS = "/api/v1/namespaces/default/configmaps"
ALL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
GZIP = {"Accept-Encoding": "deflate, gzip"}


@pytest.fixture(scope="module")
def target(noxu_session: Noxu) -> Target:
    found = Target(noxu_session.url)
    body = json.dumps({"metadata": {"name": "compressed", "labels": {"a": "compressed"}}, "data": {"a": "b" * 5000}})
    assert found.send("POST", MAPS, body.encode()).status in (201, 409)
    return found


def watched(target: Target, query: str, headers: dict[str, str] = GZIP) -> Reply:
    return target.send("GET", f"{MAPS}?watch=1&labelSelector=a%3Dcompressed&timeoutSeconds=1&{query}", headers=headers)


def types(text: bytes) -> list[str]:
    return [json.loads(line)["type"] for line in text.splitlines()]


COMPRESSED: list[tuple[str, str, dict[str, str], bool]] = [
    ("all objects and bookmarks", ALL, GZIP, True),
    ("the same, asked for in the old way", "allowWatchBookmarks=true", GZIP, True),
    ("all objects, and the end of them is not told", ALL.replace("allowWatchBookmarks=true", ""), GZIP, False),
    ("bookmarks, but not the objects", ALL.replace("sendInitialEvents=true", "sendInitialEvents=false"), GZIP, False),
    ("from a version on", "resourceVersion={newest}&allowWatchBookmarks=true", GZIP, False),
    ("without gzip", ALL, {}, False),
    ("gzip with a quality", ALL, {"Accept-Encoding": "gzip;q=1"}, False),
]


@pytest.mark.parametrize(
    ("query", "headers", "compressed"), [row[1:] for row in COMPRESSED], ids=[row[0] for row in COMPRESSED]
)
@pytest.mark.slow(every=6)
def test_a_watch_of(target: Target, query: str, headers: dict[str, str], compressed: bool) -> None:
    newest = target.send("GET", MAPS).json["metadata"]["resourceVersion"]  # older ones are compacted after a while
    reply = watched(target, query.replace("{newest}", newest), headers)
    assert reply.status == 200
    assert (reply.headers["Content-Encoding"], reply.headers["Vary"]) == (
        ("gzip", "Accept-Encoding") if compressed else (None, None)
    )
    text = gzip.decompress(reply.body) if compressed else reply.body
    assert set(types(text)) <= {"ADDED", "BOOKMARK"}
    assert len(reply.body) < 5000 or not compressed


def members(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The members as they arrive."""
    inflate = zlib.decompressobj(wbits=31)
    found = b""
    while data := answer.read1():
        while data:
            found += inflate.decompress(data)
            data = inflate.unused_data
            if inflate.eof:
                yield found
                inflate, found = zlib.decompressobj(wbits=31), b""


def plain_lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while line := answer.readline():
        yield line


def test_compressed_and_plain_streams_send_the_same_as_it_happens(target: Target) -> None:
    """What is sent at once is a member of its own, so the client can read it at once."""
    query = f"{MAPS}?watch=1&labelSelector=a%3Dlater&{ALL}&timeoutSeconds=60"
    peers = [http.client.HTTPConnection(target.host, target.port) for _ in range(2)]
    for peer, headers in zip(peers, (GZIP, {}), strict=True):
        peer.request("GET", query, headers=headers)
    streams = [read(peer.getresponse()) for read, peer in zip((members, plain_lines), peers, strict=True)]
    assert [types(next(stream)) for stream in streams] == [["BOOKMARK"], ["BOOKMARK"]]
    target.send("DELETE", f"{MAPS}/later")
    assert target.send("POST", MAPS, b'{"metadata":{"name":"later","labels":{"a":"later"}}}').status == 201
    found = [next(text for text in stream if types(text) != ["BOOKMARK"]) for stream in streams]
    assert found[0] == found[1]
    assert types(found[0]) == ["ADDED"]
    for peer in peers:
        peer.close()


def test_without_the_gate_no_watch_is_compressed() -> None:
    with Noxu(gates={"WatchListCompression": False}) as noxu:
        assert watched(Target(noxu.url), ALL).headers["Content-Encoding"] is None


# -- what else is as in 1.37 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "watch=1&timeoutSeconds=1&"])
def test_a_selector_of_shards_is_ignored_while_its_gate_is_off(target: Target, query: str) -> None:
    reply = target.send("GET", f"{MAPS}?{query}labelSelector=a%3Dcompressed&shardSelector=nonsense(")
    assert reply.status == 200
    assert b'"compressed"' in reply.body


def test_the_review_of_the_own_user_has_a_time_and_nothing_of_what_was_sent(target: Target) -> None:
    sent = b'{"metadata":{"name":"x","labels":{"a":"b"}}}'
    reply = target.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", sent)
    assert list(reply.json["metadata"]) == ["creationTimestamp"]
    other = target.send(
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", b'{"spec":{"namespace":"default"}}'
    )
    assert other.json["metadata"].get("creationTimestamp") is None


FLUSHED = b"\x00\x00\xff\xff"
"""The end of what a compressor flushes: an empty block (RFC 1951, 3.2.4)."""


def test_each_member_has_its_data_before_it_ends(target: Target) -> None:
    """Go's gzip.Reader returns data that comes with the end of a member only when the next member begins."""
    rest, members = watched(target, ALL).body, 0
    while rest:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        text = member.decompress(rest)
        packed, rest = rest[: len(rest) - len(member.unused_data)], member.unused_data
        flushed = zlib.decompressobj(zlib.MAX_WBITS | 16)
        assert flushed.decompress(packed[: packed.rindex(FLUSHED) + len(FLUSHED)]) == text
        assert not flushed.eof
        members += 1
    assert members > 1
