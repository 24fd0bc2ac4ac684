"""Operators and functions that generated rules perform themselves, by the ids of their overloads.

An entry takes the writer and the operands and returns the result, or None to have the function called instead. It charges
the cost that `noxu.cel.cost.runtime` computes, as Python code over the sizes of the operands: n × 0.1, rounded up,
is written as -(-n//10), which is equal for every n that occurs.

    self.s.contains('abc')   →   c += -(-len(t2)//10) * (1)      with self.s in t2
                                 (('abc') in t2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from noxu.cel.cost.runtime import PATTERN
from noxu.cel.generation.writer import SCALARS, Kind, Operand, Writer
from noxu.cel.library.standard import compile_pattern
from noxu.cel.memory import allocate_text
from noxu.values import MAX_INT64, MIN_INT64

Inline: TypeAlias = Callable[[Writer, list[Operand]], Operand | None]
_LONG_TEXT: Final = 1024  # characters; the number of shorter ones is limited by their cost


def traversal(operand: Operand) -> str:
    """The cost of reading a string once."""
    if isinstance(operand.constant, str):
        return str(-(-len(operand.constant) // 10))
    return f"-(-len({operand.code})//10)"


def shorter_traversal(left: Operand, right: Operand) -> str:
    """The cost of reading the shorter of two strings once."""
    if not isinstance(left.constant, str):
        left, right = right, left
    if not isinstance(left.constant, str):
        return f"-(-min(len({left.code}), len({right.code}))//10)"
    length = len(left.constant)
    if length == 0:
        return "0"
    return f"(1 if {right.code} else 0)" if length <= 10 else f"-(-min({length}, len({right.code}))//10)"


def charge(writer: Writer, code: str) -> None:
    writer.charge(int(code) if code.isdigit() else code)


def _relation(sign: str, kind: Kind) -> Inline:
    def inline(writer: Writer, args: list[Operand]) -> Operand | None:
        left, right = args
        if kind == "float" and not all(arg.path or arg.constant is not None for arg in args):
            return None  # a computed double may be NaN
        codes = writer.as_kind(left, kind), writer.as_kind(right, kind)
        if kind == "str":
            charge(writer, shorter_traversal(left._replace(code=codes[0]), right._replace(code=codes[1])))
        else:
            writer.charge(1)
        return Operand(f"({codes[0]} {sign} {codes[1]})", "bool")

    return inline


def _arithmetic(sign: str) -> Inline:
    def inline(writer: Writer, args: list[Operand]) -> Operand:
        left, right = (writer.as_kind(arg, "int") for arg in args)
        writer.charge(1)
        result = writer.temp(f"{left} {sign} {right}")
        writer.fall_back_if(f"not {MIN_INT64} <= {result} <= {MAX_INT64}")
        return Operand(result, "int")

    return inline


def _concatenation(writer: Writer, args: list[Operand]) -> Operand:
    left, right = (writer.as_kind(arg, "str") for arg in args)
    result = Operand(writer.temp(f"{left} + {right}"), "str")
    writer.allocates = True
    announce = f"{writer.name(allocate_text)}(len({result.code}), {result.code})"
    writer.emit(f"if len({result.code}) > {_LONG_TEXT}: {announce}")
    charge(writer, traversal(result))
    return result


def _length(writer: Writer, args: list[Operand]) -> Operand | None:
    if args[0].kind == "value":
        return None
    writer.charge(1)
    return Operand(f"len({args[0].code})", "int")


def _negation(writer: Writer, args: list[Operand]) -> Operand:
    writer.charge(1)
    return Operand(f"(not {writer.as_kind(args[0], 'bool')})", "bool")


def _strings(writer: Writer, args: list[Operand]) -> tuple[Operand, Operand]:
    text, part = (arg._replace(code=writer.as_kind(arg, "str")) for arg in args)
    return text, part


def _contains(writer: Writer, args: list[Operand]) -> Operand:
    text, part = _strings(writer, args)
    charge(writer, f"{traversal(text)} * ({traversal(part)})")
    return Operand(f"({part.code} in {text.code})", "bool")


def _affix(method: str) -> Inline:
    def inline(writer: Writer, args: list[Operand]) -> Operand:
        text, part = _strings(writer, args)
        charge(writer, traversal(part))
        return Operand(f"{text.code}.{method}({part.code})", "bool")

    return inline


def _matches(writer: Writer, args: list[Operand]) -> Operand | None:
    pattern = args[1].constant
    if not isinstance(pattern, str):
        return None
    text = writer.as_kind(args[0], "str")
    pattern_cost = -int(-len(pattern) * PATTERN // 1)
    writer.charge(f"-(-(len({text}) + 1)//10) * {pattern_cost}")
    return Operand(f"{writer.name(compile_pattern(pattern).search)}({text})", "bool")


_SIGNS: Final = {"less": "<", "less_equals": "<=", "greater": ">", "greater_equals": ">="}
_KINDS: Final[dict[str, Kind]] = {"int64": "int", "string": "str", "double": "float", "bool": "bool"}
INLINED: Final[dict[str, Inline]] = {
    **{f"{name}_{suffix}": _relation(sign, kind) for name, sign in _SIGNS.items() for suffix, kind in _KINDS.items()},
    "add_int64": _arithmetic("+"),
    "subtract_int64": _arithmetic("-"),
    "multiply_int64": _arithmetic("*"),
    "add_string": _concatenation,
    **dict.fromkeys(("size_string", "string_size", "size_list", "list_size", "size_map", "map_size"), _length),
    "logical_not": _negation,
    "contains_string": _contains,
    "starts_with_string": _affix("startswith"),
    "ends_with_string": _affix("endswith"),
    "matches": _matches,
    "matches_string": _matches,
}


def equality(writer: Writer, args: list[Operand], sign: str) -> Operand | None:
    """`==` and `!=` of two scalars of the same class; None for other operands."""
    left, right = args
    if left.kind != right.kind or left.kind not in SCALARS:
        return None
    if left.kind == "str":
        charge(writer, shorter_traversal(left, right))
    else:
        writer.charge(1)
    return Operand(f"({left.code} {sign} {right.code})", "bool")
