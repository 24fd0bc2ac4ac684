"""authorization.k8s.io, authentication.k8s.io and rbac.authorization.k8s.io: reviews, roles and bindings.

Reviews of authorization.k8s.io/v1 and authentication.k8s.io/v1 are virtual resources: answered to a POST, never stored.
TokenRequest is the body of serviceaccounts/token.

The rules are those of k8s.io/kubernetes pkg/apis/{authorization,authentication,rbac}/validation. They validate objects,
and decide no request: also that users grant only what they hold is a matter of authorization.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_subdomain, path_segment_name, subdomain_name
from noxu.go.structs import STRING, List
from noxu.kinds import checks
from noxu.kinds.checks import Errors, field_requirement_errors, label_requirement_errors, label_selector_errors
from noxu.kinds.facts import struct
from noxu.kinds.kind import Context, Rules
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
        value = resource.get("namespace", "")
        errors.append(field.invalid("spec.resourceAttributes.namespace", value, "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        path, value = "spec.nonResourceAttributes", _shown(spec["nonResourceAttributes"])
        errors.append(field.invalid(path, value, "disallowed on this kind of request"))
    return errors


def _spec_errors(spec: Object) -> list[FieldError]:
    errors = _which_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(field.invalid("spec.user", "", "at least one of user or group must be specified"))
    return errors + _attribute_errors(spec)


def _which_errors(spec: Object) -> list[FieldError]:
    resource, non_resource = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and non_resource is not None:
        rule = "cannot be specified in combination with resourceAttributes"
        return [field.invalid("spec.nonResourceAttributes", _shown(non_resource), rule)]
    if resource is None and non_resource is None:
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
    unexpected = [name for name, value in metadata.items() if value and name not in ("managedFields", *allowed)]
    return [field.invalid("metadata", as_json(metadata), rule)] if unexpected else []


RULES: Final = {
    "LocalSubjectAccessReview": Rules(validate=_validate_local),
    "SelfSubjectAccessReview": Rules(validate=_validate_own),
    "SubjectAccessReview": Rules(validate=_validate),
}


# -- authentication ---------------------------------------------------------------------------------------------------


TOKEN_REQUEST: Final = struct("authentication/v1.TokenRequest")

DEFAULT_TOKEN_SECONDS: Final = 60 * 60
_MIN_TOKEN_SECONDS: Final = 10 * 60
_MAX_TOKEN_SECONDS: Final = 1 << 32
_WEBHOOK_KINDS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_ATTESTATION: Final = "admissionReviewAPIGroups"


def default_token_request(request: Object) -> None:
    spec = request.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT_TOKEN_SECONDS


def validate_token_request(request: Object) -> list[FieldError]:
    spec = request["spec"]
    seconds = spec.get("expirationSeconds") or 0
    errors = []
    if seconds < _MIN_TOKEN_SECONDS:
        rule = "may not specify a duration less than 10 minutes"
        errors.append(field.invalid("spec.expirationSeconds", seconds, rule))
    if seconds > _MAX_TOKEN_SECONDS:
        rule = "may not specify a duration larger than 2^32 seconds"
        errors.append(field.invalid("spec.expirationSeconds", seconds, rule))
    attestations = spec.get("attestations") or {}
    if not _is_webhook(spec.get("boundObjectRef") or {}):
        rule = "attestations may only be specified with a webhook bound object reference"
        return [field.invalid("spec.attestations", attestations, rule)] if attestations else errors
    audiences = spec.get("audiences") or []
    if len(audiences) != 1:
        errors.append(
            field.invalid("spec.audiences", spec.get("audiences"), "must be length 1 when bound to a webhook config")
        )
    return errors + _attestation_errors(attestations)


def _is_webhook(reference: Object) -> bool:
    return reference.get("kind") in _WEBHOOK_KINDS and reference.get("apiVersion") == "admissionregistration.k8s.io/v1"


def _attestation_errors(attestations: Object) -> list[FieldError]:
    path = "spec.attestations"
    if len(attestations) != 1:
        rule = "webhook bound requests require exactly one admissionReviewAPIGroups attestation"
        return [field.invalid(path, attestations or None, rule)]
    ((name, values),) = attestations.items()
    where = field.key(path, name)
    if name != _ATTESTATION:
        return [field.not_supported(where, name, [_ATTESTATION])]
    if len(values or ()) != 1:
        return [field.invalid(where, values, "must specify a single value")]
    return _api_group_errors(field.index(where, 0), values[0])


def _api_group_errors(path: Path, group: str) -> list[FieldError]:
    if not group:
        return [field.invalid(path, group, "may not be an empty string")]
    if group == "*":
        return []
    texts = dns1123_subdomain(group)
    return [field.invalid(path, group, f"must specify a valid API Group: {text}") for text in texts]


# -- rbac -------------------------------------------------------------------------------------------------------------


GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ["ServiceAccount", "User", "Group"]


def _rule(rule: Object, path: Path, *, namespaced: bool) -> Errors:
    if not rule.get("verbs"):
        yield field.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            yield field.invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield field.invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.get("apiGroups"):
        yield field.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield field.required(f"{path}.resources", "resource rules must supply at least one resource")


def _validate_role(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return [error for n, rule in _rules(new) for error in _rule(rule, f"rules[{n}]", namespaced=True)]


def _rules(role: Object) -> enumerate[Object]:
    return enumerate(role.get("rules") or ())


def _validate_cluster_role(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    errors = [error for n, rule in _rules(new) for error in _rule(rule, f"rules[{n}]", namespaced=False)]
    aggregation = new.get("aggregationRule")
    if aggregation is not None:
        path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            rule = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(field.required(path, rule))
        stored_selectors = ((old or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        any_value = any(label_selector_errors(selector, path) for selector in stored_selectors)
        for n, selector in enumerate(selectors):
            errors += label_selector_errors(selector, field.index(path, n), any_value=any_value)
    return errors


def _binding(new: Object, old: Object | None, kinds: list[str], *, namespaced: bool) -> Errors:
    reference: Object = new.get("roleRef") or {}
    if reference.get("apiGroup", "") != GROUP:
        yield field.not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP])
    if reference.get("kind", "") not in kinds:
        yield field.not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if not reference.get("name"):
        yield field.required("roleRef.name")
    else:
        yield from checks.named(reference["name"], path_segment_name, "roleRef.name")
    for n, subject in enumerate(new.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{n}]", namespaced=namespaced)
    if old is not None:
        yield from checks.immutable(reference, old.get("roleRef") or {}, "roleRef", "rbac/v1.RoleRef")


def _subject(subject: Object, path: Path, *, namespaced: bool) -> Errors:
    name, kind, group = (subject.get(key, "") for key in ("name", "kind", "apiGroup"))
    if not name:
        yield field.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from checks.named(name, subdomain_name, f"{path}.name")
        if group:
            yield field.not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield field.required(f"{path}.namespace")
    elif kind in _SUBJECTS:
        if group != GROUP:
            yield field.not_supported(f"{path}.apiGroup", group, [GROUP])
    else:
        yield field.not_supported(f"{path}.kind", kind, _SUBJECTS)


def _validate_role_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_binding(new, old, ["Role", "ClusterRole"], namespaced=True))


def _validate_cluster_role_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_binding(new, old, ["ClusterRole"], namespaced=False))


RBAC_RULES: Final = {
    "Role": Rules(validate=_validate_role),
    "ClusterRole": Rules(validate=_validate_cluster_role),
    "RoleBinding": Rules(validate=_validate_role_binding),
    "ClusterRoleBinding": Rules(validate=_validate_cluster_role_binding),
}
