"""admissionregistration.k8s.io/v1: the tables of webhook configurations, policies and bindings.

Their rules are in `webhooks` and `policies`.
"""

from __future__ import annotations

from typing import Final

from noxu.kinds.facts import struct
from noxu.kinds.kind import Rules
from noxu.kinds.policies import (
    validate_mutating,
    validate_mutating_binding,
    validate_validating,
    validate_validating_binding,
)
from noxu.kinds.webhooks import validate_webhooks

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
