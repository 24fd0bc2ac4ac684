"""The conditions of a CRD, and its accepted names (upstream's pkg/controller and pkg/apihelpers).

These are pure functions of CRDs, for controllers. A condition keeps its position, and its lastTransitionTime until its
status changes.

Each name may be accepted once in a group. Plurals, singulars and short names are names of resources; kinds and list
kinds are another set. A definition uses a name for several purposes, so names are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from enum import Enum
from typing import Final, NamedTuple

from noxu.api.errors import aggregate
from noxu.api.field import FieldError, invalid
from noxu.crd.types import CONDITION, NAMES
from noxu.go import base64 as go_base64
from noxu.go import url as go_url
from noxu.go import x509
from noxu.go.structs import arrange
from noxu.go.text import quote
from noxu.values import Object

NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"
NON_STRUCTURAL: Final = "NonStructuralSchema"
APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
APPROVAL_ANNOTATION: Final = "api-approved.kubernetes.io"


class Condition(NamedTuple):
    """A condition to be set; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str
    message: str


def find(crd: Object, type_: str) -> Object | None:
    """The condition of a type."""
    return next((condition for condition in crd["status"]["conditions"] or [] if condition["type"] == type_), None)


def is_true(crd: Object, type_: str) -> bool:
    """Whether the CRD has the condition with status True."""
    condition = find(crd, type_)
    return condition is not None and condition["status"] == "True"


def is_set(crd: Object, condition: Condition) -> bool:
    """Whether the CRD has the condition, regardless of its time."""
    old = find(crd, condition.type)
    return old is not None and condition == Condition(
        old["type"], old["status"], old.get("reason", ""), old.get("message", "")
    )


def set_condition(crd: Object, condition: Condition, now: str) -> None:
    """Set or add a condition, in place. `now` is a time as metav1.Time is written."""
    conditions = crd["status"]["conditions"] = list(crd["status"]["conditions"] or [])
    for n, old in enumerate(conditions):
        if old["type"] == condition.type:
            unchanged = old["status"] == condition.status and old["lastTransitionTime"] is not None
            time = old["lastTransitionTime"] if unchanged else now
            conditions[n] = arrange(CONDITION, {**old, **condition._asdict(), "lastTransitionTime": time})
            return
    conditions.append(arrange(CONDITION, {**condition._asdict(), "lastTransitionTime": now}))


def remove_condition(crd: Object, type_: str) -> None:
    """Remove a condition, in place."""
    crd["status"]["conditions"] = [
        condition for condition in crd["status"]["conditions"] or [] if condition["type"] != type_
    ]


class Naming(NamedTuple):
    """The result of `names_conditions`. `accepted` is for status.acceptedNames."""

    accepted: Object
    names_accepted: Condition
    established: Condition


def names_conditions(crd: Object, of_group: AcceptedNames) -> Naming:
    """Determine which names in the spec a CRD gets, and its conditions NamesAccepted and Established.

    `of_group` are the names of all CRDs of the group, with or without the CRD itself. Accepted names stay accepted, so the
    first CRD has them. All names are checked; the last conflict is reported.
    """
    requested, granted = crd["spec"]["names"], crd["status"]["acceptedNames"]
    own = AcceptedNames([crd])
    resources, kinds = (of_group.resources, own.resources), (of_group.kinds, own.kinds)
    accepted = dict(granted)
    conflict: tuple[str, str] | None = None
    for name, label, taken in (
        ("plural", "Plural", resources),
        ("singular", "Singular", resources),
        ("shortNames", "ShortNames", resources),
        ("kind", "Kind", kinds),
        ("listKind", "ListKind", kinds),
    ):
        if clashes := _clashes(requested.get(name), granted.get(name), taken):
            conflict = f"{label}Conflict", aggregate(f"{quote(name)} is already in use" for name in clashes)
        else:
            accepted[name] = requested.get(name)
    accepted["categories"] = requested.get("categories")
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    names_accepted = Condition(NAMES_ACCEPTED, "False" if conflict else "True", reason, message)
    return Naming(arrange(NAMES, accepted), names_accepted, _establishing(crd, accepted=not conflict))


def _clashes(requested: object, granted: object, taken: tuple[Container[str], ...]) -> list[str]:
    if isinstance(requested, list):
        ours = granted if isinstance(granted, list) else []
        return [name for name in requested if name not in ours and _is_in(name, taken)]
    return [str(requested)] if requested and requested != granted and _is_in(str(requested), taken) else []


