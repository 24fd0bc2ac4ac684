"""The conditions of `noxu.wait`, in the words of `kubectl wait --for` where it has them.

create, delete                         the object exists, or no longer does
Ready, condition=Ready, Ready=False    status.conditions has the type with status True, or with that one
self.status.size == 3                  an expression in CEL; an error (a field is missing) means: not yet
a function                             its result is true; it gets the object, and may be async in a coroutine

An expression about a field that no object of the resource can have is an error: it would never have a value.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from noxu import cel
from noxu.features import nearest
from noxu.registry.known_fields import unknown
from noxu.registry.resource import Resource
from noxu.testing.errors import hidden
from noxu.values import Json, Object

__tracebackhide__ = hidden

_FIELD: Final = re.compile(r"(?:metadata|spec|status)\..*", re.DOTALL)  # what no type of a condition begins with


class NotYet(LookupError):
    """An expression has no value, or none that is true or false. The message says why."""


Function: TypeAlias = Callable[[Object], object] | Callable[[Object], Awaitable[object]]
Condition: TypeAlias = str | Function

_TYPE: Final = re.compile(
    r"(?:condition=)?((?!self\.)[A-Za-z0-9][A-Za-z0-9./_-]*?)(?:=(True|False|Unknown))?", re.IGNORECASE
)
CREATE: Final = "create"
DELETE: Final = "delete"
_WORDS: Final = (CREATE, DELETE)


class ConditionCheck(Protocol):
    """Decides about the newest state of an object, None if it does not exist. The result may have to be awaited.

    Raises LookupError for what the object does not have yet: the condition is not met.
    """

    def __call__(self, value: Object | None) -> object: ...


def parse(condition: Condition, resource: Resource | None = None) -> tuple[ConditionCheck, str]:
    """A check, and the text that messages have for it; `resource` is that of the objects, None if it is not known.

    Raises ValueError for an invalid expression, and for one with a field that no object of the resource can have.
    """
    if not isinstance(condition, str):
        if not callable(condition):
            raise TypeError(f"a condition is a text or a function, and not {condition!r}")
        function = condition
        name = getattr(function, "__name__", "")
        name = "a lambda" if name == "<lambda>" else name or repr(function)
        return (lambda value: value is not None and function(value)), f"{name} is true"
    if condition == CREATE:
        return (lambda value: value is not None), "it exists"
    if condition == DELETE:
        return (lambda value: value is None), "it is deleted"
    if _FIELD.fullmatch(condition):
        raise ValueError(f"{condition!r} is no condition: fields are those of self: self.{condition}")
    if match := _TYPE.fullmatch(condition):
        type_, status = match[1], (match[2] or "True").capitalize()
        text = f"its condition {type_} is {status}"
        if similar := nearest(condition, _WORDS):
            text += f' (did you mean "{similar}"?)'
        return (lambda value: status_of(value, type_) == status), text
    try:
        compiled = cel.AwaitedCondition(condition)
    except ValueError as error:
        raise ValueError(f"{condition!r} is no condition: {error}") from None
    if resource is not None and (error_of_field := unknown(condition, resource)):
        raise ValueError(f"{condition!r} is no condition: {error_of_field}")
    return (lambda value: value is not None and _evaluated(compiled, value)), f"{condition} is true"


def _evaluated(compiled: cel.AwaitedCondition, value: Object) -> bool:
    """Raises NotYet."""
    outcome = compiled.evaluate(value)
    if outcome.error:
        raise NotYet(outcome.error)
    if not isinstance(outcome.value, bool):
        raise NotYet(f"its value is {outcome.value!r}, and neither true nor false")
    return outcome.value


def status_of(value: Object | None, type_: str) -> str:
    """The status of a condition, "" if the object does not have it. Types are compared as kubectl does."""
    conditions: Json = ((value or {}).get("status") or {}).get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and str(condition.get("type")).lower() == type_.lower():
            return str(condition.get("status")).capitalize()
    return ""
