"""CBOR as upstream's encoder writes it (see `go.cbor`): strings as byte strings, floats in the shortest form that keeps
their value, lengths definite, and keys in the bytewise order of their encoding, shorter ones first (RFC 8949, 4.2.1).

cbor2 writes numbers. Containers are written here, because cbor2 recurses: at 10,000 levels, which an object may have, the
process would end.

Upstream writes so what it stores; keys in answers are in any order. The object {"kind": "a", "n": [1.5]}:

    d9 d9 f7                tag 55799, before every document
    a2                      a map of two
       41 6e                   'n', before the longer key
       81                      an array of one
          f9 3e 00                1.5 in 16 bits
       44 6b 69 6e 64          'kind'
       41 61                   'a'
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import pack
from typing import Final

import cbor2

from noxu.go.cbor import ARRAY, BYTES, MAP, SELF_DESCRIBED
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

_MAX_CACHED: Final = 64  # bytes of a key that is cached


def write(value: Json) -> bytes:
    """The value as a document, with the tag of self-described CBOR."""
    return SELF_DESCRIBED + item(value)


def item(value: Json) -> bytes:
    """The value without a tag."""
    out: list[bytes] = []
    stack: list[Iterator[tuple[bytes, Json]]] = [iter([(b"", value)])]
    while stack:
        for key, part in stack[-1]:
            if key:
                out.append(key)
            kind = type(part)
            if kind is str:
                out.append(_string(part) if len(part) > _MAX_CACHED else _short(part))
            elif kind is dict:
                out.append(_head(MAP, len(part)))
                pairs = [(_short(k) if len(k) <= _MAX_CACHED else _string(k), v) for k, v in part.items()]
                pairs.sort(key=_first)
                stack.append(iter(pairs))
                break
            elif kind is list:
                out.append(_head(ARRAY, len(part)))
                stack.append(iter([(b"", element) for element in part]))
                break
            else:
                out.append(_scalar(part))
        else:
            stack.pop()
    return b"".join(out)


def watch_event(kind: str, body: bytes) -> bytes:
    """An event of a watch (RFC 8742: a sequence has nothing between its items) with a document as its object."""
    return b"%b\xa2\x44type%b\x46object%b" % (SELF_DESCRIBED, _short(kind), body)


def around_elements(value: Object, name: str, count: int) -> tuple[bytes, bytes]:
    """What comes before and after the elements of the array `name` of an object, in which it has `count` elements."""
    pairs = sorted([(_short(key), item(part)) for key, part in value.items() if key != name])
    own = _short(name)
    before = b"".join([key + part for key, part in pairs if key < own])
    after = b"".join([key + part for key, part in pairs if key > own])
    return b"".join([SELF_DESCRIBED, _head(MAP, len(pairs) + 1), before, own, _head(ARRAY, count)]), after


def _first(pair: tuple[bytes, Json]) -> bytes:
    return pair[0]


def _head(major: int, argument: int) -> bytes:
    first = major << 5
    if argument < 24:
        return bytes((first | argument,))
    if argument < 0x100:
        return bytes((first | 24, argument))
    if argument < 0x10000:
        return pack(">BH", first | 25, argument)
    if argument < 0x1_0000_0000:
        return pack(">BI", first | 26, argument)
    return pack(">BQ", first | 27, argument)


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return _head(BYTES, len(raw)) + raw


_short = lru_cache(maxsize=4096)(_string)


def _scalar(value: Json) -> bytes:
    """null, a boolean or a number. What is beyond int64 is a float; cbor2 finds the shortest one."""
    if not isinstance(value, int) or MIN_INT64 <= value <= MAX_INT64:
        return cbor2.dumps(value, canonical=True)
    return cbor2.dumps(float(value), canonical=True)
