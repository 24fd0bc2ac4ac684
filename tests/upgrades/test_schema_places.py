"""Places in schemas, and the fields of objects that they are about."""

from __future__ import annotations

import pytest

from noxu.schema.structural import parse
from noxu.upgrades.schema_places import node_at, place_of, requiring, version_index, with_version
from tests.rows import rows

AT = "spec.versions[1].schema.openAPIV3Schema"
PORT = f"{AT}.properties[spec].properties[ports].items.properties[port].maximum"
LABEL = f"{AT}.properties[spec].properties[labels].additionalProperties.enum"
ITEMS = f"{AT}.properties[items].properties[a.b].required[0]"


@rows(
    "path, field, keyword",
    [
        (AT, "", ""),
        (f"{AT}.x-kubernetes-validations[0].rule", "", "x-kubernetes-validations[0].rule"),
        (PORT, "spec.ports[*].port", "maximum"),
        (LABEL, "spec.labels[*]", "enum"),
        (ITEMS, "items.a.b", "required[0]"),
        (f"{AT}.properties[spec]", "spec", ""),
    ],
)
def test_a_place_has_a_field_and_a_keyword(path: str, field: str, keyword: str) -> None:
    place = place_of(path)
    assert place is not None
    assert (place.version, place.field, place.keyword) == (1, field, keyword)


def test_other_paths_are_no_places_in_a_schema() -> None:
    assert place_of("spec.versions[1].served") is None
    assert version_index("spec.versions[1].served") == 1
    assert version_index("spec.scope") is None
    assert with_version(PORT, 3) == PORT.replace("[1]", "[3]", 1)


@rows(
    "path, field, is_there",
    [
        (PORT, "spec.ports[0].port", True),
        (PORT, "spec.ports[12].port", True),
        (PORT, "spec.ports[0].portal", False),
        (PORT, "spec.ports[0]", False),
        (LABEL, "spec.labels.a", True),
        (LABEL, "spec.labels[a.b].c", True),
        (LABEL, "spec.labels", False),
        (ITEMS, "items.a.b", True),
        (ITEMS, "items[a.b]", True),
        (AT, "anything", True),
    ],
)
def test_fields_of_objects_are_at_a_place(path: str, field: str, is_there: bool) -> None:
    place = place_of(path)
    assert place is not None
    assert place.matches(field) is is_there


def test_a_narrower_schema_requires_what_is_on_the_way() -> None:
    ports = {
        "type": "array",
        "items": {"type": "object", "properties": {"port": {"type": "integer", "nullable": True}}},
    }
    schema = parse({"type": "object", "properties": {"spec": {"type": "object", "properties": {"ports": ports}}}})
    place = place_of(PORT)
    assert place is not None
    node = node_at(schema, place.steps)
    assert node is not None
    narrower = requiring(schema, place.steps, node)
    assert narrower.validation.required == ("spec",)
    spec = narrower.properties["spec"]
    assert spec.validation.required == ("ports",)
    assert spec.properties["ports"].validation.min_items == 1
    port = spec.properties["ports"].items
    assert port is not None
    assert port.validation.required == ("port",)
    assert not port.properties["port"].nullable
    assert schema.properties["spec"].validation.required == ()
    with pytest.raises(LookupError):
        requiring(schema, [*place.steps, place.steps[0]], node)
