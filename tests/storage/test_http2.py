"""HTTP/2 of a client: the bytes it sends, and what it makes of those of a peer, in whatever pieces they come."""

from __future__ import annotations

from struct import pack

import pytest

pytest.importorskip("hpack", reason="package: hpack")

import hpack

from noxu_storage import http2
from noxu_storage.http2 import Connection, Data, Event, GoingAway, Headers, Ready, Reset, Terminated, frame
from noxu_storage.http2_headers import BlockDecoder, DecodingError, request_block

SETTINGS = frame(http2.SETTINGS, 0, 0)
OK_FIELDS = {b":status": b"200", b"content-type": b"application/grpc"}


def encoded(fields: dict[bytes, bytes]) -> bytes:
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    return bytes(encoder.encode(list(fields.items())))


HEAD, TRAILERS = encoded(OK_FIELDS), encoded({b"grpc-status": b"0"})
WHOLE = http2.END_HEADERS
LAST = http2.END_HEADERS | http2.END_STREAM


def connected(*settings: tuple[int, int]) -> Connection:
    """A connection after the first settings, with nothing to send."""
    connection = Connection()
    connection.take()
    payload = b"".join(pack(">HI", *setting) for setting in settings)
    assert connection.receive(frame(http2.SETTINGS, 0, 0, payload)) == [Ready()]
    assert connection.take() == frame(http2.SETTINGS, http2.ACK, 0)
    return connection


def sent(connection: Connection) -> list[tuple[int, int, int, bytes]]:
    """(Type, flags, stream, payload) of the frames that are sent."""
    data, found = connection.take() if connection.has_output() else b"", []
    while data:
        size = int.from_bytes(data[:3], "big")
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + size]))
        data = data[9 + size :]
    return found


def test_a_connection_begins_with_its_settings() -> None:
    greeting = Connection().take()
    assert greeting.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    settings = greeting[24 + 9 : 24 + 9 + 24]
    assert settings == pack(">HIHIHIHI", 1, 0, 2, 0, 4, 16 * 1024 * 1024, 6, 64 * 1024)
    assert greeting.endswith(frame(http2.WINDOW_UPDATE, 0, 0, pack(">I", 16 * 1024 * 1024 - 65_535)))


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 9, 10, 1_000])
def test_an_answer_in_pieces_is_the_same_answer(piece: int) -> None:
    connection = connected()
    assert connection.open(b"block", b"data", ends=True) == 1
    assert sent(connection) == [(1, 4, 1, b"block"), (0, 1, 1, b"data")]
    answer = (
        frame(http2.HEADERS, WHOLE, 1, HEAD)
        + frame(http2.PING, 0, 0, b"12345678")
        + frame(0xFA, 0, 1, b"of an unknown type")
        + frame(http2.DATA, http2.PADDED, 1, b"\x03payload\0\0\0")
        + frame(
            http2.HEADERS,
            http2.END_STREAM | http2.PADDED | http2.WITH_PRIORITY,
            1,
            b"\x01\0\0\0\0\x10" + TRAILERS[:1] + b"\0",
        )
        + frame(http2.CONTINUATION, 0, 1)
        + frame(http2.CONTINUATION, http2.END_HEADERS, 1, TRAILERS[1:])
    )
    events: list[Event] = []
    for start in range(0, len(answer), piece):
        events += connection.receive(answer[start : start + piece])
    assert events == [
        Headers(1, OK_FIELDS, False), Data(1, b"payload", False), Headers(1, {b"grpc-status": b"0"}, True),
    ]  # fmt: skip
    assert sent(connection) == [(http2.PING, http2.ACK, 0, b"12345678")]
    assert not connection.streams


# Flow control.


