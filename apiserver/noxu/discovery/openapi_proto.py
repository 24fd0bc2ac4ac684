"""OpenAPI documents as protobuf: the messages of gnostic's openapi.v2 (which kubectl requests) and openapi.v3.

A message is a table: the field number and the encoding of each keyword. Keywords that are not in the table are extensions
(`x-…`). Messages follow gnostic, including its peculiarities:

- a map is a list of names and values; zero and empty values are not written;
- fields are in the order of their numbers, whatever the order of keywords;
- any value (in an enum, an extension) is YAML text, as go-yaml writes it;
- in v3 a default is a scalar, and any schema may be a reference.

Documents are assembled from parts: `ProtoWriter` encodes one schema or path item at a time, and assembles documents.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from noxu.api import codec
from noxu.go import yaml_writer
from noxu.go.protobuf import BYTES, FIXED64, VARINT, tag_bytes, varint_bytes
from noxu.values import Json, Object

Encode: TypeAlias = Callable[[Json], bytes]
"""A value as the bytes of its message."""
Write: TypeAlias = Callable[[Json], bytes]
"""A value as the bytes of a field: tag, length and message."""
Table: TypeAlias = dict[str, Write]

_64_BITS: Final = (1 << 64) - 1


# -- values -----------------------------------------------------------------------------------------------------------


def _utf8(value: Json) -> bytes:
    text: str = value
    return text.encode(errors="replace")


def _field(number: int, encode: Encode) -> Write:
    """A field that is a message or text."""
    tag = tag_bytes(number, BYTES)

    def write(value: Json) -> bytes:
        data = encode(value)
        return tag + varint_bytes(len(data)) + data

    return write


def _each(number: int, encode: Encode) -> Write:
    write = _field(number, encode)
    return lambda values: b"".join(map(write, values))


def _text(number: int) -> Write:
    write = _field(number, _utf8)
    return lambda value: write(value) if value else b""


def _texts(number: int) -> Write:
    return _each(number, _utf8)


def _flag(number: int) -> Write:
    written = tag_bytes(number, VARINT) + b"\x01"
    return lambda value: written if value else b""


def _integer(number: int) -> Write:
    tag = tag_bytes(number, VARINT)
    return lambda value: tag + varint_bytes(int(value) & _64_BITS) if value else b""


def _double(number: int) -> Write:
    tag = tag_bytes(number, FIXED64)
    return lambda value: tag + struct.pack("<d", value) if value else b""


_NAME: Final = _text(1)


def _named(number: int, encode: Encode) -> Write:
    """A map: a repeated message of name (1) and value (2)."""
    value_of = _field(2, encode)
    write = _field(number, lambda item: _NAME(item[0]) + value_of(item[1]))
    return lambda values: b"".join(map(write, values.items()))


def _inside(encode: Encode, number: int) -> Encode:
    """A message with one field."""
    return _field(number, encode)


def _message(table: Table, extensions: int = 0) -> Encode:
    """A message with the fields of a table; `extensions` is the field number of extensions, 0 if it has none.

    Go writes fields in the order of their numbers, which is the order of the table; extensions have the highest.
    """
    ranked = {keyword: (rank, write) for rank, (keyword, write) in enumerate(table.items())}
    extension = _named(extensions, _any)
    last = len(ranked)

    def encode(value: Json) -> bytes:
        fields: list[tuple[int, bytes]] = []
        for keyword, item in value.items():
            entry = ranked.get(keyword)
            if entry is not None:
                fields.append((entry[0], entry[1](item)))
            elif extensions and keyword.startswith("x-"):
                fields.append((last, extension({keyword: item})))
        fields.sort(key=_rank)
        return b"".join([data for _, data in fields])

    return encode


_rank: Final = itemgetter(0)

_MOST_INDENTATION: Final = 2048
"""Pairs of spaces that any value may have; a larger one may have half of INDENTATION_RATIO times its compact size."""
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\ufeff\ufffe\uffff]")


def _yaml(value: Json) -> bytes:
    """A value as YAML. If indentation would multiply it, it is compact JSON with the escapes that YAML requires."""
    if isinstance(value, (dict, list)):
        compact = codec.encode(value, sort_keys=False)
        if codec.needs_indentation(value, _MOST_INDENTATION + codec.INDENTATION_RATIO // 2 * len(compact)):
            text = _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", compact.decode())
            return text.encode() + b"\n"
    return yaml_writer.write_nodes(value)


_any: Final = _inside(_yaml, 2)


def _schema_or_flag(encode: Encode) -> Encode:
    """additionalProperties: a schema (1) or a boolean (2), which is written even if it is false."""
    schema = _inside(encode, 1)
    flag = tag_bytes(2, VARINT)
    return lambda value: flag + (b"\x01" if value else b"\x00") if isinstance(value, bool) else schema(value)


# -- openapi.v2 -------------------------------------------------------------------------------------------------------

_EXTERNAL_DOCS: Final = _message({"description": _text(1), "url": _text(2)}, 3)
_INFO_V2: Final = _message({"title": _text(1), "version": _text(2), "description": _text(3)}, 7)


def _schema_v2(value: Json) -> bytes:
    return _schema_message_v2(value)


_schema_message_v2: Final = _message(
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _field(5, _any),
        "multipleOf": _double(6),
        "maximum": _double(7),
        "exclusiveMaximum": _flag(8),
        "minimum": _double(9),
        "exclusiveMinimum": _flag(10),
        "maxLength": _integer(11),
        "minLength": _integer(12),
        "pattern": _text(13),
        "maxItems": _integer(14),
        "minItems": _integer(15),
        "uniqueItems": _flag(16),
        "maxProperties": _integer(17),
        "minProperties": _integer(18),
        "required": _texts(19),
        "enum": _each(20, _any),
        "additionalProperties": _field(21, _schema_or_flag(_schema_v2)),
        "type": _field(22, _text(1)),
        "items": _field(23, _inside(_schema_v2, 1)),
        "allOf": _each(24, _schema_v2),
        "properties": _field(25, _named(1, _schema_v2)),
        "externalDocs": _field(29, _EXTERNAL_DOCS),
        "example": _field(30, _any),
    },
    31,
)

_body_parameter: Final = _message(
    {"description": _text(1), "name": _text(2), "in": _text(3), "required": _flag(4), "schema": _field(5, _schema_v2)},
    6,
)
_primitive_parameter: Final = {
    "query": _message(
        {"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4), "type": _text(6),
         "format": _text(7), "uniqueItems": _flag(20)}, 23
    ),
    "path": _message(
        {"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4), "type": _text(5),
         "format": _text(6), "uniqueItems": _flag(19)}, 22
    ),
}  # fmt: skip
_as_body: Final = _field(1, _body_parameter)
_as_query: Final = _field(2, _field(3, _primitive_parameter["query"]))
_as_path: Final = _field(2, _field(4, _primitive_parameter["path"]))
_PLACES: Final = {"body": _as_body, "query": _as_query, "path": _as_path}


def _parameter_v2(value: Json) -> bytes:
    return _PLACES[value["in"]](value)


_as_parameter: Final = _field(1, _parameter_v2)
_as_reference: Final = _field(2, _message({"$ref": _text(1), "description": _text(2)}))


def _parameter_or_reference_v2(value: Json) -> bytes:
    return _as_reference(value) if "$ref" in value else _as_parameter(value)


_response_v2: Final = _message({"description": _text(1), "schema": _field(2, _inside(_schema_v2, 1))}, 5)
_operation_v2: Final = _message(
    {
        "tags": _texts(1),
        "description": _text(3),
        "operationId": _text(5),
        "produces": _texts(6),
        "consumes": _texts(7),
        "parameters": _each(8, _parameter_or_reference_v2),
        "responses": _field(9, _named(1, _inside(_response_v2, 1))),
        "schemes": _texts(10),
    },
    13,
)
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_path_item_v2: Final = _message(
    {method: _field(number, _operation_v2) for number, method in enumerate(_METHODS, 2)}
    | {"parameters": _each(9, _parameter_or_reference_v2)},
    10,
)


# -- openapi.v3 -------------------------------------------------------------------------------------------------------

_INFO_V3: Final = _message({"title": _text(1), "description": _text(2), "version": _text(6)}, 7)


def _plain_schema_v3(value: Json) -> bytes:
    return _schema_message_v3(value)


_as_schema: Final = _field(1, _plain_schema_v3)
_reference_v3: Final = _field(2, _message({"$ref": _text(1), "summary": _text(2), "description": _text(3)}))


def _schema_v3(value: Json) -> bytes:
    return _reference_v3(value) if "$ref" in value else _as_schema(value)


_default_number: Final = tag_bytes(1, FIXED64)
_default_flag: Final = tag_bytes(2, VARINT)
_default_text: Final = _field(3, _utf8)


def _default_v3(value: Json) -> bytes:
    """A number (1), boolean (2) or string (3), which is written even if it is zero; nothing for other values."""
    if isinstance(value, bool):
        return _default_flag + (b"\x01" if value else b"\x00")
    if isinstance(value, (int, float)):
        return _default_number + struct.pack("<d", value)
    return _default_text(value) if isinstance(value, str) else b""


_schema_message_v3: Final = _message(
    {
        "nullable": _flag(1),
        "externalDocs": _field(6, _EXTERNAL_DOCS),
        "example": _field(7, _any),
        "title": _text(9),
        "multipleOf": _double(10),
        "maximum": _double(11),
        "exclusiveMaximum": _flag(12),
        "minimum": _double(13),
        "exclusiveMinimum": _flag(14),
        "maxLength": _integer(15),
        "minLength": _integer(16),
        "pattern": _text(17),
        "maxItems": _integer(18),
        "minItems": _integer(19),
        "uniqueItems": _flag(20),
        "maxProperties": _integer(21),
        "minProperties": _integer(22),
        "required": _texts(23),
        "enum": _each(24, _any),
        "type": _text(25),
        "allOf": _each(26, _schema_v3),
        "oneOf": _each(27, _schema_v3),
        "anyOf": _each(28, _schema_v3),
        "not": _field(29, _plain_schema_v3),
        "items": _field(30, _inside(_schema_v3, 1)),
        "properties": _field(31, _named(1, _schema_v3)),
        "additionalProperties": _field(32, _schema_or_flag(_schema_v3)),
        "default": _field(33, _default_v3),
        "description": _text(34),
        "format": _text(35),
    },
    36,
)

_content: Final = _named(1, _message({"schema": _field(1, _schema_v3)}, 5))
_parameter_v3: Final = _message(
    {"name": _text(1), "in": _text(2), "description": _text(3), "required": _flag(4), "schema": _field(10, _schema_v3)},
    14,
)
_request_body: Final = _message({"description": _text(1), "content": _field(2, _content), "required": _flag(3)}, 4)
_response_v3: Final = _message({"description": _text(1), "content": _field(3, _content)}, 5)
_operation_v3: Final = _message(
    {
        "tags": _texts(1),
        "description": _text(3),
        "operationId": _text(5),
        "parameters": _each(6, _inside(_parameter_v3, 1)),
        "requestBody": _field(7, _inside(_request_body, 1)),
        "responses": _field(8, _named(2, _inside(_response_v3, 1))),
    },
    13,
)
_path_item_v3: Final = _message(
    {method: _field(number, _operation_v3) for number, method in enumerate(_METHODS, 4)}
    | {"parameters": _each(13, _inside(_parameter_v3, 1))},
    14,
)


# -- documents --------------------------------------------------------------------------------------------------------


class ProtoWriter(NamedTuple):
    """The encoding of parts, and their assembly into a document."""

    schema: Callable[[Object], bytes]
    path_item: Callable[[Object], bytes]
    schema_entry: Callable[[str, bytes], bytes]
    """An encoded schema with its name."""
    path_entry: Callable[[str, bytes], bytes]
    """An encoded path item with its path."""
    document: Callable[[Object, Sequence[bytes], Sequence[bytes]], list[bytes]]
    """(the document without its parts, entries of path items, entries of schemas) → the pieces of the document."""


def _entry(number: int) -> Callable[[str, bytes], bytes]:
    """An item of a map, as `_named` writes it."""
    value_of = _field(2, _as_is)
    write = _field(number, _as_is)
    return lambda name, data: write(_NAME(name) + value_of(data))


def _as_is(value: Json) -> bytes:
    data: bytes = value
    return data


def _around(number: int, pieces: Sequence[bytes]) -> list[bytes]:
    """A field whose message is in pieces."""
    return [tag_bytes(number, BYTES) + varint_bytes(sum(map(len, pieces))), *pieces]


_head_v2: Final = _message({"swagger": _text(1), "info": _field(2, _INFO_V2)})
_tail_v2: Final = _message({"parameters": _field(10, _named(1, _parameter_v2))})
_head_v3: Final = _message({"openapi": _text(1), "info": _field(2, _INFO_V3)})

V2: Final = ProtoWriter(
    _schema_v2,
    _path_item_v2,
    _entry(1),
    _entry(2),
    lambda head, paths, schemas: [_head_v2(head), *_around(8, paths), *_around(9, schemas), _tail_v2(head)],
)
V3: Final = ProtoWriter(
    _schema_v3,
    _path_item_v3,
    _entry(1),
    _entry(1),
    lambda head, paths, schemas: [_head_v3(head), *_around(4, paths), *_around(5, _around(1, schemas))],
)
