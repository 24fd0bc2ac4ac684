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

An older release has other fields in some types: `older.json` says what it has instead, and is read only for such a release
(`python -m conformance.released_types` makes it from upstream's files at the tags of the releases). For each field, its
facts up to a release, null where there was none; likewise the values of types, and types that are gone:

    "core/v1.PodSpec": {"fields": {"hostnameOverride": [[33, null]], "tolerations": [[29, ["tolerations", ["Toleration"], 22]]]}}

Types of meta/v1 are those of the newest release in each of them.
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
from noxu.releases import NEWEST
from noxu.values import Json, Object

_DATA: Final = Path(__file__).with_name("data")
_META: Final = "meta/v1"
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
    "ObjectMeta": OBJECT_META,
    "OwnerReference": OWNER_REFERENCE,
    "ManagedFieldsEntry": MANAGED_FIELDS_ENTRY,
}
"""The structs of metadata, which packages below this one need, too."""
_WRITE: Final = {"": Presence.OMIT_EMPTY, "pointer": Presence.POINTER, "always": Presence.ALWAYS, "null": Presence.NULL}


def read(name: str) -> Any:
    """A file of the data."""
    return orjson.loads((_DATA / name).read_bytes())


@cache
def types(part: str) -> dict[str, Object]:
    """The types of a part, such as `core/v1`, as they are in its file: those of the newest release."""
    type_facts: dict[str, Object] = read(f"types/{part.replace('/', '.')}.json")
    return type_facts


class ReleasePart(NamedTuple):
    """What a type is made from: the part of the data, such as `core/v1`, and the release of Kubernetes."""

    part: str
    release: int


def types_of(origin: ReleasePart) -> dict[str, Object]:
    """The types of a part in a release."""
    return types(origin.part) if origin.release == NEWEST or origin.part == _META else _older_types(origin)


@cache
def _older_types(origin: ReleasePart) -> dict[str, Object]:
    type_facts = dict(types(origin.part))
    for key, differences in _older().items():
        part, _, name = key.rpartition(".")
        if part == origin.part:
            type_facts[name] = _as_of(origin.release, type_facts.get(name, {}), differences)
    return type_facts


@cache
def _older() -> dict[str, Object]:
    differences: dict[str, Object] = read("older.json")
    return differences


def _as_of(release: int, newest: Object, differences: Object) -> Object:
    """The facts of a type in a release."""
    if "type" in differences:
        return _step(release, differences["type"], newest) or newest
    found = dict(newest)
    for name in differences.keys() - {"fields"}:  # of its values
        values = _step(release, differences[name], newest.get(name))
        found.pop(name, None)
        if values is not None:
            found[name] = values
    if "fields" in differences:
        declared = {field["embed"] if isinstance(field, dict) else field[0]: field for field in newest["fields"]}
        for name, steps in differences["fields"].items():
            declared[name] = _step(release, steps, declared.get(name))  # a field that is gone is the last one
        found["fields"] = [field for field in declared.values() if field is not None]
    return found


def _step(release: int, steps: Json, newest: Json) -> Json:
    """The facts up to the first release that is not before this one."""
    return next((facts for until, facts in steps if release <= until), newest)


def struct(key: str, release: int = NEWEST) -> Struct:
    """The table of a struct, such as `core/v1.Pod`. Its fields are read when they are first needed.

    A struct is compared by identity: threads that ask for it at the same time get the same table (dict.setdefault is
    atomic).
    """
    part, _, name = key.rpartition(".")
    origin = ReleasePart(part, NEWEST if part == _META else release)
    cached = _STRUCTS.get((name, origin))
    if cached is not None:
        return cached
    cached = _STRUCTS.setdefault(
        (name, origin), Struct(name, package=part.rpartition("/")[2], load=lambda table: _load(table, origin))
    )
    _ORIGINS[cached] = origin
    return cached


_OF_METADATA: Final = ReleasePart(_META, NEWEST)
_STRUCTS: Final = {(name, _OF_METADATA): table for name, table in _METADATA.items()}
_ORIGINS: Final = dict.fromkeys(_METADATA.values(), _OF_METADATA)


def origin_of(table: Struct) -> ReleasePart:
    """What a struct is made from; the part is "" if it is not from the data."""
    return _ORIGINS.get(table, _OWN)


