"""core/v1: Service. Services are only stored: there is no network. No addresses are assigned; a service that needs one
becomes headless, so that clients do not wait for an address (as `helm install --wait` does).

kubectl cluster-info lists services, charts contain them, and webhooks refer to them. The rules are those of
k8s.io/kubernetes that do not need a network: pkg/apis/core/v1/defaults.go and ValidateService.
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api import field
from noxu.apiserver.api.field import FieldError, Path, as_json
from noxu.apiserver.api.names import dns1123_label
from noxu.apiserver.kinds.facts import struct
from noxu.apiserver.kinds.kind import Context, Rules
from noxu.apiserver.values import Object

SERVICE: Final = struct("core/v1.Service")

_TYPES: Final = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
_PROTOCOLS: Final = ["SCTP", "TCP", "UDP"]
_AFFINITIES: Final = ["ClientIP", "None"]
_HEADLESS: Final = "None"
_AFFINITY_TIMEOUT: Final = 10_800  # seconds


def _default(value: Object) -> None:
    spec: Object = value.setdefault("spec", {})
    spec["type"] = kind = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault(
            "timeoutSeconds", _AFFINITY_TIMEOUT
        )
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    if kind in ("NodePort", "LoadBalancer"):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _complete(new: Object, old: Object | None, context: Context) -> None:
    spec: Object = new.get("spec", {})
    if context.subresource or spec["type"] == "ExternalName" or not spec.get("ports"):
        return
    before = (old or {}).get("spec", {}).get("clusterIP", "")
    spec["clusterIP"] = spec.get("clusterIP") or before or _HEADLESS
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    if context.subresource:
        return []
    spec = new.get("spec", {})
    ports, errors = spec.get("ports") or [], []
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != _HEADLESS:
        errors.append(field.required("spec.ports"))
    names: set[str] = set()
    for n, port in enumerate(ports):
        errors += _port_errors(field.index("spec.ports", n), port, names, named=len(ports) > 1)
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        errors.append(field.required("spec.externalName"))
    for name, known in (("sessionAffinity", _AFFINITIES), ("type", _TYPES)):
        if spec[name] not in known:
            errors.append(field.not_supported(f"spec.{name}", as_json(spec[name]), known))
    return errors


def _port_errors(path: Path, port: Object, names: set[str], *, named: bool) -> list[FieldError]:
    """The errors in a port; `names` are those of earlier ports, and extended."""
    name, errors = port.get("name", ""), []
    if named and not name:
        errors.append(field.required(field.child(path, "name")))
    elif name:
        errors += [field.invalid(field.child(path, "name"), name, text) for text in dns1123_label(name)]
        if name in names:
            errors.append(field.duplicate(field.child(path, "name"), name))
        names.add(name)
    if not 1 <= port.get("port", 0) <= 65535:
        rule = "must be between 1 and 65535, inclusive"
        errors.append(field.invalid(field.child(path, "port"), port.get("port", 0), rule))
    if port["protocol"] not in _PROTOCOLS:
        errors.append(field.not_supported(field.child(path, "protocol"), as_json(port["protocol"]), _PROTOCOLS))
    return errors


RULES: Final = {"Service": Rules(_default, _complete, _validate)}
