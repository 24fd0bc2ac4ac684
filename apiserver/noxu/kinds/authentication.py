"""authentication.k8s.io/v1: virtual resources, and TokenRequest, the body of serviceaccounts/token.

The rules are those of pkg/apis/authentication/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path
from noxu.api.names import dns1123_subdomain
from noxu.go.structs import STRING, List
from noxu.kinds.facts import struct
from noxu.values import Object

EXTRA_VALUE: Final = List(STRING, "v1.ExtraValue", wrapped=True)
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
