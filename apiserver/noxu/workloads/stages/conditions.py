"""Expressions of stages in CEL over `self`: conditions, and statuses that an object gets.

self.spec.size > 3                          a condition: what has no value is false
{"size": self.spec.size, "ready": dyn(true)}    a status: values of different types are dyn, as CEL in Kubernetes has it
"""

from __future__ import annotations

from collections.abc import Mapping

from noxu import cel
from noxu.values import Object
from noxu.workloads.stages.stage import Selects
from noxu.workloads.stages.templates import Function, TemplateError


def expression(text: str) -> Selects:
    """A condition: what has no value is false. Raises ValueError with the compiler's message."""
    condition = cel.AwaitedCondition(text)

    def selects(value: Object) -> bool:
        outcome = condition.evaluate(value)
        return not outcome.error and outcome.value is True

    return selects


class Computed:
    """What renders a patch by an expression. Raises ValueError with the compiler's message."""

    def __init__(self, text: str) -> None:
        self._expression = cel.AwaitedCondition(f"dyn({text})")  # of any type

    def __call__(self, about: Object, _functions: Mapping[str, Function]) -> object:
        """Raises TemplateError."""
        outcome = self._expression.evaluate(about)
        if outcome.error:
            raise TemplateError(outcome.error)
        try:
            return cel.plain(outcome.value)
        except cel.PatchError as error:
            raise TemplateError(str(error)) from None
