"""Whether a map can be converted to a Go struct, and the error of runtime.DefaultUnstructuredConverter if not.

Upstream validates the metadata of custom resources like this. Metadata in requests has been decoded before (see
`structs`), so only changes by admission can cause such an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.apiserver.go.structs import JSON, MICRO_TIME, RAW_EXTENSION, TIME, List, Map, Scalar, Type, Union, json_type
from noxu.apiserver.go.time import parse_time
from noxu.apiserver.values import Json

_GO: Final[dict[type, str]] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"
}  # fmt: skip
_NOT_CONVERTED: Final = (JSON, RAW_EXTENSION)


def mismatch(kind: Type, value: Json) -> str:
    """The first error in the order of declaration, "" if there is none."""
    if value is None or kind in _NOT_CONVERTED or isinstance(kind, Union):
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


def _first(errors: Iterable[str]) -> str:
    return next(filter(None, errors), "")


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
