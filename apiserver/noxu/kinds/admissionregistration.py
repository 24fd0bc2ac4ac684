"""admissionregistration.k8s.io/v1: webhook configurations, admission policies and their bindings.

The rules are those of k8s.io/kubernetes pkg/apis/admissionregistration/{v1/defaults.go,validation}, with one extension:
the URL of a webhook may be plain `http` if its host is loopback, so that a test needs no certificate for its webhook.

Rules that were introduced later do not apply to an update of an object that violates them already.

`Context.check` checks the CEL expressions of policies. Authorization for params is not checked.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1035_label, dns1123_subdomain, path_segment_name, qualified_name
from noxu.crd.clientconfig import service_errors, url_errors
from noxu.expressions import expression
from noxu.go.text import trim_space
from noxu.kinds.checks import label_selector_errors
from noxu.kinds.facts import struct
from noxu.kinds.kind import Context, Rules, Use
from noxu.kinds.matching import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    chosen,
    condition_errors,
    expression_errors,
    match_resources_errors,
    mutable_errors,
    repeats,
    reserved_name_errors,
    rule_errors,
)
from noxu.values import Json, Object, equal

_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun", "Some", "Unknown"]
_NO_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun"]
_REVIEW_VERSIONS: Final = ["v1", "v1beta1"]
_SELECTORS: Final = ("namespaceSelector", "objectSelector")
_MIN_TIMEOUT, _MAX_TIMEOUT = 1, 30
_MIN_SEGMENTS: Final = 3


def validate_webhooks(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    hooks: list[Object] = new.get("webhooks") or []
    before: list[Object] = (old or {}).get("webhooks") or []
    exempt = _Exemptions(hooks, before, updating=old is not None)
    errors: list[FieldError] = []
    again = repeats(hook.get("name", "") for hook in hooks)
    for n, hook in enumerate(hooks):
        path = field.index("webhooks", n)
        errors += _hook_errors(hook, path, exempt, context)
        versions = hook.get("admissionReviewVersions") or []
        where = field.child(path, "admissionReviewVersions")
        errors += _version_errors(versions, where, any_version=exempt.any_version)
        if n in again and hook.get("name") and not exempt.repeated_names:
            errors.append(field.duplicate(field.child(path, "name"), hook["name"]))
    return errors + reserved_name_errors(new, old)


class _Exemptions:
    """The violations of the stored configuration, which an update may keep."""

    def __init__(self, hooks: list[Object], before: list[Object], *, updating: bool) -> None:
        names = [hook.get("name", "") for hook in before]
        self.same_conditions = (
            updating
            and len(hooks) == len(before)
            and all(equal(_conditions(a), _conditions(b)) for a, b in zip(hooks, before, strict=True))
        )
        self.side_effects = any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in before)
        self.any_version = any(
            hook.get("admissionReviewVersions") and not set(_REVIEW_VERSIONS) & set(hook["admissionReviewVersions"])
            for hook in before
        )
        self.repeated_names = len(set(names)) != len(names)
        self.any_label_value = any(
            label_selector_errors(hook[name], "") for hook in before for name in _SELECTORS if hook.get(name)
        )
        self.expressions = {condition.get("expression", "") for hook in before for condition in _conditions(hook)}


def _conditions(hook: Object) -> list[Object]:
    return hook.get("matchConditions") or []


def _hook_errors(hook: Object, path: Path, exempt: _Exemptions, context: Context) -> list[FieldError]:
    errors = _name_errors(hook.get("name", ""), field.child(path, "name"))
    for n, rule in enumerate(hook.get("rules") or ()):
        errors += rule_errors(rule, field.index(field.child(path, "rules"), n))
    errors += chosen(hook, path, "failurePolicy", FAILURE_POLICIES)
    errors += chosen(hook, path, "matchPolicy", MATCH_POLICIES)
    errors += _side_effect_errors(hook, path, _SIDE_EFFECTS if exempt.side_effects else _NO_SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not _MIN_TIMEOUT <= timeout <= _MAX_TIMEOUT:
        rule = "the timeout value must be between 1 and 30 seconds"
        errors.append(field.invalid(field.child(path, "timeoutSeconds"), timeout, rule))
    for name in _SELECTORS:
        selector = hook.get(name) or {}
        errors += label_selector_errors(selector, field.child(path, name), any_value=exempt.any_label_value)
    errors += chosen(hook, path, "reinvocationPolicy", REINVOCATION_POLICIES)
    errors += _client_errors(hook.get("clientConfig", {}), field.child(path, "clientConfig"))
    if not exempt.same_conditions:
        where = field.child(path, "matchConditions")
        before = exempt.expressions
        errors += condition_errors(_conditions(hook), where, context.check, params=False, before=before)
    return errors


def _name_errors(name: str, path: Path) -> list[FieldError]:
    """util/validation's IsFullyQualifiedName."""
    if not name:
        return [field.required(path)]
    if texts := dns1123_subdomain(name):
        return [field.invalid(path, name, ", ".join(texts))]
    if name.count(".") + 1 < _MIN_SEGMENTS:
        return [field.invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _side_effect_errors(hook: Object, path: Path, allowed: list[str]) -> list[FieldError]:
    if hook.get("sideEffects") is None:
        return [field.required(field.child(path, "sideEffects"), f"must specify one of {', '.join(allowed)}")]
    return chosen(hook, path, "sideEffects", allowed)


def _client_errors(config: Object, path: Path) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [field.required(path, "exactly one of url or service is required")]
    if url is not None:
        return list(url_errors(url, field.child(path, "url")))
    # upstream swaps the two: it reports a missing name as a missing namespace, and vice versa
    swapped = {**(service or {}), "name": (service or {})["namespace"], "namespace": (service or {})["name"]}
    return list(service_errors(swapped, field.child(path, "service")))


def _version_errors(versions: list[str], path: Path, *, any_version: bool) -> list[FieldError]:
    review_versions = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        return [field.required(path, f"must specify one of {review_versions}")]
    errors = []
    again = repeats(versions)
    for n, version in enumerate(versions):
        where = field.index(path, n)
        if n in again:
            errors.append(field.invalid(where, version, "duplicate version"))
        else:
            errors += [field.invalid(where, version, text) for text in dns1035_label(version)]
    if not any_version and not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(field.invalid(path, versions, f"must include at least one of {review_versions}"))
    return errors


# -- policies ---------------------------------------------------------------------------------------------------------


_REASONS: Final = ["Forbidden", "Invalid", "RequestEntityTooLarge"]
_ALSO_ALLOWED: Final = "Unauthorized"
"""Documented as a reason, and implemented, but refused by upstream's validation. It is allowed here."""
_ACTIONS: Final = ["Audit", "Deny", "Warn"]
_NOT_FOUND_ACTIONS: Final = ["Deny", "Allow"]
_PATCH_TYPES: Final = ["ApplyConfiguration", "JSONPatch"]
_PATCHES: Final = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}
_MAX_AUDIT_ANNOTATIONS: Final = 20
_MAX_VALUE_EXPRESSION: Final = 5 * 1024
_is_identifier: Final = expression("[_a-zA-Z][_a-zA-Z0-9]*")
_CEL_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip


