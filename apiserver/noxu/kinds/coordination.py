"""coordination.k8s.io/v1: Lease, with which controllers elect a leader (pkg/apis/coordination/validation)."""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, as_json
from noxu.api.names import qualified_name
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

_STRATEGIES: Final = ["OldestEmulationVersion"]


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    errors = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(field.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(field.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    strategy = spec.get("strategy")
    if strategy is not None:
        errors += _strategy_errors(strategy)
    if spec.get("preferredHolder") and not strategy:
        errors.append(field.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def _strategy_errors(strategy: str) -> list[FieldError]:
    path = "spec.strategy.strategy"  # upstream names the child twice
    if "/" in strategy:
        return [field.invalid(path, as_json(strategy), text) for text in qualified_name(strategy)]
    return [] if strategy in _STRATEGIES else [field.not_supported(path, as_json(strategy), _STRATEGIES)]


RULES: Final = {"Lease": Rules(validate=_validate)}
