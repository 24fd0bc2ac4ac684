"""admissionregistration.k8s.io/v1: the tables of webhook configurations, policies and bindings.

Their rules are in `webhooks` and `policies`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from noxu.apiserver.kinds.facts import struct
from noxu.apiserver.kinds.kind import Rules
from noxu.apiserver.kinds.policies import (
    default_binding,
    default_policy,
    validate_mutating,
    validate_mutating_binding,
    validate_validating,
    validate_validating_binding,
)
from noxu.apiserver.kinds.webhooks import default_webhooks, validate_webhooks

VALIDATION: Final = struct("admissionregistration/v1.Validation")
TYPE_CHECKING: Final = struct("admissionregistration/v1.TypeChecking")
JSON_PATCH: Final = struct("admissionregistration/v1.JSONPatch")

GROUP: Final = "admissionregistration.k8s.io"
RULES: Final = {
    "MutatingAdmissionPolicy": Rules(default_policy, validate=validate_mutating),
    "MutatingAdmissionPolicyBinding": Rules(default_binding, validate=validate_mutating_binding),
    "MutatingWebhookConfiguration": Rules(partial(default_webhooks, mutating=True), validate=validate_webhooks),
    "ValidatingAdmissionPolicy": Rules(default_policy, validate=validate_validating),
    "ValidatingAdmissionPolicyBinding": Rules(default_binding, validate=validate_validating_binding),
    "ValidatingWebhookConfiguration": Rules(partial(default_webhooks, mutating=False), validate=validate_webhooks),
}
