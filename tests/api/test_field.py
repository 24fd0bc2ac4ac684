"""Field errors as texts, and paths of fields."""

from __future__ import annotations

from noxu.api import field
from noxu.api.field import OMIT, FieldError, Verbatim, child, index, key
from tests.rows import rows

ERRORS: list[tuple[str, FieldError, str]] = [
    ("required", field.required("a"), "a: Required value"),
    ("required, with a detail", field.required("a", "why"), "a: Required value: why"),
    ("a string", field.invalid("a", 'x"', "why"), r'a: Invalid value: "x\"": why'),
    ("a number", field.invalid("a", 1.0, "why"), "a: Invalid value: 1: why"),
    ("a boolean", field.invalid("a", True, "why"), "a: Invalid value: true: why"),
    ("null", field.invalid("a", None, "why"), "a: Invalid value: null: why"),
    ("an object", field.invalid("a", {"b": [1, "<"]}, "why"), r'a: Invalid value: {"b":[1,"\u003c"]}: why'),
    ("text that is printed unchanged", field.invalid("a", Verbatim('{"B":1}'), "why"), 'a: Invalid value: {"B":1}: why'),
    ("no value", field.invalid("a", OMIT, "why"), "a: Invalid value: why"),
    ("a wrong type", field.type_invalid("a", "x", "why"), 'a: Invalid value: "x": why'),
    ("not supported", field.not_supported("a", "x", ["b", "a"]), 'a: Unsupported value: "x": supported values: "b", "a"'),
    ("nothing is supported", field.not_supported("a", "x", []), 'a: Unsupported value: "x"'),
    ("forbidden", field.forbidden("a", "why"), "a: Forbidden: why"),
    ("duplicate", field.duplicate("a", 1), "a: Duplicate value: 1"),
    ("too long", field.too_long("a", 5), "a: Too long: may not be more than 5 bytes"),
    ("longer than one byte", field.too_long("a", 1), "a: Too long: may not be more than 1 byte"),
    ("longer than a negative limit", field.too_long("a", -1), "a: Too long: value is too long"),
    ("too many", field.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
    ("more than one", field.too_many("a", 3, 1), "a: Too many: 3: must have at most 1 item"),
    ("more than a negative limit", field.too_many("a", 3, -1), "a: Too many: 3: has too many items"),
    ("internal", field.internal("a", "why"), "a: Internal error: why"),
    ("the root", field.required(""), "<nil>: Required value"),
]  # fmt: skip


@rows(("error", "text"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_a_field_error_as_text(error: FieldError, text: str) -> None:
    assert str(error) == text
    assert text.endswith(error.body)


def test_paths() -> None:
    assert child("", "spec") == "spec"
    assert child("spec", "a", "b") == "spec.a.b"
    assert index("spec.a", 3) == "spec.a[3]"
    assert key("metadata.labels", "a.b/c") == "metadata.labels[a.b/c]"


def test_an_empty_name_is_printed_as_an_index() -> None:
    assert field.child("spec", "") == "spec[]"
    assert field.child("", "", "a") == "[].a"
    assert field.child("spec", "a", "", "b") == "spec.a[].b"
