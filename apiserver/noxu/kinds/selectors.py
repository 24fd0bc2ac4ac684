"""Label and field selectors in objects (meta/v1/validation)."""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import label_value, qualified_name
from noxu.values import Object

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


_OPERATORS: Final = {"In": " in ({})", "NotIn": " notin ({})", "Exists": "", "DoesNotExist": ""}


def selector_text(selector: Object) -> str:
    """A label selector as text, sorted by key (LabelSelectorAsSelector, and the String method of its result)."""
    terms = [(name, f"{name}={value}") for name, value in (selector.get("matchLabels") or {}).items()]
    for requirement in selector.get("matchExpressions") or ():
        name, operator = requirement.get("key", ""), requirement.get("operator", "")
        values = ",".join(sorted(requirement.get("values") or ()))
        negation = "!" if operator == "DoesNotExist" else ""
        terms.append((name, f"{negation}{name}{_OPERATORS.get(operator, '').format(values)}"))
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def label_selector_errors(selector: Object, path: Path, *, any_value: bool = False) -> list[FieldError]:
    """The errors in a label selector. `any_value`: the stored object has invalid values, too (see kubernetes#99139)."""
    errors = []
    where = field.child(path, "matchLabels")
    for name, value in sorted((selector.get("matchLabels") or {}).items()):
        errors += [field.invalid(where, name, text) for text in qualified_name(name)]
        errors += [field.invalid(where, value, text) for text in label_value(value)]
    for n, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = field.index(field.child(path, "matchExpressions"), n)
        errors += label_requirement_errors(requirement, where, any_value=any_value)
    return errors


def label_requirement_errors(
    requirement: Object, path: Path, *, any_operator: bool = False, any_value: bool = False
) -> list[FieldError]:
    errors = _operator_errors(requirement, path, any_operator=any_operator)
    name = requirement.get("key", "")
    errors += [field.invalid(field.child(path, "key"), name, text) for text in qualified_name(name)]
    if not any_value:
        for n, value in enumerate(requirement.get("values") or ()):
            where = field.index(field.child(path, "values"), n)
            errors += [field.invalid(where, value, text) for text in label_value(value)]
    return errors


def field_requirement_errors(requirement: Object, path: Path, *, any_operator: bool = False) -> list[FieldError]:
    missing = [] if requirement.get("key") else [field.required(field.child(path, "key"), "must be specified")]
    return missing + _operator_errors(requirement, path, any_operator=any_operator)


def _operator_errors(requirement: Object, path: Path, *, any_operator: bool) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    where = field.child(path, "values")
    if operator in _WITH_VALUES:
        rule = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [field.required(where, rule)]
    if operator in _WITHOUT_VALUES:
        rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [field.forbidden(where, rule)] if values else []
    if any_operator:
        return []
    return [field.invalid(field.child(path, "operator"), as_json(operator), "not a valid selector operator")]
