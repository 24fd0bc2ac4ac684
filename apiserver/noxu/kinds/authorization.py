"""authorization.k8s.io/v1: access reviews. Virtual resources: answered to a POST, never stored.

The rules are those of pkg/apis/authorization/validation. They do not decide who may do what.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.go.structs import STRING, List
from noxu.kinds.kind import Context, Rules
from noxu.kinds.selectors import field_requirement_errors, label_requirement_errors
from noxu.values import Json, Object

EXTRA_VALUE: Final = List(STRING, "v1.ExtraValue", wrapped=True)

_REQUIREMENTS: Final = {"fieldSelector": field_requirement_errors, "labelSelector": label_requirement_errors}


def _validate_own(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    return _which_errors(spec) + _attribute_errors(spec) + _metadata_errors(new, "must be empty")


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return _spec_errors(new.get("spec", {})) + _metadata_errors(new, "must be empty")


def _validate_local(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    errors = _spec_errors(spec) + _metadata_errors(new, "must be empty except for namespace", "namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != new["metadata"].get("namespace", ""):
        given = resource.get("namespace", "")
        errors.append(field.invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        path, given = "spec.nonResourceAttributes", _shown(spec["nonResourceAttributes"])
        errors.append(field.invalid(path, given, "disallowed on this kind of request"))
    return errors


def _spec_errors(spec: Object) -> list[FieldError]:
    errors = _which_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(field.invalid("spec.user", "", "at least one of user or group must be specified"))
    return errors + _attribute_errors(spec)


def _which_errors(spec: Object) -> list[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        rule = "cannot be specified in combination with resourceAttributes"
        return [field.invalid("spec.nonResourceAttributes", _shown(other), rule)]
    if resource is None and other is None:
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field.invalid("spec.resourceAttributes", None, rule)]
    return []


def _shown(attributes: Object) -> Json:
    """NonResourceAttributes as upstream's internal struct prints them."""
    return as_json({"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")})


def _attribute_errors(spec: Object) -> list[FieldError]:
    attributes = spec.get("resourceAttributes") or {}
    errors = []
    for name in _REQUIREMENTS:
        if attributes.get(name) is not None:
            errors += _selector_errors(name, attributes[name], f"spec.resourceAttributes.{name}")
    return errors


def _selector_errors(name: str, selector: Object, path: Path) -> list[FieldError]:
    """Unknown operators are allowed: newer clients may know them."""
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    errors = []
    if raw and requirements:
        rule = "may not specified at the same time as requirements"
        errors.append(field.invalid(field.child(path, "rawSelector"), raw, rule))
    if not raw and not requirements:
        rule = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(field.required(field.child(path, "requirements"), rule))
    for n, requirement in enumerate(requirements):
        where = field.index(field.child(path, "requirements"), n)
        errors += _REQUIREMENTS[name](requirement, where, any_operator=True)
    return errors


def _metadata_errors(review: Object, rule: str, *allowed: str) -> list[FieldError]:
    metadata = review["metadata"]
    given = [name for name, value in metadata.items() if value and name not in ("managedFields", *allowed)]
    return [field.invalid("metadata", as_json(metadata), rule)] if given else []


RULES: Final = {
    "LocalSubjectAccessReview": Rules(validate=_validate_local),
    "SelfSubjectAccessReview": Rules(validate=_validate_own),
    "SubjectAccessReview": Rules(validate=_validate),
}
