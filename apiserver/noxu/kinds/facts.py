"""The data of the built-in kinds: struct tables, names, strategies, defaults and columns, read when they are first used.

The files in `data` are made from published facts about Kubernetes by `python -m conformance.kinds`. `types/core.v1.json`
has the types of `core/v1`, one a line:

    "ContainerPort": {"fields": [["name", "string", 1], ["containerPort", "int32", 3, "always", {"required": true}], …]}
    "Volume":        {"fields": [["name", "string", 1, "always"], {"embed": "VolumeSource", "go": "VolumeSource", "number": 2}]}
    "Protocol":      {"is": "string", "enum": ["TCP", "UDP", "SCTP"]}

A field has a name, a type, its number in protobuf, the rule by which it is written (`Write`), and further facts. A type
is a scalar, the name of a type of the same file, that of another file (`meta/v1.Time`), `[T]` for a list or `{"string":
T}` for a map. Embedded structs are inlined; TypeMeta, which has no number, is not in protobuf.

A file is read when a field of one of its structs is needed: nothing is read at start-up but `kinds.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from noxu.api.meta import MANAGED_FIELDS_ENTRY, OBJECT_META, OWNER_REFERENCE
from noxu.go.structs import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT64,
    INT32,
    INT64,
    INT_OR_STRING,
    JSON,
    MICRO_TIME,
    QUANTITY,
    RAW_EXTENSION,
    STRING,
    TIME,
    UID,
    Field,
    List,
    Map,
    Presence,
    Scalar,
    Struct,
    Type,
    named,
)
from noxu.values import Json, Object

_DATA: Final = Path(__file__).with_name("data")
SCALARS: Final = {
    "string": STRING,
    "bool": BOOL,
    "int32": INT32,
    "int64": INT64,
    "float64": FLOAT64,
    "[]byte": BYTES,
    "Time": TIME,
    "MicroTime": MICRO_TIME,
    "Duration": DURATION,
    "Quantity": QUANTITY,
    "IntOrString": INT_OR_STRING,
    "RawExtension": RAW_EXTENSION,
    "FieldsV1": JSON,
    "interface": JSON,
    "types.UID": UID,
    "types.NodeName": named("types.NodeName"),
}
_METADATA: Final = {
    "meta/v1.ObjectMeta": OBJECT_META,
    "meta/v1.OwnerReference": OWNER_REFERENCE,
    "meta/v1.ManagedFieldsEntry": MANAGED_FIELDS_ENTRY,
}
"""The structs of metadata, which packages below this one need, too."""
_WRITE: Final = {"": Presence.OMIT_EMPTY, "pointer": Presence.POINTER, "always": Presence.ALWAYS, "null": Presence.NULL}


def read(name: str) -> Any:
    """A file of the data."""
    return orjson.loads((_DATA / name).read_bytes())


@cache
def types(part: str) -> dict[str, Object]:
    """The types of a part, such as `core/v1`, as they are in its file."""
    type_facts: dict[str, Object] = read(f"types/{part.replace('/', '.')}.json")
    return type_facts


def struct(key: str) -> Struct:
    """The table of a struct, such as `core/v1.Pod`. Its fields are read when they are first needed.

    A struct is compared by identity: threads that ask for it at the same time get the same table (dict.setdefault is
    atomic).
    """
    cached = _STRUCTS.get(key)
    if cached is not None:
        return cached
    part, _, name = key.rpartition(".")
    cached = _STRUCTS.setdefault(
        key, Struct(name, package=part.rpartition("/")[2], load=lambda table: _load(table, part))
    )
    _PARTS[cached] = part
    return cached


_STRUCTS: Final[dict[str, Struct]] = {**_METADATA}
_PARTS: Final[dict[Struct, str]] = {_METADATA[key]: "meta/v1" for key in _METADATA}


def part_of(table: Struct) -> str:
    """The part of the data that a struct is from, such as `core/v1`; "" if it is from none."""
    return _PARTS.get(table, "")


def _load(table: Struct, part: str) -> None:
    facts = types(part)[table.name]
    table.define(*_fields(facts, part), atomic="atomic" in facts)


def _fields(facts: Object, part: str, inline: str = "", within: tuple[int, ...] = ()) -> Iterator[Field]:
    """The fields of a struct and of those that it embeds; `inline` and `within` are the names and numbers of these."""
    for declared in facts["fields"]:
        if isinstance(declared, dict):
            inner, _, name = qualified(declared["embed"], part).rpartition(".")
            path = f"{inline}.{declared['go']}" if inline else declared["go"]
            numbers = (*within, declared["number"]) if declared.get("number") else within
            if name == "TypeMeta":
                yield from (Field(field, STRING, inline="TypeMeta") for field in ("kind", "apiVersion"))
            else:
                yield from _fields(types(inner)[name], inner, path, numbers)
            continue
        name, expression, number, write, extra = (
            (*declared, *("", {})[len(declared) - 5 :]) if len(declared) < 5 else declared
        )
        yield Field(
            name,
            _type(expression, part),
            number,
            _WRITE[write],
            patch=extra.get("patch", ""),
            merge_key=extra.get("merge_key", ""),
            list_type=extra.get("list_type") or extra.get("map_type") or extra.get("struct_type") or "",
            list_keys=tuple(extra.get("list_keys", ())),
            inline=inline,
            within=within,
        )


class FieldFacts(NamedTuple):
    """A field as the data has it; the names in its type are looked up in `part`."""

    name: str
    expression: Json
    write: str
    extra: Object
    part: str


@cache
def fields(key: str) -> tuple[FieldFacts, ...]:
    """The fields of a struct such as `core/v1.Pod`, with those that it embeds; without TypeMeta."""
    collected: list[FieldFacts] = []
    part, _, name = key.rpartition(".")
    for declared in types(part)[name]["fields"]:
        if isinstance(declared, dict):
            if not declared["embed"].endswith("TypeMeta"):
                collected += fields(qualified(declared["embed"], part))
        else:
            name, expression, _, write, extra = (*declared, "", {})[:5] if len(declared) == 3 else (*declared, {})[:5]
            collected.append(FieldFacts(name, expression, write, extra, part))
    return tuple(collected)


def enum(name: str, part: str) -> list[str]:
    """The values of an enum type, in the order of declaration; [] for any other type.

    Those of meta/v1 are enums for validation only: they do not have the marker `+enum`.
    """
    if name in SCALARS:
        return []
    inner, _, bare = qualified(name, part).rpartition(".")
    if inner == "meta/v1":
        return []
    values: list[str] = types(inner).get(bare, {}).get("enum", [])
    return values


def unions(key: str) -> list[Object]:
    """The unions in a struct: `fields` with their value of the `discriminator`, if there is one."""
    part, _, name = key.rpartition(".")
    declared: list[Object] = types(part)[name].get("unions", [])
    return declared


def qualified(name: str, part: str) -> str:
    return name if "." in name else f"{part}.{name}"


def _type(expression: Json, part: str) -> Type:
    if isinstance(expression, list):
        return List(_type(expression[0], part))
    if isinstance(expression, dict):
        (value,) = expression.values()
        return Map(_type(value, part))
    if expression in SCALARS:
        return SCALARS[expression]
    return _named(qualified(expression, part))


@cache
def _named(key: str) -> Type:
    """A type that has a name: a struct, or another type with a name of its own."""
    part, _, name = key.rpartition(".")
    facts = types(part).get(name, {})
    if "is" not in facts:
        return struct(key)
    go = f"{part.rpartition('/')[2]}.{name}"
    inner = _type(facts["is"], part)
    if isinstance(inner, List):
        return List(inner.element, go, wrapped=facts.get("wrapped", False))
    if isinstance(inner, Map):
        return Map(inner.element, go)
    assert isinstance(inner, Scalar)
    return Scalar(go, inner.read, inner.zero, inner.wire)
