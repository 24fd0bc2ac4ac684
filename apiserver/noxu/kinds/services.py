"""core/v1: Service. Services have addresses and node ports, but there is no network behind them.

The rules are those of k8s.io/kubernetes: ValidateService in pkg/apis/core/validation, and pkg/registry/core/service for
the fields that depend on the type. The cluster has one range of IPv4 addresses. `noxu.registry.service_addresses`
allocates; here an update keeps the allocations of the stored object, and drops those that its type no longer needs.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from noxu.api import field, meta
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_label, dns1123_subdomain
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

HEADLESS: Final = "None"
_TYPES: Final = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
_PROTOCOLS: Final = ["SCTP", "TCP", "UDP"]
_AFFINITIES: Final = ["ClientIP", "None"]
_POLICIES: Final = ["Cluster", "Local"]
_MAX_AFFINITY: Final = 86_400  # seconds
_IN_RANGE: Final = "must be between 1 and 65535, inclusive"
_KUBELET_PORT: Final = 10_250


def needs_address(spec: Object) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_ports(spec: Object) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def may_have_node_ports(spec: Object) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_health_check(spec: Object) -> bool:
    """Whether a load balancer asks each node about its own pods."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def carry_over(new: Object, old: Object | None) -> None:
    """Complete the fields of addresses and ports that a client left out, from the stored service; in place.

    An update that leaves them out keeps them; one that changes the type drops those that the new type does not have,
    unless it changes them, too (patchAllocatedValues, dropTypeDependentFields, normalizeClusterIPs).
    """
    spec: Object = new["spec"]
    if old is None:
        _align_addresses(spec, {})
    else:
        before: Object = old["spec"]
        if needs_address(before) and needs_address(spec):
            _keep(spec, before, "clusterIP")
            if spec.get("clusterIP") == before.get("clusterIP"):
                _keep(spec, before, "clusterIPs")
        if may_have_node_ports(before) and may_have_node_ports(spec):
            _keep_node_ports(spec, before)
        if needs_health_check(before) and needs_health_check(spec):
            _keep(spec, before, "healthCheckNodePort")
        _align_addresses(spec, before)
        _drop(spec, before)
    _complete_families(spec, (old or {}).get("spec", {}))


def _keep(spec: Object, before: Object, name: str) -> None:
    if not spec.get(name) and before.get(name):
        spec[name] = before[name]


def _keep_node_ports(spec: Object, before: Object) -> None:
    """Node ports stay with the names of ports, unless another port has been given them."""
    ports, old_ports = spec.get("ports") or [], before.get("ports") or []
    numbers = {port.get("nodePort", 0) for port in old_ports}
    used = numbers & {port.get("nodePort", 0) for port in ports} - {0}
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in old_ports}
    for port in ports:
        former = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and former and former not in used:
            port["nodePort"] = former
            used.add(former)


def _align_addresses(spec: Object, before: Object) -> None:
    """clusterIP and clusterIPs follow each other, whichever the client changed."""
    cluster_ip, cluster_ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if cluster_ip and not cluster_ips:
        spec["clusterIPs"] = [cluster_ip]
    if not before:
        return
    if cluster_ip != before.get("clusterIP", "") and cluster_ips == (before.get("clusterIPs") or []):
        if cluster_ip:
            spec["clusterIPs"] = [cluster_ip]
        else:
            spec.pop("clusterIPs", None)


def _drop(spec: Object, before: Object) -> None:
    """Drop the fields that the type no longer needs, if they are the stored ones."""
    if needs_address(before) and not needs_address(spec):
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    if may_have_node_ports(before) and not may_have_node_ports(spec):
        former = {port.get("nodePort", 0) for port in before.get("ports") or ()}
        ports = spec.get("ports") or []
        if all(port.get("nodePort", 0) in former | {0} for port in ports):
            for port in ports:
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, before, "allocateLoadBalancerNodePorts")
        _drop_same(spec, before, "loadBalancerClass")
    if may_have_node_ports(before) and not (may_have_node_ports(spec) or spec.get("externalIPs")):
        _drop_same(spec, before, "externalTrafficPolicy")
    if needs_address(before) and not needs_address(spec):
        _drop_same(spec, before, "internalTrafficPolicy")


def _drop_same(spec: Object, before: Object, name: str) -> None:
    if spec.get(name) == before.get(name):
        spec.pop(name, None)


def _complete_families(spec: Object, before: Object) -> None:
    """One family, IPv4; a headless service without a selector has both, since its addresses come from its owner."""
    if not needs_address(spec):
        return
    for name in ("ipFamilies", "ipFamilyPolicy"):
        _keep(spec, before, name)
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "RequireDualStack"
        spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4", "IPv6"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]


