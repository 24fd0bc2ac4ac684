"""Warnings about pods and pod templates: fields that are deprecated, without effect, or repeated.

The texts are those of k8s.io/kubernetes pkg/api/pod/warnings.go and pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from noxu.go.text import quote
from noxu.kinds.pod_specs import APP_ARMOR, CONTAINER_SECCOMP, POD_SECCOMP
from noxu.kinds.resource_requirements import fractional
from noxu.kinds.security_contexts import containers
from noxu.values import Object

_NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": "flocker: deprecated in v1.22, non-functional in v1.25+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
"""The deprecated sources of volumes, as the texts name them."""
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


MAX_WARNINGS: Final = 1000
"""How many warnings are collected; the headers of a response take fewer."""
_MAX_COMPARED: Final = 32
"""With how many earlier definitions of its number a port is compared."""


def warnings(holder: Object, path: str) -> Iterator[str]:
    """The warnings about a pod, whose path is "", or a template at a path."""
    return islice(_all(holder, path), MAX_WARNINGS)


def _all(holder: Object, path: str) -> Iterator[str]:
    metadata, spec = holder.get("metadata") or {}, holder.get("spec") or {}
    at = f"{path}." if path else ""
    yield from _nodes(spec, f"{at}spec")
    annotations: dict[str, str] = metadata.get("annotations") or {}
    for name, text in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{at}metadata.annotations[{name}]: {text}"
    yield from _volumes(spec.get("volumes") or [], f"{at}spec.volumes")
    yield from _twice(spec, "hostAliases", "ip", f"{at}spec")
    yield from _twice(spec, "imagePullSecrets", "name", f"{at}spec")
    for n, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{at}spec.imagePullSecrets[{n}].name: invalid empty name ""'
    yield from fractional(spec.get("overhead"), f"{at}spec.overhead")
    yield from _profiles(spec, annotations, path)
    yield from _ports(spec, f"{at}spec")
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}spec.terminationGracePeriodSeconds: {rule}"
    if spec.get("affinity"):
        yield from _pod_affinity(spec["affinity"], f"{at}spec.affinity")


def _nodes(spec: Object, path: str) -> Iterator[str]:
    """Deprecated labels of nodes in selectors."""
    for name in spec.get("nodeSelector") or ():
        if name in _NODE_LABELS:
            yield f"{path}.nodeSelector[{name}]: {_NODE_LABELS[name]}"
    nodes: Object = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for n, term in enumerate((nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{n}]")
    for n, term in enumerate(nodes.get(_PREFERRED) or ()):
        where = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{n}].preference"
        yield from _node_term(term.get("preference") or {}, where)
    for n, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        name, where = constraint.get("topologyKey", ""), f"{path}.topologySpreadConstraints[{n}]"
        if name in _NODE_LABELS:
            yield f"{where}.topologyKey: {name} is {_NODE_LABELS[name]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"


def _node_term(term: Object, path: str) -> Iterator[str]:
    for n, requirement in enumerate(term.get("matchExpressions") or ()):
        name = requirement.get("key", "")
        if name in _NODE_LABELS:
            yield f"{path}.matchExpressions[{n}].key: {name} is {_NODE_LABELS[name]}"


def _volumes(volumes: list[Object], path: str) -> Iterator[str]:
    for n, volume in enumerate(volumes):
        for source, text in _VOLUMES.items():
            if source in volume:
                yield f"{path}[{n}].{text}"


def _twice(spec: Object, kind: str, name: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for n, item in enumerate(spec.get(kind) or ()):
        value = item.get(name, "")
        if value in seen:
            yield f"{path}.{kind}[{n}].{name}: duplicate {name} {quote(value)}"
        seen.add(value)


def _profiles(spec: Object, annotations: dict[str, str], path: str) -> Iterator[str]:
    """Annotations without the fields that replaced them, and warnings about single containers."""
    at = f"{path}." if path else ""
    of_pod: Object = spec.get("securityContext") or {}
    no_effect = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    if POD_SECCOMP in annotations and of_pod.get("seccompProfile") is None:
        yield f"{at}metadata.annotations[{POD_SECCOMP}]: {no_effect}"
    for container, where in containers(spec, f"{at}spec"):
        own, name = container.get("securityContext") or {}, container.get("name", "")
        if CONTAINER_SECCOMP + name in annotations and own.get("seccompProfile") is None:
            yield f"{at}metadata.annotations[{CONTAINER_SECCOMP}{name}]: {no_effect}"
        has_profile = of_pod.get("appArmorProfile") is not None or own.get("appArmorProfile") is not None
        if APP_ARMOR + name in annotations and not has_profile:
            advice = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{at}metadata.annotations[{APP_ARMOR}{name}]: {advice}"
        resources: Object = container.get("resources") or {}
        for kind in ("limits", "requests"):
            yield from fractional(resources.get(kind), f"{where}.resources.{kind}")
        if len(container.get("env") or ()) > 1:
            yield from _variables(container["env"], f"{where}.env")


def _variables(variables: Iterable[Object], path: str) -> Iterator[str]:
    """A variable that hides another one of its name, unless it refers to it."""
    seen: set[str] = set()
    for n, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        hides = variable.get("valueFrom") is not None or value == reference or reference not in value
        if name in seen and hides:
            yield f"{path}[{n}]: hides previous definition of {quote(name)}, which may be dropped when using apply"
        seen.add(name)


def _ports(spec: Object, path: str) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    for container, at in containers(spec, path):
        for n, port in enumerate(container.get("ports") or ()):
            where, host, address = f"{at}.ports[{n}]", port.get("hostPort", 0), port.get("hostIP", "")
            number, protocol = port.get("containerPort", 0), port.get("protocol", "")
            if address and not host:
                shown = f"Name:{port.get('name', '')} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{address}"
                yield f"{where}: hostIP set without hostPort: {{{shown}}}"
            earlier = seen.setdefault((number, protocol), [])
            for earlier_path, earlier_port in earlier:
                kind = _conflict(address, host, earlier_port.get("hostIP", ""), earlier_port.get("hostPort", 0))
                if kind:
                    yield f"{where}: {kind} port definition with {earlier_path}"
            if len(earlier) < _MAX_COMPARED:
                earlier.append((where, port))


def _conflict(address: str, port: int, other_address: str, other_port: int) -> str:
    if (address, port) == (other_address, other_port):
        return "duplicate"
    if not port or not other_port:
        return "overlapping"
    return "dangerously ambiguous" if port == other_port and bool(address) != bool(other_address) else ""


def _pod_affinity(affinity: Object, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        pods: Object = affinity.get(kind) or {}
        for n, term in enumerate(pods.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{n}].labelSelector: {_NO_SELECTOR}"
        for n, term in enumerate(pods.get(_PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{n}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"
