"""Keys in etcd: where they are, and that every key is found again."""

from __future__ import annotations

from threading import get_ident
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu_storage.etcd.layout import LOOP_LIMIT, PlainLayout, end_of, is_regular, stored, values_of
from noxu_storage.types import Key, Prefix

LAYOUT = PlainLayout("/p/")


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (Key("g/things", "default/", "a"), b"/p/g/things/default/a"),
        (Key("g/things", "", "a"), b"/p/g/things/a"),
        (Key("g/things", "", "a:b"), b"/p/g/things/a:b"),
        (Key("g/things", "default", "a"), b"/p/\1g%2Fthings/default/a"),
        (Key("g/things", "", "a/b"), b"/p/\1g%2Fthings//a%2Fb"),
        (Key("things", "", ""), b"/p/\1things//"),
        (Key("g/things", "", "a\0b"), b"/p/\1g%2Fthings//a%00b"),
    ],
)
def test_the_place_of_a_key(key: Key, place: bytes) -> None:
    assert LAYOUT.key(key) == place


texts = st.text(alphabet="ab/\0\1%é", max_size=4)


@given(st.builds(Key, texts | st.just("g/a"), texts | st.just("p/"), texts))
def test_every_key_is_found_again(key: Key) -> None:
    assert LAYOUT.key_of(LAYOUT.key(key)) == key


@given(st.lists(st.builds(Key, st.just("g/a"), st.sampled_from(["p/", "p-/", "q/"]), st.text("ab-.", min_size=1))))
def test_regular_keys_have_the_same_order(keys: list[Key]) -> None:
    assert all(map(is_regular, keys))
    assert sorted(keys) == sorted(keys, key=LAYOUT.key)


@pytest.mark.parametrize(
    ("prefix", "bounds"),
    [
        (Prefix("g/a", "p/"), (b"/p/g/a/p/", b"/p/g/a/p0")),
        (Prefix("g/a"), None),
        (Prefix("g/a", ""), None),
        (Prefix(None, "p/"), None),
        (Prefix("g", "p/"), None),
        (Prefix(), None),
    ],
)
def test_a_prefix_is_a_range_if_the_order_is_the_same(prefix: Prefix, bounds: tuple[bytes, bytes] | None) -> None:
    assert LAYOUT.range(prefix) == bounds


@pytest.mark.parametrize(("prefix", "end"), [(b"a/", b"a0"), (b"a\xff", b"b"), (b"\xff", b"\0"), (b"a\xfe", b"a\xff")])
def test_the_end_of_a_prefix(prefix: bytes, end: bytes) -> None:
    assert end_of(prefix) == end


@pytest.mark.parametrize(
    "key", [b"/p/a", b"/p/a/b", b"/p/a/b/c/d/e", b"/p/a//b", b"/p/a/b/", b"/p/\xff/a/b", b"/p/\1x"]
)
def test_other_keys_are_not_of_the_store(key: bytes) -> None:
    assert LAYOUT.key_of(key) is None


class Shouting(PlainLayout):
    """Values are in upper case in etcd. `threads` are those that have changed values."""

    def __init__(self) -> None:
        super().__init__("/p/")
        self.threads: list[int] = []

    def to_etcd(self, key: Key, value: bytes) -> bytes:
        self.threads.append(get_ident())
        return value.upper()

    def from_etcd(self, key: Key, value: bytes) -> bytes:
        self.threads.append(get_ident())
        return value.lower()

    def weight(self, key: Key, value: bytes) -> int:
        return len(value)


KEY = Key("g/things", "", "a")


@pytest.mark.parametrize("size", [10, LOOP_LIMIT + 1])
async def test_large_values_are_changed_in_a_thread(size: int) -> None:
    layout = Shouting()
    assert await stored(layout, KEY, b"a" * size) == b"A" * size
    items = [SimpleNamespace(key=b"/p/g/things/a", value=b"A" * size), SimpleNamespace(key=b"/p/other", value=b"B")]
    assert await values_of(layout, items) == [(KEY, b"a" * size), None]
    assert [thread == get_ident() for thread in layout.threads] == [size <= LOOP_LIMIT] * 2
