"""SPDY/3.1 as bytes: what a client's frames say, which are refused, and what the server sends."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import pytest

from noxu.http.spdy import (
    DICTIONARY,
    MAX_CONTROL,
    MAX_DATA,
    MAX_FRAMES,
    MAX_STREAMS,
    BrokenSpdy,
    Pinged,
    ServerSpdy,
    StreamOpened,
    data_frames,
    pong,
)
from tests.rows import rows


class ClientSpdy:
    """The frames of a client, whose headers are one compressed stream."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def compressed(self, block: bytes) -> bytes:
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def open(self, id_: int, **headers: str) -> bytes:
        return control(1, struct.pack("!IIH", id_, 0, 0) + self.compressed(block_of(headers)))

    def opened_as(self, id_: int, block: bytes) -> bytes:
        return control(1, struct.pack("!IIH", id_, 0, 0) + self.compressed(block))


def control(kind: int, payload: bytes, version: int = 3) -> bytes:
    return struct.pack("!HHI", 0x8000 | version, kind, len(payload)) + payload


def data(id_: int, content: bytes) -> bytes:
    return struct.pack("!II", id_, len(content)) + content


def block_of(headers: dict[str, str]) -> bytes:
    texts = [text.encode() for pair in headers.items() for text in pair]
    return len(headers).to_bytes(4, "big") + b"".join(len(text).to_bytes(4, "big") + text for text in texts)


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


CLIENT = ClientSpdy()
FRAMES = [
    CLIENT.open(1, streamtype="error", Version="v"),
    CLIENT.open(3, streamtype="stdin"),
    data(3, b"x" * 40),
    control(6, (7).to_bytes(4, "big")),
    control(8, (3).to_bytes(4, "big") + CLIENT.compressed(block_of({"a": "b"}))),
    control(9, bytes(8)),
    control(4, bytes(4)),
    CLIENT.open(5, streamtype="stdout"),
    control(3, bytes(8)),
    control(7, bytes(8)),
]
EVENTS = [
    StreamOpened(1, {"streamtype": "error", "version": "v"}),
    StreamOpened(3, {"streamtype": "stdin"}),
    Pinged(7),
    StreamOpened(5, {"streamtype": "stdout"}),
]


@rows("size", [1, 2, 3, 7, 8, 9, 64, 10_000])
def test_streams_open_however_their_bytes_arrive(size: int) -> None:
    server, sent = ServerSpdy(), b"".join(FRAMES)
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert [event for piece in pieces for event in server.feed(piece)] == EVENTS


Frames = Callable[[ClientSpdy], Sequence[bytes]]
REFUSED: list[tuple[str, Frames]] = [
    ("HTTP", lambda client: [b"\x80GET / HTTP/1.1\r\n\r\n"]),
    ("another version", lambda client: [control(6, bytes(4), version=2)]),
    ("a kind that there is not", lambda client: [control(5, b"")]),
    ("a reply of the client", lambda client: [control(2, bytes(4))]),
    ("a ping of another size", lambda client: [control(6, bytes(8))]),
    ("a window of another size", lambda client: [control(9, bytes(4))]),
    ("a large control frame", lambda client: [struct.pack("!HHI", 0x8003, 4, MAX_CONTROL + 1)]),
    ("a short stream", lambda client: [control(1, bytes(9))]),
    ("the server's stream", lambda client: [client.open(2)]),
    ("a stream twice", lambda client: [client.open(1), client.open(1)]),
    ("a stream that goes back", lambda client: [client.open(3), client.open(1)]),
    ("many streams", lambda client: [client.open(2 * n + 1) for n in range(MAX_STREAMS + 1)]),
    ("data before a stream", lambda client: [data(1, b"x")]),
    ("data of no stream", lambda client: [client.open(1), data(3, b"x")]),
    ("data of the server's stream", lambda client: [client.open(3), data(2, b"x")]),
    ("headers without compression", lambda client: [control(1, struct.pack("!IIH", 1, 0, 0) + block_of({"a": "b"}))]),
    ("headers that grow", lambda client: [client.opened_as(1, bytes(4) + b"x" * (MAX_CONTROL + 1))]),
    ("no number of headers", lambda client: [client.opened_as(1, b"\0\0")]),
    ("a large number of headers", lambda client: [client.opened_as(1, b"\xff\xff\xff\xff" + bytes(64))]),
    ("a name that is cut off", lambda client: [client.opened_as(1, b"\0\0\0\1\0\0\0\x09abcd")]),
    ("no value", lambda client: [client.opened_as(1, b"\0\0\0\1\0\0\0\4abcd")]),
    ("many frames at once", lambda client: [control(6, bytes(4)) * (MAX_FRAMES + 1)]),
]


@rows("frames", [frames for _, frames in REFUSED], ids=[name for name, _ in REFUSED])
def test_what_breaks_the_protocol_is_refused(frames: Frames) -> None:
    server = ServerSpdy()
    *before, last = frames(ClientSpdy())
    for frame in before:
        list(server.feed(frame))
    with pytest.raises(BrokenSpdy):
        list(server.feed(last))


def test_a_stream_of_data_is_not_kept() -> None:
    server = ServerSpdy()
    list(server.feed(ClientSpdy().open(1) + struct.pack("!II", 1, 0xFFFFFF)))
    for _ in range(255):
        assert list(server.feed(bytes(65536))) == []
        assert not server._bytes
    assert list(server.feed(bytes(65535) + control(6, bytes(4)))) == [Pinged(0)]


def test_replies_have_no_headers() -> None:
    server, inflate = ServerSpdy(), zlib.decompressobj(zdict=DICTIONARY)
    for id_ in (1, 3):
        reply = server.reply(id_)
        assert reply[:4] + reply[8:12] == bytes.fromhex("80030002") + id_.to_bytes(4, "big")
        assert int.from_bytes(reply[4:8], "big") == len(reply) - 8
        assert inflate.decompress(reply[12:]) == bytes(4)


@rows(
    "sent, expected",
    [
        (data_frames(1, b"hi"), ["00000001 01000002 6869"]),
        (data_frames(3, b""), ["00000003 01000000"]),
        ([pong(9)], ["80030006 00000004 00000009"]),
        ([ServerSpdy().goaway()], ["80030007 00000008 00000000 00000001"]),
    ],
)
def test_frames_of_the_server(sent: Sequence[bytes], expected: list[str]) -> None:
    assert [frame.hex() for frame in sent] == [text.replace(" ", "") for text in expected]


def test_much_data_is_sent_in_pieces_of_which_the_last_ends_the_stream() -> None:
    frames = data_frames(1, b"x" * (2 * MAX_DATA))
    assert [(len(frame), frame[4]) for frame in frames] == [(8 + MAX_DATA, 0), (8 + MAX_DATA, 1)]