# Policies


class _PolicyValidator:
    """Validates one policy; knows the names for its expressions, and the expressions of the stored policy."""

    def __init__(self, new: Object, old: Object | None, context: Context) -> None:
        self.spec: Object = new["spec"]
        self.before: Object = (old or {}).get("spec") or {}
        self.name: str = new["metadata"].get("name", "")
        self.check = context.check
        self.params = self.spec.get("paramKind") is not None
        self.updating = old is not None
        self.variables: list[tuple[str, str]] = []
        self.validations = {validation.get("expression", "") for validation in self.before.get("validations") or ()}

    def common(self, *, mutating: bool) -> list[FieldError]:
        spec = self.spec
        errors = chosen(spec, "spec", "failurePolicy", FAILURE_POLICIES, required=True)
        if spec.get("paramKind") is not None:
            errors += _param_kind_errors(spec["paramKind"], "spec.paramKind")
        errors += _constraint_errors(spec.get("matchConstraints"), "spec.matchConstraints", mutating=mutating)
        if not self.same_conditions():
            conditions, path = spec.get("matchConditions") or [], "spec.matchConditions"
            before = (condition.get("expression", "") for condition in self.before.get("matchConditions") or ())
            errors += condition_errors(conditions, path, self.check, params=self.params, before=before)
        for n, variable in enumerate(spec.get("variables") or ()):
            errors += self.variable(variable, field.index("spec.variables", n))
        return errors

    def same_conditions(self) -> bool:
        names = ("paramKind", "matchConditions")
        return self.updating and all(equal(self.spec.get(n) or None, self.before.get(n) or None) for n in names)

    def use(self, result: Json, expression: str, before: set[str], *, authorizer: bool = True) -> Use:
        return Use(result, self.params, authorizer, tuple(self.variables), expression in before)

    def variable(self, variable: Object, path: Path) -> list[FieldError]:
        name, expression = variable.get("name", ""), variable.get("expression", "")
        errors: list[FieldError] = []
        if not trim_space(name):
            errors.append(field.required(field.child(path, "name"), "name is not specified"))
        elif not _is_identifier.fullmatch(name) or name in _CEL_RESERVED:
            errors.append(field.invalid(field.child(path, "name"), name, "must be a valid CEL identifier"))
        where = field.child(path, "expression")
        if not trim_space(expression):
            return [*errors, field.required(where, "expression is not specified")]
        errors += expression_errors(where, expression, self.use("any", expression, self.validations), self.check)
        self.variables.append((name, expression))
        return errors

    def validation(self, validation: Object, path: Path) -> list[FieldError]:
        expression, message = validation.get("expression", ""), validation.get("message", "")
        where = field.child(path, "expression")
        if trim_space(expression):
            errors = expression_errors(where, expression, self.use("bool", expression, self.validations), self.check)
        else:
            errors = [field.required(where, "expression is not specified")]
        errors += self.message_expression(
            validation.get("messageExpression", ""), field.child(path, "messageExpression")
        )
        where = field.child(path, "message")
        if message and not trim_space(message):
            errors.append(field.invalid(where, message, "must be non-empty if specified"))
        elif "\n" in trim_space(message) or "\r" in trim_space(message):
            errors.append(field.invalid(where, message, "must not contain line breaks"))
        return (
            errors
            if validation.get("reason") == _ALSO_ALLOWED
            else errors + chosen(validation, path, "reason", _REASONS)
        )

    def message_expression(self, expression: str, path: Path) -> list[FieldError]:
        if not expression:
            return []
        if not trim_space(expression):
            return [field.invalid(path, expression, "must be non-empty if specified")]
        before = {validation.get("messageExpression", "") for validation in self.before.get("validations") or ()}
        use = self.use("string", expression, before, authorizer=False)
        return expression_errors(path, expression, use, self.check)

    def audit_annotation(self, annotation: Object, path: Path) -> list[FieldError]:
        key, expression = annotation.get("key", ""), annotation.get("valueExpression", "")
        where = field.child(path, "key")
        if self.name:
            full = f"{self.name}/{key}"
            errors = [field.invalid(where, full, text) for text in qualified_name(full)]
        else:
            errors = [field.invalid(where, key, "requires metadata.name be non-empty")]
        where, trimmed = field.child(path, "valueExpression"), trim_space(expression)
        if not trimmed:
            return [*errors, field.required(where, "valueExpression is not specified")]
        if len(trimmed.encode("utf-8", "replace")) > _MAX_VALUE_EXPRESSION:
            return [*errors, field.required(where, f"must not exceed {_MAX_VALUE_EXPRESSION} bytes in length")]
        before = {annotation.get("valueExpression", "") for annotation in self.before.get("auditAnnotations") or ()}
        use = self.use("string or null", expression, before)
        return errors + expression_errors(where, trimmed, use, self.check, shown=expression)

    def mutation(self, mutation: Object, path: Path) -> list[FieldError]:
        kind = mutation.get("patchType", "")
        field_name = _PATCHES.get(kind)
        if field_name is None:
            return chosen(mutation, path, "patchType", _PATCH_TYPES, required=True)
        errors: list[FieldError] = []
        if mutation.get(field_name) is None:
            errors.append(field.required(field.child(path, field_name), f"must be specified when patchType is {kind}"))
        else:
            expression = trim_space(mutation[field_name].get("expression", ""))
            where = field.child(path, field_name, "expression")
            use = self.use(kind, expression, set())
            errors += expression_errors(where, expression, use, self.check) if expression else [field.required(where)]
        other_field = next(name for name in _PATCHES.values() if name != field_name)
        if mutation.get(other_field) is not None:
            rule = f"must not be specified when patchType is {kind}"
            errors.append(field.invalid(field.child(path, other_field), f"{{{other_field}}}", rule))
        return errors


