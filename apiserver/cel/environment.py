"""What an expression may refer to: variables, functions, types.

`KUBERNETES` is the environment that upstream builds for compatibility version 1.36, without variables; `extend` adds
them. `self` and `oldSelf` are typed by a schema, the variables of admission are mostly dyn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from apiserver.cel import types
from apiserver.cel.library import (
    authorization,
    comprehensions,
    formats,
    lists,
    network,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    standard,
    strings,
    urls,
)
from apiserver.cel.library.declarations import Function, Overload
from apiserver.cel.types import Type
from apiserver.cel.values import Value

# Names that are types. Those of the second list are only known to the checker: using one as a value is an error later.
_TYPE_NAMES: Final = (
    types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.LIST, types.MAP, types.NULL, types.STRING,
    types.TIMESTAMP, types.TYPE, types.UINT, types.OPTIONAL, types.IP, types.CIDR,
)  # fmt: skip
_UNUSABLE_TYPE_NAMES: Final = {
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    **{
        f"google.protobuf.{name}": Type(types.Kind.STRUCT, f"google.protobuf.{name}")
        for name in ("Any", "Struct", "Value", "ListValue", "BoolValue", "BytesValue", "DoubleValue", "FloatValue",
                     "Int32Value", "Int64Value", "StringValue", "UInt32Value", "UInt64Value")
    },
}  # fmt: skip


class Resolution(NamedTuple):
    """The overloads that a call may mean, and its type."""

    overloads: tuple[str, ...]
    result: Type


class MessageType(NamedTuple):
    """What `Name{field: value}` makes. `field` gives the type of a field, if there is one; `make` may raise CelError."""

    type: Type
    field: Callable[[str], Type | None]
    make: Callable[[dict[str, Value]], Value]


FindMessage: TypeAlias = Callable[[str], MessageType | None]


def no_messages(name: str) -> MessageType | None:  # noqa: ARG001
    """No type can be written as a message."""
    return None


class Environment:
    """`functions` by name, overloads in upstream's order; `variables` by name; `type_names` that are constants.

    `messages` finds the types that can be written as messages.
    """

    __slots__ = ("functions", "messages", "resolved", "type_names", "unusable_type_names", "variables")

    def __init__(
        self,
        functions: Mapping[str, Function],
        variables: Mapping[str, Type],
        type_names: Mapping[str, Type],
        unusable_type_names: Mapping[str, Type],
        messages: FindMessage = no_messages,
    ) -> None:
        self.functions = functions
        self.messages = messages
        self.variables = variables
        self.type_names = type_names
        self.unusable_type_names = unusable_type_names
        self.resolved: dict[tuple[str, bool, tuple[Type, ...]], Resolution] = {}
        """Which overloads fit which types, as the checker found out: (function, on a target?, types of arguments)."""

    def extend(self, variables: Mapping[str, Type]) -> Environment:
        """The same functions, more variables."""
        known = {**self.variables, **variables}
        extended = Environment(self.functions, known, self.type_names, self.unusable_type_names, self.messages)
        extended.resolved = self.resolved
        return extended

    def with_messages(self, messages: FindMessage, functions: Mapping[str, Function]) -> Environment:
        """The same variables, more functions, and types that can be written as messages."""
        known = {**self.functions, **functions}
        known_messages = self.messages
        return Environment(
            known,
            self.variables,
            self.type_names,
            self.unusable_type_names,
            lambda name: messages(name) or known_messages(name),
        )


def environment(functions: Iterable[Function], *libraries: Iterable[tuple[str, Overload]]) -> Environment:
    """Functions of their own, and libraries whose overloads join functions of the same name."""
    merged: dict[str, Function] = {}
    for function in functions:
        known = merged.setdefault(
            function.name, Function(function.name, [], function.singleton, function.traits, function.guarded)
        )
        known.overloads += function.overloads
    for library in libraries:
        for name, one in library:
            merged.setdefault(name, Function(name)).overloads.append(one)
    return Environment(merged, {}, {one.name: one for one in _TYPE_NAMES}, _UNUSABLE_TYPE_NAMES, _well_known)


def _well_known(name: str) -> MessageType | None:
    from apiserver.cel.library import wellknown  # nearly nobody writes messages

    return wellknown.find_message(name)


# In the order of upstream's environment/base.go: it decides which overload is tried first.
KUBERNETES: Final = environment(
    [*standard.FUNCTIONS, lists.FLATTEN, lists.SORT, lists.SORT_BY],
    urls.OVERLOADS,
    regex.OVERLOADS,
    lists.KUBERNETES,
    authorization.OVERLOADS,
    optionals.OVERLOADS,
    quantity.OVERLOADS,
    strings.OVERLOADS,
    sets.OVERLOADS,
    network.OVERLOADS,
    formats.OVERLOADS,
    comprehensions.OVERLOADS,
    semver.OVERLOADS,
    lists.EXTENSION,
)
# What stored expressions may use beyond that: functions that came after the compatibility version.
ONLY_STORED: Final = {"includes": Function("includes", [lists.INCLUDES])}
STORED: Final = Environment(
    {**KUBERNETES.functions, **ONLY_STORED},
    KUBERNETES.variables,
    KUBERNETES.type_names,
    KUBERNETES.unusable_type_names,
    KUBERNETES.messages,
)
