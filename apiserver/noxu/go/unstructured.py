"""Whether a map can be converted to a Go struct, and the error of runtime.DefaultUnstructuredConverter if not.

Upstream converts applied objects of built-in kinds like this, and metadata of custom resources after admission. A type
with an UnmarshalJSON of its own (times, unions) decodes the JSON of its value (see `structs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.go import base64
from noxu.go.structs import MICRO_TIME, TIME, List, Map, Scalar, Type, Union, Wire, decode, json_type
from noxu.go.time import parse_time
from noxu.values import Json

_GO: Final[dict[type, str]] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"
}  # fmt: skip


def mismatch(kind: Type, value: Json) -> str:
    """The first error in the order of declaration, "" if there is none."""
    if value is None:
        return ""
    if isinstance(kind, Union):
        return decode(kind, value).error
    source = _GO[type(value)]
    if isinstance(kind, Scalar):
        return _scalar_mismatch(kind, value, source)
    if isinstance(kind, List):
        if not isinstance(value, list):
            return f"cannot restore slice from {source}"
        return _first(mismatch(kind.element, item) for item in value)
    if isinstance(kind, Map):
        if not isinstance(value, dict):
            return f"cannot restore map from {source}"
        return _first(mismatch(kind.element, item) for item in value.values())
    if not isinstance(value, dict):
        return f"cannot restore struct from: {source}"
    return _first(mismatch(field.type, value.get(name)) for name, field in kind.fields.items())


def _first(errors: Iterable[str]) -> str:
    return next(filter(None, errors), "")


def _scalar_mismatch(kind: Scalar, value: Json, source: str) -> str:
    """Numbers can be converted to strings in Go, but not here; other types cannot be converted at all."""
    if kind in (TIME, MICRO_TIME):
        return _time_mismatch(value)
    if kind.wire in _WITH_DECODER:
        return decode(kind, value).error
    if kind.wire is Wire.BYTES and not isinstance(value, list):
        return _bytes_mismatch(value, source)
    basic = "float64" if kind.wire is Wire.DOUBLE else _GO[type(kind.zero)]
    if source == basic or (source == "int64" and basic == "float64"):
        return ""
    if source == "float64" and basic == "int64" and value.is_integer():
        return ""
    if (source, basic) in (("int64", "string"), ("float64", "int64")):
        return f"cannot convert {source} to {kind.go}"
    return f"unrecognized type: {basic if basic != 'int64' else kind.go}"


_WITH_DECODER: Final = (Wire.JSON, Wire.INT_OR_STRING)


def _bytes_mismatch(value: Json, source: str) -> str:
    if not isinstance(value, str):
        return f"cannot restore slice from {source}"
    try:
        base64.canonical(value)
    except ValueError as error:
        return f"error decoding from json: {error}"
    return ""


def _time_mismatch(value: Json) -> str:
    if not isinstance(value, str):
        return f"json: cannot unmarshal {json_type(value)} into Go value of type string"
    try:
        parse_time(value)
    except ValueError as error:
        return str(error)
    return ""
