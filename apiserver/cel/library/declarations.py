"""How functions are declared: overloads with signatures, and what is called when an expression runs.

A signature is written as documentation writes it: `string.charAt(int) -> string`, `size(list(A)) -> int`; a single
capital letter is a type parameter, and `optional::of` a function of a namespace (called `optional.of`). Which implementation runs follows cel-go's planner: with one overload in question
its own, guarded by the types of the arguments; with several (dyn arguments) the first whose types match. Functions
with a `singleton` do not look at overloads, only at a trait of their first argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from apiserver.cel import types
from apiserver.cel.errors import CelError, no_such_overload
from apiserver.cel.types import Kind, Type
from apiserver.cel.values import Value, type_of

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
    """`member`: called on a target, its first argument. Without `run` the language itself knows what to do."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool
    run: Implementation | None = None
    params: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Function:
    """`traits`: the runtime types that the singleton takes as first argument (None: any)."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    singleton: Implementation | None = None
    traits: frozenset[str] | None = None
    guarded: bool = True

    def implementation(self, overloads: Sequence[str]) -> Implementation:
        """What runs a call for which the checker found these overloads."""
        if self.singleton is not None:
            return self.singleton if self.traits is None else self._with_trait(self.singleton, self.traits)
        if len(overloads) == 1:
            chosen = next(one for one in self.overloads if one.id == overloads[0])
            assert chosen.run is not None, chosen.id
            return self._guard(chosen, chosen.run)
        if len(self.overloads) == 1 and self.overloads[0].run is not None:
            return self._guard(self.overloads[0], self.overloads[0].run)
        return self._dispatch

    def _with_trait(self, run: Implementation, traits: frozenset[str]) -> Implementation:
        def call(*args: Value) -> Value:
            given = type_of(args[0]).name
            if given not in traits:
                raise no_such_overload() if given in _RECEIVERS else CelError(f"no such overload: {self.name}")
            return run(*args)

        return call

    def _guard(self, overload: Overload, run: Implementation) -> Implementation:
        wanted = overload.args
        if not self.guarded or not wanted:
            return run

        def call(*args: Value) -> Value:
            if not all(map(accepts, wanted, args)):
                raise self._refusal(args)
            return run(*args)

        return call

    def _dispatch(self, *args: Value) -> Value:
        for one in self.overloads:
            if len(one.args) == len(args) and one.run is not None and all(map(accepts, one.args, args)):
                return one.run(*args)
        raise self._refusal(args)

    def _refusal(self, args: Iterable[Value]) -> CelError:
        names = ", ".join(type_of(one).name for one in args)
        return CelError(f"no such overload: {self.name}({names})")


def accepts(wanted: Type, value: Value) -> bool:
    """Is a value of that type? Of lists and maps the first element is looked at."""
    if wanted.kind in (Kind.DYN, Kind.PARAM):
        return True
    if type_of(value).name != wanted.name:
        return False
    if wanted.kind is Kind.LIST:
        return len(value) == 0 or accepts(wanted.params[0], next(iter(value)))
    if wanted.kind is Kind.MAP:
        if len(value) == 0:
            return True
        key = next(iter(value))
        return accepts(wanted.params[0], key) and accepts(wanted.params[1], value.find(key))
    return True


def overload(identifier: str, signature: str, run: Implementation | None = None) -> tuple[str, Overload]:
    """A row of a library: (function name, overload)."""
    found = _SIGNATURE.fullmatch(signature)
    assert found, signature
    args = [found["target"]] if found["target"] else []
    args += _split(found["args"])
    typed = tuple(map(read_type, args))
    result = read_type(found["result"])
    params = frozenset(_params((*typed, result)))
    return found["name"].replace("::", "."), Overload(identifier, typed, result, bool(found["target"]), run, params)


def _params(all_types: Iterable[Type]) -> Iterable[str]:
    for one in all_types:
        if one.kind is Kind.PARAM:
            yield one.name
        yield from _params(one.params)


def read_type(text: str) -> Type:
    """`map(string, list(A))` as a type. Names with a dot are object types."""
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
    return Type(Kind.STRUCT, name)


def _split(text: str) -> list[str]:
    """At the commas outside parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]