def test_data_waits_for_the_windows_of_the_peer() -> None:
    connection = connected((http2.INITIAL_WINDOW_SIZE, 10))
    for _ in range(2):
        connection.open(b"b", b"0123456789abcdef", ends=True)
    assert [(kind, flags, stream, len(data)) for kind, flags, stream, data in sent(connection)] == [
        (1, 4, 1, 1), (0, 0, 1, 10), (1, 4, 3, 1), (0, 0, 3, 10),
    ]  # fmt: skip
    connection.receive(frame(http2.WINDOW_UPDATE, 0, 3, pack(">I", 4)))
    assert sent(connection) == [(0, 0, 3, b"abcd")]
    connection.receive(frame(http2.SETTINGS, 0, 0, pack(">HI", http2.INITIAL_WINDOW_SIZE, 16)))
    assert sent(connection)[:2] == [(0, 1, 1, b"abcdef"), (0, 1, 3, b"ef")]


@pytest.mark.parametrize("size", [5, 20_000], ids=["a frame", "several frames"])
def test_a_request_without_data_ends_while_others_wait_for_a_window(size: int) -> None:
    connection = connected((http2.INITIAL_WINDOW_SIZE, 1_000_000))
    connection.open(b"b", bytes(100_000), ends=True)
    sent(connection)
    assert connection.open(bytes(size), b"", ends=True) == 3
    assert [bool(flags & http2.END_STREAM) for kind, flags, _, _ in sent(connection) if kind != http2.CONTINUATION][
        -1:
    ] == [True]


def test_a_smaller_initial_window_may_make_one_negative() -> None:
    connection = connected((http2.INITIAL_WINDOW_SIZE, 10))
    connection.open(b"b", b"0123456789ab", ends=True)
    sent(connection)
    connection.receive(frame(http2.SETTINGS, 0, 0, pack(">HI", http2.INITIAL_WINDOW_SIZE, 4)))
    connection.receive(frame(http2.WINDOW_UPDATE, 0, 1, pack(">I", 6)))
    assert sent(connection) == [(http2.SETTINGS, http2.ACK, 0, b"")]
    connection.receive(frame(http2.WINDOW_UPDATE, 0, 1, pack(">I", 1)))
    assert sent(connection) == [(0, 0, 1, b"a")]


def test_streams_take_turns_in_the_window_of_the_connection() -> None:
    connection = connected((http2.INITIAL_WINDOW_SIZE, 1_000_000))
    for _ in range(3):
        connection.open(b"b", bytes(65_535), ends=True)
    sent(connection)
    connection.receive(frame(http2.WINDOW_UPDATE, 0, 0, pack(">I", 3 * 16_384)))
    assert [(stream, len(data)) for kind, _, stream, data in sent(connection)] == [
        (3, 16_384),
        (5, 16_384),
        (3, 16_384),
    ]


def test_a_full_transport_holds_data_back() -> None:
    connection = connected()
    number = connection.open(b"b", b"first", ends=False)
    sent(connection)
    connection.block()
    assert not connection.has_room()
    connection.send(number, b"second")
    assert sent(connection) == []
    connection.unblock()
    assert sent(connection) == [(0, 0, 1, b"second")]


