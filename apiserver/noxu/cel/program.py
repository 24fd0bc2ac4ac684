"""A program: an expression that was parsed, checked and is ready to be evaluated."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from noxu.cel.checking import checker
from noxu.cel.checking.environment import Environment
from noxu.cel.cost import estimate
from noxu.cel.cost.ranges import Range
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.errors import Cancelled, CelError
from noxu.cel.evaluation import constants, interpreter
from noxu.cel.evaluation.constants import Constants
from noxu.cel.evaluation.interpreter import Outcome
from noxu.cel.generation.codegen import GeneratedRule, Unsupported, generate
from noxu.cel.memory import Memory
from noxu.cel.syntax import parser
from noxu.cel.syntax.ast import Expr, is_deeper
from noxu.cel.syntax.source import compile_error
from noxu.cel.types.schema_types import DeclType
from noxu.cel.types.types import Type
from noxu.cel.values.values import Value
from noxu.cpu_budget import CpuBudget
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
            checked, problems = checker.check(parser.parse(text), environment)
            problems = problems or constants.literal_problems(checked.tree)
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
            return estimate.estimate(self.tree, declared)

    def evaluate(
        self,
        variables: Mapping[str, Value],
        limit: int = PER_CALL_LIMIT,
        cpu_budget: CpuBudget | None = None,
        memory: Memory | None = None,
    ) -> Outcome:
        """Interpret it. `memory` is shared with other evaluations. Raises what `cpu_budget` raises."""
        folded = self.instantiate()
        if self._is_deep:
            with _deep_stack():
                return interpreter.evaluate(self.tree, self.environment, folded, variables, limit, cpu_budget, memory)
        return interpreter.evaluate(self.tree, self.environment, folded, variables, limit, cpu_budget, memory)

    def evaluate_node(self, node: Expr, variables: Mapping[str, Value], limit: int = PER_CALL_LIMIT) -> Outcome:
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
