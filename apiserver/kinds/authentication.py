"""authentication.k8s.io/v1: virtual resources, and TokenRequest, the body of serviceaccounts/token.

The rules are those of pkg/apis/authentication/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api import field
from noxu.apiserver.api.field import FieldError, Path
from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.api.names import dns1123_subdomain
from noxu.apiserver.go.structs import BOOL, INT64, STRING, TIME, UID, Field, List, Map, Struct
from noxu.apiserver.kinds.kind import VIRTUAL_VERBS, Kind
from noxu.apiserver.kinds.meta import ALWAYS, NULL, TYPE_META
from noxu.apiserver.values import Object

EXTRA_VALUE: Final = List(STRING, "v1.ExtraValue", wrapped=True)
USER_INFO: Final = Struct("UserInfo").define(
    Field("username", STRING, 1),
    Field("uid", STRING, 2),
    Field("groups", List(STRING), 3, list_type="atomic"),
    Field("extra", Map(EXTRA_VALUE), 4),
)
SELF_SUBJECT_REVIEW_STATUS: Final = Struct("SelfSubjectReviewStatus").define(
    Field("userInfo", USER_INFO, 1, ALWAYS),
)
SELF_SUBJECT_REVIEW: Final = Struct("SelfSubjectReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("status", SELF_SUBJECT_REVIEW_STATUS, 2, ALWAYS),
)
TOKEN_REVIEW_SPEC: Final = Struct("TokenReviewSpec").define(
    Field("token", STRING, 1),
    Field("audiences", List(STRING), 2, list_type="atomic"),
)
TOKEN_REVIEW_STATUS: Final = Struct("TokenReviewStatus").define(
    Field("authenticated", BOOL, 1),
    Field("user", USER_INFO, 2, ALWAYS),
    Field("audiences", List(STRING), 4, list_type="atomic"),
    Field("error", STRING, 3),
)
TOKEN_REVIEW: Final = Struct("TokenReview").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", TOKEN_REVIEW_SPEC, 2, ALWAYS),
    Field("status", TOKEN_REVIEW_STATUS, 3, ALWAYS),
)
BOUND_OBJECT_REFERENCE: Final = Struct("BoundObjectReference").define(
    Field("kind", STRING, 1),
    Field("apiVersion", STRING, 2),
    Field("name", STRING, 3),
    Field("uid", UID, 4),
)
TOKEN_REQUEST_SPEC: Final = Struct("TokenRequestSpec").define(
    Field("audiences", List(STRING), 1, ALWAYS, list_type="atomic"),
    Field("expirationSeconds", INT64, 4, NULL),
    Field("boundObjectRef", BOUND_OBJECT_REFERENCE, 3, NULL),
    Field("attestations", Map(List(STRING, "v1.AttestationValue", wrapped=True)), 5),
)
TOKEN_REQUEST_STATUS: Final = Struct("TokenRequestStatus").define(
    Field("token", STRING, 1, ALWAYS),
    Field("expirationTimestamp", TIME, 2, ALWAYS),
)
TOKEN_REQUEST: Final = Struct("TokenRequest").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", TOKEN_REQUEST_SPEC, 2, ALWAYS),
    Field("status", TOKEN_REQUEST_STATUS, 3, ALWAYS),
)

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


KINDS: Final = tuple(
    Kind(group="authentication.k8s.io", struct=struct, plural=plural, namespaced=False, verbs=VIRTUAL_VERBS)
    for struct, plural in ((SELF_SUBJECT_REVIEW, "selfsubjectreviews"), (TOKEN_REVIEW, "tokenreviews"))
)
