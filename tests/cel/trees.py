"""Syntax trees as text, for tables of expected trees."""

from __future__ import annotations

from noxu.cel.syntax.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Missing,
    Select,
)


def shown(node: Expr) -> str:
    """Calls as `function(args)` with the target first, selections and literals as in CEL, comprehensions as `fold(…)`."""
    match node:
        case Literal():
            return repr(node.value)
        case Ident():
            return node.name
        case Select():
            text = f"{shown(node.operand)}.{node.field}"
            return f"has({text})" if node.test else text
        case Call():
            return f"{node.function}({', '.join(map(shown, node.operands))})"
        case ListLiteral():
            marks = ["?" if n in node.optional else "" for n in range(len(node.elements))]
            return f"[{', '.join(mark + shown(one) for mark, one in zip(marks, node.elements, strict=True))}]"
        case MapLiteral():
            return f"{{{_entries(node.entries)}}}"
        case Message():
            return f"{node.name}{{{_entries(node.entries)}}}"
        case Comprehension():
            names = node.variable + (f", {node.variable2}" if node.variable2 else "")
            parts = (node.initial, node.condition, node.step, node.result)
            return f"fold({names} in {shown(node.range)}; {'; '.join(map(shown, parts))})"
        case Missing():
            return "?"
    raise AssertionError(node)


def _entries(entries: list[MapEntry]) -> str:
    return ", ".join(f"{'?' if one.optional else ''}{shown(one.key)}: {shown(one.value)}" for one in entries)
