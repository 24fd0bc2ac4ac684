"""Paths to fields: `.spec.name`, `.spec['a.b']`."""

from __future__ import annotations

import re

import pytest

from noxu.schema.fieldpath import resolve
from noxu.schema.structural import parse
from tests.rows import rows

SCHEMA = parse(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b.c": {"type": "integer"},
                    "it's": {"type": "number"},
                    "m": {"type": "object", "additionalProperties": {"type": "boolean"}},
                    "t": {"type": "object", "additionalProperties": True},
                },
            }
        },
    }
)

FOUND: list[tuple[str, str, str]] = [
    (".spec", "spec", "object"),
    (".spec.a", "spec.a", "string"),
    (".spec['a']", "spec.a", "string"),
    ("['spec']['b.c']", "spec.b.c", "integer"),
    (r".spec['it\'s']", "spec.it's", "number"),
    (".spec.m.x", "spec.m[x]", "boolean"),
    (".spec.m['a.b/c']", "spec.m[a.b/c]", "boolean"),
    ("", "", "object"),
]
NOWHERE = "does not refer to a valid field"
WRONG: list[tuple[str, str]] = [
    ("spec", "expected [ or . but got: spec"),
    (".", "unexpected end of JSON path"),
    (".spec.", "unexpected end of JSON path"),
    ("..a", NOWHERE),
    (".spec.b.c", NOWHERE),
    (".spec.a.b", NOWHERE),
    (".spec.t.x.y", NOWHERE),
    (".spec[", "unexpected end of JSON path"),
    (".spec[a]", "expected single quoted string but got a"),
    (".spec[0]", "expected single quoted string but got 0"),
    (".spec[']", "expected single quoted string but got ']"),
    (".spec['a'", "unexpected end of JSON path"),
    (".spec['a'.", "expected ] but got ."),
    (r".spec['\x\y']", r"invalid string literal: invalid escape char \y"),
    (".spec['a']b", "expected [ or . but got: b"),
]


@pytest.mark.parametrize(("json_path", "path", "type_"), FOUND)
def test_paths_that_lead_somewhere(json_path: str, path: str, type_: str) -> None:
    found = resolve(json_path, SCHEMA)
    assert found.path == path
    assert found.schema is not None
    assert found.schema.type == type_
    assert found.root == ("spec" if json_path else "")


@rows(("json_path", "why"), WRONG)
def test_paths_that_do_not(json_path: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        resolve(json_path, SCHEMA)


def test_values_of_any_kind_have_no_schema() -> None:
    assert resolve(".spec.t.x", SCHEMA).schema is None
    with pytest.raises(ValueError, match=NOWHERE):
        resolve(".a", None)


def test_brackets_may_be_refused() -> None:
    with pytest.raises(ValueError, match="array notation is not allowed"):
        resolve(".spec['a']", SCHEMA, brackets=False)
