"""The CEL engine: rules of CustomResourceDefinitions, and expressions of admission.

The names of this module are all that other packages may import; the sub-modules are private. Importing it imports nothing
else: the engine is large, so the module of a name is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noxu.cel.cost.runtime import PER_CALL_LIMIT as PER_CALL_LIMIT
    from noxu.cel.errors import CelError as CelError
    from noxu.cel.errors import TimeExceeded as TimeExceeded
    from noxu.cel.evaluation.interpreter import EvaluationResult as EvaluationResult
    from noxu.cel.kubernetes.admission import AwaitedCondition as AwaitedCondition
    from noxu.cel.kubernetes.admission import Composition as Composition
    from noxu.cel.kubernetes.admission import Expression as Expression
    from noxu.cel.kubernetes.admission import Purpose as Purpose
    from noxu.cel.kubernetes.admission import TypeChecker as TypeChecker
    from noxu.cel.kubernetes.admission import activation as activation
    from noxu.cel.kubernetes.admission import compilation_error as compilation_error
    from noxu.cel.kubernetes.admission import match_condition as match_condition
    from noxu.cel.kubernetes.admission import object_type as object_type
    from noxu.cel.kubernetes.patches import PatchError as PatchError
    from noxu.cel.kubernetes.patches import apply_configuration as apply_configuration
    from noxu.cel.kubernetes.patches import json_patch as json_patch
    from noxu.cel.kubernetes.patches import plain as plain
    from noxu.cel.kubernetes.schema_rules import MAX_RULE_ESTIMATE as MAX_RULE_ESTIMATE
    from noxu.cel.kubernetes.schema_rules import MAX_SCHEMA_ESTIMATE as MAX_SCHEMA_ESTIMATE
    from noxu.cel.kubernetes.schema_rules import SchemaRules as SchemaRules
    from noxu.cel.kubernetes.validation import FailedRule as FailedRule
    from noxu.cel.kubernetes.validation import RuleOutcome as RuleOutcome
    from noxu.cel.kubernetes.validation import RuleValidator as RuleValidator
    from noxu.cel.library.kubernetes import Authorize as Authorize
    from noxu.cel.library.kubernetes import AuthorizerDecision as AuthorizerDecision
    from noxu.cel.memory import Memory as Memory
    from noxu.cel.types.types import Type as Type
    from noxu.cel.values.values import Value as Value

_HOMES = {
    "Authorize": "library.kubernetes",
    "AuthorizerDecision": "library.kubernetes",
    "CelError": "errors",
    "Composition": "kubernetes.admission",
    "AwaitedCondition": "kubernetes.admission",
    "Expression": "kubernetes.admission",
    "FailedRule": "kubernetes.validation",
    "TimeExceeded": "errors",
    "Memory": "memory",
    "EvaluationResult": "evaluation.interpreter",
    "MAX_RULE_ESTIMATE": "kubernetes.schema_rules",
    "MAX_SCHEMA_ESTIMATE": "kubernetes.schema_rules",
    "PER_CALL_LIMIT": "cost.runtime",
    "PatchError": "kubernetes.patches",
    "Purpose": "kubernetes.admission",
    "SchemaRules": "kubernetes.schema_rules",
    "Type": "types.types",
    "TypeChecker": "kubernetes.admission",
    "RuleOutcome": "kubernetes.validation",
    "RuleValidator": "kubernetes.validation",
    "Value": "values.values",
    "activation": "kubernetes.admission",
    "apply_configuration": "kubernetes.patches",
    "compilation_error": "kubernetes.admission",
    "json_patch": "kubernetes.patches",
    "plain": "kubernetes.patches",
    "match_condition": "kubernetes.admission",
    "object_type": "kubernetes.admission",
}

__all__ = [
    "PER_CALL_LIMIT",
    "Authorize",
    "AuthorizerDecision",
    "AwaitedCondition",
    "CelError",
    "Composition",
    "EvaluationResult",
    "Expression",
    "FailedRule",
    "Memory",
    "PatchError",
    "Purpose",
    "RuleOutcome",
    "RuleValidator",
    "SchemaRules",
    "TimeExceeded",
    "Type",
    "TypeChecker",
    "Value",
    "activation",
    "apply_configuration",
    "compilation_error",
    "json_patch",
    "match_condition",
    "object_type",
    "plain",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
