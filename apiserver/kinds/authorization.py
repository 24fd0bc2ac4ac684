"""authorization.k8s.io/v1: access reviews. Virtual resources: answered to a POST, never stored.

The rules are those of pkg/apis/authorization/validation. They do not decide who may do what.
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api import field
from noxu.apiserver.api.field import FieldError, Path, as_json
from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.go.structs import BOOL, STRING, Field, List, Map, Struct
from noxu.apiserver.kinds.kind import VIRTUAL_VERBS, Context, Kind, valid
from noxu.apiserver.kinds.meta import (
    ALWAYS,
    FIELD_SELECTOR_REQUIREMENT,
    LABEL_SELECTOR_REQUIREMENT,
    POINTER,
    TYPE_META,
)
from noxu.apiserver.kinds.selectors import field_requirement_errors, label_requirement_errors
from noxu.apiserver.values import Json, Object

EXTRA_VALUE: Final = List(STRING, "v1.ExtraValue", wrapped=True)
FIELD_SELECTOR_ATTRIBUTES: Final = Struct("FieldSelectorAttributes").define(
    Field("rawSelector", STRING, 1),
    Field("requirements", List(FIELD_SELECTOR_REQUIREMENT), 2, list_type="atomic"),
)
LABEL_SELECTOR_ATTRIBUTES: Final = Struct("LabelSelectorAttributes").define(
    Field("rawSelector", STRING, 1),
    Field("requirements", List(LABEL_SELECTOR_REQUIREMENT), 2, list_type="atomic"),
)
RESOURCE_ATTRIBUTES: Final = Struct("ResourceAttributes").define(
    Field("namespace", STRING, 1),
    Field("verb", STRING, 2),
    Field("group", STRING, 3),
    Field("version", STRING, 4),
    Field("resource", STRING, 5),
    Field("subresource", STRING, 6),
    Field("name", STRING, 7),
    Field("fieldSelector", FIELD_SELECTOR_ATTRIBUTES, 8, POINTER),
    Field("labelSelector", LABEL_SELECTOR_ATTRIBUTES, 9, POINTER),
)
NON_RESOURCE_ATTRIBUTES: Final = Struct("NonResourceAttributes").define(
    Field("path", STRING, 1),
    Field("verb", STRING, 2),
)
SELF_SUBJECT_ACCESS_REVIEW_SPEC: Final = Struct("SelfSubjectAccessReviewSpec").define(
    Field("resourceAttributes", RESOURCE_ATTRIBUTES, 1, POINTER),
    Field("nonResourceAttributes", NON_RESOURCE_ATTRIBUTES, 2, POINTER),
)
SUBJECT_ACCESS_REVIEW_STATUS: Final = Struct("SubjectAccessReviewStatus").define(
    Field("allowed", BOOL, 1, ALWAYS),
    Field("denied", BOOL, 4),
    Field("reason", STRING, 2),
    Field("evaluationError", STRING, 3),
)
SELF_SUBJECT_ACCESS_REVIEW: Final = Struct("SelfSubjectAccessReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SELF_SUBJECT_ACCESS_REVIEW_SPEC, 2, ALWAYS),
    Field("status", SUBJECT_ACCESS_REVIEW_STATUS, 3, ALWAYS),
)
SUBJECT_ACCESS_REVIEW_SPEC: Final = Struct("SubjectAccessReviewSpec").define(
    Field("resourceAttributes", RESOURCE_ATTRIBUTES, 1, POINTER),
    Field("nonResourceAttributes", NON_RESOURCE_ATTRIBUTES, 2, POINTER),
    Field("user", STRING, 3),
    Field("groups", List(STRING), 4, list_type="atomic"),
    Field("extra", Map(EXTRA_VALUE), 5),
    Field("uid", STRING, 6),
)
SUBJECT_ACCESS_REVIEW: Final = Struct("SubjectAccessReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SUBJECT_ACCESS_REVIEW_SPEC, 2, ALWAYS),
    Field("status", SUBJECT_ACCESS_REVIEW_STATUS, 3, ALWAYS),
)
LOCAL_SUBJECT_ACCESS_REVIEW: Final = Struct("LocalSubjectAccessReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SUBJECT_ACCESS_REVIEW_SPEC, 2, ALWAYS),
    Field("status", SUBJECT_ACCESS_REVIEW_STATUS, 3, ALWAYS),
)
SELF_SUBJECT_RULES_REVIEW_SPEC: Final = Struct("SelfSubjectRulesReviewSpec").define(
    Field("namespace", STRING, 1),
)
RESOURCE_RULE: Final = Struct("ResourceRule").define(
    Field("verbs", List(STRING), 1, ALWAYS, list_type="atomic"),
    Field("apiGroups", List(STRING), 2, list_type="atomic"),
    Field("resources", List(STRING), 3, list_type="atomic"),
    Field("resourceNames", List(STRING), 4, list_type="atomic"),
)
NON_RESOURCE_RULE: Final = Struct("NonResourceRule").define(
    Field("verbs", List(STRING), 1, ALWAYS, list_type="atomic"),
    Field("nonResourceURLs", List(STRING), 2, list_type="atomic"),
)
SUBJECT_RULES_REVIEW_STATUS: Final = Struct("SubjectRulesReviewStatus").define(
    Field("resourceRules", List(RESOURCE_RULE), 1, ALWAYS, list_type="atomic"),
    Field("nonResourceRules", List(NON_RESOURCE_RULE), 2, ALWAYS, list_type="atomic"),
    Field("incomplete", BOOL, 3, ALWAYS),
    Field("evaluationError", STRING, 4),
)
SELF_SUBJECT_RULES_REVIEW: Final = Struct("SelfSubjectRulesReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SELF_SUBJECT_RULES_REVIEW_SPEC, 2, ALWAYS),
    Field("status", SUBJECT_RULES_REVIEW_STATUS, 3, ALWAYS),
)

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


KINDS: Final = tuple(
    Kind(
        group="authorization.k8s.io",
        struct=struct,
        plural=plural,
        namespaced=namespaced,
        verbs=VIRTUAL_VERBS,
        validate=validate,
    )
    for struct, plural, namespaced, validate in (
        (LOCAL_SUBJECT_ACCESS_REVIEW, "localsubjectaccessreviews", True, _validate_local),
        (SELF_SUBJECT_ACCESS_REVIEW, "selfsubjectaccessreviews", False, _validate_own),
        (SELF_SUBJECT_RULES_REVIEW, "selfsubjectrulesreviews", False, valid),
        (SUBJECT_ACCESS_REVIEW, "subjectaccessreviews", False, _validate),
    )
)
