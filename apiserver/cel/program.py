"""An expression made ready to run."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.cel import checker, constants, parser, slow
from apiserver.cel.constants import Constants
from apiserver.cel.environment import Environment
from apiserver.cel.errors import CelError
from apiserver.cel.slow import Outcome
from apiserver.cel.source import CompileError, failure
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.types import Type
from apiserver.cel.values import Value


class InstantiationError(Exception):
    """An expression that is well typed but can never run: a constant in it is impossible."""


class Program:
    """A checked expression. `uses(name)` tells whether it refers to a variable."""

    __slots__ = ("_constants", "environment", "names", "tree")

    def __init__(self, text: str, environment: Environment) -> None:
        """Raises CompileError."""
        try:
            checked, problems = checker.check(parser.parse(text), environment)
            problems = problems or constants.complaints(checked.tree)
        except RecursionError:
            raise CompileError("ERROR: <input>:-1:0: expression recursion limit exceeded: 250") from None
        if problems:
            raise failure(text, problems)
        self.environment = environment
        self.tree = checked.tree
        self.names = checked.names
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
                self._constants = constants.fold(self.tree, self.environment)
            except CelError as error:
                raise InstantiationError(error.message) from None
        return self._constants

    def evaluate(self, variables: Mapping[str, Value], limit: int = PER_CALL_LIMIT) -> Outcome:
        """Run it exactly."""
        return slow.evaluate(self.tree, self.environment, self.instantiate(), variables, limit)