_OWN: Final = ReleasePart("", NEWEST)


def _load(table: Struct, origin: ReleasePart) -> None:
    facts = types_of(origin)[table.name]
    table.define(*_fields(facts, origin), atomic="atomic" in facts)


def _fields(facts: Object, origin: ReleasePart, inline: str = "", within: tuple[int, ...] = ()) -> Iterator[Field]:
    """The fields of a struct and of those that it embeds; `inline` and `within` are the names and numbers of these."""
    for declared in facts["fields"]:
        if isinstance(declared, dict):
            inner, _, name = qualified(declared["embed"], origin.part).rpartition(".")
            path = f"{inline}.{declared['go']}" if inline else declared["go"]
            numbers = (*within, declared["number"]) if declared.get("number") else within
            if name == "TypeMeta":
                yield from (Field(field, STRING, inline="TypeMeta") for field in ("kind", "apiVersion"))
            else:
                embedded = ReleasePart(inner, origin.release)
                yield from _fields(types_of(embedded)[name], embedded, path, numbers)
            continue
        name, expression, number, write, extra = (
            (*declared, *("", {})[len(declared) - 5 :]) if len(declared) < 5 else declared
        )
        yield Field(
            name,
            _type(expression, origin),
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
    """A field as the data has it; the names in its type are looked up in the part and release of `origin`."""

    name: str
    expression: Json
    write: str
    extra: Object
    origin: ReleasePart


@cache
def fields(key: str, release: int = NEWEST) -> tuple[FieldFacts, ...]:
    """The fields of a struct such as `core/v1.Pod`, with those that it embeds; without TypeMeta."""
    collected: list[FieldFacts] = []
    part, _, name = key.rpartition(".")
    origin = ReleasePart(part, release)
    for declared in types_of(origin)[name]["fields"]:
        if isinstance(declared, dict):
            if not declared["embed"].endswith("TypeMeta"):
                collected += fields(qualified(declared["embed"], part), release)
        else:
            name, expression, _, write, extra = (*declared, "", {})[:5] if len(declared) == 3 else (*declared, {})[:5]
            collected.append(FieldFacts(name, expression, write, extra, origin))
    return tuple(collected)


def enum(name: str, origin: ReleasePart) -> list[str]:
    """The values of an enum type, in the order of declaration; [] for any other type.

    Those of meta/v1 are enums for validation only: they do not have the marker `+enum`.
    """
    if name in SCALARS:
        return []
    inner, _, bare = qualified(name, origin.part).rpartition(".")
    if inner == _META:
        return []
    values: list[str] = types_of(ReleasePart(inner, origin.release)).get(bare, {}).get("enum", [])
    return values


def unions(table: Struct) -> list[Object]:
    """The unions in a struct: `fields` with their value of the `discriminator`, if there is one."""
    origin = origin_of(table)
    declared: list[Object] = types_of(origin)[table.name].get("unions", []) if origin.part else []
    return [
        {**union, "fields": {name: value for name, value in union["fields"].items() if name in table.fields}}
        for union in declared
    ]


def qualified(name: str, part: str) -> str:
    return name if "." in name else f"{part}.{name}"


def _type(expression: Json, origin: ReleasePart) -> Type:
    if isinstance(expression, list):
        return List(_type(expression[0], origin))
    if isinstance(expression, dict):
        (value,) = expression.values()
        return Map(_type(value, origin))
    if expression in SCALARS:
        return SCALARS[expression]
    return _named(qualified(expression, origin.part), origin.release)


@cache
def _named(key: str, release: int) -> Type:
    """A type that has a name: a struct, or another type with a name of its own."""
    part, _, name = key.rpartition(".")
    origin = ReleasePart(part, release)
    facts = types_of(origin).get(name, {})
    if "is" not in facts:
        return struct(key, release)
    go = f"{part.rpartition('/')[2]}.{name}"
    inner = _type(facts["is"], origin)
    if isinstance(inner, List):
        return List(inner.element, go, wrapped=facts.get("wrapped", False))
    if isinstance(inner, Map):
        return Map(inner.element, go)
    assert isinstance(inner, Scalar)
    return Scalar(go, inner.read, inner.zero, inner.wire)
