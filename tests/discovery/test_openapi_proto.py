"""OpenAPI as protobuf. The expected bytes are gnostic's own, made from the same documents by its Go package."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from noxu.api import codec
from noxu.discovery import openapi_proto as proto
from noxu.go import protobuf

JsonObject = dict[str, Any]

SCHEMAS_V2: list[tuple[str, JsonObject, str]] = [
    (
        "a text",
        {
            "format": "uuid",
            "title": "T",
            "description": "é",
            "maxLength": 300,
            "minLength": 1,
            "pattern": "^a",
            "type": "string",
            "example": 7,
        },
        "0a03322e3012060a017412017642004a2f0a2d0a014112281204757569641a01542202c3a958ac0260016a025e61b201080a06737472696e67f201041202370a",
    ),
    (
        "a number",
        {
            "format": "int64",
            "multipleOf": 0.5,
            "maximum": 10,
            "exclusiveMaximum": True,
            "minimum": -2,
            "exclusiveMinimum": True,
            "enum": [1, 2.5, True],
            "type": "integer",
        },
        "0a03322e3012060a017412017642004a530a510a0141124c1205696e74363431000000000000e03f39000000000000244040014900000000000000c05001a201041202310aa201061204322e350aa201071205747275650ab201090a07696e7465676572",
    ),
    (
        "a list",
        {
            "maxItems": 3,
            "minItems": 1,
            "uniqueItems": True,
            "type": "array",
            "items": {"$ref": "#/definitions/A"},
            "x-n": True,
        },
        "0a03322e3012060a017412017642004a3f0a3d0a0141123870037801800101b201070a056172726179ba01130a110a0f232f646566696e6974696f6e732f41fa010e0a03782d6e12071205747275650a",
    ),
    (
        "a map",
        {
            "description": "",
            "maxProperties": 2,
            "minProperties": 1,
            "additionalProperties": {"type": "string"},
            "type": "object",
        },
        "0a03322e3012060a017412017642004a280a260a01411221880102900101aa010d0a0bb201080a06737472696e67b201080a066f626a656374",
    ),
    (
        "a closed map",
        {"additionalProperties": False, "type": "object"},
        "0a03322e3012060a017412017642004a170a150a01411210aa01021000b201080a066f626a656374",
    ),
    (
        "an open map",
        {"additionalProperties": True, "type": "object"},
        "0a03322e3012060a017412017642004a170a150a01411210aa01021001b201080a066f626a656374",
    ),
    (
        "an object",
        {
            "required": ["a", "b"],
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A", "description": "r"}, "b": {}},
            "externalDocs": {"description": "d", "url": "http://x"},
            "x-a": 1,
            "x-b": 2,
        },
        "0a03322e3012060a017412017642004a6b0a690a014112649a0101619a010162b201080a066f626a656374ca01220a190a016112140a0f232f646566696e6974696f6e732f412201720a050a01621200ea010d0a01641208687474703a2f2f78fa010b0a03782d6112041202310afa010b0a03782d6212041202320a",
    ),
    (
        "negative lengths",
        {"default": 0, "maxLength": -1},
        "0a03322e3012060a017412017642004a180a160a014112112a041202300a58ffffffffffffffffff01",
    ),
]

SCHEMAS_V3: list[tuple[str, JsonObject, str]] = [
    (
        "a text",
        {
            "example": 7,
            "title": "T",
            "maxLength": 300,
            "minLength": 1,
            "pattern": "^a",
            "type": "string",
            "default": "x",
            "description": "é",
            "format": "uuid",
        },
        "0a05332e302e3012060a017432017622002a3a0a380a360a014112310a2f3a041202370a4a015478ac028001018a01025e61ca0106737472696e678a02031a0178920202c3a99a020475756964",
    ),
    (
        "a number",
        {
            "nullable": True,
            "multipleOf": 0.5,
            "maximum": 10,
            "exclusiveMaximum": True,
            "minimum": -2,
            "exclusiveMinimum": True,
            "enum": [1, 2.5, True],
            "type": "integer",
            "default": 0,
            "format": "int64",
        },
        "0a05332e302e3012060a017432017622002a640a620a600a0141125b0a59080151000000000000e03f59000000000000244060016900000000000000c07001c201041202310ac201061204322e350ac201071205747275650aca0107696e74656765728a02090900000000000000009a0205696e743634",
    ),
    (
        "a false default",
        {"type": "boolean", "default": False},
        "0a05332e302e3012060a017432017622002a1a0a180a160a014112110a0fca0107626f6f6c65616e8a02021000",
    ),
    (
        "an object as default",
        {"type": "object", "default": {}},
        "0a05332e302e3012060a017432017622002a170a150a130a0141120e0a0cca01066f626a6563748a0200",
    ),
    (
        "a list",
        {
            "maxItems": 3,
            "minItems": 1,
            "uniqueItems": True,
            "type": "array",
            "items": {"$ref": "#/components/schemas/A"},
            "x-n": True,
        },
        "0a05332e302e3012060a017432017622002a4c0a4a0a480a014112430a41900103980101a00101ca01056172726179f2011c0a1a12180a16232f636f6d706f6e656e74732f736368656d61732f41a2020e0a03782d6e12071205747275650a",
    ),
    (
        "a map",
        {
            "maxProperties": 2,
            "minProperties": 1,
            "type": "object",
            "additionalProperties": {"$ref": "#/components/schemas/A"},
        },
        "0a05332e302e3012060a017432017622002a390a370a350a014112300a2ea80102b00101ca01066f626a65637482021c0a1a12180a16232f636f6d706f6e656e74732f736368656d61732f41",
    ),
    (
        "a closed map",
        {"type": "object", "additionalProperties": False},
        "0a05332e302e3012060a017432017622002a190a170a150a014112100a0eca01066f626a6563748202021000",
    ),
    (
        "an object",
        {
            "externalDocs": {"description": "d", "url": "http://x"},
            "required": ["a"],
            "type": "object",
            "properties": {"a": {"allOf": [{"$ref": "#/components/schemas/A"}], "description": "r"}, "b": {}},
            "x-a": 1,
        },
        "0a05332e302e3012060a017432017622002a6b0a690a670a014112620a60320d0a01641208687474703a2f2f78ba010161ca01066f626a656374fa01330a280a016112230a21d2011a12180a16232f636f6d706f6e656e74732f736368656d61732f41920201720a070a016212020a00a2020b0a03782d6112041202310a",
    ),
    (
        "alternatives",
        {
            "allOf": [{"minimum": 1}],
            "oneOf": [{"required": ["q"]}, {}],
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "not": {"maximum": 3},
        },
        "0a05332e302e3012060a017432017622002a500a4e0a4c0a014112470a45d2010b0a0969000000000000f03fda01060a04ba010171da01020a00e2010c0a0aca0107696e7465676572e2010b0a09ca0106737472696e67ea0109590000000000000840",
    ),
]

PATH_V2: JsonObject = {
    "get": {
        "tags": ["t"],
        "description": "d",
        "operationId": "o",
        "produces": ["p"],
        "consumes": ["c", "d"],
        "parameters": [
            {"$ref": "#/parameters/x"},
            {"required": True, "in": "path", "description": "d", "name": "name", "type": "string", "uniqueItems": True},
            {"in": "query", "name": "q", "type": "integer", "uniqueItems": True},
            {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/A"}},
        ],
        "responses": {
            "200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}},
            "401": {"description": "no"},
        },
        "schemes": ["https"],
        "x-k": 1,
    },
    "patch": {"operationId": "p", "responses": {"200": {"description": "OK"}}},
    "parameters": [{"$ref": "#/parameters/y"}],
}
PATH_V2_BYTES = "0a03322e3012060a0174120176428f02128c020a022f7012850212d8010a01741a01642a016f3201703a01633a0164421212100a0e232f706172616d65746572732f7842220a20121e221c08011204706174681a016422046e616d652a06737472696e67980101421c0a1a12181a16120571756572792201713207696e7465676572a0010142250a230a211204626f64791a04626f647920012a110a0f232f646566696e6974696f6e732f414a330a220a03323030121b0a190a024f4b12130a110a0f232f646566696e6974696f6e732f410a0d0a0334303112060a040a026e6f520568747470736a0b0a03782d6b12041202310a42142a01704a0f0a0d0a0332303012060a040a024f4b4a1212100a0e232f706172616d65746572732f794a00521d0a1b0a0178121612141a12120571756572792201783206737472696e67"

PATH_V3: JsonObject = {
    "get": {
        "tags": ["t"],
        "description": "d",
        "operationId": "o",
        "parameters": [
            {
                "name": "n",
                "in": "path",
                "description": "d",
                "required": True,
                "schema": {"uniqueItems": True, "type": "string"},
            }
        ],
        "requestBody": {
            "description": "b",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}},
            "required": True,
        },
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}},
            },
            "401": {"description": "no"},
        },
        "x-k": 1,
    },
    "delete": {"operationId": "p", "responses": {"200": {"description": "OK"}}},
    "parameters": [{"name": "q", "in": "query", "schema": {"type": "boolean"}}],
}
PATH_V3_BYTES = "0a05332e302e3012060a01743201762288020a85020a022f7012fe0122c9010a01741a01642a016f32200a1e0a016e1204706174681a01642001520e0a0ca00101ca0106737472696e673a3b0a390a016212320a300a106170706c69636174696f6e2f6a736f6e121c0a1a12180a16232f636f6d706f6e656e74732f736368656d61732f411801425212410a03323030123a0a380a024f4b1a320a300a106170706c69636174696f6e2f6a736f6e121c0a1a12180a16232f636f6d706f6e656e74732f736368656d61732f41120d0a0334303112060a040a026e6f6a0b0a03782d6b12041202310a3a142a0170420f120d0a0332303012060a040a024f4b6a1a0a180a017112057175657279520c0a0aca0107626f6f6c65616e2a020a00"


HEAD_V2: JsonObject = {"swagger": "2.0", "info": {"title": "t", "version": "v"}}
HEAD_V3: JsonObject = {"openapi": "3.0.0", "info": {"title": "t", "version": "v"}}
PARAMETERS: JsonObject = {"x": {"in": "query", "name": "x", "type": "string"}}


def document(
    writer: proto.ProtoWriter, head: JsonObject, *, path: JsonObject | None = None, schema: JsonObject | None = None
) -> bytes:
    """A document with the path /p, or with the definition A."""
    paths = [] if path is None else [writer.path_entry("/p", writer.path_item(path))]
    schemas = [] if schema is None else [writer.schema_entry("A", writer.schema(schema))]
    return b"".join(writer.document(head, paths, schemas))


@pytest.mark.parametrize(("case", "schema", "expected"), SCHEMAS_V2)
def test_a_document_of_v2_with_one_definition(case: str, schema: JsonObject, expected: str) -> None:
    assert document(proto.V2, HEAD_V2, schema=schema).hex() == expected


@pytest.mark.parametrize(("case", "schema", "expected"), SCHEMAS_V3)
def test_a_document_of_v3_with_one_schema(case: str, schema: JsonObject, expected: str) -> None:
    assert document(proto.V3, HEAD_V3, schema=schema).hex() == expected


def test_a_document_of_v2_with_one_path_and_its_parameters() -> None:
    head = HEAD_V2 | {"parameters": PARAMETERS}
    assert document(proto.V2, head, path=PATH_V2).hex() == PATH_V2_BYTES


def test_a_document_of_v3_with_one_path() -> None:
    assert document(proto.V3, HEAD_V3, path=PATH_V3).hex() == PATH_V3_BYTES


# -- untyped values ---------------------------------------------------------------------------------------------------


def fields(data: bytes) -> dict[int, list[bytes | int]]:
    """The fields of a message by number. Those with a length are left as bytes."""
    found: dict[int, list[bytes | int]] = {}
    pos = 0
    while pos < len(data):
        number, kind, pos = protobuf.read_tag(data, pos, len(data))
        value: bytes | int
        if kind == protobuf.BYTES:
            after, pos = protobuf.read_length(data, pos, len(data))
            value = data[pos:after]
            pos = after
        elif kind == protobuf.FIXED64:
            value, pos = data[pos : pos + 8], pos + 8
        else:
            value, pos = protobuf.read_varint(data, pos, len(data))
        found.setdefault(number, []).append(value)
    return found


def only(data: bytes, *numbers: int) -> bytes:
    """The one field at the end of a path of numbers."""
    for number in numbers:
        (value,) = fields(data)[number]
        assert isinstance(value, bytes)
        data = value
    return data


DEFAULT, EXAMPLE_V2, ENUM_V2, YAML = 5, 30, 20, 2


@pytest.mark.parametrize(
    ("case", "value", "text"),
    [
        ("a text", "a", "a"),
        ("an empty text", "", '""'),
        ("null", None, "null"),
        ("a whole float, as Go writes it", 1.0, "1"),
        ("an object in its order", {"b": [1, None], "a": {}}, "b:\n    - 1\n    - null\na: {}"),
        ("letters of all sorts", "é €😀", '"é €\\U0001F600"'),
        ("HTML", "a<&>", "a<&>"),
        ("a byte order mark", "\ufeff", '"\\uFEFF"'),
    ],
)
def test_untyped_values_are_yaml(case: str, value: Any, text: str) -> None:
    for keyword, number in (("default", DEFAULT), ("example", EXAMPLE_V2)):
        assert only(proto.V2.schema({keyword: value}), number, YAML).decode() == text + "\n"
    assert only(proto.V2.schema({"enum": [value]}), ENUM_V2, YAML).decode() == text + "\n"
    extension = only(proto.V2.schema({"x-e": value}), 31)
    assert only(extension, 1) == b"x-e"
    assert only(extension, 2, YAML).decode() == text + "\n"


def nested(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"a": end}
    return end


def test_values_that_indentation_would_multiply_are_json() -> None:
    text = only(proto.V2.schema({"default": nested(10, "é")}), DEFAULT, YAML).decode()
    assert text == "".join(f"{'    ' * n}a:\n" for n in range(10)).removesuffix("\n") + " é\n"
    text = only(proto.V2.schema({"default": nested(5_000, "é\x7f\ufeff")}), DEFAULT, YAML).decode()
    assert text == '{"a":' * 5_000 + '"é\\u007f\\ufeff"' + "}" * 5_000 + "\n"


@pytest.mark.parametrize(
    "value",
    [{f"k{n}": nested(30, n) for n in range(1_000)}, nested(9_000, [1, 2]), [nested(45, 1)] * 1_000],
    ids=["wide", "deep", "many"],
)
def test_untyped_values_have_a_bounded_size(value: Any) -> None:
    for schema in ({"default": value}, {"enum": list(value.values()) if isinstance(value, dict) else value}):
        assert len(proto.V2.schema(schema)) < 50 * len(codec.encode(value, sort_keys=False))


@pytest.mark.parametrize("style", [proto.V2, proto.V3])
@pytest.mark.parametrize(
    "schema",
    [
        {"title": "t", "type": "string", "format": "f", "description": "d", "minLength": 1, "maxLength": 2},
        {"x-b": 1, "type": "array", "items": {"x-a": 2, "description": "d"}, "default": [], "example": 1},
    ],
)
def test_fields_are_in_the_order_of_their_numbers(style: Any, schema: JsonObject) -> None:
    written = style.schema(schema)
    assert written == style.schema(dict(reversed(schema.items())))
    numbers = list(fields(written if style is proto.V2 else only(written, 1)))
    assert numbers == sorted(numbers)


def test_extensions_keep_their_order() -> None:
    assert proto.V2.schema({"x-b": 1, "x-a": 2}).index(b"x-b") < proto.V2.schema({"x-b": 1, "x-a": 2}).index(b"x-a")


def test_written_text_is_read_by_a_yaml_parser() -> None:
    for value in ("\x7f\x80\u2028\ufeff\U0001f600", {"a b": [1.5, True, None, "x: y # z"]}, [], {}, "- a", "007"):
        assert yaml.safe_load(only(proto.V2.schema({"default": value}), DEFAULT, YAML)) == value


def test_all_values_of_an_enum_are_written_in_order() -> None:
    values = fields(proto.V3.schema({"enum": ["b", "a", None]}))
    (schema,) = values[1]
    assert isinstance(schema, bytes)
    assert [only(value, YAML) for value in fields(schema)[24] if isinstance(value, bytes)] == [
        b"b\n",
        b"a\n",
        b"null\n",
    ]


# -- zeros ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": 0},
        {"maxLength": 0},
        {"nullable": False},
        {"uniqueItems": False},
        {"description": ""},
        {"required": []},
        {"enum": []},
        {"unknown": "keyword"},
    ],
)
def test_zeros_are_not_written(schema: JsonObject) -> None:
    assert proto.V2.schema(schema) == b""
    assert only(proto.V3.schema(schema), 1) == b""


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, {1: [bytes(8)]}), (False, {2: [0]}), ("", {3: [b""]}), ([], {}), ({"a": 1}, {}), (None, {})],
)
def test_a_default_of_v3_is_one_of_three_scalars_and_then_zeros_are_written(value: Any, expected: JsonObject) -> None:
    assert fields(only(proto.V3.schema({"default": value}), 1, 33)) == expected


def test_a_reference_of_v3_is_no_schema() -> None:
    assert fields(proto.V3.schema({"$ref": "#/x"})) == {2: [b"\x0a\x03#/x"]}


def test_names_may_be_empty_and_long() -> None:
    long = "n" * 20_000
    schema = only(proto.V2.schema({"properties": {long: {"type": "string"}}}), 25, 1)
    assert only(schema, 1) == long.encode()
    (empty,) = fields(only(proto.V2.schema({"properties": {"": {"title": "t"}}}), 25))[1]
    assert empty == b"\x12\x03\x1a\x01t"


def test_a_lone_surrogate_does_not_break_the_message() -> None:
    assert only(proto.V2.schema({"title": "a\ud800b"}), 3) == b"a?b"
