"""Conditions of meta/v1 in the status of objects (meta/v1/validation ValidateConditions)."""

from __future__ import annotations

import re
from typing import Final

from noxu.api import field
from noxu.api.field import Path, as_json
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.values import Object

_STATUSES: Final = ["False", "True", "Unknown"]
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason: Final = re.compile(_REASON).fullmatch
_NOT_A_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
    f"'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_MAX_REASON: Final = 1024
_MAX_MESSAGE: Final = 32 * 1024


def errors(conditions: list[Object] | None, path: Path) -> Errors:
    seen = set()
    for n, condition in enumerate(conditions or ()):
        where, kind = f"{path}[{n}]", condition.get("type", "")
        if kind in seen:
            yield field.duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _errors(condition, where)


def _errors(condition: Object, path: Path) -> Errors:
    yield from checks.qualified(condition.get("type", ""), f"{path}.type")
    if condition.get("status", "") not in _STATUSES:
        yield field.not_supported(f"{path}.status", as_json(condition.get("status", "")), _STATUSES)
    yield from checks.nonnegative(condition.get("observedGeneration"), f"{path}.observedGeneration")
    if not condition.get("lastTransitionTime"):
        yield field.required(f"{path}.lastTransitionTime")
    reason, message = condition.get("reason", ""), condition.get("message", "")
    if not reason:
        yield field.required(f"{path}.reason")
    else:
        if not _is_reason(reason):
            yield field.invalid(f"{path}.reason", reason, _NOT_A_REASON)
        if len(reason) > _MAX_REASON:
            yield field.too_long(f"{path}.reason", _MAX_REASON)
    if len(message.encode("utf-8", "replace")) > _MAX_MESSAGE:
        yield field.too_long(f"{path}.message", _MAX_MESSAGE)
