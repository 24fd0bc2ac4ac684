"""Operators and functions that generated rules do themselves, by the ids of their overloads.

Each takes the writer and the arguments, and gives the result, or None if it would rather have the function called.
Costs are those of `spending`, with the sizes put in; n × 0.1, rounded up, is -(-n//10) for every n that occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from apiserver.api.types import MAX_INT64, MIN_INT64
from apiserver.cel.library.standard import compile_pattern
from apiserver.cel.spending import PATTERN
from apiserver.cel.writer import SCALARS, Atom, Kind, Writer

Inline: TypeAlias = Callable[[Writer, list[Atom]], Atom | None]


def traversal(atom: Atom) -> str:
    """What it costs to go through a string once."""
    if isinstance(atom.constant, str):
        return str(-(-len(atom.constant) // 10))
    return f"-(-len({atom.code})//10)"


def shorter(left: Atom, right: Atom) -> str:
    """What it costs to go through the shorter one of two strings."""
    if not isinstance(left.constant, str):
        left, right = right, left
    if not isinstance(left.constant, str):
        return f"-(-min(len({left.code}), len({right.code}))//10)"
    length = len(left.constant)
    if length == 0:
        return "0"
    return f"(1 if {right.code} else 0)" if length <= 10 else f"-(-min({length}, len({right.code}))//10)"


def spend(writer: Writer, code: str) -> None:
    writer.spend(int(code) if code.isdigit() else code)


def _relation(sign: str, kind: Kind) -> Inline:
    def inline(writer: Writer, args: list[Atom]) -> Atom | None:
        left, right = args
        if kind == "float" and not all(arg.trail or arg.constant is not None for arg in args):
            return None  # may not be a number
        codes = writer.certain(left, kind), writer.certain(right, kind)
        if kind == "str":
            spend(writer, shorter(left._replace(code=codes[0]), right._replace(code=codes[1])))
        else:
            writer.spend(1)
        return Atom(f"({codes[0]} {sign} {codes[1]})", "bool")

    return inline


def _arithmetic(sign: str) -> Inline:
    def inline(writer: Writer, args: list[Atom]) -> Atom:
        left, right = (writer.certain(arg, "int") for arg in args)
        writer.spend(1)
        result = writer.temp(f"{left} {sign} {right}")
        writer.refuse(f"not {MIN_INT64} <= {result} <= {MAX_INT64}")
        return Atom(result, "int")

    return inline


def _joined(writer: Writer, args: list[Atom]) -> Atom:
    left, right = (writer.certain(arg, "str") for arg in args)
    result = Atom(writer.temp(f"{left} + {right}"), "str")
    spend(writer, traversal(result))
    return result


def _length(writer: Writer, args: list[Atom]) -> Atom | None:
    if args[0].kind == "value":
        return None
    writer.spend(1)
    return Atom(f"len({args[0].code})", "int")


def _negated(writer: Writer, args: list[Atom]) -> Atom:
    writer.spend(1)
    return Atom(f"(not {writer.certain(args[0], 'bool')})", "bool")


def _strings(writer: Writer, args: list[Atom]) -> tuple[Atom, Atom]:
    text, part = (arg._replace(code=writer.certain(arg, "str")) for arg in args)
    return text, part


def _contains(writer: Writer, args: list[Atom]) -> Atom:
    text, part = _strings(writer, args)
    spend(writer, f"{traversal(text)} * ({traversal(part)})")
    return Atom(f"({part.code} in {text.code})", "bool")


def _affix(method: str) -> Inline:
    def inline(writer: Writer, args: list[Atom]) -> Atom:
        text, part = _strings(writer, args)
        spend(writer, traversal(part))
        return Atom(f"{text.code}.{method}({part.code})", "bool")

    return inline


def _matches(writer: Writer, args: list[Atom]) -> Atom | None:
    pattern = args[1].constant
    if not isinstance(pattern, str):
        return None
    text = writer.certain(args[0], "str")
    price = -int(-len(pattern) * PATTERN // 1)
    writer.spend(f"-(-(len({text}) + 1)//10) * {price}")
    return Atom(f"{writer.name(compile_pattern(pattern).search)}({text})", "bool")


_SIGNS: Final = {"less": "<", "less_equals": "<=", "greater": ">", "greater_equals": ">="}
_KINDS: Final[dict[str, Kind]] = {"int64": "int", "string": "str", "double": "float", "bool": "bool"}
INLINED: Final[dict[str, Inline]] = {
    **{f"{name}_{suffix}": _relation(sign, kind) for name, sign in _SIGNS.items() for suffix, kind in _KINDS.items()},
    "add_int64": _arithmetic("+"),
    "subtract_int64": _arithmetic("-"),
    "multiply_int64": _arithmetic("*"),
    "add_string": _joined,
    **dict.fromkeys(("size_string", "string_size", "size_list", "list_size", "size_map", "map_size"), _length),
    "logical_not": _negated,
    "contains_string": _contains,
    "starts_with_string": _affix("startswith"),
    "ends_with_string": _affix("endswith"),
    "matches": _matches,
    "matches_string": _matches,
}


def equality(writer: Writer, args: list[Atom], sign: str) -> Atom | None:
    """`==` and `!=` of two scalars of the same kind."""
    left, right = args
    if left.kind != right.kind or left.kind not in SCALARS:
        return None
    if left.kind == "str":
        spend(writer, shorter(left, right))
    else:
        writer.spend(1)
    return Atom(f"({left.code} {sign} {right.code})", "bool")
