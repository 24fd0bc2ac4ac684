"""CEL expressions in admission's configurations, checked when they are written (pkg/apis/admissionregistration/validation).

Upstream refuses expressions that do not compile. Here only requests with `fieldValidation=Strict`, as kubectl sends them,
are refused; others get a warning. (A stored expression that does not compile is an error of its policy in evaluation.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from noxu.cpu_budget import require_imported

if TYPE_CHECKING:
    from noxu.cel import Composition, Purpose


class Use(NamedTuple):
    """The use of a CEL expression: the type of its result, and the names that it may contain."""

    result: Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]
    params: bool = False
    authorizer: bool = True
    variables: tuple[tuple[str, str], ...] = ()
    """(name, expression) of the variables composed before it."""
    stored: bool = False
    """The stored object has the same expression: features that were allowed then still are."""


CheckExpression: TypeAlias = Callable[[str, Use], str]
"""(expression, use) → its error, "" if it has none."""


def no_check(expression: str, use: Use) -> str:  # noqa: ARG001
    """For callers that do not check CEL."""
    return ""


_INTERNAL: Final = "program instantiation failed"


def is_internal(fault: str) -> bool:
    """Whether upstream reports a fault as an internal error."""
    return fault.startswith(_INTERNAL)


@cache
def _purposes() -> dict[str, Purpose]:
    from noxu.cel import Purpose  # imports the engine, which is large

    return {
        "bool": Purpose.CONDITION,
        "string": Purpose.MESSAGE,
        "string or null": Purpose.AUDIT_VALUE,
        "any": Purpose.VARIABLE,
        "ApplyConfiguration": Purpose.APPLY_CONFIGURATION,
        "JSONPatch": Purpose.JSON_PATCH,
    }


class Checker:
    """Checks the expressions of one object; each variable is compiled once."""

    def __init__(self) -> None:
        self._compositions: dict[tuple[tuple[str, str], ...], Composition] = {}

    def __call__(self, expression: str, use: Use) -> str:
        """The error of an expression, "" if it has none."""
        require_imported("noxu.cel", "Composition")
        composition, purpose = self._composition(use), _purposes()[use.result]
        return composition.expression(expression, purpose, authorizer=use.authorizer, stored=use.stored).error

    def _composition(self, use: Use) -> Composition:
        from noxu.cel import Composition  # imports the engine, which is large

        known = self._compositions.get(use.variables)
        if known is None:
            before = self._compositions.get(use.variables[:-1]) if use.variables else None
            if before is None:
                known = Composition(use.variables, params=use.params)
            else:
                known = before.extended(*use.variables[-1])
            self._compositions[use.variables] = known
        return known
