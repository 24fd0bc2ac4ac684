"""A gzip that is put together from groups of pieces is one of the whole, and few groups are compressed after a change."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.discovery.openapi import GzipPieces


def entry(n: int, text: str = "The name of the object, which is unique in its namespace. ") -> bytes:
    return f'"com.example.v{n}":{{"description":"{text * 5}"}}'.encode()


def separated(*entries: bytes) -> list[bytes]:
    return [b"{", *b"|,|".join(entries).split(b"|"), b"}"]


MANY = separated(*map(entry, range(200)))

PIECES: dict[str, list[bytes]] = {
    "nothing": [],
    "an empty piece": [b""],
    "short pieces": [b"{", b'"a":1', b",", b'"b":2', b"}"],
    "many pieces": MANY,
    "the same piece again and again": [entry(1)] * 100,
    "large pieces": [b"abc" * 100_000, b",", bytes(range(256)) * 1_000, b"}"],
}  # fmt: skip


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_it_is_read_as_the_whole(pieces: list[bytes]) -> None:
    compressed = GzipPieces()
    for _ in range(2):
        assert gzip.decompress(compressed.of(pieces)) == b"".join(pieces)
        assert zlib.decompress(compressed.of(pieces), 31) == b"".join(pieces), "one member"


@given(st.lists(st.lists(st.one_of(st.binary(max_size=8), st.binary(min_size=100, max_size=300))), max_size=3))
def test_any_versions_of_a_document(versions: list[list[bytes]]) -> None:
    compressed = GzipPieces()
    for pieces in versions:
        assert zlib.decompress(compressed.of(pieces), 31) == b"".join(pieces)


CHANGES: dict[str, list[bytes]] = {
    "a new piece": separated(*map(entry, range(100)), entry(1000), *map(entry, range(100, 200))),
    "a changed piece": separated(*map(entry, range(100)), entry(100, "Other. "), *map(entry, range(101, 200))),
    "a piece less": separated(*map(entry, range(100)), *map(entry, range(101, 200))),
}  # fmt: skip


def groups_compressed(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """The pieces of each group that is compressed from now on."""
    groups: list[list[bytes]] = []
    new_compressor = zlib.compressobj

    class Recorded:
        def __init__(self, level: int, method: int, wbits: int) -> None:
            self._compressor = new_compressor(level, method, wbits)
            groups.append([])

        def compress(self, piece: bytes) -> bytes:
            groups[-1].append(piece)
            return self._compressor.compress(piece)

        def flush(self, mode: int) -> bytes:
            return self._compressor.flush(mode)

    monkeypatch.setattr(zlib, "compressobj", Recorded)
    return groups


@pytest.mark.parametrize("pieces", CHANGES.values(), ids=CHANGES)
def test_after_a_change_few_groups_are_compressed(pieces: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    compressed = GzipPieces()
    compressed.of(MANY)
    new = groups_compressed(monkeypatch)
    assert zlib.decompress(compressed.of(pieces), 31) == b"".join(pieces)
    assert 1 <= len(new) <= 2
    assert sum(map(len, new)) < len(pieces) / 2
    new.clear()
    compressed.of(pieces)
    assert new == []


def test_pieces_of_a_group_refer_to_each_other() -> None:
    single = sum(len(zlib.compress(piece, 1)) for piece in MANY)
    assert len(GzipPieces().of(MANY)) < single / 4