# -- validation -------------------------------------------------------------------------------------------------------


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource == "status":
        return []
    spec = new["spec"]
    kind = spec.get("type", "")
    errors = [] if old is None else _update_errors(spec, old["spec"])
    ports = spec.get("ports") or []
    is_headless = spec.get("clusterIP") == HEADLESS
    if not ports and kind != "ExternalName" and not is_headless:
        errors.append(field.required("spec.ports"))
    errors += _type_errors(spec, is_headless=is_headless)
    names: set[str] = set()
    for n, port in enumerate(ports):
        errors += _port_errors(field.index("spec.ports", n), port, names, named=len(ports) > 1)
    errors += _repeated_ports(ports)
    errors += meta.validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _affinity_errors(spec)
    errors += _address_errors(spec)
    for n, address in enumerate(spec.get("externalIPs") or ()):
        errors += _external_address_errors(field.index("spec.externalIPs", n), address)
    if kind not in _TYPES:
        errors.append(field.not_supported("spec.type", as_json(kind), _TYPES) if kind else field.required("spec.type"))
    return errors + _node_port_errors(spec, ports) + _load_balancer_errors(spec) + _traffic_errors(spec)


def _update_errors(spec: Object, before: Object) -> list[FieldError]:
    """An address cannot change while the service needs one."""
    if not (needs_address(before) and needs_address(spec)):
        return []
    old, new = before.get("clusterIPs") or [], spec.get("clusterIPs") or []
    if old and (not new or new[0] != old[0]):
        return [field.invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]
    return []


