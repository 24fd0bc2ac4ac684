"""Base64 as Go reads it (encoding/base64's StdEncoding): strict padding, line ends ignored, unused bits ignored."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Final

from noxu.expressions import expression

_WELL_FORMED: Final = expression(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS: Final = b"\r\n"


def encode(data: bytes) -> str:
    """StdEncoding, with padding."""
    return b64encode(data).decode("ascii")


def decode(text: str) -> bytes:
    """The decoded bytes. Raises ValueError with Go's message."""
    data = text.encode("utf-8", "surrogatepass")
    if not _WELL_FORMED.fullmatch(data):
        _find_error(data)
        data = data.translate(None, _LINE_ENDS)
    return b64decode(data)


def canonical(text: str) -> str:
    """The text decoded and encoded again. Raises ValueError with Go's message."""
    return encode(decode(text))


def decoded_length(canonical_text: str) -> int:
    """The number of bytes that a canonical text encodes."""
    return len(canonical_text) // 4 * 3 - canonical_text.count("=")


def _find_error(data: bytes) -> None:
    """Raise ValueError at the position that Go reports; return if line ends are the only irregularity."""
    filled = 0  # how many of a quantum's four characters have been read
    stop = len(data)
    for position, byte in enumerate(data):
        if byte in _LINE_ENDS:
            continue
        if byte not in _ALPHABET:
            stop = position
            break
        filled = (filled + 1) % 4
    if stop == len(data):
        if filled:
            raise _illegal(stop - filled)
        return
    if data[stop] != ord("=") or filled < 2:
        raise _illegal(stop)
    after = _skip_line_ends(data, stop + 1)
    if filled == 2:
        if after == len(data):
            raise _illegal(after)
        if data[after] != ord("="):
            raise _illegal(after - 1)
        after = _skip_line_ends(data, after + 1)
    if after < len(data):
        raise _illegal(after)


def _skip_line_ends(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in _LINE_ENDS:
        position += 1
    return position


def _illegal(position: int) -> ValueError:
    return ValueError(f"illegal base64 data at input byte {position}")
