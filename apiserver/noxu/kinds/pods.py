"""core/v1: Pod and PodTemplate.

The rules are those of k8s.io/kubernetes: pkg/registry/core/pod/strategy.go and, in pkg/apis/core/validation,
ValidatePodCreate, ValidatePodUpdate, ValidatePodStatusUpdate, ValidatePodEphemeralContainersUpdate and ValidatePodResize.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.json_patches import difference, field_path, steps
from noxu.api.names import dns1123_label, subdomain_name
from noxu.go.net import parse_addr
from noxu.go.text import compact_json, quote
from noxu.kinds import checks, placement, pod_warnings
from noxu.kinds.checks import Errors
from noxu.kinds.containers import image_of_pod
from noxu.kinds.kind import Context, Rules
from noxu.kinds.pod_specs import APP_ARMOR, MIRROR, pod_annotations, pod_spec, profiles_match, template
from noxu.kinds.resource_requirements import CPU, MEMORY, is_sidecar, quality_of_service
from noxu.values import Json, Object, copy, equal

_WHOLE_OBJECT: Final = "[]"  # upstream's field.NewPath("") as text
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


# -- what the server sets ---------------------------------------------------------------------------------------------


def _default(pod: Object) -> None:
    """podIP is authoritative where podIPs begins with another address (core/v1's conversion of PodStatus)."""
    status: Object = pod.get("status") or {}
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and addresses and addresses[0].get("ip") != address:
        status["podIPs"] = [{"ip": address}]


def _complete(new: Object, old: Object | None, context: Context) -> None:
    if old is None:
        spec: Object = new.get("spec") or {}
        status: Object = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [dict(_GATED, lastProbeTime=None, lastTransitionTime=context.now or None)]
        new["status"] = status
        placement.merge_label_keys(spec, new["metadata"].get("labels") or {})
    elif context.subresource == "status":
        _keep_observed(new.setdefault("status", {}), old.get("status") or {})


def _keep_observed(new: Object, old: Object) -> None:
    """Old clients leave out the quality of service and the observed generations, which stay."""
    if not new.get("qosClass") and old.get("qosClass"):
        new["qosClass"] = old["qosClass"]
    if not new.get("observedGeneration") and old.get("observedGeneration"):
        new["observedGeneration"] = old["observedGeneration"]
    observed: dict[str, list[int]] = {}
    for condition in old.get("conditions") or ():
        observed.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in new.get("conditions") or ():
        earlier = observed.get(condition.get("type", ""))
        generation = earlier.pop(0) if earlier else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


# -- validation -------------------------------------------------------------------------------------------------------


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if old is None:
        return list(_create(new))
    check = {"status": _status_update, "ephemeralcontainers": _ephemeral_update, "resize": _resize}
    return list(check.get(context.subresource, _update)(new, old))


def _whole(pod: Object, old: Object | None = None) -> Errors:
    """The metadata and the spec of a pod (validatePodMetadataAndSpec)."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    if metadata.get("finalizers"):
        yield from checks.finalizers(metadata)
    notes: dict[str, str] = metadata.get("annotations") or {}
    if notes:
        yield from pod_annotations(notes, spec, "metadata.annotations")
    any_value = old is not None and equal((old.get("spec") or {}).get("affinity"), spec.get("affinity"))
    yield from pod_spec(spec, "spec", pod=metadata.get("name", ""), any_value=any_value)
    if not spec.get("serviceAccountName"):
        for n, volume in enumerate(spec.get("volumes") or ()):
            for m, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    where = f"spec.volumes[{n}].projected.sources[{m}].serviceAccountToken"
                    yield field.forbidden(where, "must not be specified when serviceAccountName is not set")
    for kind in ("containers", "initContainers"):
        for n, container in enumerate(spec.get(kind) or ()):
            yield from image_of_pod(container, f"spec.{kind}[{n}]")


def _create(pod: Object) -> Errors:
    yield from _whole(pod)
    spec: Object = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        yield field.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    if notes:
        yield from profiles_match(notes, spec, "spec")


def _changed_annotations(new: Object, old: Object) -> Errors:
    """Some annotations belong to the kubelet, or to fields that do not change."""
    after: dict[str, str] = new["metadata"].get("annotations") or {}
    before: dict[str, str] = old["metadata"].get("annotations") or {}
    for verb, names in (
        ("remove or update", [name for name in before if after.get(name) != before[name]]),
        ("add", [name for name in after if name not in before]),
    ):
        for name in names:
            subject = "AppArmor annotations" if name.startswith(APP_ARMOR) else "mirror pod annotation"
            if name.startswith(APP_ARMOR) or name == MIRROR:
                yield field.forbidden(f"metadata.annotations[{name}]", f"may not {verb} {subject}")
    if after:
        yield from pod_annotations(after, new.get("spec") or {}, "metadata.annotations")


_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _update(new: Object, old: Object) -> Errors:
    yield from _whole(new, old)
    yield from _changed_annotations(new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind) or []
        if len(containers) != len(before.get(kind) or ()):
            yield field.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
        for n, container in enumerate(containers):
            if not container.get("image"):
                yield field.required(f"spec.{kind}[{n}].image")
            yield from image_of_pod(container, f"spec.{kind}[{n}]")
    deadline = list(_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")))
    yield from deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return
    yield from _more_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _fewer_gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if equal(spec, before):
        return
    allowed = copy(spec)
    if before.get("schedulingGates"):
        yield from _move(allowed, before)
    for kind in ("containers", "initContainers"):
        for container, earlier in zip(allowed.get(kind) or (), before.get(kind) or (), strict=True):
            _take(container, earlier, "image")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take(allowed, before, name)
    if not equal(allowed, before):
        yield field.forbidden("spec", f"{_UPDATABLE}\n{describe_change(before, allowed, '/spec')}")


def _take(value: Object, source: Object, name: str) -> None:
    """Make a field that of another object."""
    if source.get(name) is None:
        value.pop(name, None)
    else:
        value[name] = source[name]


def describe_change(old: Json, new: Json, path: str) -> str:
    """The fields that differ, one a line, the old value after `-`, the new one after `+`.

    Upstream prints the difference of its internal Go structs here.
    """
    lines = []
    for change in difference(old, new, path):
        value: Json = {path.removeprefix("/"): old} if path else old
        found = True
        for step in steps(change["path"]):
            found = found and (int(step) < len(value) if isinstance(value, list) else step in value)
            value = (value[int(step)] if isinstance(value, list) else value[step]) if found else None
        where = field_path(steps(change["path"]))
        if change["op"] != "add" and found:
            lines.append(f"- {where}: {compact_json(value)}")
        if change["op"] != "remove":
            lines.append(f"+ {where}: {compact_json(change['value'])}")
    return "\n".join(lines)


def _deadline(new: int | None, old: int | None) -> Errors:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield field.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= checks.MAX_INT32:
        yield from checks.in_range(new, 0, checks.MAX_INT32, path)
    elif old is not None and old < new:
        yield field.invalid(path, new, "must be less than or equal to previous value")


def _more_tolerations(new: list[Object], old: list[Object]) -> Errors:
    if new == old:
        return
    bare = {_without_seconds(toleration) for toleration in new}
    for toleration in old:
        if _without_seconds(toleration) not in bare:
            rule = "existing toleration can not be modified except its tolerationSeconds"
            yield field.forbidden("spec.tolerations", rule)
            return
    yield from placement.tolerations(new, "spec.tolerations")


def _without_seconds(toleration: Object) -> tuple[str, ...]:
    return tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))


def _fewer_gates(new: list[Object], old: list[Object]) -> Errors:
    before = {gate.get("name", "") for gate in old}
    for n, gate in enumerate(new):
        name = gate.get("name", "")
        if name not in before:
            rule = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield field.forbidden(f"spec.schedulingGates[{n}].name", rule)


def _move(spec: Object, old: Object) -> Errors:
    """While a pod has scheduling gates, it may ask for fewer nodes. Allowed changes are undone in `spec`."""
    after, before = spec.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(after.get(name) != value for name, value in before.items()):
        rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield field.invalid("spec.nodeSelector", after or None, rule)
    _take(spec, old, "nodeSelector")
    nodes = (spec.get("affinity") or {}).get("nodeAffinity")
    earlier = (old.get("affinity") or {}).get("nodeAffinity")
    if equal(nodes, earlier):
        return
    yield from _fewer_nodes(nodes or {}, earlier or {})
    affinity = spec.setdefault("affinity", {})
    _take(affinity, {"nodeAffinity": earlier}, "nodeAffinity")
    if not affinity and old.get("affinity") is None:
        del spec["affinity"]


def _fewer_nodes(new: Object, old: Object) -> Errors:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    before: list[Object] = (old.get(name) or {}).get("nodeSelectorTerms") or []
    after: list[Object] = (new.get(name) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    if before and len(before) != len(after):
        rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield field.invalid(path, as_json(after) if after else None, rule)
        return
    for n, term in enumerate(before):
        if not all(_only_adds(term.get(kind) or [], after[n].get(kind) or []) for kind in _TERMS) or (
            not any(term.get(kind) for kind in _TERMS) and any(after[n].get(kind) for kind in _TERMS)
        ):
            value = checks.struct_json("core/v1.NodeSelectorTerm", after[n])
            yield field.invalid(f"{path}[{n}]", value, "only additions are allowed (no mutations or deletions)")


_TERMS: Final = ("matchExpressions", "matchFields")


def _only_adds(old: list[Json], new: list[Json]) -> bool:
    return equal(old, new[: len(old)])


# -- subresources -----------------------------------------------------------------------------------------------------


def _ephemeral_update(new: Object, old: Object) -> Errors:
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield field.forbidden(_WHOLE_OBJECT, "static pods do not support ephemeral containers")
        return
    yield from _whole(new, old)
    yield from _changed_annotations(new, old)
    after = {
        container.get("name", ""): container for container in (new.get("spec") or {}).get("ephemeralContainers") or ()
    }
    path = "spec.ephemeralContainers"
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = container.get("name", "")
        subject = f"existing ephemeral containers {quote(name)}"
        if name not in after:
            yield field.forbidden(path, f"{subject} may not be removed\n")
        elif not equal(container, after[name]):
            change = describe_change(container, after[name], "")
            yield field.forbidden(path, f"{subject} may not be changed\n{change}")


def _resize(new: Object, old: Object) -> Errors:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for is_so, rule in (
        (before.get("resources") or spec.get("resources"), "pods with pod-level resources cannot be resized"),
        (MIRROR in (old["metadata"].get("annotations") or {}), "static pods cannot be resized"),
        ((before.get("os") or {}).get("name") == "windows", "windows pods cannot be resized"),
    ):
        if is_so:
            yield field.forbidden(_WHOLE_OBJECT, rule)
            return
    yield from _whole(new, old)
    for kind in ("containers", "initContainers"):
        after, earlier = spec.get(kind) or [], before.get(kind) or []
        if len(after) != len(earlier):
            yield field.forbidden(f"spec.{kind}", "containers may not be added or removed on resize")
            return
        if any(a.get("name") != b.get("name") for a, b in zip(after, earlier, strict=True)):
            yield field.forbidden(f"spec.{kind}", "containers may not be renamed or reordered on resize")
            return
    quality = quality_of_service(spec)
    if quality != ((old.get("status") or {}).get("qosClass") or quality_of_service(before)):
        shown = (new.get("status") or {}).get("qosClass", "")
        yield field.invalid("spec", as_json(shown), "Pod QOS Class may not change as a result of resizing")
    running = [
        container_status
        for container_status in (old.get("status") or {}).get("containerStatuses") or ()
        if _is_running(container_status)
    ]
    if running and running[0].get("resources") is None:
        yield field.forbidden("spec", "Pod running on node without support for resize")
    yield from _resized_containers(spec, before)


def _is_running(status: Object) -> bool:
    return (status.get("state") or {}).get("running") is not None


def _resized_containers(spec: Object, old: Object) -> Errors:
    for kind, subject in (("initContainers", "sidecar containers "), ("containers", "")):
        pairs = list(zip(spec.get(kind) or (), old.get(kind) or (), strict=True))
        for n, (new, before) in enumerate(pairs):
            if kind == "containers" or is_sidecar(before):
                yield from _nothing_removed(new["resources"], before["resources"], f"spec.{kind}[{n}].resources")
        for new, before in pairs:
            if kind == "initContainers" and not is_sidecar(new):
                if not equal(new, before):
                    yield field.forbidden("spec", "resources for non-sidecar init containers are immutable")
            elif not equal({**new, "resources": _but_computing(new["resources"], before["resources"])}, before):
                of = f" for {subject.strip()}" if subject else ""
                yield field.forbidden("spec", f"only cpu and memory resources{of} are mutable")


def _nothing_removed(new: Object, old: Object, path: Path) -> Errors:
    for kind in ("requests", "limits"):
        if (old.get(kind) or {}).keys() - (new.get(kind) or {}).keys():
            yield field.forbidden(f"{path}.{kind}", f"resource {kind} cannot be removed")


def _but_computing(new: Object, old: Object) -> Object:
    """The new resources with the old CPU and memory."""
    kept: Object = {}
    for kind in ("limits", "requests"):
        before: dict[str, str] = old.get(kind) or {}
        if before:
            rest = {name: text for name, text in (new.get(kind) or {}).items() if name not in (CPU, MEMORY)}
            kept[kind] = rest | {name: before[name] for name in (CPU, MEMORY) if name in before}
    return kept


# -- status -----------------------------------------------------------------------------------------------------------


def _status_update(new: Object, old: Object) -> Errors:
    yield from _changed_annotations(new, old)
    status, before = new.get("status") or {}, old.get("status") or {}
    spec: Object = old.get("spec") or {}
    for n, condition in enumerate(status.get("conditions") or ()):
        if condition.get("type", "") not in ("PodScheduled", "Ready", "Initialized"):
            yield from checks.qualified(condition.get("type", ""), f"metadata.conditions[{n}].Type")
    node = status.get("nominatedNodeName", "")
    if node and node != before.get("nominatedNodeName", ""):
        yield from checks.named(node, subdomain_name, "status.nominatedNodeName")
    if status.get("qosClass", "") != before.get("qosClass", ""):
        yield field.invalid("status.qosClass", as_json(status.get("qosClass", "")), checks.IMMUTABLE)
    policy = spec.get("restartPolicy", "")
    sidecars = {container.get("name") for container in spec.get("initContainers") or () if is_sidecar(container)}
    for kind, restarts, excepted in (
        ("containerStatuses", policy, set()),
        ("initContainerStatuses", policy, sidecars),
        ("ephemeralContainerStatuses", "Never", set()),
    ):
        if restarts != "Always" and before.get(kind):
            yield from _transitions(status.get(kind) or [], before[kind], restarts, excepted, f"status.{kind}")
    yield from _addresses(status, before, "podIPs")
    hosts = status.get("hostIPs") or []
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        yield field.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), "must be equal to `hostIP`")
    yield from _addresses(status, before, "hostIPs")


def _transitions(new: list[Object], old: list[Object], policy: str, excepted: set[Json], path: Path) -> Errors:
    """A container that has terminated, and is not restarted, stays terminated."""
    states = {status.get("name"): status.get("state") or {} for status in reversed(new)}
    for n, status in enumerate(old):
        ended = (status.get("state") or {}).get("terminated")
        name = status.get("name")
        if ended is None or name in excepted or (ended.get("exitCode", 0) and policy == "OnFailure"):
            continue
        if name in states and states[name].get("terminated") is None:
            yield field.forbidden(f"{path}[{n}].state", "may not be transitioned to non-terminated state")


def _addresses(status: Object, old: Object, kind: str) -> Errors:
    """One of each family at most."""
    ips = [address.get("ip", "") for address in status.get(kind) or ()]
    accepted = {address.get("ip", "") for address in old.get(kind) or ()}
    errors = [error for n, ip in enumerate(ips) for error in checks.address(ip, f"status.{kind}[{n}]", accepted)]
    yield from errors
    if len(ips) < 2 or errors:
        return
    if len(ips) > 2 or len({_family(ip) for ip in ips}) < 2:
        rule = "may specify no more than one IP for each IP family"
        yield field.invalid(f"status.{kind}", as_json(status[kind]), rule)
    seen: set[str] = set()
    for n, ip in enumerate(ips):
        if ip in seen:
            yield field.duplicate(f"status.{kind}[{n}]", as_json(status[kind][n]))
        seen.add(ip)


def _family(ip: str) -> str:
    try:
        return "IPv6" if ":" in str(parse_addr(ip)) else "IPv4"
    except ValueError:
        return "IPv4"  # with leading zeros


# -- warnings and templates -------------------------------------------------------------------------------------------


def _warnings(new: Object, old: Object | None) -> list[str]:
    """Only of new pods."""
    return [] if old is not None else list(_name_warning(new)) + list(pod_warnings.warnings(new, ""))


def _name_warning(new: Object) -> Iterator[str]:
    texts = dns1123_label(new["metadata"].get("name", ""))
    if texts:
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
            f"recommended: [{' '.join(texts)}]"
        )


def _validate_template(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return [*checks.finalizers(new["metadata"]), *template(new.get("template") or {}, "template")]


def _template_warnings(new: Object, old: Object | None) -> list[str]:
    if old is not None and equal(new.get("template"), old.get("template")):
        return []
    return list(pod_warnings.warnings(new.get("template") or {}, "template"))


RULES: Final = {
    "Pod": Rules(default=_default, complete=_complete, validate=_validate, warnings=_warnings),
    "PodTemplate": Rules(validate=_validate_template, warnings=_template_warnings),
}
