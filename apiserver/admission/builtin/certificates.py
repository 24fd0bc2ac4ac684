"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction (plugin/pkg/admission/certificates)."""

from __future__ import annotations

from typing import Final

from noxu.apiserver.admission.attributes import Attributes, refusal
from noxu.apiserver.admission.builtin.rules import Permits, Rules
from noxu.apiserver.api.errors import Qualified
from noxu.apiserver.go import base64, pem
from noxu.apiserver.go.text import quote

_SIGNERS: Final = Qualified("certificates.k8s.io", "signers")
_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"


def approval(permits: Permits) -> Rules:
    """Who approves or denies a request needs the verb `approve` for its signer."""

    async def validate(request: Attributes) -> None:
        if request.subresource == "approval":
            _require(request, permits, "approve")

    return Rules(validate=validate)


def signing(permits: Permits) -> Rules:
    """Who changes the certificate or the conditions in the status needs the verb `sign` for the signer."""

    async def validate(request: Attributes) -> None:
        if request.subresource != "status" or request.draft.old is None:
            return
        new, old = (value.get("status") or {} for value in (request.draft.new, request.draft.old))
        if any(new.get(name) != old.get(name) for name in ("certificate", "conditions")):
            _require(request, permits, "sign")

    return Rules(validate=validate)


def _require(request: Attributes, permits: Permits, verb: str) -> None:
    signer, user = request.draft.new["spec"].get("signerName", ""), request.draft.request.user
    domain = f"{signer.partition('/')[0]}/*"
    if not any(permits(user, verb, _SIGNERS, name) for name in (signer, domain)):
        raise refusal(request, f"user not permitted to {verb} requests with signerName {quote(signer)}")


async def _restrict_subject(request: Attributes) -> None:
    """A certificate for a client of the server must not make it a member of system:masters."""
    if request.operation != "CREATE" or request.subresource:
        return
    spec = request.draft.new["spec"]
    if spec.get("signerName") != _CLIENT_SIGNER:
        return
    try:
        found = _organizations(spec.get("request") or "")
    except ValueError as error:
        raise refusal(request, f"failed to parse CSR: {error}") from None
    if _MASTERS in found:
        raise refusal(request, f"use of {_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(request: str) -> list[str]:
    """The organizations in the subject of a request, which is PEM in base64. Raises ValueError."""
    block = next(pem.blocks(base64.decode(request)), None)
    if block is None or block.type != pem.REQUEST:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return pem.organizations(block.content)


SUBJECT_RESTRICTION: Final = Rules(validate=_restrict_subject)