def _type_errors(spec: Object, *, is_headless: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = spec.get("type")
    if kind == "LoadBalancer":
        for n, port in enumerate(spec.get("ports") or ()):
            if port.get("port") == _KUBELET_PORT:
                rule = f"may not expose port {_KUBELET_PORT} externally since it is used by kubelet"
                errors.append(field.invalid(field.index("spec.ports", n), port, rule))
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        rule = f"may not be set to 'None' for {kind} services"
        errors.append(field.invalid("spec.clusterIPs[0]", HEADLESS, rule))
    if kind == "ExternalName":
        if spec.get("clusterIPs"):
            errors.append(field.forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
        name = (spec.get("externalName") or "").removesuffix(".")
        if not name:
            errors.append(field.required("spec.externalName"))
        else:
            errors += [field.invalid("spec.externalName", name, text) for text in dns1123_subdomain(name)]
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
        errors.append(field.invalid(field.child(path, "port"), port.get("port", 0), _IN_RANGE))
    if port["protocol"] not in _PROTOCOLS:
        errors.append(field.not_supported(field.child(path, "protocol"), as_json(port["protocol"]), _PROTOCOLS))
    target = port.get("targetPort")
    if type(target) is int and not 1 <= target <= 65535:
        errors.append(field.invalid(field.child(path, "targetPort"), target, _IN_RANGE))
    return errors


def _repeated_ports(ports: list[Object]) -> list[FieldError]:
    errors, seen = [], set()
    for n, port in enumerate(ports):
        identity = (port.get("protocol"), port.get("port"))
        if identity in seen:
            shown = {name: port[name] for name in ("port", "protocol") if name in port}
            errors.append(field.duplicate(field.index("spec.ports", n), shown))
        seen.add(identity)
    return errors


def _affinity_errors(spec: Object) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    path = "spec.sessionAffinityConfig"
    if not affinity:
        return [field.required("spec.sessionAffinity")]
    if affinity not in _AFFINITIES:
        return [field.not_supported("spec.sessionAffinity", as_json(affinity), _AFFINITIES)]
    config = spec.get("sessionAffinityConfig")
    if affinity == "None":
        return [] if config is None else [field.forbidden(path, "must not be set when session affinity is None")]
    seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is None:
        return [field.required(f"{path}.clientIP.timeoutSeconds")]
    if not 0 < seconds <= _MAX_AFFINITY:
        rule = f"must be greater than 0 and less than {_MAX_AFFINITY}"
        return [field.invalid(f"{path}.clientIP.timeoutSeconds", seconds, rule)]
    return []


def _address_errors(spec: Object) -> list[FieldError]:
    """ValidateServiceClusterIPsRelatedFields, for a cluster of one family."""
    cluster_ip, cluster_ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if spec.get("type") == "ExternalName":
        return [
            field.forbidden(f"spec.{name}", "may not be set for ExternalName services")
            for name in ("clusterIP", "ipFamilies", "ipFamilyPolicy")
            if spec.get(name)
        ]
    errors = []
    if cluster_ip and (not cluster_ips or cluster_ips[0] != cluster_ip):
        rule = "must match `clusterIP`"
        errors.append(field.invalid("spec.clusterIPs", spec.get("clusterIPs"), rule))
    elif cluster_ips and not cluster_ip:
        errors.append(field.required("spec.clusterIP", "must be set when `clusterIPs` is set"))
    for n, address in enumerate(cluster_ips):
        if address == HEADLESS and n == 0:
            if len(cluster_ips) > 1:
                rule = "'None' must be the first and only value"
                errors.append(field.invalid("spec.clusterIPs", cluster_ips, rule))
            continue
        errors += _ip_errors(field.index("spec.clusterIPs", n), address)
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    valid_families = ["IPv4", "IPv6"]
    for n, family in enumerate(families):
        where = field.index("spec.ipFamilies", n)
        if family not in valid_families:
            errors.append(field.not_supported(where, as_json(family), valid_families))
        elif family in families[:n]:
            errors.append(field.duplicate(where, family))
    policies = ["PreferDualStack", "RequireDualStack", "SingleStack"]
    if policy is not None and policy not in policies:
        errors.append(field.not_supported("spec.ipFamilyPolicy", as_json(policy), policies))
    return errors


def _ip_errors(path: Path, address: str) -> list[FieldError]:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [field.invalid(path, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def _external_address_errors(path: Path, address: str) -> list[FieldError]:
    errors = _ip_errors(path, address)
    if errors:
        return errors
    ip = ipaddress.ip_address(address)
    for refused, rule in (
        (ip.is_unspecified, f"may not be unspecified ({address})"),
        (ip.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (ip.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (ip.is_multicast, "may not be in the multicast range (224.0.0.0/4, ff00::/8)"),
    ):
        if refused:
            errors.append(field.invalid(path, address, rule))
    return errors


def _node_port_errors(spec: Object, ports: list[Object]) -> list[FieldError]:
    errors, seen = [], set()
    for n, port in enumerate(ports):
        number = port.get("nodePort", 0)
        where = field.child(field.index("spec.ports", n), "nodePort")
        if not number:
            continue
        if spec.get("type") == "ClusterIP":
            errors.append(field.forbidden(where, "may not be used when `type` is 'ClusterIP'"))
        if (port.get("protocol"), number) in seen:
            errors.append(field.duplicate(where, number))
        seen.add((port.get("protocol"), number))
    return errors


def _load_balancer_errors(spec: Object) -> list[FieldError]:
    is_balancer = spec.get("type") == "LoadBalancer"
    only = "may only be used when `type` is 'LoadBalancer'"
    errors = []
    for n, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        if not is_balancer:
            return [field.forbidden("spec.LoadBalancerSourceRanges", only)]
        try:
            ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:
            rule = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            errors.append(field.invalid(field.index("spec.LoadBalancerSourceRanges", n), text, rule))
    allocates = spec.get("allocateLoadBalancerNodePorts")
    if is_balancer and allocates is None:
        errors.append(field.required("spec.allocateLoadBalancerNodePorts"))
    if not is_balancer and allocates is not None:
        errors.append(field.forbidden("spec.allocateLoadBalancerNodePorts", only))
    if not is_balancer and spec.get("loadBalancerClass") is not None:
        errors.append(field.forbidden("spec.loadBalancerClass", only))
    return errors


def _traffic_errors(spec: Object) -> list[FieldError]:
    errors = []
    external, internal = spec.get("externalTrafficPolicy", ""), spec.get("internalTrafficPolicy")
    is_external = may_have_node_ports(spec) or bool(spec.get("externalIPs"))
    if is_external:
        if not external:
            errors.append(field.required("spec.externalTrafficPolicy"))
        elif external not in _POLICIES:
            errors.append(field.not_supported("spec.externalTrafficPolicy", as_json(external), _POLICIES))
    elif external:
        rule = "may only be set for externally-accessible services"
        errors.append(field.invalid("spec.externalTrafficPolicy", as_json(external), rule))
    health = spec.get("healthCheckNodePort", 0)
    if health and not needs_health_check(spec):
        rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(field.invalid("spec.healthCheckNodePort", health, rule))
    if needs_address(spec):
        if internal is None:
            errors.append(field.required("spec.internalTrafficPolicy"))
        elif internal not in _POLICIES:
            errors.append(field.not_supported("spec.internalTrafficPolicy", as_json(internal), _POLICIES))
    return errors


def _warn(new: Object, old: Object | None) -> list[str]:  # noqa: ARG001
    spec = new["spec"]
    warnings = []
    if spec.get("externalIPs"):
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("clusterIP") == HEADLESS and spec.get("sessionAffinity") not in (None, "None"):
        warnings.append("spec.SessionAffinity is ignored for headless services")
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return warnings


def _complete(new: Object, old: Object | None, context: Context) -> None:
    if context.subresource != "status":
        carry_over(new, old)


RULES: Final = {"Service": Rules(complete=_complete, validate=_validate, warnings=_warn)}
