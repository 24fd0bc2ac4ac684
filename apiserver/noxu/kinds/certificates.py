"""certificates.k8s.io/v1: CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest.

The rules are those of k8s.io/kubernetes pkg/apis/certificates/validation and the strategies of pkg/registry/certificates.
Signatures are not verified: there is no cryptography here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_label, dns1123_subdomain, subdomain_name
from noxu.go import base64 as go_base64
from noxu.go import pem, x509
from noxu.go.text import quote
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.matching import repeats
from noxu.values import Object, copy, equal

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_MIN_SECONDS: Final = 600
_MAX_DOMAIN, _MAX_SIGNER = 253, 253 + 253 + 63 + 2
_STATUSES: Final = ["False", "True", "Unknown"]
_NOT_A_SIGNER: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_EXCLUSIVE: Final = "Approved and Denied conditions are mutually exclusive"


def _signer(name: str, path: Path) -> Errors:
    """`example.com/signer` (ValidateSignerName)."""
    if not name:
        yield field.required(path)
        return
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        yield field.invalid(path, name, _NOT_A_SIGNER)
        return
    if len(domain) > _MAX_DOMAIN:
        yield field.too_long(path, _MAX_DOMAIN)
    labels = domain.split(".")
    yield from _first_wrong(labels, dns1123_label, domain, path)
    if len(labels) < 2:
        yield field.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    yield from _first_wrong(rest.split("."), dns1123_subdomain, rest, path)
    if len(name) > _MAX_SIGNER:
        yield field.too_long(path, _MAX_SIGNER)


def _first_wrong(labels: list[str], check: Callable[[str], list[str]], shown: str, path: Path) -> Errors:
    for label in labels:
        texts = check(label)
        yield from (field.invalid(path, shown, f"validating label {quote(label)}: {text}") for text in texts)
        if texts:
            return


# -- CertificateSigningRequest ----------------------------------------------------------------------------------------


def _complete_request(new: Object, old: Object | None, context: Context) -> None:
    """Set the requester to the user, and the times of conditions; signers keep the decision of approvers."""
    spec: Object = new.setdefault("spec", {})
    if old is None:
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
            if context.user.get(name):
                spec[name] = copy(context.user[name])
        return
    if not context.subresource:
        return
    conditions: list[Object] = (new.get("status") or {}).get("conditions") or []
    before: list[Object] = (old.get("status") or {}).get("conditions") or []
    if context.subresource == "status":
        for kind in (APPROVED, DENIED):
            _preserve(kind, conditions, before)
    for condition in conditions:
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or context.now
        if not condition.get("lastTransitionTime"):
            same = (earlier for earlier in before if _identity(earlier) == _identity(condition))
            condition["lastTransitionTime"] = next(same, {}).get("lastTransitionTime") or context.now


def _identity(condition: Object) -> tuple[str, str]:
    return condition.get("type", ""), condition.get("status", "")


def _preserve(kind: str, conditions: list[Object], before: list[Object]) -> None:
    """Keep the stored conditions of a type, unless some are added or removed."""
    stored = _of_type(before, kind)
    positions = [n for n, condition in enumerate(conditions) if condition.get("type") == kind]
    if len(stored) == len(positions):
        for n, condition in zip(positions, stored, strict=True):
            conditions[n] = copy(condition)


def _of_type(conditions: list[Object], kind: str) -> list[Object]:
    return [condition for condition in conditions if condition.get("type") == kind]


def _validate_request(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    status, before = new.get("status") or {}, (old or {}).get("status") or {}
    errors = [] if old is not None else list(_request(new.get("spec") or {}))  # an update keeps the spec
    errors += _conditions(status.get("conditions") or [], before.get("conditions") or [])
    certificate = status.get("certificate") or ""
    changed = certificate != (before.get("certificate") or "")
    if changed:
        why = _certificates_error(go_base64.decode(certificate))
        if why and not (before.get("certificate") and _certificates_error(go_base64.decode(before["certificate"]))):
            errors.append(field.invalid("status.certificate", "<certificate data>", why))
    return errors if old is None else errors + list(_update(status, before, context.subresource, changed=changed))


def _request(spec: Object) -> Errors:
    why = _request_error(go_base64.decode(spec.get("request") or ""))
    if why:
        yield field.invalid("spec.request", spec.get("request") or "", why)
    usages: list[str] = spec.get("usages") or []
    if not usages:
        yield field.required("spec.usages")
    valid_usages = checks.choices("certificates/v1.KeyUsage")
    for n, usage in enumerate(usages):
        if usage not in valid_usages:
            yield field.not_supported(f"spec.usages[{n}]", as_json(usage), valid_usages)
    for n in sorted(repeats(usages)):
        yield field.duplicate(f"spec.usages[{n}]", as_json(usages[n]))
    signer = spec.get("signerName", "")
    if signer == _LEGACY_SIGNER:
        rule = "the legacy signerName is not allowed via this API version"
        yield field.invalid("spec.signerName", signer, rule)
    else:
        yield from _signer(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _MIN_SECONDS:
        rule = "may not specify a duration less than 600 seconds (10 minutes)"
        yield field.invalid("spec.expirationSeconds", seconds, rule)


def _request_error(content: bytes) -> str:
    try:
        x509.read_request(content)
    except ValueError as error:
        return str(error)
    return ""


def _certificates_error(content: bytes) -> str:
    """The error of issued certificates, "" if there is none. No content has no error."""
    if not content:
        return ""
    blocks = list(pem.blocks(content))
    for block in blocks:
        if block.type != pem.CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        why = x509.certificate_error(block.content)
        if why:
            return f"x509: {why}"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _conditions(conditions: list[Object], before: list[Object]) -> Errors:
    """The errors of conditions; violations of the stored conditions are tolerated."""
    types = [condition.get("type", "") for condition in before]
    any_empty, any_duplicate = "" in types, len(set(types)) < len(types)
    any_both = {APPROVED, DENIED} <= set(types)
    seen: set[str] = set()
    for n, condition in enumerate(conditions):
        path, (kind, status) = f"status.conditions[{n}]", _identity(condition)
        if not kind and not any_empty:
            yield field.required(f"{path}.type")
        allowed = ["True"] if kind in (APPROVED, DENIED, FAILED) else _STATUSES
        if not status:
            yield field.required(f"{path}.status")
        elif status not in allowed:
            yield field.not_supported(f"{path}.status", as_json(status), allowed)
        opposite = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if opposite in seen and not any_both:
            yield field.invalid(f"{path}.type", as_json(kind), _EXCLUSIVE)
        if kind in seen and not any_duplicate:
            yield field.duplicate(f"{path}.type", as_json(kind))
        seen.add(kind)


def _update(status: Object, before: Object, subresource: str, *, changed: bool) -> Errors:
    """Decisions remain, and are made through /approval; certificates are set through /status, once."""
    path = "status.conditions"
    conditions, stored = status.get("conditions") or [], before.get("conditions") or []
    for kind in (APPROVED, DENIED, FAILED):
        if len(_of_type(conditions, kind)) < len(_of_type(stored, kind)):
            yield field.forbidden(path, f"updates may not remove a condition of type {quote(kind)}")
    for kind in (APPROVED, DENIED) if subresource != "approval" else ():
        new, old = _of_type(conditions, kind), _of_type(stored, kind)
        if len(new) > len(old):
            yield field.forbidden(path, f"updates may not add a condition of type {quote(kind)}")
        elif len(new) == len(old) and not equal(new, old):
            yield field.forbidden(path, f"updates may not modify a condition of type {quote(kind)}")
    if changed and subresource != "status":
        yield field.forbidden("status.certificate", "updates may not set certificate content")
    elif changed and before.get("certificate"):
        yield field.forbidden("status.certificate", "updates may not modify existing certificate content")


# -- ClusterTrustBundle -----------------------------------------------------------------------------------------------


def _validate_bundle(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    signer = spec.get("signerName", "")
    errors = list(_signer(signer, "spec.signerName")) if signer else []
    if old is None or spec.get("trustBundle") != before.get("trustBundle"):
        errors += (field.invalid("spec.trustBundle", "<value omitted>", why) for why in _bundle_errors(spec))
    if old is not None:
        errors += checks.immutable(signer, before.get("signerName", ""), "spec.signerName")
    return errors


def _bundle_errors(spec: Object) -> Iterator[str]:
    by_content: dict[bytes, list[int]] = {}
    is_malformed = False
    for n, block in enumerate(pem.blocks(spec.get("trustBundle", "").encode("utf-8", "replace"))):
        why = _anchor_error(block)
        if why:
            is_malformed = True
            yield f"entry {n} {why}"
        by_content.setdefault(block.content, []).append(n)
    if is_malformed:
        return
    if not by_content:
        yield "at least one trust anchor must be provided"
    for positions in by_content.values():
        if len(positions) > 1:
            yield f"duplicate trust anchor (indices [{' '.join(map(str, positions))}])"


def _anchor_error(block: pem.Block) -> str:
    if block.type != pem.CERTIFICATE:
        return f"has bad block type: {block.type}"
    if block.has_headers:
        return "has PEM block headers"
    if x509.certificate_error(block.content):
        return "does not parse as X.509"
    return "" if x509.is_authority(block.content) else "does not have the CA bit set"


# -- PodCertificateRequest --------------------------------------------------------------------------------------------

_MAX_UID: Final = 128
_LIFETIMES: Final = (3600, 91 * 24 * 3600)  # seconds
_KUBERNETES_LIFETIMES: Final = (3600, 24 * 3600)


def _validate_pod_request(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    spec: Object = new.get("spec") or {}
    if context.subresource:
        return list(checks.errors((new.get("status") or {}).get("conditions"), "status.conditions"))
    if old is not None:
        struct = "certificates/v1.PodCertificateRequestSpec"
        return list(checks.immutable(spec, old.get("spec") or {}, "spec", struct))
    return list(_pod_request(spec))


def _pod_request(spec: Object) -> Errors:
    yield from _signer(spec.get("signerName", ""), "spec.signerName")
    for subject in ("pod", "serviceAccount", "node"):
        yield from checks.named(spec.get(f"{subject}Name", ""), subdomain_name, f"spec.{subject}Name")
        path, uid = f"spec.{subject}UID", spec.get(f"{subject}UID", "")
        if not uid:
            yield field.invalid(path, as_json(""), "must not be empty")
        if len(uid) > _MAX_UID:
            yield field.too_long(path, _MAX_UID)
    seconds = spec.get("maxExpirationSeconds")
    is_own = spec.get("signerName", "").startswith("kubernetes.io/")
    lowest, highest = _KUBERNETES_LIFETIMES if is_own else _LIFETIMES
    if seconds is None:
        yield field.required("spec.maxExpirationSeconds", "must be set")
    elif not lowest <= seconds <= highest:
        yield field.invalid("spec.maxExpirationSeconds", seconds, f"must be in the range [{lowest}, {highest}]")
    if not spec.get("stubPKCS10Request"):
        yield field.required("spec.stubPKCS10Request")
    elif why := _stub_error(go_base64.decode(spec["stubPKCS10Request"])):
        yield field.invalid("spec.stubPKCS10Request", "<stub PKCS#10 request>", why)


def _stub_error(der: bytes) -> str:
    try:
        x509.parse_request(der)
    except ValueError as error:
        return str(error)
    return ""


RULES: Final = {
    "CertificateSigningRequest": Rules(complete=_complete_request, validate=_validate_request),
    "ClusterTrustBundle": Rules(validate=_validate_bundle),
    "PodCertificateRequest": Rules(validate=_validate_pod_request),
}
