"""Containers: images, ports, environment variables, mounts, probes and handlers.

The rules are those of k8s.io/kubernetes pkg/apis/core/validation: validateContainers, validateInitContainers and
validateEphemeralContainers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from noxu.api import field
from noxu.api.field import Path, as_json
from noxu.api.names import dns1123_label, subdomain_name
from noxu.kinds import checks, references, security_contexts
from noxu.kinds.checks import Errors
from noxu.kinds.resource_requirements import is_sidecar, requirements
from noxu.values import Json, Object


class Pod(NamedTuple):
    """The facts about a pod that the checks of its containers need."""

    volumes: Mapping[str, Object]
    claims: Collection[str]
    restart_policy: str
    grace_period: int | None
    host_users: bool


# -- lists of containers ----------------------------------------------------------------------------------------------


def regular(containers: list[Object], pod: Pod, path: Path) -> Errors:
    if not containers:
        yield field.required(path)
        return
    names: set[str] = set()
    for n, container in enumerate(containers):
        where = f"{path}[{n}]"
        yield from _common(container, pod, where)
        name = container.get("name", "")
        if name in names:
            yield field.duplicate(f"{where}.name", name)
        names.add(name)
        yield from _hooks_and_probes(container, pod, where)
        yield from _restart_policy(container, where)
    yield from _host_ports(containers, path)


def initial(containers: list[Object], regular_names: Collection[str], pod: Pod, path: Path) -> Errors:
    names = set(regular_names)
    for n, container in enumerate(containers):
        where = f"{path}[{n}]"
        yield from _common(container, pod, where)
        yield from _restart_policy(container, where)
        name = container.get("name", "")
        if name in names:
            yield field.duplicate(f"{where}.name", name)
        elif name:
            names.add(name)
        yield from _host_ports([container], path)
        if is_sidecar(container):
            yield from _hooks_and_probes(container, pod, where)
            continue
        for forbidden in ("lifecycle", *_PROBES):
            if container.get(forbidden) is not None:
                rule = "may not be set for init containers without restartPolicy=Always"
                yield field.forbidden(f"{where}.{forbidden}", rule)


_NOT_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


def ephemeral(containers: list[Object], other_names: Collection[str], pod: Pod, path: Path) -> Errors:
    """`other_names` are the names of all other containers."""
    names = set(other_names)
    rule = "cannot be set for an Ephemeral Container"
    for n, container in enumerate(containers):
        where = f"{path}[{n}]"
        yield from _common(container, pod, where)
        yield from image_of_pod(container, where)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in names:
            yield field.duplicate(f"{where}.name", name)
        names.add(name)
        if target and target not in other_names:
            yield field.not_found(f"{where}.targetContainerName", target)
        for forbidden in _NOT_EPHEMERAL:
            if container.get(forbidden):
                yield field.forbidden(f"{where}.{forbidden}", rule)
        for m, mount in enumerate(container.get("volumeMounts") or ()):
            for forbidden in ("subPath", "subPathExpr"):
                if mount.get(forbidden):
                    yield field.forbidden(f"{where}.volumeMounts[{m}].{forbidden}", rule)


def image_of_pod(container: Object, path: Path) -> Errors:
    """Templates may have an image in spaces, pods may not."""
    image = container.get("image", "")
    if image != image.strip():
        yield field.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _host_ports(containers: list[Object], path: Path) -> Errors:
    """Each protocol, address and port of the host belongs to one container."""
    seen: set[str] = set()
    for n, container in enumerate(containers):
        for m, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if shown in seen:
                    yield field.duplicate(f"{path}[{n}].ports[{m}].hostPort", shown)
                seen.add(shown)


# -- one container ----------------------------------------------------------------------------------------------------


def _common(container: Object, pod: Pod, path: Path) -> Errors:
    """The checks of containers of all kinds (validateContainerCommon)."""
    get: Json = container.get
    name = get("name", "")
    if not name:
        yield field.required(f"{path}.name")
    else:
        for text in dns1123_label(name):
            yield field.invalid(f"{path}.name", name, text)
    if not get("image"):
        yield field.required(f"{path}.image")
    policy = get("terminationMessagePolicy")
    yield from checks.required_choice(
        policy, "core/v1.TerminationMessagePolicy", f"{path}.terminationMessagePolicy", declared=True
    )
    if get("ports"):
        yield from _ports(get("ports"), f"{path}.ports")
    if get("env"):
        yield from checks.each(get("env"), f"{path}.env", _variable)
    if get("envFrom"):
        for n, source in enumerate(get("envFrom")):
            yield from _variables(source, f"{path}.envFrom[{n}]", f"{path}.envFrom")
    mounts, devices = get("volumeMounts") or [], get("volumeDevices") or []
    if mounts:
        yield from _mounts(mounts, devices, pod.volumes, _is_privileged(container), f"{path}.volumeMounts")
    if devices:
        yield from _devices(devices, mounts, pod.volumes, f"{path}.volumeDevices")
    yield from checks.required_choice(get("imagePullPolicy"), "core/v1.PullPolicy", f"{path}.imagePullPolicy")
    if get("resources"):
        yield from requirements(get("resources"), pod.claims, f"{path}.resources")
    if get("resizePolicy"):
        yield from _resize_policies(get("resizePolicy"), pod.restart_policy, f"{path}.resizePolicy")
    if get("securityContext"):
        where = f"{path}.securityContext"
        yield from security_contexts.of_container(get("securityContext"), where, host_users=pod.host_users)


def _is_privileged(container: Object) -> bool:
    return bool((container.get("securityContext") or {}).get("privileged"))


def _ports(ports: list[Object], path: Path) -> Errors:
    names: set[str] = set()
    for n, port in enumerate(ports):
        where, name = f"{path}[{n}]", port.get("name", "")
        if name:
            texts = checks.port_name_texts(name)
            yield from (field.invalid(f"{where}.name", name, text) for text in texts)
            if not texts and name in names:
                yield field.duplicate(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield field.required(f"{where}.containerPort")
        else:
            yield from checks.port_number(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            yield from checks.port_number(port["hostPort"], f"{where}.hostPort")
        yield from checks.required_choice(port.get("protocol"), "core/v1.Protocol", f"{where}.protocol")


_REFERENCED_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
     "status.hostIPs", "status.podIP", "status.podIPs"}
)  # fmt: skip


def _variable(variable: Object, path: Path) -> Errors:
    name, source = variable.get("name", ""), variable.get("valueFrom")
    if not name:
        yield field.required(f"{path}.name")
    else:
        yield from checks.env_name(name, f"{path}.name")
    if source is None:
        return
    path = f"{path}.valueFrom"
    count = 0
    for kind, check in _SOURCES.items():
        if source.get(kind) is not None:
            count += 1
            yield from check(source[kind], f"{path}.{kind}")
    if not count:
        rule = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield field.invalid(path, "", rule)
    elif variable.get("value"):
        yield field.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield field.invalid(path, "", "may not have more than one field specified at a time")


def _field_reference(reference: Object, path: Path) -> Errors:
    return references.field_of_pod(reference, _REFERENCED_FIELDS, path)


def _resource_reference(reference: Object, path: Path) -> Errors:
    return references.resource_of_container(reference, path, needs_container=False)


def _key_reference(reference: Object, path: Path) -> Errors:
    yield from checks.named(reference.get("name", ""), subdomain_name, f"{path}.name")
    if not reference.get("key"):
        yield field.required(f"{path}.key")
    else:
        yield from checks.key(reference["key"], f"{path}.key")


def _file_reference(reference: Object, path: Path) -> Errors:
    yield from (field.required(f"{path}.{name}") for name in ("volumeName", "path", "key") if not reference.get(name))
    yield from checks.not_reserved(reference.get("path", ""), f"{path}.path")
    if reference.get("key"):
        yield from checks.env_name(reference["key"], f"{path}.key")


_SOURCES: Final[dict[str, Callable[[Object, Path], Errors]]] = {
    "fieldRef": _field_reference,
    "resourceFieldRef": _resource_reference,
    "configMapKeyRef": _key_reference,
    "secretKeyRef": _key_reference,
    "fileKeyRef": _file_reference,
}


def _variables(source: Object, path: Path, all_: Path) -> Errors:
    """All keys of a ConfigMap or a Secret. Errors about the choice are those of the whole list (`all_`)."""
    if source.get("prefix"):
        yield from checks.env_name(source["prefix"], f"{path}.prefix")
    count = 0
    for kind in ("configMapRef", "secretRef"):
        if source.get(kind) is not None:
            count += 1
            name = source[kind].get("name", "")
            if not name:
                yield field.required(f"{path}.{kind}.name")
            else:
                yield from checks.named(name, subdomain_name, f"{path}.{kind}.name", prefix=True)
    if not count:
        yield field.invalid(all_, "", "must specify one of: `configMapRef` or `secretRef`")
    elif count > 1:
        yield field.invalid(all_, "", "may not have more than one field specified at a time")


def _mounts(
    mounts: list[Object], devices: list[Object], volumes: Mapping[str, Object], is_privileged: bool, path: Path
) -> Errors:
    device_names = {device.get("name", "") for device in devices}
    device_paths = {device.get("devicePath", "") for device in devices}
    seen: set[str] = set()
    for n, mount in enumerate(mounts):
        where, name, at = f"{path}[{n}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield field.required(f"{where}.name")
        if name not in volumes:
            yield field.not_found(f"{where}.name", name)
        if not at:
            yield field.required(f"{where}.mountPath")
        if at in seen:
            yield field.invalid(f"{where}.mountPath", at, "must be unique")
        seen.add(at)
        if name in device_names:
            yield field.invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if at in device_paths:
            yield field.invalid(f"{where}.mountPath", at, "must not already exist as a path in volumeDevices")
        yield from _sub_paths(mount, volumes.get(name, {}).get("image") is not None, where, path)
        yield from _propagation(mount, is_privileged, path)


def _sub_paths(mount: Object, is_image: bool, path: Path, mounts: Path) -> Errors:
    """Upstream reports paths that lead elsewhere at the whole list (`mounts`)."""
    sub, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if is_image:
        for name, value in (("subPath", sub), ("subPathExpr", expression)):
            if value:
                yield field.invalid(f"{path}.{name}", value, "not allowed in image volume sources")
    if sub:
        yield from checks.descending(sub, f"{mounts}.subPath")
    if expression:
        if sub:
            rule = "subPathExpr and subPath are mutually exclusive"
            yield field.invalid(f"{path}.subPathExpr", expression, rule)
        yield from checks.descending(expression, f"{mounts}.subPathExpr")


def _propagation(mount: Object, is_privileged: bool, path: Path) -> Errors:
    mode, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    yield from checks.choice(mode, "core/v1.MountPropagationMode", f"{path}.mountPropagation")
    if mode == "Bidirectional" and not is_privileged:
        rule = "Bidirectional mount propagation is available only to privileged containers"
        yield field.forbidden(f"{path}.mountPropagation", rule)
    path = f"{path}.recursiveReadOnly"
    yield from checks.choice(recursive, "core/v1.RecursiveReadOnlyMode", path)
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield field.forbidden(path, "may only be specified when readOnly is true")
        if mode not in (None, "None"):
            yield field.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def _devices(devices: list[Object], mounts: list[Object], volumes: Mapping[str, Object], path: Path) -> Errors:
    mount_names = {mount.get("name", "") for mount in mounts}
    mount_paths = {mount.get("mountPath", "") for mount in mounts}
    names: set[str] = set()
    seen: set[str] = set()
    for n, device in enumerate(devices):
        where, name, at = f"{path}[{n}]", device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            yield field.required(f"{where}.name")
        if name in names:
            yield field.invalid(f"{where}.name", name, "must be unique")
        if volume is None:
            yield field.not_found(f"{where}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            rule = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield field.invalid(f"{where}.name", name, rule)
        if not at:
            yield field.required(f"{where}.devicePath")
        if at in seen:
            yield field.invalid(f"{where}.devicePath", at, "must be unique")
        if ".." in at.split("/"):
            yield field.invalid(f"{where}.devicePath", at, "can not contain backsteps ('..')")
        else:
            seen.add(at)
        if name in mount_names:
            yield field.invalid(f"{where}.name", name, "must not already exist in volumeMounts")
        if at in mount_paths:
            yield field.invalid(f"{where}.devicePath", at, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _resize_policies(policies: list[Object], restart_policy: str, path: Path) -> Errors:
    seen: set[str] = set()
    for n, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield field.duplicate(f"{path}[{n}]", as_json(name))
        seen.add(name)
        if not name:
            yield field.required(path)
        elif name not in _RESIZED:
            yield field.not_supported(path, as_json(name), _RESIZED)
        yield from checks.required_choice(restart, "core/v1.ResourceResizeRestartPolicy", path)
        if restart_policy == "Never" and restart != "NotRequired":
            rule = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            yield field.invalid(path, as_json(restart), rule)


_RESIZED: Final = ["cpu", "memory"]
_MAX_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255


def _restart_policy(container: Object, path: Path) -> Errors:
    """The restart policy of one container, and its rules by exit code."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None:
        yield from checks.choice(policy, "core/v1.ContainerRestartPolicy", f"{path}.restartPolicy")
    elif rules:
        yield field.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if not rules:
        return
    path = f"{path}.restartPolicyRules"
    if len(rules) > _MAX_RULES:
        yield field.too_many(path, len(rules), _MAX_RULES)
    for n, rule in enumerate(rules):
        where, codes = f"{path}[{n}]", rule.get("exitCodes")
        yield from checks.choice(rule.get("action", ""), "core/v1.ContainerRestartRuleAction", f"{where}.action")
        if codes is None:
            yield field.required(f"{where}.exitCodes", "must be specified")
            continue
        operator = "core/v1.ContainerRestartRuleOnExitCodesOperator"
        yield from checks.choice(codes.get("operator", ""), operator, f"{where}.exitCodes.operator")
        count = len(codes.get("values") or ())
        if count > _MAX_EXIT_CODES:
            yield field.too_many(f"{where}.exitCodes.values", count, _MAX_EXIT_CODES)


