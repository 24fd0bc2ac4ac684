"""core/v1: Service. Services are only stored: there is no network. No addresses are assigned; a service that needs one
becomes headless, so that clients do not wait for an address (as `helm install --wait` does).

kubectl cluster-info lists services, charts contain them, and webhooks refer to them. The rules are those of
k8s.io/kubernetes that do not need a network: pkg/apis/core/v1/defaults.go and ValidateService.
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api import field
from noxu.apiserver.api.field import FieldError, Path, as_json
from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.api.names import dns1123_label, label_1035_name
from noxu.apiserver.go.structs import BOOL, INT32, INT_OR_STRING, STRING, Field, List, Map, Struct, named
from noxu.apiserver.kinds.kind import Context, Kind, Subresource
from noxu.apiserver.kinds.meta import ALWAYS, CONDITION, POINTER, TYPE_META
from noxu.apiserver.values import Object

SERVICE_PORT: Final = Struct("ServicePort").define(
    Field("name", STRING, 1),
    Field("protocol", named("v1.Protocol"), 2),
    Field("appProtocol", STRING, 6, POINTER),
    Field("port", INT32, 3, ALWAYS),
    Field("targetPort", INT_OR_STRING, 4, ALWAYS),
    Field("nodePort", INT32, 5),
)
CLIENT_IP_CONFIG: Final = Struct("ClientIPConfig").define(Field("timeoutSeconds", INT32, 1, POINTER))
SESSION_AFFINITY_CONFIG: Final = Struct("SessionAffinityConfig").define(Field("clientIP", CLIENT_IP_CONFIG, 1, POINTER))
SERVICE_SPEC: Final = Struct("ServiceSpec").define(
    Field(
        "ports",
        List(SERVICE_PORT),
        1,
        patch="merge",
        merge_key="port",
        list_type="map",
        list_keys=("port", "protocol"),
    ),
    Field("selector", Map(STRING), 2, list_type="atomic"),
    Field("clusterIP", STRING, 3),
    Field("clusterIPs", List(STRING), 18, list_type="atomic"),
    Field("type", named("v1.ServiceType"), 4),
    Field("externalIPs", List(STRING), 5, list_type="atomic"),
    Field("sessionAffinity", named("v1.ServiceAffinity"), 7),
    Field("loadBalancerIP", STRING, 8),
    Field("loadBalancerSourceRanges", List(STRING), 9, list_type="atomic"),
    Field("externalName", STRING, 10),
    Field("externalTrafficPolicy", named("v1.ServiceExternalTrafficPolicy"), 11),
    Field("healthCheckNodePort", INT32, 12),
    Field("publishNotReadyAddresses", BOOL, 13),
    Field("sessionAffinityConfig", SESSION_AFFINITY_CONFIG, 14, POINTER),
    Field("ipFamilies", List(named("v1.IPFamily")), 19, list_type="atomic"),
    Field("ipFamilyPolicy", named("v1.IPFamilyPolicy"), 17, POINTER),
    Field("allocateLoadBalancerNodePorts", BOOL, 20, POINTER),
    Field("loadBalancerClass", STRING, 21, POINTER),
    Field("internalTrafficPolicy", named("v1.ServiceInternalTrafficPolicy"), 22, POINTER),
    Field("trafficDistribution", STRING, 23, POINTER),
)
PORT_STATUS: Final = Struct("PortStatus").define(
    Field("port", INT32, 1, ALWAYS),
    Field("protocol", named("v1.Protocol"), 2, ALWAYS),
    Field("error", STRING, 3, POINTER),
)
LOAD_BALANCER_INGRESS: Final = Struct("LoadBalancerIngress").define(
    Field("ip", STRING, 1),
    Field("hostname", STRING, 2),
    Field("ipMode", named("v1.LoadBalancerIPMode"), 3, POINTER),
    Field("ports", List(PORT_STATUS), 4, list_type="atomic"),
)
LOAD_BALANCER_STATUS: Final = Struct("LoadBalancerStatus").define(
    Field("ingress", List(LOAD_BALANCER_INGRESS), 1, list_type="atomic"),
)
SERVICE_STATUS: Final = Struct("ServiceStatus").define(
    Field("loadBalancer", LOAD_BALANCER_STATUS, 1, ALWAYS),
    Field("conditions", List(CONDITION), 2, patch="merge", merge_key="type", list_type="map", list_keys=("type",)),
)
SERVICE: Final = Struct("Service").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SERVICE_SPEC, 2, ALWAYS),
    Field("status", SERVICE_STATUS, 3, ALWAYS),
)

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


def _complete(new: Object, old: Object | None, subresource: str) -> None:
    spec: Object = new.get("spec", {})
    if subresource or spec["type"] == "ExternalName" or not spec.get("ports"):
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


KINDS: Final = (
    Kind(
        group="",
        struct=SERVICE,
        plural="services",
        namespaced=True,
        short_names=("svc",),
        categories=("all",),
        subresources=(Subresource(name="status", verbs=("get", "patch", "update"), kept=("spec",)),),
        name_rule=label_1035_name,
        fresh=("status",),
        kept=("status",),
        selectable={"spec.clusterIP": ("spec.clusterIP",), "spec.type": ("spec.type",)},
        default=_default,
        complete=_complete,
        validate=_validate,
    ),
)
