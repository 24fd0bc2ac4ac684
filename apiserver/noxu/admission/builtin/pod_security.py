"""PodSecurity: labels of a namespace say which Pod Security Standard its pods meet (k8s.io/pod-security-admission).

pod-security.kubernetes.io/enforce: baseline        pods that violate it are refused
pod-security.kubernetes.io/warn: restricted         pods and what makes pods, such as Deployments, cause a warning
pod-security.kubernetes.io/audit: restricted        … and an annotation for the audit log
pod-security.kubernetes.io/enforce-version: v1.30   the checks of an older version; "latest" without this label
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.pod_security_checks import LATEST, LEVELS, Level, Violation, violations
from noxu.admission.builtin.rules import PluginRules, resource_of
from noxu.api import errors, field
from noxu.api.errors import Qualified
from noxu.api.field import FieldError
from noxu.go.text import quote
from noxu.registry.offload import offload
from noxu.registry.stored_object import object_at
from noxu.values import Object, nested_field

PREFIX: Final = "pod-security.kubernetes.io/"
MODES: Final = ("enforce", "audit", "warn")
MAX_PODS: Final = 3000
"""The pods that are checked when a namespace gets a stricter level."""
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_IGNORED_SUBRESOURCES: Final = ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
_TEMPLATES: Final = {
    "podtemplates": "template",
    "cronjobs": "spec.jobTemplate.spec.template",
}
"""Where the template of pods is, for kinds that have it elsewhere than in `spec.template`."""


class Standard(NamedTuple):
    """A level at a version; `version` is the text of the label."""

    level: Level = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)

    def violations(self, pod: Object) -> list[Violation]:
        """(reason, detail) of what a pod, or a template of pods, violates."""
        minor = LATEST if self.version == "latest" else int(self.version.removeprefix("v1.")[:9])
        annotations = (pod.get("metadata") or {}).get("annotations") or {}
        return violations(self.level, minor, annotations, pod.get("spec") or {})


class PodSecurityLevels(NamedTuple):
    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()


def policy_of(labels: Mapping[str, str]) -> tuple[PodSecurityLevels, list[FieldError]]:
    """The policy of a namespace, and what is wrong with its labels (PolicyToEvaluate).

    Without a valid level, `enforce` is restricted, and the others are privileged. `warn` is at least as strict as
    `enforce`, unless it has a label.
    """
    standards: dict[str, Standard] = {}
    faults: list[FieldError] = []
    for mode in MODES:
        level, version = labels.get(PREFIX + mode, "privileged"), labels.get(f"{PREFIX}{mode}-version", "latest")
        accepted = next((candidate for candidate in LEVELS if candidate == level), None)
        if accepted is None:
            faults.append(_invalid(PREFIX + mode, level, f"must be one of {', '.join(LEVELS)}"))
        if version != "latest" and not _VERSION.fullmatch(version):
            faults.append(_invalid(f"{PREFIX}{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        standards[mode] = Standard(accepted or ("restricted" if mode == "enforce" else "privileged"), version)
    enforce, warn = standards["enforce"], standards["warn"]
    follows = PREFIX + "warn" not in labels and labels.get(PREFIX + "enforce") in LEVELS
    if follows and enforce.strictness > warn.strictness:
        has_version = f"{PREFIX}warn-version" in labels
        standards["warn"] = Standard(enforce.level, warn.version if has_version else enforce.version)
    return PodSecurityLevels(**standards), faults


def _invalid(label: str, value: str, why: str) -> FieldError:
    return field.invalid(field.key("metadata.labels", label), value, why)


async def _validate(request: Attributes) -> None:
    resource = request.resource
    if resource.plural == "namespaces":
        if not request.subresource:
            await _validate_namespace(request)
    elif resource.plural == "pods":
        if request.subresource not in _IGNORED_SUBRESOURCES and _is_significant(request):
            await _evaluate(request, request.draft.new, enforce=True)
    elif not request.subresource:
        template = nested_field(request.draft.new, _TEMPLATES.get(resource.plural, "spec.template"))
        if template:
            await _evaluate(request, template, enforce=False)


def _is_significant(request: Attributes) -> bool:
    """Whether an update of a pod changes what is checked: its containers or their images."""
    if request.draft.old is None:
        return True
    new, old = request.draft.new["spec"], request.draft.old["spec"]
    for name in ("containers", "initContainers"):
        images = [[container.get("image") for container in spec.get(name) or ()] for spec in (new, old)]
        if images[0] != images[1]:
            return True
    before = {container["name"]: container.get("image") for container in old.get("ephemeralContainers") or ()}
    added = new.get("ephemeralContainers") or ()
    return any(
        container["name"] not in before or container.get("image") != before[container["name"]] for container in added
    )


async def _evaluate(request: Attributes, pod: Object, *, enforce: bool) -> None:
    """Refuse a pod that violates what the namespace enforces; warn about what violates the other modes."""
    labels = await request.namespace_labels()
    if labels is None:
        if enforce:
            raise errors.internal_error(f"failed to lookup namespace {quote(request.namespace)}")
        return
    policy, faults = policy_of(labels)
    annotations = request.draft.outcome.audit_annotations
    if enforce:
        annotations[f"{PREFIX}enforce-policy"] = str(policy.enforce)
    if faults:
        annotations[f"{PREFIX}error"] = f"Failed to parse policy: {errors.aggregate(str(fault) for fault in faults)}"
    results: dict[Standard, str] = {}

    def violated(standard: Standard) -> str:
        if standard not in results:
            pairs = standard.violations(pod)
            results[standard] = ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in pairs)
        return results[standard]

    if violation := violated(policy.audit):
        annotations[f"{PREFIX}audit-violations"] = f'would violate PodSecurity "{policy.audit}": {violation}'
    if enforce and (violation := violated(policy.enforce)):
        raise refusal(request, f'violates PodSecurity "{policy.enforce}": {violation}')
    if violation := violated(policy.warn):
        request.draft.outcome.warnings.append(f'would violate PodSecurity "{policy.warn}": {violation}')


# -- namespaces -------------------------------------------------------------------------------------------------------


async def _validate_namespace(request: Attributes) -> None:
    """Refuse invalid labels; warn about pods that violate a stricter level."""
    new, old = request.draft.new, request.draft.old
    policy, faults = policy_of(new["metadata"].get("labels") or {})
    if old is None:
        before, old_faults = policy, list[FieldError]()
    else:
        before, old_faults = policy_of(old["metadata"].get("labels") or {})
    if faults and faults != old_faults:
        raise errors.invalid(Qualified("", "Namespace"), request.name, faults)
    enforce = policy.enforce
    if enforce == before.enforce or enforce.level == "privileged":
        return
    if enforce.version == before.enforce.version and enforce.strictness <= before.enforce.strictness:
        return
    request.draft.outcome.warnings += await _violating_pods(request, enforce)


async def _violating_pods(request: Attributes, standard: Standard) -> list[str]:
    """Warnings about the pods of a namespace: those with the same violations are counted."""
    name, resource = request.draft.request.admitted_name or request.name, resource_of(request, "", "pods")
    collection = await request.reader.collection(resource)
    keys = collection.select(f"{name}/")
    entries = [collection.entries[key] for key in keys[:MAX_PODS]]

    def count() -> dict[str, list[str]]:
        names_by_reasons: dict[str, list[str]] = {}
        for entry in entries:
            reasons = [reason for reason, _ in standard.violations(object_at(entry, resource))]
            if reasons:
                names_by_reasons.setdefault(", ".join(reasons), []).append(entry.key.name)
        return names_by_reasons

    names_by_reason = await offload(sum(len(entry.stored) for entry in entries), count)
    warnings = []
    if len(entries) < len(keys):
        checked = f"the first {len(entries)} of {len(keys)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if names_by_reason:
        what = f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{standard}"'
        warnings.append(what)
    return [*warnings, *sorted(f"{_pods(names)}: {reasons}" for reasons, names in names_by_reason.items())]


def _pods(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"


RULES: Final = PluginRules(validate=_validate)
