"""Copies share nothing but scalars, whatever their size and depth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.api import values
from apiserver.api.values import copy, equal

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def containers(value: Any) -> list[Any]:
    found, todo = [], [value]
    while todo:
        one = todo.pop()
        if isinstance(one, (dict, list)):
            found.append(one)
            todo += one.values() if isinstance(one, dict) else one
    return found


@pytest.mark.parametrize("at_once", [values.AT_ONCE, 0], ids=["small", "in pieces"])
@given(value=JSON)
def test_a_copy_is_equal_and_shares_no_container(at_once: int, value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "AT_ONCE", at_once)
        copied = copy(value)
    assert equal(copied, value)
    assert [list(one) for one in containers(copied) if isinstance(one, dict)] == [
        list(one) for one in containers(value) if isinstance(one, dict)
    ]  # the order of keys, too
    assert not {id(one) for one in containers(copied)} & {id(one) for one in containers(value)}


def nested(levels: int) -> Any:
    value: Any = {}
    for n in range(levels):
        value = {"a": value} if n % 2 else [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        nested(9_999),
        [{"a": [n]} for n in range(50_000)],
        {f"k{n}": {} for n in range(50_000)},
        [],
        {},
        [[], {}, [[]], [{}]],
        2**70,
        [2**70],
        "text",
        None,
    ],
    ids=["deep", "a large list", "a large object", "[]", "{}", "empty ones", "big", "with a big one", "text", "null"],
)  # fmt: skip
def test_any_value_can_be_copied(value: Any) -> None:
    copied = copy(value)
    assert equal(copied, value)
    assert not {id(one) for one in containers(copied)} & {id(one) for one in containers(value)}
