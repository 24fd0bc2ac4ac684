"""CEL expressions of admission's configurations, judged when they are written (pkg/apis/admissionregistration/validation).

Upstream refuses what does not compile. Here only those are refused who ask for it with `fieldValidation=Strict`, as
kubectl does; others are warned. (What is stored and does not compile is an error of its policy when it is evaluated.)
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from apiserver.registry.kinds import Use

if TYPE_CHECKING:
    from apiserver.cel.admission import Composition
    from apiserver.cel.types import Type

_INTERNAL: Final = "program instantiation failed"


def is_internal(fault: str) -> bool:
    """Whether upstream tells a fault as an internal error."""
    return fault.startswith(_INTERNAL)


@cache
def _wanted() -> dict[str, tuple[Type, ...]]:
    from apiserver.cel import admission

    return {
        "bool": admission.CONDITION,
        "string": admission.MESSAGE,
        "string or null": admission.AUDIT_VALUE,
        "any": admission.ANY,
        "ApplyConfiguration": admission.APPLY_CONFIGURATION,
        "JSONPatch": admission.JSON_PATCH,
    }


class Checker:
    """Judges the expressions of one object; each variable is compiled once."""

    def __init__(self) -> None:
        self._compositions: dict[tuple[tuple[str, str], ...], Composition] = {}

    def __call__(self, expression: str, use: Use) -> str:
        """What is wrong with an expression, an empty text if nothing is."""
        from apiserver.cel.environment import KUBERNETES, STORED  # large, and few write expressions

        patches = use.result in ("ApplyConfiguration", "JSONPatch")
        composition = self._composition(use)
        base = STORED if use.stored else KUBERNETES
        wanted = _wanted()[use.result]
        return composition.expression(expression, wanted, authorizer=use.authorizer, patches=patches, base=base).error

    def _composition(self, use: Use) -> Composition:
        from apiserver.cel.admission import Composition

        known = self._compositions.get(use.variables)
        if known is None:
            before = self._compositions.get(use.variables[:-1]) if use.variables else None
            if before is None:
                known = Composition(use.variables, params=use.params)
            else:
                known = before.extended(*use.variables[-1])
            self._compositions[use.variables] = known
        return known
