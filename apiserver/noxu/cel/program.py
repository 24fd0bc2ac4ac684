"""A program: a parsed and checked expression, ready to be evaluated.

`observed_values` are the values that an expression used, which explain why a rule failed.

    self.minReplicas <= self.maxReplicas   →   self.minReplicas = 5, self.maxReplicas = 2

These are the values of its attributes: variables with their selections and constant indices, and `size(…)` of these. Parts
that depend on the variable of a macro are left out, because they have a different value in each iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from noxu.cel.checking import checker
from noxu.cel.checking.environment import Environment
from noxu.cel.cost import estimate
from noxu.cel.cost.function_estimates import Range
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.errors import Cancelled, CelError
from noxu.cel.evaluation import constants, interpreter
from noxu.cel.evaluation.constants import Constants
from noxu.cel.evaluation.interpreter import EvaluationResult
from noxu.cel.generation.codegen import GeneratedRule, Unsupported, generate
from noxu.cel.memory import Memory
from noxu.cel.syntax import parser
from noxu.cel.syntax.ast import Call, Comprehension, Expr, Ident, Literal, Select, children, compile_error, is_deeper
from noxu.cel.types.schema_types import DeclType
from noxu.cel.types.types import Type
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import JsonList, JsonObject, Value
from noxu.cpu_budget import CpuBudget
from noxu.go.text import compact_json, quote
from noxu.releases.libraries import LITERALS_CHECKED
from noxu.schema.structural import Structural


class InstantiationError(Exception):
    """An expression that is correctly typed but can never be evaluated: a constant in it has no value."""


_DEEP: Final = 40  # levels of nodes that need no more than Python's usual stack
_STACK: Final = 6_000  # Python frames; a few for each level, of which there are at most `error_recovery.MAX_DEPTH`


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Raise the recursion limit for expressions as deep as upstream allows.

    (Calls from Python to Python do not use the C stack.)
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class Program:
    """A checked expression."""

    __slots__ = ("_constants", "_is_deep", "environment", "names", "tree")

    def __init__(self, text: str, environment: Environment) -> None:
        """Raises CompileError."""
        with _deep_stack():
            checked, problems = checker.check(parser.parse(text, environment.macros), environment)
            if not problems and environment.release >= LITERALS_CHECKED:
                problems = constants.literal_problems(checked.tree)
        if problems:
            raise compile_error(text, problems)
        self.environment = environment
        self.tree = checked.tree
        self.names = checked.names
        self._is_deep = is_deeper(checked.tree, _DEEP)
        self._constants: Constants | None = None

    @property
    def type(self) -> Type:
        return self.tree.type

    def uses(self, name: str) -> bool:
        """Whether the expression refers to that variable."""
        return name in self.names

    def instantiate(self) -> Constants:
        """Fold constants. Raises InstantiationError."""
        if self._constants is None:
            try:
                with _deep_stack():
                    self._constants = constants.fold(self.tree, self.environment)
            except (Cancelled, CelError) as error:
                raise InstantiationError(error.message) from None
        return self._constants

    def estimate(self, declared: DeclType | None) -> Range:
        """The range of its cost where `self` is of that type."""
        with _deep_stack():
            return estimate.estimate(self.tree, declared, self.environment.release)

    def evaluate(
        self,
        variables: Mapping[str, Value],
        limit: int = PER_CALL_LIMIT,
        cpu_budget: CpuBudget | None = None,
        memory: Memory | None = None,
    ) -> EvaluationResult:
        """Interpret it. `memory` is shared with other evaluations. Raises what `cpu_budget` raises."""
        folded = self.instantiate()
        if self._is_deep:
            with _deep_stack():
                return interpreter.evaluate(self.tree, self.environment, folded, variables, limit, cpu_budget, memory)
        return interpreter.evaluate(self.tree, self.environment, folded, variables, limit, cpu_budget, memory)

    def evaluate_node(
        self, node: Expr, variables: Mapping[str, Value], limit: int = PER_CALL_LIMIT
    ) -> EvaluationResult:
        """Interpret a node of its tree that does not depend on the variable of a macro."""
        with _deep_stack():
            return interpreter.evaluate(node, self.environment, self.instantiate(), variables, limit)

    def generate(self, schema: Structural, *, old_self: bool) -> GeneratedRule | None:
        """The expression, which is a rule, as a Python function; None if no code can be generated for it."""
        if self._is_deep:
            return None
        try:
            return generate(self.tree, self.environment, self.instantiate(), schema, old_self=old_self)
        except Unsupported:
            return None


MAX_VALUES: Final = 20
MAX_LENGTH: Final = 200  # characters of a value


def observed_values(program: Program, variables: Mapping[str, Value]) -> dict[str, str]:
    """The value of each attribute, or its error, by the text of the attribute, in their order in the expression."""
    values: dict[str, str] = {}
    for node, text in _attributes(program.tree, frozenset()):
        if len(values) == MAX_VALUES:
            break
        if text not in values:
            outcome = program.evaluate_node(node, variables, PER_CALL_LIMIT)
            values[text] = f"error: {outcome.error}" if outcome.error else _shown(outcome.value)
    return values


def _attributes(node: Expr, bound: frozenset[str]) -> Iterator[tuple[Expr, str]]:
    """The attributes in an expression with their texts, except those that depend on `bound` variables."""
    text = _text(node, bound)
    if text and not isinstance(node, Ident):
        yield node, text
        return
    if isinstance(node, Comprehension):
        inside = bound | {node.variable, node.variable2, node.accumulator}
        yield from _attributes(node.range, bound)
        yield from _attributes(node.step, inside)
        return
    if isinstance(node, Ident) and text and node.constant is None:
        yield node, text
    for child in children(node):
        yield from _attributes(child, bound)


def _text(node: Expr, bound: frozenset[str]) -> str:
    """The text of an attribute, "" if the expression is not one."""
    match node:
        case Ident():
            return "" if node.name in bound or node.constant is not None else node.name
        case Select():
            operand = _text(node.operand, bound)
            selection = f"{operand}.{node.field}"
            return operand and (f"has({selection})" if node.test else selection)
        case Call(function="_[_]", args=[operand, Literal(value=index)]):
            container = _text(operand, bound)
            return container and f"{container}[{quote(index) if isinstance(index, str) else index}]"
        case Call(function="size") if len(node.operands) == 1:
            container = _text(node.operands[0], bound)
            return container and f"size({container})"
    return ""


def _shown(value: Value) -> str:
    if isinstance(value, (JsonObject, JsonList)):
        text = compact_json(value.raw)
    elif isinstance(value, str):
        text = quote(value)
    else:
        text = go_value(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
