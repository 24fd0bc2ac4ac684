"""The functions of CEL: the language's own, its extensions, and those that Kubernetes adds.

Each module of this package ends with tables of `Overload`s: id, signature, implementation. An environment
(`noxu.cel.checking.environment`) consists of some of them. This module declares them, and chooses the implementation
that a call runs; it also has the message types, whose values `Name{field: value}` makes.

Signatures are written as in documentation: `string.charAt(int) -> string`, `size(list(A)) -> int`. A single capital letter
is a type parameter; `optional::of` is a function of a namespace (called `optional.of`).

As in cel-go's planner, a call that the checker resolved to one overload runs the implementation of this overload, which
checks the types of its arguments. A call that may use several (with dyn arguments) runs the first whose types match. A
function with a `singleton` has one implementation for all overloads, which checks only a trait of its first argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.types import types
from noxu.cel.types.types import Type, TypeKind
from noxu.cel.values.values import Value, type_of

Implementation: TypeAlias = Callable[..., Value]

_NAMED: Final = {
    "dyn": types.DYN, "bool": types.BOOL, "bytes": types.BYTES, "double": types.DOUBLE, "duration": types.DURATION,
    "int": types.INT, "null": types.NULL, "string": types.STRING, "timestamp": types.TIMESTAMP, "type": types.TYPE,
    "uint": types.UINT, "url": types.URL, "quantity": types.QUANTITY, "semver": types.SEMVER, "format": types.FORMAT,
    "ip": types.IP, "cidr": types.CIDR, "authorizer": types.AUTHORIZER, "pathcheck": types.PATH_CHECK,
    "groupcheck": types.GROUP_CHECK, "resourcecheck": types.RESOURCE_CHECK, "decision": types.DECISION,
}  # fmt: skip
_SIGNATURE: Final = re.compile(
    r"(?:(?P<target>[a-z]\w*(?:\(.*?\)+)?)\.)?(?P<name>[^\s(]+)\((?P<args>.*)\) -> (?P<result>.+)"
)
_RECEIVERS: Final = frozenset({"string", types.DURATION.name, types.TIMESTAMP.name})


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """`member`: called on a target, which is the first argument. Without `run`, the interpreter implements the function."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool
    run: Implementation | None = None
    params: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Function:
    """`traits`: the runtime types that the singleton accepts as its first argument (None: any).

    Without `guarded`, implementations check the types of their arguments themselves.
    """

    name: str
    overloads: list[Overload] = field(default_factory=list)
    singleton: Implementation | None = None
    traits: frozenset[str] | None = None
    guarded: bool = True

    def implementation(self, overloads: Sequence[str]) -> Implementation:
        """The implementation that a call runs if the checker found these overloads."""
        if self.singleton is not None:
            return self.singleton if self.traits is None else self._with_trait(self.singleton, self.traits)
        if len(overloads) == 1:
            chosen = next(overload for overload in self.overloads if overload.id == overloads[0])
            assert chosen.run is not None, chosen.id
            return self._guard(chosen, chosen.run)
        if len(self.overloads) == 1 and self.overloads[0].run is not None:
            return self._guard(self.overloads[0], self.overloads[0].run)
        return self._dispatch

    def _with_trait(self, run: Implementation, traits: frozenset[str]) -> Implementation:
        def call(*args: Value) -> Value:
            receiver = type_of(args[0]).name
            if receiver not in traits:
                raise no_such_overload() if receiver in _RECEIVERS else CelError(f"no such overload: {self.name}")
            return run(*args)

        return call

    def _guard(self, overload: Overload, run: Implementation) -> Implementation:
        expected = overload.args
        if not self.guarded or not expected:
            return run

        def call(*args: Value) -> Value:
            if not all(map(accepts, expected, args)):
                raise self._no_overload(args)
            return run(*args)

        return call

    def _dispatch(self, *args: Value) -> Value:
        for overload in self.overloads:
            if len(overload.args) == len(args) and overload.run is not None and all(map(accepts, overload.args, args)):
                return overload.run(*args)
        raise self._no_overload(args)

    def _no_overload(self, args: Iterable[Value]) -> CelError:
        names = ", ".join(type_of(arg).name for arg in args)
        return CelError(f"no such overload: {self.name}({names})")


def accepts(expected: Type, value: Value) -> bool:
    """Whether a value is of a type. Of lists and maps only the first element is checked."""
    if expected.kind in (TypeKind.DYN, TypeKind.PARAM):
        return True
    if type_of(value).name != expected.name:
        return False
    if expected.kind is TypeKind.LIST:
        return len(value) == 0 or accepts(expected.params[0], next(iter(value)))
    if expected.kind is TypeKind.MAP:
        if len(value) == 0:
            return True
        key = next(iter(value))
        return accepts(expected.params[0], key) and accepts(expected.params[1], value.find(key))
    return True


def overload(identifier: str, signature: str, run: Implementation | None = None) -> tuple[str, Overload]:
    """A row of a library: the name of the function, and the overload.

    overload("list_join", "list(string).join() -> string", run)   →   "join", with the argument types (list(string),)
    """
    match = _SIGNATURE.fullmatch(signature)
    assert match, signature
    args = [match["target"]] if match["target"] else []
    args += _split(match["args"])
    typed = tuple(map(read_type, args))
    result = read_type(match["result"])
    params = frozenset(_params((*typed, result)))
    return match["name"].replace("::", "."), Overload(identifier, typed, result, bool(match["target"]), run, params)


def _params(all_types: Iterable[Type]) -> Iterable[str]:
    for type_ in all_types:
        if type_.kind is TypeKind.PARAM:
            yield type_.name
        yield from _params(type_.params)


def read_type(text: str) -> Type:
    """The type that a signature writes as `map(string, list(A))`. An unknown name is that of an object type."""
    text = text.strip()
    if text in _NAMED:
        return _NAMED[text]
    if re.fullmatch("[A-Z]", text):
        return types.param(text)
    name, _, inner = text.partition("(")
    params = tuple(map(read_type, _split(inner[:-1])))
    match name:
        case "list":
            return types.list_of(*params)
        case "map":
            return types.map_of(*params)
        case "optional":
            return types.optional_of(*params)
        case "type":
            return types.type_of(*params)
    assert not params, text
    return Type(TypeKind.STRUCT, name)


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses: `map(K, V), K` → [`map(K, V)`, `K`]."""
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


class MessageType(NamedTuple):
    """`field` returns the type of a field, None if there is no such field. `make` may raise CelError."""

    type: Type
    field: Callable[[str], Type | None]
    make: Callable[[dict[str, Value]], Value]


FindMessage: TypeAlias = Callable[[str], MessageType | None]
"""The message type of a name, None if the name is not that of a message type."""


def no_messages(name: str) -> MessageType | None:  # noqa: ARG001
    """No message types at all."""
    return None