def _is_in(name: str, taken: tuple[Container[str], ...]) -> bool:
    return any(name in names for names in taken)


def _establishing(crd: Object, *, accepted: bool) -> Condition:
    """Established before `established` is called. It never goes back from True to False."""
    old = find(crd, ESTABLISHED)
    if accepted and (old is None or old["status"] != "True"):
        return Condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")
    if old is not None:
        return Condition(ESTABLISHED, old["status"], old.get("reason", ""), old.get("message", ""))
    return Condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")


def established(crd: Object) -> Condition:
    """The condition Established of a CRD whose names have been accepted."""
    config = ((crd["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if x509.load_error(go_base64.decode(config.get("caBundle", ""))):
        return Condition(ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    return Condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")


class Approval(Enum):
    """The state of the approval annotation; the values are reasons of the condition."""

    INVALID = "InvalidAnnotation"
    APPROVED = "ApprovedAnnotation"
    BYPASSED = "UnapprovedAnnotation"
    MISSING = "MissingAnnotation"


def is_protected(group: str) -> bool:
    """Whether a group belongs to the Kubernetes community. x-k8s.io does not."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(crd: Object) -> tuple[Approval, str]:
    """(the state of a CRD's approval, a message about it)."""
    annotation = (crd["metadata"].get("annotations") or {}).get(APPROVAL_ANNOTATION, "")
    required = f"protected groups must have approval annotation {quote(APPROVAL_ANNOTATION)}"
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not annotation:
        return Approval.MISSING, f"{required}, {see}"
    if annotation.startswith("unapproved"):
        return Approval.BYPASSED, f"not approved: {quote(annotation)}"
    try:
        url = go_url.parse_request_uri(annotation)
    except ValueError:
        url = go_url.Url()
    if url.host and url.scheme:
        return Approval.APPROVED, f"approved in {annotation}"
    return Approval.INVALID, f'{required} with either a URL or a reason starting with "unapproved", {see}'


def approved(crd: Object) -> Condition | None:
    """The condition about the approval, None unless the group is protected."""
    if not is_protected(crd["spec"]["group"]):
        return None
    state, reason = approval(crd)
    return Condition(APPROVED, "True" if state is Approval.APPROVED else "False", state.value, reason)


DELETION_PENDING: Final = Condition(
    TERMINATING,
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)
DELETION_IN_PROGRESS: Final = Condition(
    TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
)
DELETION_COMPLETED: Final = Condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
NEVER_ESTABLISHED: Final = Condition(TERMINATING, "False", "NeverEstablished", "resource was never established")


def deletion_failed(why: str) -> Condition:
    """The condition Terminating after an error."""
    return Condition(TERMINATING, "True", "InstanceDeletionFailed", f"could not issue all deletes: {why}")


def non_structural(crd: Object) -> Condition | None:
    """The condition NonStructuralSchema of a stored CRD, None if all schemas are structural."""
    from noxu.schema import lint  # with the first definition

    errors: list[FieldError] = []
    if crd["spec"].get("preserveUnknownFields"):
        errors.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    for n, version in enumerate(crd["spec"]["versions"] or []):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        try:
            errors += lint.violations(schema, f"spec.versions[{n}].schema.openAPIV3Schema")
        except ValueError as error:
            message = f"failed to check validation schema for version {version['name']}: {error}"
            return Condition(NON_STRUCTURAL, "Unknown", "StructuralError", message)
    return Condition(NON_STRUCTURAL, "True", "Violations", aggregate(map(str, errors))) if errors else None


class AcceptedNames:
    """How many definitions, or purposes in one of them, have each name."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self.resources: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        for crd in definitions:
            self.add(crd["status"]["acceptedNames"])

    def add(self, accepted: Object) -> None:
        """Add the names in a status.acceptedNames."""
        self.resources.update(_resources(accepted))
        self.kinds.update(_kinds(accepted))

    def remove(self, accepted: Object) -> None:
        """Remove the names that were added."""
        for counter, names in (self.resources, _resources(accepted)), (self.kinds, _kinds(accepted)):
            counter.subtract(names)
            for name in names:
                if not counter[name]:
                    del counter[name]

    def __bool__(self) -> bool:
        return bool(self.resources or self.kinds)


def _resources(accepted: Object) -> list[str]:
    return [accepted["plural"], accepted.get("singular", ""), *(accepted.get("shortNames") or [])]


def _kinds(accepted: Object) -> list[str]:
    return [accepted["kind"], accepted.get("listKind", "")]
