"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction (plugin/pkg/admission/certificates)."""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.rules import PluginRules
from noxu.go import base64, x509
from noxu.go.text import quote
from noxu.go.x509 import ORGANIZATION
from noxu.registry import access

_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


async def _check_approval(request: Attributes) -> None:
    """Who approves or denies a request needs the verb `approve` for its signer."""
    if request.subresource == "approval":
        _require(request, "approve")


async def _check_signing(request: Attributes) -> None:
    """Who changes the certificate or the conditions in the status needs the verb `sign` for the signer."""
    if request.subresource != "status" or request.draft.old is None:
        return
    new, old = (value.get("status") or {} for value in (request.draft.new, request.draft.old))
    if any(new.get(name) != old.get(name) for name in ("certificate", "conditions")):
        _require(request, "sign")


def _require(request: Attributes, verb: str) -> None:
    asking = request.draft.request
    signer = request.draft.new["spec"].get("signerName", "")
    asked = access.AccessAttributes(asking.user, verb, "certificates.k8s.io", "*", "signers")
    domain = f"{signer.partition('/')[0]}/*"
    if not any(asking.authorize(asked._replace(name=name)).allowed for name in (signer, domain)):
        raise refusal(request, f"user not permitted to {verb} requests with signerName {quote(signer)}")


APPROVAL: Final = PluginRules(validate=_check_approval)
SIGNING: Final = PluginRules(validate=_check_signing)


async def _restrict_subject(request: Attributes) -> None:
    """A certificate for a client of the server must not make it a member of system:masters."""
    if request.operation != "CREATE" or request.subresource:
        return
    spec = request.draft.new["spec"]
    if spec.get("signerName") != _CLIENT_SIGNER:
        return
    try:
        asked = x509.read_request(base64.decode(spec.get("request") or ""))
    except ValueError as error:
        raise refusal(request, f"failed to parse CSR: {error}") from None
    if _MASTERS in asked.subject.values(ORGANIZATION):
        raise refusal(request, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


SUBJECT_RESTRICTION: Final = PluginRules(validate=_restrict_subject)
