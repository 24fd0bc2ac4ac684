"""Expressions over all libraries, evaluated on one object as the reference evaluates them.

`expressions.jsonl` holds the reference's results: why it refused an expression, or its type, value (or error), cost and
estimate. A generated rule must have the same result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.generation.codegen import FALLBACK_ERRORS
from noxu.cel.kubernetes import rules
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types.schema_types import decl_type
from noxu.cel.types.types import Type, display
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp, plain_float
from noxu.cel.values.values import ABSENT, LISTS, MAPS, Opaque, Optional, Value, from_json_or_failed
from noxu.go.text import quote
from noxu.schema.structural import parse
from noxu.values import Object
from tests.rows import rows

ROWS: Final[list[Object]] = [
    json.loads(line) for line in Path(__file__).with_name("expressions.jsonl").read_text().splitlines()
]
SHORT: Final = {"type": "string", "maxLength": 20}
LONG: Final = {"type": "string", "maxLength": 64}
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "s": LONG,
        "t": LONG,
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "l": {"type": "array", "items": SHORT, "maxItems": 10},
        "li": {"type": "array", "items": {"type": "integer"}, "maxItems": 10},
        "m": {"type": "object", "additionalProperties": SHORT, "maxProperties": 10},
        "dt": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "date"},
        "du": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte", "maxLength": 100},
        "ios": {"x-kubernetes-int-or-string": True},
        "o": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "string"}, "a-b": {"type": "string"}},
        },
        "lo": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": SHORT, "v": {"type": "integer"}}},
            "maxItems": 10,
        },
        "nul": {"type": "string", "nullable": True},
        "unk": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "string"}},
        },
        "emb": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "st": {"type": "array", "items": SHORT, "maxItems": 10, "x-kubernetes-list-type": "set"},
        "lm": {
            "type": "array",
            "items": {"type": "object", "properties": {"k": SHORT, "v": {"type": "integer"}}, "required": ["k"]},
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
    },
}
OBJECT: Final[Object] = {
    "s": "abc",
    "t": "Hello World",
    "i": 3,
    "j": 5,
    "n": 2.5,
    "b": True,
    "l": ["a", "b", "c"],
    "li": [1, 2, 3],
    "m": {"k1": "v1", "k2": "v2"},
    "dt": "2024-02-29T12:30:45Z",
    "d": "2024-02-29",
    "du": "1h30m",
    "by": "aGVsbG8=",
    "ios": 80,
    "o": {"x": 1, "y": "yy"},
    "lo": [{"name": "n1", "v": 1}, {"name": "n2", "v": 2}],
    "nul": None,
    "unk": {"known": "q", "other": 5},
    "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": 1}},
    "st": ["x", "y", "z"],
    "lm": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
}
STRUCTURAL: Final = parse(SCHEMA)
DECLARED: Final = decl_type(STRUCTURAL)


def evaluated(text: str) -> Object:
    """The row of an expression, with the results of this engine."""
    assert DECLARED is not None
    self_type = DECLARED.named("selfType1")
    try:
        program = Program(text, KUBERNETES.extend({"self": self_type, "oldSelf": self_type}))
    except CompileError as error:
        return {"expr": text, "refused": f"compilation failed: {error}"}
    try:
        program.instantiate()
    except InstantiationError as error:
        return {"expr": text, "refused": f"program instantiation failed: {error}"}
    outcome = program.evaluate({"self": from_json_or_failed(OBJECT, STRUCTURAL)})
    result = {"value": shown(outcome.value)} if outcome.error is None else {"error": outcome.error}
    estimate = list(program.estimate(DECLARED))
    return {"expr": text, "type": named(program.type), **result, "cost": outcome.cost, "estimate": estimate}


def named(kind: Type) -> str:
    """The name of a type, which error messages shorten."""
    if kind.params:
        return f"{kind.name}({', '.join(map(named, kind.params))})"
    return kind.name if not kind.nullable_wrapper else display(kind)


def shown(value: Value) -> str:
    """A value as an expression that evaluates to it."""
    match value:
        case None:
            return "null"
        case str():
            return quote(value)
        case bytes():
            return 'b"' + "".join(f"\\{one:03o}" for one in value) + '"'
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            return shown_double(value)
        case Duration():
            return f'duration("{value}")'
        case Timestamp():
            return f'timestamp("{Timestamp(value.seconds, value.nanos)}")'
        case Optional():
            return "optional.none()" if value.value is ABSENT else f"optional.of({shown(value.value)})"
        case Type():
            return value.name
        case Opaque():
            return str(value)
    if isinstance(value, LISTS):
        return f"[{', '.join(map(shown, value))}]"
    assert isinstance(value, MAPS), value
    return "{" + ", ".join(sorted(f"{shown(key)}: {shown(value.find(key))}" for key in value)) + "}"


def shown_double(value: float) -> str:
    if value != value:
        return 'double("NaN")'
    if abs(value) == float("inf"):
        return f'double("{"-" if value < 0 else ""}Infinity")'
    text = plain_float(value)
    return text if "." in text else f"{text}.0"


@pytest.mark.slow
@rows("row", ROWS, ids=[row["expr"][:60] for row in ROWS])
def test_expression(row: Object) -> None:
    assert evaluated(row["expr"]) == row


BOOLEAN: Final = [row for row in ROWS if row.get("type") == "bool"]


@rows("row", BOOLEAN, ids=[row["expr"][:60] for row in BOOLEAN])
def test_a_generated_rule_has_the_same_result(row: Object) -> None:
    assert DECLARED is not None
    program = rules.expression(row["expr"], DECLARED).program
    assert program is not None
    generated = program.generate(STRUCTURAL, old_self=True)
    if generated is None:
        return
    try:
        result = generated(OBJECT, None, PER_CALL_LIMIT, unexpected)
    except FALLBACK_ERRORS:
        return
    assert result == (row["cost"] if row["value"] == "true" else ~row["cost"])


def unexpected(cost: int) -> Any:
    raise AssertionError(cost)


def test_expressions_are_not_lost() -> None:
    assert len(ROWS) > 600
