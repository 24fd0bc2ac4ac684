"""admissionregistration.k8s.io/v1: the tables of webhook configurations, policies and bindings.

Their rules are in `webhooks` and `policies`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.go.structs import BYTES, INT32, INT64, STRING, Field, List, Struct, named
from noxu.apiserver.kinds.kind import METADATA_OF_STATUS, Kind, Subresource
from noxu.apiserver.kinds.meta import ALWAYS, CONDITION, LABEL_SELECTOR, NULL, POINTER, TYPE_META
from noxu.apiserver.kinds.policies import (
    default_binding,
    default_policy,
    validate_mutating,
    validate_mutating_binding,
    validate_validating,
    validate_validating_binding,
)
from noxu.apiserver.kinds.webhooks import default_webhooks, validate_webhooks


def _by_name(name: str, item: Struct, number: int) -> Field:
    """A list whose items are merged by name."""
    return Field(name, List(item), number, patch="merge", merge_key="name", list_type="map", list_keys=("name",))


SERVICE_REFERENCE: Final = Struct("ServiceReference").define(
    Field("namespace", STRING, 1, ALWAYS),
    Field("name", STRING, 2, ALWAYS),
    Field("path", STRING, 3, POINTER),
    Field("port", INT32, 4, POINTER),
)
WEBHOOK_CLIENT_CONFIG: Final = Struct("WebhookClientConfig").define(
    Field("url", STRING, 3, POINTER),
    Field("service", SERVICE_REFERENCE, 1, POINTER),
    Field("caBundle", BYTES, 2),
)
RULE_WITH_OPERATIONS: Final = Struct("RuleWithOperations").define(
    Field("operations", List(named("v1.OperationType")), 1, list_type="atomic"),
    Field("apiGroups", List(STRING), 1, list_type="atomic", inline="Rule", within=(2,)),
    Field("apiVersions", List(STRING), 2, list_type="atomic", inline="Rule", within=(2,)),
    Field("resources", List(STRING), 3, list_type="atomic", inline="Rule", within=(2,)),
    Field("scope", named("v1.ScopeType"), 4, POINTER, inline="Rule", within=(2,)),
)
MATCH_CONDITION: Final = Struct("MatchCondition").define(
    Field("name", STRING, 1, ALWAYS),
    Field("expression", STRING, 2, ALWAYS),
)


def _webhook_fields(object_selector: int) -> tuple[Field, ...]:
    """The fields of both kinds of webhooks; the number of objectSelector differs."""
    return (
        Field("name", STRING, 1, ALWAYS),
        Field("clientConfig", WEBHOOK_CLIENT_CONFIG, 2, ALWAYS),
        Field("rules", List(RULE_WITH_OPERATIONS), 3, list_type="atomic"),
        Field("failurePolicy", named("v1.FailurePolicyType"), 4, POINTER),
        Field("matchPolicy", named("v1.MatchPolicyType"), 9, POINTER),
        Field("namespaceSelector", LABEL_SELECTOR, 5, POINTER, list_type="atomic"),
        Field("objectSelector", LABEL_SELECTOR, object_selector, POINTER, list_type="atomic"),
        Field("sideEffects", named("v1.SideEffectClass"), 6, NULL),
        Field("timeoutSeconds", INT32, 7, POINTER),
        Field("admissionReviewVersions", List(STRING), 8, ALWAYS, list_type="atomic"),
    )


MUTATING_WEBHOOK: Final = Struct("MutatingWebhook").define(
    *_webhook_fields(11),
    Field("reinvocationPolicy", named("v1.ReinvocationPolicyType"), 10, POINTER),
    _by_name("matchConditions", MATCH_CONDITION, 12),
)
MUTATING_WEBHOOK_CONFIGURATION: Final = Struct("MutatingWebhookConfiguration").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    _by_name("webhooks", MUTATING_WEBHOOK, 2),
)
VALIDATING_WEBHOOK: Final = Struct("ValidatingWebhook").define(
    *_webhook_fields(10),
    _by_name("matchConditions", MATCH_CONDITION, 11),
)
VALIDATING_WEBHOOK_CONFIGURATION: Final = Struct("ValidatingWebhookConfiguration").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    _by_name("webhooks", VALIDATING_WEBHOOK, 2),
)
PARAM_KIND: Final = Struct("ParamKind").define(
    Field("apiVersion", STRING, 1),
    Field("kind", STRING, 2),
)
_EMBEDDED_RULE: Final = "RuleWithOperations.Rule"
NAMED_RULE_WITH_OPERATIONS: Final = Struct("NamedRuleWithOperations", atomic=True).define(
    Field("resourceNames", List(STRING), 1, list_type="atomic"),
    Field(
        "operations", List(named("v1.OperationType")), 1, list_type="atomic", inline="RuleWithOperations", within=(2,)
    ),
    Field("apiGroups", List(STRING), 1, list_type="atomic", inline=_EMBEDDED_RULE, within=(2, 2)),
    Field("apiVersions", List(STRING), 2, list_type="atomic", inline=_EMBEDDED_RULE, within=(2, 2)),
    Field("resources", List(STRING), 3, list_type="atomic", inline=_EMBEDDED_RULE, within=(2, 2)),
    Field("scope", named("v1.ScopeType"), 4, POINTER, inline=_EMBEDDED_RULE, within=(2, 2)),
)
MATCH_RESOURCES: Final = Struct("MatchResources").define(
    Field("namespaceSelector", LABEL_SELECTOR, 1, POINTER, list_type="atomic"),
    Field("objectSelector", LABEL_SELECTOR, 2, POINTER, list_type="atomic"),
    Field("resourceRules", List(NAMED_RULE_WITH_OPERATIONS), 3, list_type="atomic"),
    Field("excludeResourceRules", List(NAMED_RULE_WITH_OPERATIONS), 4, list_type="atomic"),
    Field("matchPolicy", named("v1.MatchPolicyType"), 7, POINTER),
)
VALIDATION: Final = Struct("Validation").define(
    Field("expression", STRING, 1, ALWAYS),
    Field("message", STRING, 2),
    Field("reason", named("v1.StatusReason"), 3, POINTER),
    Field("messageExpression", STRING, 4),
)
AUDIT_ANNOTATION: Final = Struct("AuditAnnotation").define(
    Field("key", STRING, 1, ALWAYS),
    Field("valueExpression", STRING, 2, ALWAYS),
)
VARIABLE: Final = Struct("Variable", atomic=True).define(
    Field("name", STRING, 1, ALWAYS),
    Field("expression", STRING, 2, ALWAYS),
)
VALIDATING_ADMISSION_POLICY_SPEC: Final = Struct("ValidatingAdmissionPolicySpec").define(
    Field("paramKind", PARAM_KIND, 1, POINTER, list_type="atomic"),
    Field("matchConstraints", MATCH_RESOURCES, 2, POINTER, list_type="atomic"),
    Field("validations", List(VALIDATION), 3, list_type="atomic"),
    Field("failurePolicy", named("v1.FailurePolicyType"), 4, POINTER),
    Field("auditAnnotations", List(AUDIT_ANNOTATION), 5, list_type="atomic"),
    _by_name("matchConditions", MATCH_CONDITION, 6),
    _by_name("variables", VARIABLE, 7),
)
EXPRESSION_WARNING: Final = Struct("ExpressionWarning").define(
    Field("fieldRef", STRING, 2, ALWAYS),
    Field("warning", STRING, 3, ALWAYS),
)
TYPE_CHECKING: Final = Struct("TypeChecking").define(
    Field("expressionWarnings", List(EXPRESSION_WARNING), 1, list_type="atomic"),
)
VALIDATING_ADMISSION_POLICY_STATUS: Final = Struct("ValidatingAdmissionPolicyStatus").define(
    Field("observedGeneration", INT64, 1),
    Field("typeChecking", TYPE_CHECKING, 2, POINTER),
    Field("conditions", List(CONDITION), 3, list_type="map", list_keys=("type",)),
)
VALIDATING_ADMISSION_POLICY: Final = Struct("ValidatingAdmissionPolicy").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", VALIDATING_ADMISSION_POLICY_SPEC, 2, ALWAYS),
    Field("status", VALIDATING_ADMISSION_POLICY_STATUS, 3, ALWAYS),
)
PARAM_REF: Final = Struct("ParamRef").define(
    Field("name", STRING, 1),
    Field("namespace", STRING, 2),
    Field("selector", LABEL_SELECTOR, 3, POINTER, list_type="atomic"),
    Field("parameterNotFoundAction", named("v1.ParameterNotFoundActionType"), 4, POINTER),
)
VALIDATING_ADMISSION_POLICY_BINDING_SPEC: Final = Struct("ValidatingAdmissionPolicyBindingSpec").define(
    Field("policyName", STRING, 1),
    Field("paramRef", PARAM_REF, 2, POINTER, list_type="atomic"),
    Field("matchResources", MATCH_RESOURCES, 3, POINTER, list_type="atomic"),
    Field("validationActions", List(named("v1.ValidationAction")), 4, list_type="set"),
)
VALIDATING_ADMISSION_POLICY_BINDING: Final = Struct("ValidatingAdmissionPolicyBinding").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", VALIDATING_ADMISSION_POLICY_BINDING_SPEC, 2, ALWAYS),
)
APPLY_CONFIGURATION: Final = Struct("ApplyConfiguration").define(
    Field("expression", STRING, 1),
)
JSON_PATCH: Final = Struct("JSONPatch").define(
    Field("expression", STRING, 1),
)
MUTATION: Final = Struct("Mutation").define(
    Field("patchType", named("v1.PatchType"), 2, ALWAYS),
    Field("applyConfiguration", APPLY_CONFIGURATION, 3, POINTER),
    Field("jsonPatch", JSON_PATCH, 4, POINTER),
)
MUTATING_ADMISSION_POLICY_SPEC: Final = Struct("MutatingAdmissionPolicySpec").define(
    Field("paramKind", PARAM_KIND, 1, POINTER, list_type="atomic"),
    Field("matchConstraints", MATCH_RESOURCES, 2, POINTER, list_type="atomic"),
    Field("variables", List(VARIABLE), 3, list_type="atomic"),
    Field("mutations", List(MUTATION), 4, list_type="atomic"),
    Field("failurePolicy", named("v1.FailurePolicyType"), 5, POINTER),
    _by_name("matchConditions", MATCH_CONDITION, 6),
    Field("reinvocationPolicy", named("v1.ReinvocationPolicyType"), 7),
)
MUTATING_ADMISSION_POLICY: Final = Struct("MutatingAdmissionPolicy").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", MUTATING_ADMISSION_POLICY_SPEC, 2, ALWAYS),
)
MUTATING_ADMISSION_POLICY_BINDING_SPEC: Final = Struct("MutatingAdmissionPolicyBindingSpec").define(
    Field("policyName", STRING, 1),
    Field("paramRef", PARAM_REF, 2, POINTER, list_type="atomic"),
    Field("matchResources", MATCH_RESOURCES, 3, POINTER, list_type="atomic"),
)
MUTATING_ADMISSION_POLICY_BINDING: Final = Struct("MutatingAdmissionPolicyBinding").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", MUTATING_ADMISSION_POLICY_BINDING_SPEC, 2, ALWAYS),
)

GROUP: Final = "admissionregistration.k8s.io"
_kind = partial(
    Kind,
    group=GROUP,
    namespaced=False,
    categories=("api-extensions",),
    unconditional_update=False,
)

KINDS: Final = (
    _kind(
        struct=MUTATING_ADMISSION_POLICY,
        plural="mutatingadmissionpolicies",
        generation="spec",
        default=default_policy,
        validate=validate_mutating,
    ),
    _kind(
        struct=MUTATING_ADMISSION_POLICY_BINDING,
        plural="mutatingadmissionpolicybindings",
        generation="spec",
        default=default_binding,
        validate=validate_mutating_binding,
    ),
    _kind(
        struct=MUTATING_WEBHOOK_CONFIGURATION,
        plural="mutatingwebhookconfigurations",
        generation="webhooks",
        default=partial(default_webhooks, mutating=True),
        validate=validate_webhooks,
    ),
    _kind(
        struct=VALIDATING_ADMISSION_POLICY,
        plural="validatingadmissionpolicies",
        subresources=(
            Subresource(name="status", verbs=("get", "patch", "update"), kept=("spec", *METADATA_OF_STATUS)),
        ),
        generation="spec",
        fresh=("status",),
        kept=("status",),
        default=default_policy,
        validate=validate_validating,
    ),
    _kind(
        struct=VALIDATING_ADMISSION_POLICY_BINDING,
        plural="validatingadmissionpolicybindings",
        generation="spec",
        default=default_binding,
        validate=validate_validating_binding,
    ),
    _kind(
        struct=VALIDATING_WEBHOOK_CONFIGURATION,
        plural="validatingwebhookconfigurations",
        generation="webhooks",
        default=partial(default_webhooks, mutating=False),
        validate=validate_webhooks,
    ),
)