# -- probes and handlers ----------------------------------------------------------------------------------------------

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def _hooks_and_probes(container: Object, pod: Pod, path: Path) -> Errors:
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for hook in ("postStart", "preStop"):
            if lifecycle.get(hook) is not None:
                yield from _handler(lifecycle[hook], pod.grace_period, f"{path}.lifecycle.{hook}")
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            yield from _probe(name, probe, pod.grace_period, f"{path}.{name}")


def _probe(kind: str, probe: Object, grace_period: int | None, path: Path) -> Errors:
    yield from _handler(probe, grace_period, path)
    for name in _COUNTS:
        yield from checks.nonnegative(probe.get(name), f"{path}.{name}")
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield field.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")
    if kind != "readinessProbe":
        threshold = probe.get("successThreshold", 0)
        if threshold != 1:
            yield field.invalid(f"{path}.successThreshold", threshold, "must be 1")
    elif seconds is not None:
        rule = "must not be set for readinessProbes"
        yield field.invalid(f"{path}.terminationGracePeriodSeconds", seconds, rule)


def _handler(handler: Object, grace_period: int | None, path: Path) -> Errors:
    """What a probe or a hook does: one of several."""
    is_found = False
    for kind, check in _HANDLERS.items():
        action = handler.get(kind)
        if action is None:
            continue
        if is_found:
            yield field.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
        else:
            is_found = True
            yield from check(action, f"{path}.{kind}", grace_period)
    if not is_found:
        yield field.required(path, "must specify a handler type")


