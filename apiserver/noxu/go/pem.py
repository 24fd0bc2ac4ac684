"""PEM as Go reads it (encoding/pem): the blocks of a text.

A block begins and ends at the beginning of a line; a BEGIN without an END of its type is skipped, as is a block whose
content is not base64. All PEM whose content is judged is read here, and passed on as DER.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from noxu.go import base64 as go_base64

CERTIFICATE: Final = "CERTIFICATE"
REQUEST: Final = "CERTIFICATE REQUEST"
_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


class Block(NamedTuple):
    """A block with its content, and the position behind its last line."""

    type: str
    has_headers: bool
    content: bytes
    end: int


def blocks(text: bytes) -> Iterator[Block]:
    """The blocks of a text, in order. Takes time in proportion to the text."""
    position = 0
    while (block := _next(text, position)) is not None:
        yield block
        position = block.end


def certificates(bundle: bytes) -> Iterator[bytes]:
    """The certificates of a bundle, as DER; blocks with headers are none (CertPool.AppendCertsFromPEM)."""
    return (block.content for block in blocks(bundle) if block.type == CERTIFICATE and not block.has_headers)


def private_keys(text: bytes) -> Iterator[bytes]:
    """The private keys of a text, as DER, in any form; blocks with headers are encrypted ones."""
    return (block.content for block in blocks(text) if block.type.endswith("PRIVATE KEY") and not block.has_headers)


def _next(text: bytes, position: int) -> Block | None:
    """The first block from a position on. As Go, which looks for the first END, and for the last BEGIN before it."""
    while True:
        end = text.find(_END, position)
        if end < 0:
            return None
        begin, behind = text.rfind(_BEGIN, position, end), end + len(_END)
        if begin < 0 or (begin > position and text[begin - 1] != ord("\n")):
            position = behind
            continue
        kind, body = _line(text, begin + len(_BEGIN))
        if not kind.endswith(_DASHES):
            position = behind
            continue
        kind, has_headers = kind[: -len(_DASHES)], False
        while True:
            if body >= len(text):
                return None
            line, following = _line(text, body)
            if b":" not in line:
                break
            body, has_headers = following, True
        if has_headers and end < body:  # the headers took the line of the END
            if behind < body:
                return None
            position = behind
            continue
        content = _content(text, body, end) if _is_end(text, behind, kind) else None
        if content is not None:
            return Block(kind.decode("utf-8", "replace"), has_headers, content, _line(text, end + 1)[1])
        position = behind


def _line(text: bytes, start: int) -> tuple[bytes, int]:
    """(the line that begins at a position, without white space at its end, the position of the next line)."""
    end = text.find(b"\n", start)
    if end < 0:
        return text[start:].rstrip(b" \t"), len(text)
    return text[start:end].removesuffix(b"\r").rstrip(b" \t"), end + 1


def _is_end(text: bytes, start: int, kind: bytes) -> bool:
    """Whether the line of an END goes on with this type and nothing else."""
    return text.startswith(kind + _DASHES, start) and not _line(text, start + len(kind) + len(_DASHES))[0]


def _content(text: bytes, start: int, end: int) -> bytes | None:
    """The decoded lines, None if they are not base64."""
    try:
        return go_base64.decode(text[start : max(start, end)].translate(None, b" \t").decode("latin-1"))
    except ValueError:
        return None
