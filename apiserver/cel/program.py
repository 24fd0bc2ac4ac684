"""An expression made ready to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from apiserver.cel import checker, constants, cost, parser, slow
from apiserver.cel.ast import Expr, is_deeper
from apiserver.cel.codegen import Compiled, Declined, generate
from apiserver.cel.constants import Constants
from apiserver.cel.cost import Range
from apiserver.cel.environment import Environment
from apiserver.cel.errors import Cancelled, CelError, Patience
from apiserver.cel.schema_types import DeclType
from apiserver.cel.slow import Outcome
from apiserver.cel.source import failure
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.types import Type
from apiserver.cel.values import Value
from apiserver.schema.structural import Structural


class InstantiationError(Exception):
    """An expression that is well typed but can never run: a constant in it is impossible."""


_DEEP: Final = 40  # nodes below each other that surely fit into the usual stack
_STACK: Final = 6_000  # Python frames; a few a level, of which there are at most `recovery.MAX_DEPTH`


@contextmanager
def _room() -> Iterator[None]:
    """For expressions as deep as upstream allows. (Calls from Python to Python take nothing from the C stack.)"""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class Program:
    """A checked expression. `uses(name)` tells whether it refers to a variable."""

    __slots__ = ("_constants", "_is_deep", "environment", "names", "tree")

    def __init__(self, text: str, environment: Environment) -> None:
        """Raises CompileError."""
        with _room():
            checked, problems = checker.check(parser.parse(text), environment)
            problems = problems or constants.complaints(checked.tree)
        if problems:
            raise failure(text, problems)
        self.environment = environment
        self.tree = checked.tree
        self.names = checked.names
        self._is_deep = is_deeper(checked.tree, _DEEP)
        self._constants: Constants | None = None

    @property
    def type(self) -> Type:
        return self.tree.type

    def uses(self, name: str) -> bool:
        return name in self.names

    def instantiate(self) -> Constants:
        """Fold constants. Raises InstantiationError."""
        if self._constants is None:
            try:
                with _room():
                    self._constants = constants.fold(self.tree, self.environment)
            except (Cancelled, CelError) as error:
                raise InstantiationError(error.message) from None
        return self._constants

    def estimate(self, declared: DeclType | None) -> Range:
        """What it may cost, where `self` is of that type."""
        with _room():
            return cost.estimate(self.tree, declared)

    def evaluate(
        self, variables: Mapping[str, Value], limit: int = PER_CALL_LIMIT, patience: Patience | None = None
    ) -> Outcome:
        """Run it exactly."""
        known = self.instantiate()
        if self._is_deep:
            with _room():
                return slow.evaluate(self.tree, self.environment, known, variables, limit, patience)
        return slow.evaluate(self.tree, self.environment, known, variables, limit, patience)

    def evaluate_part(self, part: Expr, variables: Mapping[str, Value], limit: int = PER_CALL_LIMIT) -> Outcome:
        """Run a node of its tree that stands in no macro."""
        with _room():
            return slow.evaluate(part, self.environment, self.instantiate(), variables, limit)

    def generate(self, schema: Structural, *, old_self: bool) -> Compiled | None:
        """A function for a rule, if it is of a kind that can be generated."""
        try:
            return (
                None
                if self._is_deep
                else generate(self.tree, self.environment, self.instantiate(), schema, old_self=old_self)
            )
        except Declined:
            return None
