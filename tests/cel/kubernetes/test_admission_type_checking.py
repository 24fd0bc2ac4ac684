"""Expressions of policies, checked with the types of the objects that the policy applies to."""

from __future__ import annotations

import pytest

from noxu.api.meta import OBJECT_META
from noxu.cel.kubernetes.admission import TypeChecker, object_type
from noxu.go import structs
from noxu.go.structs import Field, List, Map, Struct, Union
from noxu.schema.structural import parse
from tests.rows import rows

WIDGET = object_type(
    "Widget",
    schema=parse(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": True}},
                }
            },
        }
    ),
)
assert WIDGET is not None

ROWS = [
    ("a field", "object.spec.n > 1", ""),
    ("of the old object", "oldObject.spec.n > 1", ""),
    ("an unknown field", "object.spec.m > 1", "undefined field 'm'"),
    ("a field of another type", "object.spec.n == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
    ("an int-or-string", "object.spec.any == 'a'", ""),
    ("all metadata", "object.metadata.labels['a'] == 'b' && object.metadata.creationTimestamp > timestamp(0)", ""),
    ("the request", "request.operation == 'CREATE'", ""),
    ("an unknown field of the request", "request.nope", "undefined field 'nope'"),
    ("a variable", "variables.double > 1", ""),
    ("a variable of another type", "variables.double == 'a'", "'(int, string)'"),
    ("no params", "params.a == 1", "undeclared reference to 'params'"),
]  # fmt: skip


@rows(("text", "error"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_expression_is_checked(text: str, error: str) -> None:
    assert WIDGET is not None
    found = TypeChecker(WIDGET, [("double", "object.spec.n * 2")]).error(text)
    assert error in found
    assert bool(found) is bool(error)


def test_params_are_dyn_unless_their_type_is_known() -> None:
    assert WIDGET is not None
    assert TypeChecker(WIDGET, [], has_params=True).error("params.whatever == 1") == ""
    typed = TypeChecker(WIDGET, [], has_params=True, params_type=WIDGET)
    assert typed.error("params.spec.n == 1") == ""
    assert "undefined field 'whatever'" in typed.error("params.whatever == 1")


INNER = Struct("Inner").define(
    Field("when", structs.TIME), Field("raw", structs.JSON), Field("port", structs.INT_OR_STRING)
)
OUTER = Struct("Outer").define(
    Field("metadata", OBJECT_META),
    Field("names", List(structs.STRING)),
    Field("data", Map(structs.BYTES)),
    Field("inner", INNER),
    Field("choice", Union("Choice", {})),
)
BUILT_IN = [
    ("a list", "object.names[0] == 'a'", ""),
    ("a map", "object.data['a'] == b'a'", ""),
    ("metadata", "object.metadata.name == 'x'", ""),
    ("a time", "object.inner.when > timestamp(0)", ""),
    ("an int-or-string", "object.inner.port == 'http'", ""),
    ("a time is no text", "object.inner.when == 'a'", "'(timestamp, string)'"),
    ("JSON has no fields", "object.inner.raw.a == 1", "undefined field 'a'"),
    ("a type with a schema of its own is not known", "object.choice == 1", "undefined field 'choice'"),
]


@pytest.mark.parametrize(("text", "error"), [row[1:] for row in BUILT_IN], ids=[row[0] for row in BUILT_IN])
def test_an_expression_about_a_built_in_kind(text: str, error: str) -> None:
    outer = object_type("Outer", struct=OUTER)
    assert outer is not None
    found = TypeChecker(outer, []).error(text)
    assert error in found
    assert bool(found) is bool(error)


def test_a_struct_that_contains_itself_has_no_type() -> None:
    recursive = Struct("Recursive")
    recursive.define(Field("self", List(recursive)))
    assert object_type("Recursive", struct=recursive) is None


def test_a_kind_without_a_schema_has_no_type() -> None:
    assert object_type("Widget") is None
    assert object_type("Widget", schema=parse({"type": "array"})) is None
