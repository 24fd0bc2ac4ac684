"""Values in, CBOR bytes out: those that upstream stores."""

from __future__ import annotations

from typing import Final

import pytest

from noxu.go.cbor import read
from noxu.go.cbor_writer import around_elements, item, watch_event, write
from noxu.values import Json
from tests.rows import rows

ITEMS: Final[list[tuple[Json, str]]] = [
    (0, "00"),
    (23, "17"),
    (24, "18 18"),
    (256, "19 0100"),
    (65536, "1a 00010000"),
    (2**32, "1b 0000000100000000"),
    (2**63 - 1, "1b 7fffffffffffffff"),
    (-1, "20"),
    (-(2**63), "3b 7fffffffffffffff"),
    (2**63, "fa 5f000000"),  # no int64
    (1.0, "f9 3c00"),
    (-0.0, "f9 8000"),
    (65504.0, "f9 7bff"),
    (100000.0, "fa 47c35000"),
    (1.1, "fb 3ff199999999999a"),
    (1e300, "fb 7e37e43c8800759c"),
    (False, "f4"),
    (True, "f5"),
    (None, "f6"),
    ("", "40"),
    ("ü", "42 c3bc"),
    ("a" * 24, "58 18" + "61" * 24),
    ("a" * 100, "58 64" + "61" * 100),
    ([], "80"),
    ([1, [2]], "82 01 81 02"),
    ({}, "a0"),
    ({"bb": 1, "c": 2, "a": 3, "": 4}, "a4 40 04 41 61 03 41 63 02 42 6262 01"),
    ({"a" * 70: {"b": []}}, "a1 58 46" + "61" * 70 + "a1 41 62 80"),
]


@rows(("value", "data"), ITEMS, ids=[str(value)[:20] for value, _ in ITEMS])
def test_items(value: Json, data: str) -> None:
    assert item(value) == bytes.fromhex(data)
    assert write(value) == b"\xd9\xd9\xf7" + bytes.fromhex(data)


@pytest.mark.slow
def test_depth_is_no_limit() -> None:
    deep: Json = 1
    for _ in range(20_000):
        deep = [deep]
    assert item(deep) == b"\x81" * 20_000 + b"\x01"


def test_events() -> None:
    assert read(watch_event("ADDED", write({"a": 1}))) == {"type": "ADDED", "object": {"a": 1}}


@pytest.mark.parametrize("value", [{"kind": "L", "items": [], "metadata": {}, "apiVersion": "v1"}, {}])
def test_elements_between_the_rest(value: Json) -> None:
    before, after = around_elements(value, "items", 2)
    assert before + item(1) + item({"a": 2}) + after == write({**value, "items": [1, {"a": 2}]})
