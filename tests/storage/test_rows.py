"""A row and its checksum, which detects every change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu_storage.rows import decode_text, intact, previous_state, row
from noxu_storage.types import Key, KeyValue
from tests.rows import rows

KEY = Key("example.com/things", "default/", "a")
WRITTEN = row(KEY, 7, 3, b'{"a": 1}')
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.builds(Key, TEXT, TEXT, TEXT), st.integers(2, 2**62), st.integers(0, 2**62), st.none() | st.binary())
def test_a_new_row_is_intact(key: Key, revision: int, previous: int, value: bytes | None) -> None:
    written = row(key, revision, previous, value)
    assert intact(written)
    assert written[:5] + written[6:] == (*key, revision, previous, value)


@rows(
    ("column", "value"),
    [
        (0, "example.com/thingt"), (1, "defaulu/"), (2, "b"), (2, ""), (3, 6), (4, 0), (5, WRITTEN[5] ^ 1),
        (6, b'{"a": 0}'), (6, b""), (6, None), (6, b'{"a": 1}\0'),
        (0, "example.com/thing\udcf3"), (2, None), (2, 97), (2, b"a"), (3, None), (4, 3.5), (5, None), (5, "x"),
        (6, '{"a": 1}'), (6, 1), (6, 1.5),
    ],
)  # fmt: skip
def test_every_change_of_a_row_is_detected(column: int, value: Any) -> None:
    changed: Any = (*WRITTEN[:column], value, *WRITTEN[column + 1 :])
    assert not intact(changed)


@given(st.integers(0, 8 * len(WRITTEN[6] or b"") - 1))
def test_every_flipped_bit_of_a_value_is_detected(bit: int) -> None:
    value = bytearray(WRITTEN[6] or b"")
    value[bit // 8] ^= 1 << bit % 8
    assert not intact((*WRITTEN[:6], bytes(value)))


def test_a_delete_is_not_an_empty_value() -> None:
    assert row(KEY, 7, 3, None)[5] != row(KEY, 7, 3, b"")[5]


@pytest.mark.parametrize("key", [Key("\ud800", "", ""), Key("", "\udc80", ""), Key("", "", "a\udfff")])
def test_a_key_that_cannot_be_encoded_is_refused(key: Key) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        row(key, 7, 3, b"")


@pytest.mark.parametrize("value", ["text", 1, [1]])
def test_a_value_that_is_not_bytes_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        row(KEY, 7, 3, value)


@pytest.mark.parametrize(
    ("previous", "row", "state"),
    [
        pytest.param(0, None, None, id="nothing was replaced"),
        pytest.param(7, WRITTEN, KeyValue(KEY, b'{"a": 1}', 7), id="the row of that revision"),
        pytest.param(7, None, KeyValue(KEY, b"", 7), id="a row that cannot be read"),
        pytest.param(7, (None,) * 7, KeyValue(KEY, b"", 7), id="a row that is missing"),
        pytest.param(7, (*WRITTEN[:6], b"x"), KeyValue(KEY, b"", 7), id="a corrupt row"),
        pytest.param(7, row(KEY._replace(name="b"), 7, 3, b"x"), KeyValue(KEY, b"", 7), id="a row of another key"),
        pytest.param(7, row(KEY, 7, 3, None), KeyValue(KEY, b"", 7), id="a delete cannot have been replaced"),
    ],
)
def test_the_previous_state_of_a_change(previous: int, row: Any, state: KeyValue | None) -> None:
    assert previous_state(KEY, previous, row) == state


def test_corrupt_text_can_be_decoded() -> None:
    assert decode_text(b"a\xff") == "a\udcff"
