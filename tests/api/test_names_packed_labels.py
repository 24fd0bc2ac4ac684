"""Packed labels: selectors match them as they match a dict, and nothing is lost."""

from __future__ import annotations

from sys import getsizeof
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noxu.api.names import MAX_PACKED, pack, text_of, unpack, value_after
from noxu.api.selectors import parse_labels

PACKED: Final[list[tuple[str, dict[str, str], str]]] = [
    ("none", {}, ""),
    ("one", {"app": "db"}, "\0app=db\0"),
    ("several, in their order", {"tier": "", "app": "db"}, "\0tier=\0app=db\0"),
    ("a prefixed name", {"example.com/app": "db"}, "\0example.com/app=db\0"),
]


@pytest.mark.parametrize(("labels", "packed"), [row[1:] for row in PACKED], ids=[row[0] for row in PACKED])
def test_the_text_of_labels(labels: dict[str, str], packed: str) -> None:
    assert pack(labels) == packed
    assert list(unpack(packed).items()) == list(labels.items())


NOT_PACKED: Final[list[tuple[str, dict[Any, Any]]]] = [
    ("an equals sign in a value", {"a": "b=c"}),
    ("an equals sign in a name", {"a=b": "c"}),
    ("a NUL in a value", {"a": "b\0c"}),
    ("a NUL in a name", {"a\0b": "c"}),
    ("what looks like another label", {"a": "b\0c=d"}),
    ("a number", {"a": 1}),
    ("null", {"a": None}),
    ("long labels", {"a": "b" * MAX_PACKED}),
]


@pytest.mark.parametrize("labels", [row[1] for row in NOT_PACKED], ids=[row[0] for row in NOT_PACKED])
def test_labels_that_are_not_packed_stay_what_they_are(labels: dict[str, str]) -> None:
    assert pack(labels) is labels
    assert unpack(labels) is labels


def test_the_value_of_a_label() -> None:
    packed = pack({"app": "db", "example.com/app": "web", "tier": ""})
    assert isinstance(packed, str)
    names = ("app", "example.com/app", "tier", "ap", "com/app", "db")
    assert [value_after(text_of(name), packed) for name in names] == ["db", "web", "", None, None, None]


def test_packed_labels_take_a_third_of_the_memory_of_a_dict() -> None:
    labels = {"app": "o-000001", "team": "blue"}
    values = sum(map(getsizeof, labels.values()))
    assert 3 * getsizeof(pack(labels)) < getsizeof(labels) + values


NAMES = st.sampled_from(["a", "b", "aa", "x/a", "a.b", "5"])
VALUES = st.sampled_from(["", "a", "b", "aa", "5", "-7", "a.b", "99999999999999999999"])
FOREIGN = st.text(st.sampled_from("ab=\0/"), max_size=4)
SELECTORS = st.sampled_from(
    ["a=a", "a==b", "a!=a", "a", "!a", "a in (a,b)", "a notin (a,b)", "a in (a,b,c,d,e,f,g,h,i)", "a notin (,5,aa,7,1,2,3,4,6)", "a in (aa)", "a notin ()", "a>4", "a<4", "x/a=", "aa!="]
)  # fmt: skip


@pytest.mark.slow
@given(
    st.dictionaries(NAMES | FOREIGN, VALUES | FOREIGN, max_size=4),
    st.lists(SELECTORS, min_size=1, max_size=3).map(",".join),
)
@example({"b": "x\0a=a"}, "a=a")
@example({"b=b": "x", "a": "a"}, "a=a")
@settings(deadline=None, max_examples=300)
def test_a_selector_matches_packed_labels_as_it_matches_a_dict(labels: dict[str, str], text: str) -> None:
    selector, packed = parse_labels(text), pack(labels)
    assert selector.matches(packed) is selector.matches(labels)
    assert selector.matches(labels) is all(each.matches(labels) for each in selector.requirements)
    assert list(unpack(packed).items()) == list(labels.items())
