"""Maps as Go structs, the way runtime.DefaultUnstructuredConverter fills them: what it says if that is not possible.

Upstream validates the metadata of custom resources like this. What a request brings was decoded before (`structs`), so
only what admission has put there since can be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from apiserver.api.gotime import parse_time
from apiserver.api.structs import JSON, MICRO_TIME, RAW_EXTENSION, TIME, List, Map, Scalar, Type, Union, json_type
from apiserver.api.types import Json

_GO: Final[dict[type, str]] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"
}  # fmt: skip
_AS_THEY_ARE: Final = (JSON, RAW_EXTENSION)


def mismatch(kind: Type, value: Json) -> str:
    """The first thing that is wrong, in the order of declaration; "" if nothing is."""
    if value is None or kind in _AS_THEY_ARE or isinstance(kind, Union):
        return ""
    source = _GO[type(value)]
    if isinstance(kind, Scalar):
        return _time_mismatch(value) if kind in (TIME, MICRO_TIME) else _scalar_mismatch(kind, value, source)
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


def _first(found: Iterable[str]) -> str:
    return next(filter(None, found), "")


def _scalar_mismatch(kind: Scalar, value: Json, source: str) -> str:
    """Numbers can be converted to strings in Go, but not here; other types cannot be converted at all."""
    basic = _GO[type(kind.zero)]
    if source == basic or (source == "float64" and basic == "int64" and value == int(value)):
        return ""
    if (source, basic) in (("int64", "string"), ("float64", "int64")):
        return f"cannot convert {source} to {kind.go}"
    return f"unrecognized type: {basic if basic != 'int64' else kind.go}"


def _time_mismatch(value: Json) -> str:
    if not isinstance(value, str):
        return f"json: cannot unmarshal {json_type(value)} into Go value of type string"
    try:
        parse_time(value)
    except ValueError as error:
        return str(error)
    return ""
