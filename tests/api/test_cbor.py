"""Objects in CBOR bodies. tests/http/test_cbor.py has the errors that clients see, tests/go/test_cbor.py the bytes."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.api import cbor
from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from noxu.go.cbor_writer import write
from tests.rows import rows

WIDGET: Final = GroupVersionKind("example.com", "v1", "Widget")
UNRECOGNIZED: Final = "the object provided is unrecognized (must be of type Widget): "

OBJECTS: Final[list[tuple[str, Any, bool, Any]]] = [
    ("a custom resource", {"apiVersion": "g/v2", "kind": "B", "a": 1}, False, {"apiVersion": "g/v2", "kind": "B", "a": 1}),
    ("a built-in kind", {"a": 1}, True, {"a": 1, "apiVersion": "example.com/v1", "kind": "Widget"}),
    ("null is a built-in kind", None, True, {"apiVersion": "example.com/v1", "kind": "Widget"}),
    ("of a group of its own", {"apiVersion": "g/v2"}, True, {"apiVersion": "g/v2", "kind": "Widget"}),
    ("with too many slashes", {"apiVersion": "a/b/c"}, True, {"apiVersion": "example.com/v1", "kind": "Widget"}),
    (
        "a custom resource without a version",
        {"apiVersion": "g/", "kind": "B"},
        False,
        "B in version \"\" cannot be handled as a Widget: Object 'apiVersion' is missing in "
        "'55799({'kind': 'B', 'apiVersion': 'g/'})'",
    ),
    (
        "a built-in kind without a version",
        {"apiVersion": "g/"},
        True,
        "Widget in version \"\" cannot be handled as a Widget: Object 'apiVersion' is missing in '55799({'apiVersion': 'g/'})'",
    ),
    (
        "too many slashes lose the kind of a custom resource",
        {"apiVersion": "a/b/c", "kind": "B"},
        False,
        UNRECOGNIZED + "Object 'Kind' is missing in '55799({'kind': 'B', 'apiVersion': 'a/b/c'})' "
        "(d9d9f7a2446b696e6441424a61706956657273696f6e45612f622f63)",
    ),
    (
        "a kind that is no string is none",
        {"kind": 1},
        False,
        UNRECOGNIZED + "Object 'Kind' is missing in '55799({'kind': 1})' (d9d9f7a1446b696e6401)",
    ),
    (
        "an array",
        [],
        False,
        UNRECOGNIZED + "unable to determine group/version/kind: cbor: cannot unmarshal array into Go value of type "
        "v1.TypeMeta (cannot decode CBOR array to struct without toarray option) (d9d9f780)",
    ),
]  # fmt: skip


@rows(("sent", "typed", "expected"), [row[1:] for row in OBJECTS], ids=[row[0] for row in OBJECTS])
def test_objects(sent: Any, typed: bool, expected: Any) -> None:
    if not isinstance(expected, str):
        assert cbor.read_object(write(sent), WIDGET, typed=typed) == expected
        return
    with pytest.raises(ApiError) as raised:
        cbor.read_object(write(sent), WIDGET, typed=typed)
    assert (raised.value.code, raised.value.message) == (400, expected)


@pytest.mark.parametrize("read", [lambda body: cbor.read_object(body, WIDGET, typed=False), cbor.read_apply])
def test_bodies_have_a_maximum_size(read: Any) -> None:
    with pytest.raises(ApiError) as raised:
        read(b"\x00" * (MAX_BODY + 1))
    assert raised.value.code == 413


def test_the_error_of_a_value_names_the_kind_that_was_sent() -> None:
    body = write({"kind": "B", "longer": 0})[:-1] + b"\xf7"
    why = "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"
    for typed, kind in ((False, "B"), (True, "B")):
        with pytest.raises(ApiError) as raised:
            cbor.read_object(body, WIDGET, typed=typed)
        assert raised.value.message == f'{kind} in version "v1" cannot be handled as a Widget: {why}'


ELEMENTS: Final = [
    ({"a": 1, "b": 2}, "b", 1),
    ({"a": {"x": 1, "y": 2}, "b": 2}, "a.y", 1),
    ({"a": [{}, {"x": 1, "y": 2}]}, "a[1].y", 1),
    ({"a": [[{"x": 1}]]}, "a[0][0].x", 0),
    ({"a": 1, "a.b": {"c": 1, "d": 2}}, "a.b.d", 1),
]


@pytest.mark.parametrize(("value", "path", "index"), ELEMENTS)
def test_positions_of_keys(value: Any, path: str, index: int) -> None:
    assert cbor.element_index(value, path) == index