def _exec(action: Object, path: Path, grace_period: int | None) -> Errors:  # noqa: ARG001
    if not action.get("command"):
        yield field.required(f"{path}.command")


def _http_get(action: Object, path: Path, grace_period: int | None) -> Errors:  # noqa: ARG001
    if not action.get("path"):
        yield field.required(f"{path}.path")
    yield from checks.port(action.get("port", 0), f"{path}.port")
    yield from checks.choice(action.get("scheme", ""), "core/v1.URIScheme", f"{path}.scheme")
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not name or not name.isascii() or not name.replace("-", "a").isalnum():
            yield field.invalid(f"{path}.httpHeaders", name, _NOT_A_HEADER)


_NOT_A_HEADER: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation "
    "is '[-A-Za-z0-9]+')"
)


def _port(action: Object, path: Path, grace_period: int | None) -> Errors:  # noqa: ARG001
    return checks.port(action.get("port", 0), f"{path}.port")


def _sleep(action: Object, path: Path, grace_period: int | None) -> Errors:
    seconds = action.get("seconds", 0)
    if grace_period is not None and not 0 <= seconds <= grace_period:
        rule = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield field.invalid(path, seconds, rule)


_HANDLERS: Final[dict[str, Callable[[Any, Path, int | None], Errors]]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _port,
    "grpc": _port,
    "sleep": _sleep,
}


def names(containers: list[Object] | None) -> Iterator[str]:
    return (container.get("name", "") for container in containers or ())
