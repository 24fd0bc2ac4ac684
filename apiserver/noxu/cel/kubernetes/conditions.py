"""Conditions on one object, for those who wait until it satisfies one: `self.status.readyReplicas == self.spec.replicas`.

`self` is the object, without types. A field that does not exist yet is an error of the evaluation, as everywhere in CEL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.evaluation.interpreter import Outcome
from noxu.cel.kubernetes.admission import Expression
from noxu.cel.types import types
from noxu.cel.types.types import Type, runtime_name
from noxu.cel.values.values import untyped
from noxu.values import Object

SELF: Final = "self"


class Condition:
    """A compiled condition. Raises ValueError with the compiler's message."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._expression = _compiled(text)
        if self._expression.error:
            raise ValueError(self._expression.error)
        type_ = self._expression.type
        if type_ not in (types.BOOL, types.DYN):
            raise ValueError(f"must evaluate to bool but got {runtime_name(type_)}" if type_ else "has no type")

    def evaluate(self, value: Object) -> Outcome:
        """True, false, or an error; the value of a field may have another type."""
        return self._expression.evaluate({SELF: untyped(value)})


@lru_cache(64)
def _compiled(text: str) -> Expression:
    return Expression(text, KUBERNETES.extend({SELF: types.DYN}))


def compilation_error(text: str, type_: Type) -> str:
    """What the compiler says about a condition on an object of a type, "" if it compiles."""
    return Expression(text, KUBERNETES.extend({SELF: type_})).error