def validate_validating(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource == "status":
        return _status_errors(new.get("status") or {})
    validator = _PolicyValidator(new, old, context)
    errors = validator.common(mutating=False)
    validations, annotations = validator.spec.get("validations") or [], validator.spec.get("auditAnnotations") or []
    if not validations and not annotations:
        rule = "validations or auditAnnotations must contain at least one item"
        errors += [field.required("spec.validations", rule), field.required("spec.auditAnnotations", rule)]
    for n, validation in enumerate(validations):
        errors += validator.validation(validation, field.index("spec.validations", n))
    path = "spec.auditAnnotations"
    if len(annotations) > _MAX_AUDIT_ANNOTATIONS:
        shown = [
            {"Key": annotation["key"], "ValueExpression": annotation["valueExpression"]} for annotation in annotations
        ]
        rule = f"must not have more than {_MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        errors.append(field.invalid(path, shown, rule))
    again = repeats(annotation.get("key", "") for annotation in annotations)
    for n, annotation in enumerate(annotations):
        where = field.index(path, n)
        errors += validator.audit_annotation(annotation, where)
        errors += [field.duplicate(field.child(where, "key"), annotation.get("key", ""))] if n in again else []
    return errors + reserved_name_errors(new, old)


def validate_mutating(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    validator = _PolicyValidator(new, old, context)
    errors = validator.common(mutating=True)
    mutations = validator.spec.get("mutations") or []
    if not mutations:
        errors.append(field.required("spec.mutations", "mutations must contain at least one item"))
    for n, mutation in enumerate(mutations):
        errors += validator.mutation(mutation, field.index("spec.mutations", n))
    errors += chosen(validator.spec, "spec", "reinvocationPolicy", REINVOCATION_POLICIES, required=True)
    return errors + reserved_name_errors(new, old)


def _constraint_errors(match: Object | None, path: Path, *, mutating: bool) -> list[FieldError]:
    if match is None:
        return [field.required(path)]
    errors = match_resources_errors(match, path)
    if not match.get("resourceRules"):
        errors.append(field.required(field.child(path, "resourceRules")))
    return errors + (mutable_errors(match, path) if mutating else [])


def _param_kind_errors(kind: Object, path: Path) -> list[FieldError]:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    where = field.child(path, "apiVersion")
    group, _, version = api_version.rpartition("/")
    errors = []
    if not api_version:
        errors.append(field.required(where))
    elif api_version.count("/") > 1:
        errors.append(field.invalid(where, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        if texts := dns1123_subdomain(group) if group else []:
            errors.append(field.invalid(where, group, ",".join(texts)))
        if not version:
            errors.append(field.invalid(where, api_version, "version must be specified"))
        elif texts := dns1035_label(version):
            errors.append(field.invalid(where, version, ",".join(texts)))
    where = field.child(path, "kind")
    if not name:
        errors.append(field.required(where))
    elif texts := dns1035_label(name.lower()):
        rule = f"may have mixed case, but should otherwise match: {','.join(texts)}"
        errors.append(field.invalid(where, name, rule))
    return errors


# Status

_CONDITION_STATUSES: Final = ["False", "True", "Unknown"]
_MAX_CONDITION_REASON: Final = 1024
_MAX_CONDITION_MESSAGE: Final = 32 * 1024
_is_condition_reason: Final = expression("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NOT_A_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def _status_errors(status: Object) -> list[FieldError]:
    """The errors in a status. As a JSONPath, fieldRef is not checked."""
    errors = []
    for n, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = field.index("status.typeChecking.expressionWarnings", n)
        errors += [field.required(field.child(path, name)) for name in ("warning", "fieldRef") if not warning[name]]
    conditions = status.get("conditions") or []
    again = repeats(condition.get("type", "") for condition in conditions)
    for n, condition in enumerate(conditions):
        path = field.index("status.conditions", n)
        errors += [field.duplicate(path, condition["type"])] if n in again else []
        errors += _condition_errors(condition, path)
    return errors


def _condition_errors(condition: Object, path: Path) -> list[FieldError]:
    """meta/v1/validation's ValidateCondition."""
    kind, reason, generation = condition["type"], condition["reason"], condition.get("observedGeneration", 0)
    where = field.child(path, "type")
    texts = qualified_name(kind)
    errors = [field.invalid(where, kind, text) for text in texts] if kind else [field.required(where, "is required")]
    errors += chosen(condition, path, "status", _CONDITION_STATUSES, required=True)
    if generation < 0:
        rule = "must be greater than or equal to zero"
        errors.append(field.invalid(field.child(path, "observedGeneration"), generation, rule))
    if not condition.get("lastTransitionTime"):
        errors.append(field.required(field.child(path, "lastTransitionTime")))
    where = field.child(path, "reason")
    if not reason:
        errors.append(field.required(where))
    elif not _is_condition_reason.fullmatch(reason):
        errors.append(field.invalid(where, reason, _NOT_A_REASON))
    if len(reason.encode("utf-8", "replace")) > _MAX_CONDITION_REASON:
        errors.append(field.too_long(where, _MAX_CONDITION_REASON))
    if len(condition["message"].encode("utf-8", "replace")) > _MAX_CONDITION_MESSAGE:
        errors.append(field.too_long(field.child(path, "message"), _MAX_CONDITION_MESSAGE))
    return errors


# Bindings


def validate_validating_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    errors = _binding_errors(spec)
    return errors + _action_errors(spec.get("validationActions") or []) + reserved_name_errors(new, old)


def validate_mutating_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    errors = _binding_errors(spec) + mutable_errors(spec.get("matchResources"), "spec.matchResources")
    return errors + reserved_name_errors(new, old)


def _binding_errors(spec: Object) -> list[FieldError]:
    name = spec.get("policyName", "")
    path = "spec.policyName"
    texts = dns1123_subdomain(name) if name else []
    errors = [field.invalid(path, name, text) for text in texts] if name else [field.required(path)]
    if spec.get("paramRef") is not None:
        errors += _param_ref_errors(spec["paramRef"], "spec.paramRef")
    return errors + match_resources_errors(spec.get("matchResources"), "spec.matchResources")


def _param_ref_errors(reference: Object, path: Path) -> list[FieldError]:
    name, selector = reference.get("name", ""), reference.get("selector")
    where, exclusive = field.child(path, "name"), "name and selector are mutually exclusive"
    errors = [field.invalid(where, name, text) for text in path_segment_name(name)]
    if name and selector is not None:
        errors.append(field.forbidden(where, exclusive))
    if selector is not None:
        where = field.child(path, "selector")
        errors += label_selector_errors(selector, where)
        if name:
            errors.append(field.forbidden(where, exclusive))
    if not name and selector is None:
        errors.append(field.required(path, "one of name or selector must be specified"))
    return errors + chosen(reference, path, "parameterNotFoundAction", _NOT_FOUND_ACTIONS, required=True)


def _action_errors(actions: list[str]) -> list[FieldError]:
    path = "spec.validationActions"
    errors = []
    again = repeats(actions)
    for n, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(field.not_supported(field.index(path, n), as_json(action), _ACTIONS))
        if n in again:
            errors.append(field.duplicate(field.index(path, n), as_json(action)))
    if {"Deny", "Warn"} <= set(actions):
        rule = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(field.invalid(path, actions, rule))
    if not actions:
        errors.append(field.required(path, "at least one validation action is required"))
    return errors


# -- admissionregistration --------------------------------------------------------------------------------------------


VALIDATION: Final = struct("admissionregistration/v1.Validation")
TYPE_CHECKING: Final = struct("admissionregistration/v1.TypeChecking")
JSON_PATCH: Final = struct("admissionregistration/v1.JSONPatch")

RULES: Final = {
    "MutatingAdmissionPolicy": Rules(validate=validate_mutating),
    "MutatingAdmissionPolicyBinding": Rules(validate=validate_mutating_binding),
    "MutatingWebhookConfiguration": Rules(validate=validate_webhooks),
    "ValidatingAdmissionPolicy": Rules(validate=validate_validating),
    "ValidatingAdmissionPolicyBinding": Rules(validate=validate_validating_binding),
    "ValidatingWebhookConfiguration": Rules(validate=validate_webhooks),
}
