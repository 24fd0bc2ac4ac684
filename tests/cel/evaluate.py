"""Evaluates expressions for tables of expected values."""

from __future__ import annotations

from typing import Any

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types import types
from noxu.cel.types.types import Type
from noxu.cel.values.values import ABSENT

VARIABLES: dict[str, tuple[Type, Any]] = {
    "d": (types.DYN, None),
    "i": (types.INT, 3),
    "s": (types.STRING, "abc"),
    "l": (types.list_of(types.INT), [1, 2, 3]),
    "m": (types.map_of(types.STRING, types.INT), None),
}
ENVIRONMENT = KUBERNETES.extend({name: type_ for name, (type_, _) in VARIABLES.items()})


def program(text: str) -> Program:
    return Program(text, ENVIRONMENT)


def evaluate(text: str, **values: Any) -> Any:
    """The value of an expression, or the message of its error as `Error(message)`. A variable that is ABSENT has no value."""
    known = {**{name: value for name, (_, value) in VARIABLES.items()}, **values}
    try:
        outcome = program(text).evaluate({name: value for name, value in known.items() if value is not ABSENT})
    except InstantiationError as error:
        return Error(str(error))
    return outcome.value if outcome.error is None else Error(outcome.error)


class Error(str):
    """The message of an error."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and str(self) == str(other)

    __hash__ = str.__hash__


def compile_errors(text: str) -> list[str]:
    """The errors of an expression that does not compile: `line:column: message`."""
    try:
        program(text)
    except CompileError as error:
        lines = str(error).splitlines()
        return [line.removeprefix("ERROR: <input>:") for line in lines if line.startswith("ERROR")]
    return []
