"""Field errors, rendered as upstream's k8s.io/apimachinery/pkg/util/validation/field does.

`<field>: <type text>[: <value>][: <detail>]`. A field path is a plain string; the root is "" and prints as `<nil>` (a
nil *field.Path in Go). Required, Forbidden, TooLong and Internal never print a value.

Walkers carry a `Location`: the steps from the root as a linked list, written as a path only when an error is reported. Most
values are valid, and clients choose how long a path is: a million items in a list whose name has a megabyte would need a
million copies of that name.

    {"spec": {"a": [1]}}                           path_of
    None                                           ""            the root
    (None, "spec")                                 "spec"
    (((None, "spec"), "a"), 0)                     "spec.a[0]"   the item; its parent is shared with its siblings
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from noxu.cpu_budget import spend
from noxu.go.text import compact_json, plain, quote
from noxu.values import Json

Path: TypeAlias = str
ROOT: Final[Path] = ""
NIL: Final[Path] = "<nil>"


def child(path: Path, *names: str) -> Path:
    """`spec` + `a` → `spec.a`; as upstream prints it, `spec` + `` → `spec[]`."""
    if "" in names:
        for name in names:
            path = child(path, name) if name else f"{path}[]"
        return path
    return ".".join((path, *names)) if path else ".".join(names)


def index(path: Path, position: int) -> Path:
    """`spec.a` + 0 → `spec.a[0]`."""
    return f"{path}[{position}]"


def key(path: Path, name: str) -> Path:
    """`labels` + `a.b` → `labels[a.b]`."""
    return f"{path}[{name}]"


Reason = Literal[
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueNotFound",
    "FieldValueInvalid",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "InternalError",
    "FieldValueTypeInvalid",
]

_TEXT: Final[dict[Reason, str]] = {
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotFound": "Not found",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
    "FieldValueTypeInvalid": "Invalid value",
}
_VALUELESS: Final = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"})


class _Omit:
    """Stands for "do not print a value" (Go's field.OmitValueType)."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT: Final = _Omit()


class Verbatim(str):
    """A value that is printed unchanged: JSON of a Go struct, whose fields keep their order."""

    __slots__ = ()


def as_json(value: Json) -> Verbatim:
    """A value in errors that is a struct in Go, or a string whose type has a name."""
    return Verbatim(compact_json(value, sort_keys=False))


class FieldError(NamedTuple):
    """An error in one field. `reason` is that of a Status cause."""

    reason: Reason
    field: Path
    value: Json = OMIT
    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the field."""
        text = _TEXT[self.reason]
        if self.reason not in _VALUELESS and self.value is not OMIT:
            text += f": {printed(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field or NIL}: {self.body}"


def printed(value: Json) -> str:
    """A value in a message: numbers and booleans as %v, strings as %q, everything else as JSON."""
    if isinstance(value, str):
        return value if isinstance(value, Verbatim) else quote(value)
    return plain(value) if isinstance(value, (bool, int, float)) else compact_json(value)


_UNITS: Final = 5  # of work for an error: a small object may have many


def _made(reason: Reason, field: Path, value: Json = OMIT, detail: str = "") -> FieldError:
    spend(_UNITS)
    return FieldError(reason, field, value, detail)


def required(field: Path, detail: str = "") -> FieldError:
    return _made("FieldValueRequired", field, "", detail)


def invalid(field: Path, value: Json, detail: str) -> FieldError:
    return _made("FieldValueInvalid", field, value, detail)


def type_invalid(field: Path, value: Json, detail: str) -> FieldError:
    return _made("FieldValueTypeInvalid", field, value, detail)


def not_supported(field: Path, value: Json, supported: list[str]) -> FieldError:
    """`supported` is listed in the order given."""
    detail = "supported values: " + ", ".join(map(quote, supported)) if supported else ""
    return _made("FieldValueNotSupported", field, value, detail)


def forbidden(field: Path, detail: str = "") -> FieldError:
    return _made("FieldValueForbidden", field, "", detail)


def duplicate(field: Path, value: Json) -> FieldError:
    return _made("FieldValueDuplicate", field, value)


def not_found(field: Path, value: Json, detail: str = "") -> FieldError:
    return _made("FieldValueNotFound", field, value, detail)


def too_long(field: Path, limit: int) -> FieldError:
    """Upstream says bytes even where it counts runes, and omits a limit below zero."""
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}"
    return _made("FieldValueTooLong", field, "", detail if limit >= 0 else "value is too long")


def too_many(field: Path, actual: int, limit: int) -> FieldError:
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
    return _made("FieldValueTooMany", field, actual, detail if limit >= 0 else "has too many items")


def internal(field: Path, detail: str) -> FieldError:
    return _made("InternalError", field, "", detail)


Location: TypeAlias = "tuple[Location, str | int] | None"
"""(the container's location, the name or index in it); None is the root."""


def path_of(location: Location) -> Path:
    """`spec.a[0]`. The first step is copied unchanged: a leading dot may be part of it."""
    global _last  # noqa: PLW0603 - a cache of one: the next error is often about a sibling
    if location is None:
        return ""
    above, step = location
    if above is None:
        return str(step) if isinstance(step, str) else f"[{step}]"
    parent, path = _last
    if parent is not above:
        path = _path_of(above)
        _last = (above, path)
    return f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}"


_last: tuple[Location, Path] = (None, "")


def _path_of(location: Location) -> Path:
    parts = []
    while location is not None:
        location, step = location
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if location is not None else step)
    return "".join(reversed(parts))
