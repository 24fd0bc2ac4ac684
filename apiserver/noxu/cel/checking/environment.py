"""The names that an expression may refer to: variables, functions and types.

`KUBERNETES` is the environment that upstream builds for compatibility version 1.36, without variables; `extend` adds
them. `self` and `oldSelf` are typed by a schema, the variables of admission are mostly dyn. An older release has fewer
functions and macros: `of_release` takes away the libraries that it does not have (`noxu.releases.libraries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, NamedTuple

from noxu.cel.library import kubernetes, lists, network, standard, strings, wellknown
from noxu.cel.library.declarations import FindMessage, Function, Overload, no_messages
from noxu.cel.syntax.builder import MACROS, Macros
from noxu.cel.types import types
from noxu.cel.types.types import Type
from noxu.releases import NEWEST, libraries
from noxu.releases.libraries import Library

_TYPE_NAMES: Final = (
    types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.LIST, types.MAP, types.NULL, types.STRING,
    types.TIMESTAMP, types.TYPE, types.UINT, types.OPTIONAL, types.IP, types.CIDR,
)  # fmt: skip
_ADDRESS_TYPES: Final = (types.IP, types.CIDR)  # of the libraries of their functions
# Only the checker knows these names: using one as a value is an error when constants are folded.
_UNUSABLE_TYPE_NAMES: Final = {
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    **{
        f"google.protobuf.{name}": Type(types.TypeKind.STRUCT, f"google.protobuf.{name}")
        for name in ("Any", "Struct", "Value", "ListValue", "BoolValue", "BytesValue", "DoubleValue", "FloatValue",
                     "Int32Value", "Int64Value", "StringValue", "UInt32Value", "UInt64Value")
    },
}  # fmt: skip


class Resolution(NamedTuple):
    """The overloads that a call may use (their ids), and the type of the call."""

    overloads: tuple[str, ...]
    result: Type


@dataclass(slots=True, eq=False)
class Environment:
    """The names that the checker looks up.

    `functions` by name, their overloads in upstream's order; `variables` by name; `type_names` that are values;
    `unusable_type_names` that are not. `messages` finds the types that can be constructed as `Name{field: value}`.
    """

    functions: Mapping[str, Function]
    variables: Mapping[str, Type]
    type_names: Mapping[str, Type]
    unusable_type_names: Mapping[str, Type]
    messages: FindMessage = no_messages
    macros: Macros = field(default_factory=lambda: MACROS, repr=False)
    release: int = NEWEST
    """Of Kubernetes: what is checked and estimated depends on it, too."""
    resolved: dict[tuple[str, bool, tuple[Type, ...]], Resolution] = field(default_factory=dict, repr=False)
    """The checker's memory of overload resolution, by (function, whether called on a target, types of operands)."""

    def extend(self, variables: Mapping[str, Type]) -> Environment:
        """The same functions, more variables."""
        return replace(self, variables={**self.variables, **variables})

    def with_messages(self, messages: FindMessage, functions: Mapping[str, Function]) -> Environment:
        """The same variables, more functions and message types."""
        own_messages = self.messages
        return replace(
            self,
            functions={**self.functions, **functions},
            messages=lambda name: messages(name) or own_messages(name),
            resolved={},
        )


def environment(functions: Iterable[Function], *libraries: Iterable[tuple[str, Overload]]) -> Environment:
    """An environment of complete functions and of libraries, whose overloads join functions of the same name."""
    merged: dict[str, Function] = {}
    for function in functions:
        declared = merged.setdefault(
            function.name, Function(function.name, [], function.singleton, function.traits, function.guarded)
        )
        declared.overloads += function.overloads
    for library in libraries:
        for name, overload in library:
            merged.setdefault(name, Function(name)).overloads.append(overload)
    return Environment(
        merged, {}, {named.name: named for named in _TYPE_NAMES}, _UNUSABLE_TYPE_NAMES, wellknown.find_message
    )


# In the order of upstream's environment/base.go, which decides which overload is tried first.
KUBERNETES: Final = environment(
    [*standard.FUNCTIONS, lists.FLATTEN, lists.SORT, lists.SORT_BY],
    network.URLS,
    strings.REGEX,
    lists.KUBERNETES,
    kubernetes.AUTHORIZATION,
    lists.OPTIONALS,
    kubernetes.QUANTITIES,
    strings.OVERLOADS,
    lists.SETS,
    network.OVERLOADS,
    strings.FORMATS,
    lists.COMPREHENSIONS,
    kubernetes.SEMVERS,
    lists.EXTENSION,
)
# Functions that came after the compatibility version: only stored expressions may use them.
ONLY_STORED: Final = {"includes": Function("includes", [lists.INCLUDES])}
STORED: Final = replace(KUBERNETES, functions={**KUBERNETES.functions, **ONLY_STORED}, resolved={})


# -- older releases ---------------------------------------------------------------------------------------------------


class Environments(NamedTuple):
    """What the expressions of a release may use: `new` ones, and those that are already `stored`.

    `only_stored`: what the names of functions and macros end with that only stored ones have.
    """

    new: Environment
    stored: Environment
    only_stored: frozenset[str]

    def of(self, text: str, *, stored: bool) -> Environment:
        """The one for an expression: that of new ones wherever it suffices, so that equal texts are compiled once."""
        return self.stored if stored and any(name in text for name in self.only_stored) else self.new


NEWEST_ENVIRONMENTS: Final = Environments(KUBERNETES, STORED, frozenset(ONLY_STORED))


@cache
def of_release(release: int) -> Environments:
    """The environments of a minor release of Kubernetes."""
    if release == NEWEST:
        return NEWEST_ENVIRONMENTS
    without = [libraries.missing(release), libraries.missing(release, stored=True)]
    new, stored = (_without(STORED, missing, release) for missing in without)
    return Environments(new, stored, frozenset(_last_names(set(without[0]) - set(without[1]))))


def _last_names(missing: Iterable[Library]) -> Iterator[str]:
    """What the names of their functions and macros end with: an expression may write `sets . contains`."""
    for library in missing:
        yield from (name.rpartition(".")[2] for name in library.functions)
        yield from (name for name, _ in library.macros)


def _without(newest: Environment, missing: Sequence[Library], release: int) -> Environment:
    """An environment without the functions, overloads and macros of libraries."""
    removed = {name for library in missing for name in library.functions}
    overloads = {name for library in missing for name in library.overloads}
    macros = {(name, number) for library in missing for name, numbers in library.macros for number in numbers}
    functions = {
        name: replace(function, overloads=[overload for overload in function.overloads if overload.id not in overloads])
        for name, function in newest.functions.items()
        if name not in removed
    }
    return replace(
        newest,
        functions=functions,
        type_names={
            name: named
            for name, named in newest.type_names.items()
            if named not in _ADDRESS_TYPES or "isIP" in functions
        },
        macros={called: expand for called, expand in newest.macros.items() if called[:2] not in macros},
        release=release,
        resolved={},
    )