def test_the_window_of_a_stream_is_given_back_when_its_reader_has_taken_half_of_it() -> None:
    connection = connected()
    number = connection.open(b"b", b"", ends=False)
    sent(connection)
    connection.receive(frame(http2.HEADERS, WHOLE, number, HEAD))
    chunk = frame(http2.DATA, 0, number, bytes(16_384))
    for _ in range(1024):  # 16 MiB
        assert len(connection.receive(chunk)) == 1
    assert {stream for kind, _, stream, _ in sent(connection)} == {0}  # that of the connection is given back at once
    connection.taken(number, http2.WINDOW // 2 - 1)
    assert sent(connection) == []
    connection.taken(number, 1)
    assert sent(connection) == [(http2.WINDOW_UPDATE, 0, number, pack(">I", http2.WINDOW // 2))]


# Ends.


def test_streams_that_the_peer_has_not_seen_are_refused() -> None:
    connection = connected()
    for _ in range(3):
        connection.open(b"b", b"", ends=True)
    events = connection.receive(frame(http2.GOAWAY, 0, 0, pack(">II", 3, 2) + b"bye"))
    assert events == [Reset(5, http2.REFUSED_STREAM), GoingAway(2, "bye")]
    assert list(connection.streams) == [1, 3]
    assert not connection.has_room()


def test_no_more_streams_are_open_than_the_peer_permits() -> None:
    connection = connected((http2.MAX_CONCURRENT_STREAMS, 1))
    assert connection.has_room()
    connection.open(b"b", b"", ends=True)
    assert not connection.has_room()
    assert connection.receive(frame(http2.RST_STREAM, 0, 1, pack(">I", 7))) == [Reset(1, 7)]
    assert connection.has_room()


def test_what_arrives_for_a_stream_that_was_reset_is_dropped() -> None:
    connection = connected()
    connection.open(b"b", b"", ends=True)
    connection.reset(1)
    assert sent(connection)[-1] == (http2.RST_STREAM, 0, 1, pack(">I", http2.CANCEL))
    late = (
        frame(http2.HEADERS, WHOLE, 1, HEAD) + frame(http2.DATA, 0, 1, b"x") + frame(http2.RST_STREAM, 0, 1, bytes(4))
    )
    assert connection.receive(late) == []


def test_numbers_of_streams_are_used_once() -> None:
    connection = connected()
    connection._next = http2.LAST_STREAM
    assert connection.open(b"b", b"", ends=True) == http2.LAST_STREAM
    assert not connection.has_room()


# Violations.

OPENED = frame(http2.HEADERS, WHOLE, 1, HEAD)
VIOLATIONS = {
    "a frame that is too large": (http2.FRAME_SIZE_ERROR, b"\0\x40\x01\0\0\0\0\0\x01"),
    "settings that are incomplete": (http2.FRAME_SIZE_ERROR, frame(http2.SETTINGS, 0, 0, b"12345")),
    "settings of a stream": (http2.PROTOCOL_ERROR, frame(http2.SETTINGS, 0, 1)),
    "an initial window that is too large": (
        http2.FLOW_CONTROL_ERROR, frame(http2.SETTINGS, 0, 0, pack(">HI", http2.INITIAL_WINDOW_SIZE, 2**31)),
    ),
    "a window of the connection that is too large": (
        http2.FLOW_CONTROL_ERROR, frame(http2.WINDOW_UPDATE, 0, 0, pack(">I", 2**31 - 1)),
    ),
    "a window of a stream that is too large": (
        http2.FLOW_CONTROL_ERROR, frame(http2.WINDOW_UPDATE, 0, 1, pack(">I", 2**31 - 1)),
    ),
    "a window that does not grow": (http2.PROTOCOL_ERROR, frame(http2.WINDOW_UPDATE, 0, 0, bytes(4))),
    "a block that another frame interrupts": (
        http2.PROTOCOL_ERROR, frame(http2.HEADERS, 0, 1, HEAD) + frame(http2.PING, 0, 0, bytes(8)),
    ),
    "a block of another stream": (
        http2.PROTOCOL_ERROR, frame(http2.HEADERS, 0, 1, HEAD) + frame(http2.CONTINUATION, WHOLE, 3),
    ),
    "a block without an end": (
        http2.ENHANCE_YOUR_CALM, frame(http2.HEADERS, 0, 1, HEAD) + frame(http2.CONTINUATION, 0, 1, b"x" * 10_000) * 7,
    ),
    "empty continuations without an end": (
        http2.ENHANCE_YOUR_CALM, frame(http2.HEADERS, 0, 1, HEAD) + frame(http2.CONTINUATION, 0, 1) * 8_000,
    ),
    "a continuation of nothing": (http2.PROTOCOL_ERROR, frame(http2.CONTINUATION, WHOLE, 1)),
    "fields that refer to earlier ones": (http2.COMPRESSION_ERROR, frame(http2.HEADERS, WHOLE, 1, b"\xbe")),
    "a table that was not offered": (http2.COMPRESSION_ERROR, frame(http2.HEADERS, WHOLE, 1, b"\x3f\x01\x88")),
    "fields that become too large": (
        http2.COMPRESSION_ERROR, frame(http2.HEADERS, WHOLE, 1, b"\x88" * 2_000),
    ),
    "data before header fields": (http2.PROTOCOL_ERROR, frame(http2.DATA, 0, 1, b"x")),
    "data of a stream that was not opened": (http2.PROTOCOL_ERROR, frame(http2.DATA, 0, 3, b"x")),
    "header fields of a stream of the server": (http2.PROTOCOL_ERROR, frame(http2.HEADERS, WHOLE, 2, HEAD)),
    "padding that is longer than its frame": (
        http2.PROTOCOL_ERROR, OPENED + frame(http2.DATA, http2.PADDED, 1, b"\x05abc"),
    ),
    "more data than the window": (
        http2.FLOW_CONTROL_ERROR, OPENED + frame(http2.DATA, 0, 1, bytes(16_384)) * 1_025,
    ),
    "a push": (http2.PROTOCOL_ERROR, frame(http2.PUSH_PROMISE, WHOLE, 1, pack(">I", 2) + HEAD)),
    "a ping of another size": (http2.FRAME_SIZE_ERROR, frame(http2.PING, 0, 0, b"1")),
    "a reset of a stream that was not opened": (http2.PROTOCOL_ERROR, frame(http2.RST_STREAM, 0, 9, bytes(4))),
    "a GOAWAY that is incomplete": (http2.FRAME_SIZE_ERROR, frame(http2.GOAWAY, 0, 0, b"1")),
}  # fmt: skip


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_a_violation_ends_the_connection(kind: str) -> None:
    code, data = VIOLATIONS[kind]
    connection = connected()
    connection.open(b"b", b"", ends=False)
    connection.take()
    last = connection.receive(data)[-1]
    assert isinstance(last, Terminated)
    assert last.code == code
    assert (http2.GOAWAY, code) in [
        (type_, int.from_bytes(payload[4:8], "big")) for type_, _, _, payload in sent(connection)
    ]
    assert not connection.has_room()


def test_a_peer_that_does_not_begin_with_settings_does_not_speak_http2() -> None:
    for data in (b"HTTP/1.1 400 Bad Request\r\n\r\n", frame(http2.PING, 0, 0, bytes(8))):
        assert isinstance(Connection().receive(data)[-1], Terminated)


def test_answers_that_are_requested_and_not_read_end_the_connection() -> None:
    connection = connected()
    connection.block()
    events = connection.receive(frame(http2.PING, 0, 0, bytes(8)) * 1_001)
    assert [type(event) for event in events] == [Terminated]


# Blocks of header fields.


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 254, 255, 300, 20_000])
def test_another_implementation_decodes_the_block_of_a_request(size: int) -> None:
    block = request_block("http", "h:1", "/S/M", [("te", "trailers")], [("token", "x" * size)])
    assert [tuple(field) for field in hpack.Decoder().decode(block)] == [
        (":method", "POST"), (":scheme", "http"), (":authority", "h:1"), (":path", "/S/M"), ("te", "trailers"),
        ("token", "x" * size),
    ]  # fmt: skip


def test_a_block_means_the_same_whenever_it_comes() -> None:
    decoder = BlockDecoder(10_000)
    indexing = bytes(hpack.Encoder().encode([(b"a", b"1")]))  # adds to a table, whose size is 0
    for _ in range(2):
        assert decoder.decode(indexing) == {b"a": b"1"}
        assert decoder.decode(HEAD) == OK_FIELDS
        with pytest.raises(DecodingError):
            decoder.decode(b"\xbe")  # the newest field of the table


def test_remembered_blocks_are_bounded() -> None:
    decoder = BlockDecoder(10_000)
    for number in range(1_000):
        decoder.decode(encoded({b"n": b"%d" % number}))
    assert len(decoder._known) <= 64
