"""Numbers in definitions: the text of those that do not fit, limits beyond int64, and -0."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.conftest import Things, widgets
from tests.timing import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "numbers.example.com"
NAME = f"{CRDS}/widgets.{GROUP}"
FIELD = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties"
MERGE = "merge-patch+json"


def definition(schema: str) -> str:
    """A definition with the schema of a field as JSON text."""
    return json.dumps(widgets(GROUP, {"f": "@"})).replace('"@"', schema)


def cannot_unmarshal(number: str, field: str, go: str) -> str:
    return f"json: cannot unmarshal number {number} into Go struct field {FIELD}.{field} of type {go}"


LIMIT = f'widgets.{GROUP}" is invalid: spec.validation.openAPIV3Schema.properties[f].default: Invalid value: 1.5:  in body should be'
REFUSED: list[tuple[str, str, int, str]] = [
    ("a long fraction", '{"minItems": 100000000000000000000000.5}', 400, cannot_unmarshal("100000000000000000000000.5", "minItems", "int64")),
    ("a whole fraction", '{"maxLength": 1.0}', 400, cannot_unmarshal("1.0", "maxLength", "int64")),
    ("an integer beyond int64", '{"maxItems": 9223372036854775808}', 400, cannot_unmarshal("9223372036854775808", "maxItems", "int64")),
    ("beyond float64, as an integer", '{"minItems": 1e999}', 400, cannot_unmarshal("1e999", "minItems", "int64")),
    ("beyond float64, as a float64", '{"maximum": -1e999}', 400, cannot_unmarshal("-1e999", "maximum", "float64")),
    ("beyond float64, as a default", '{"default": [1e999]}', 400, "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ("a maximum of -0.0", '{"type": "number", "maximum": -0.0, "default": 1.5}', 422, f"{LIMIT} less than or equal to -0"),
    ("a maximum of -0", '{"type": "number", "maximum":-0, "default": 1.5}', 422, f"{LIMIT} less than or equal to -0"),
    ("an exclusive maximum of -0", '{"type": "number", "maximum": -0, "exclusiveMaximum": true, "default": 1.5}', 422, f"{LIMIT} less than -0"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_numbers_in_messages(things: Things, schema: str, code: int, message: str) -> None:
    answer = things.ask("POST", f"{CRDS}?dryRun=All", definition(schema))
    assert (answer.code, answer.message.endswith(message)) == (code, True), answer.message


ACCEPTED = [
    ("beyond float64, in an unknown field", '{"type": "string", "x": 1e999}'),
    ("-0 as an integer", '{"type": "string", "maxLength": -0}'),
    ("-0 as a default", '{"type": "integer", "default": -0, "minimum": 0}'),
]


@pytest.mark.parametrize("schema", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_unusual_numbers(things: Things, schema: str) -> None:
    answer = things.ask("POST", f"{CRDS}?dryRun=All", definition(schema))
    assert answer.code == 201, answer.message


@pytest.fixture
def numbers(things: Things) -> Iterator[Things]:
    assert things.ask("POST", CRDS, definition('{"type": "number"}')).code == 201
    yield things
    assert things.ask("DELETE", NAME).code == 200
    eventually(lambda: things.ask("GET", NAME).code == 404)


def patch(numbers: Things, maximum: str) -> Any:
    versions = json.loads(definition(json.dumps({"type": "number", "maximum": "@"})))["spec"]["versions"]
    answer = numbers.ask("PATCH", NAME, json.dumps({"spec": {"versions": versions}}).replace('"@"', maximum), MERGE)
    assert answer.code == 200, answer.message
    return answer.body


@pytest.mark.parametrize(
    "maximum", ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e20", "1e21", "1e300", "-0.0", "9007199254740993", "1.5"]
)  # fmt: skip
def test_the_same_limit_again_is_no_new_generation(numbers: Things, maximum: str) -> None:
    first, again = patch(numbers, maximum), patch(numbers, maximum)
    assert (first["metadata"]["generation"], again) == (2, first)


def test_a_stored_limit_of_minus_zero(numbers: Things) -> None:
    patch(numbers, "-0.0")
    numbers.ask("PATCH", NAME, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert b'"maximum":-0}' in numbers.exchange("GET", NAME)
    sent = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}, "f": 1.5}
    answer = numbers.ask("POST", f"/apis/{GROUP}/v1/widgets", sent)
    assert answer.message.endswith("f: Invalid value: 1.5: f in body should be less than or equal to -0")
