"""CBOR: what one encoder writes, every decoder reads. cbor2 is another implementation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noxu.api import codec
from noxu.go.cbor import CborError, Heads, read
from noxu.go.cbor_writer import diagnose, item, write
from noxu.registry.storage_form import as_cbor, as_json
from tests.optional import require_package

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    assert repr(read(write(value))) == repr(_in_order(value))


def _in_order(value: Any) -> Any:
    """With keys in the order in which they are written."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return {key: _in_order(value[key]) for key in keys}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_json_survives_being_stored_as_cbor(value: Any) -> None:
    text = codec.encode(value, sort_keys=True)
    assert as_json(as_cbor(value)) == text


@given(VALUES, st.booleans())
def test_what_cbor2_writes_is_read(value: Any, canonical: bool) -> None:
    require_package("cbor2")
    import cbor2

    assert repr(read(cbor2.dumps(value, canonical=canonical))) == repr(read(write(value)) if canonical else value)


@given(VALUES)
def test_cbor2_reads_what_is_written(value: Any) -> None:
    require_package("cbor2")
    import cbor2

    assert _with_texts(cbor2.loads(item(value))) == value


def _with_texts(value: Any) -> Any:
    """With text instead of bytes, as which upstream writes all strings."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_with_texts(key): _with_texts(item) for key, item in value.items()}
    return [_with_texts(item) for item in value] if isinstance(value, list) else value


PIECES = [
    bytes.fromhex(piece)
    for piece in [
        "00",
        "17",
        "18ff",
        "1b7fffffffffffffff",
        "20",
        "40",
        "4161",
        "6161",
        "61ff",
        "41ff",
        "80",
        "81",
        "82",
        "9f",
        "a0",
        "a1",
        "bf",
        "ff",
        "f4",
        "f6",
        "f7",
        "f93e00",
        "c0",
        "c1",
        "d6",
        "d9d9f7",
    ]
]
SEQUENCES = st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join)


@given(SEQUENCES)
def test_what_is_well_formed_can_be_skipped_and_written_down(data: bytes) -> None:
    try:
        read(data)
    except CborError:
        return
    heads = Heads(data)
    heads.skip()
    assert heads.position == len(data)
    assert diagnose(data)
