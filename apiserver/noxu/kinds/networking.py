"""networking.k8s.io/v1: Ingress, IngressClass, NetworkPolicy, IPAddress, ServiceCIDR.

The rules are those of k8s.io/kubernetes pkg/apis/networking/validation. The name of an IPAddress follows the rule `scheme.ip_name`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_subdomain, label_name, path_segment_name, subdomain_name
from noxu.expressions import expression
from noxu.go.net import is_ipv4, is_ipv6
from noxu.kinds import addresses, checks
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Json, Object

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ["Exact", "ImplementationSpecific", "Prefix"]
_BAD_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")
_MAX_CONTROLLER: Final = 250
_SCOPES: Final = ["Cluster", "Namespace"]
_PROTOCOLS: Final = ["TCP", "UDP", "SCTP"]
_POLICY_TYPES: Final = ["Ingress", "Egress"]
_NOT_A_NAME: Final = "must be a DNS name, not an IP address"

_WILDCARD: Final = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_is_wildcard: Final = expression(_WILDCARD)
_NOT_A_WILDCARD: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower "
    "case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used "
    rf"for validation is '{_WILDCARD}')"
)
_PATH_CHARACTERS: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path: Final = expression(_PATH_CHARACTERS)
_NOT_A_PATH: Final = "Invalid path (e.g. 'path', regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"


def _is_address(text: str) -> bool:
    return is_ipv4(text, sloppy=True) or is_ipv6(text, sloppy=True)


def _wildcard(text: str) -> list[str]:
    """IsWildcardDNS1123Subdomain."""
    errors = ["must be no more than 253 characters"] if len(text) > 253 else []
    return errors if _is_wildcard.fullmatch(text) else [*errors, _NOT_A_WILDCARD]


def _host(text: str, path: Path) -> Errors:
    texts = _wildcard(text) if "*" in text else dns1123_subdomain(text)
    return (field.invalid(path, text, why) for why in texts)


# -- Ingress ----------------------------------------------------------------------------------------------------------


def _validate_ingress(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return list(_load_balancer(new, old or {}))
    errors = list(_ingress(new.get("spec") or {}, (old or {}).get("spec") or {}))
    if old is None:
        annotations = new["metadata"].get("annotations") or {}
        name = (new.get("spec") or {}).get("ingressClassName")
        annotated = annotations.get(CLASS_ANNOTATION)
        if annotated is not None and name is not None and annotated != name:
            rule = "must match `ingressClassName` when both are specified"
            errors.append(field.invalid(f"annotations.{CLASS_ANNOTATION}", annotated, rule))
    return errors


def _ingress(spec: Object, before: Object) -> Errors:
    rules: list[Object] = spec.get("rules") or []
    if not rules and spec.get("defaultBackend") is None:
        yield field.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    any_wildcard = any(
        "*" in rule.get("host", "") and list(_rule_value(rule, "")) for rule in before.get("rules") or ()
    )
    for n, rule in enumerate(rules):
        path, host = f"spec.rules[{n}]", rule.get("host", "")
        if host:
            if _is_address(host):
                yield field.invalid(f"{path}.host", host, _NOT_A_NAME)
            yield from _host(host, f"{path}.host")
        if "*" not in host or not any_wildcard:
            yield from _rule_value(rule, path)
    any_secret = any(_secret_texts(tls) for tls in before.get("tls") or ())
    for n, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{n}]"
        for m, host in enumerate(tls.get("hosts") or ()):
            yield from _host(host, f"{path}.hosts[{m}]")
        if not any_secret:
            yield from (field.invalid(f"{path}.secretName", tls["secretName"], text) for text in _secret_texts(tls))
    if spec.get("ingressClassName") is not None:
        yield from checks.named(spec["ingressClassName"], subdomain_name, "spec.ingressClassName")


def _secret_texts(tls: Object) -> list[str]:
    name = tls.get("secretName", "")
    return subdomain_name(name) if name else []


def _rule_value(rule: Object, path: Path) -> Errors:
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield field.required(f"{path}.http.paths")
    yield from checks.each(http.get("paths"), f"{path}.http.paths", _http_path)


def _http_path(http_path: Object, path: Path) -> Errors:
    kind, text = http_path.get("pathType"), http_path.get("path", "")
    where = f"{path}.path"
    if kind is None:
        yield field.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield field.not_supported(f"{path}.pathType", as_json(kind), _PATH_TYPES)
    elif (text or kind != "ImplementationSpecific") and not text.startswith("/"):
        yield field.invalid(where, text, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for bad in _BAD_SEQUENCES:
            if bad in text:
                yield field.invalid(where, text, f"must not contain '{bad}'")
        for bad in _BAD_ENDS:
            if text.endswith(bad):
                yield field.invalid(where, text, f"cannot end with '{bad}'")
    yield from _backend(http_path.get("backend") or {}, f"{path}.backend")


def _backend(backend: Object, path: Path) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield field.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference(resource, f"{path}.resource")
    elif service is None:
        yield field.invalid(path, "", "resource or service backend is required")
    else:
        name, port = service.get("name", ""), service.get("port") or {}
        if not name:
            yield field.required(f"{path}.service.name")
        else:
            yield from checks.named(name, label_name, f"{path}.service.name")
        yield from _backend_port(port.get("name", ""), port.get("number", 0), path)


def _backend_port(name: str, number: int, path: Path) -> Errors:
    if name and number:
        yield field.invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from checks.port(name, f"{path}.service.port.name")
    elif number:
        yield from checks.port_number(number, f"{path}.service.port.number")
    else:
        yield field.required(path, "port name or number is required")


def _reference(reference: Object, path: Path, names: tuple[str, ...] = ("kind", "name")) -> Errors:
    """A reference to an object; the fields of `names` are required, and segments of a path."""
    if reference.get("apiGroup") is not None:
        group = reference["apiGroup"]
        yield from (field.invalid(f"{path}.apiGroup", group, text) for text in dns1123_subdomain(group))
    for name in names:
        value = reference.get(name, "")
        if not value:
            yield field.required(f"{path}.{name}")
        else:
            yield from checks.named(value, path_segment_name, f"{path}.{name}")


def _load_balancer(new: Object, old: Object) -> Errors:
    stored_ips = [item["ip"] for item in _points(old) if item.get("ip")]
    for n, item in enumerate(_points(new)):
        path, host = f"status.loadBalancer.ingress[{n}]", item.get("hostname", "")
        if item.get("ip"):
            yield from checks.address(item["ip"], f"{path}.ip", stored_ips)
        if host:
            yield from (field.invalid(f"{path}.hostname", host, text) for text in dns1123_subdomain(host))
            if _is_address(host):
                yield field.invalid(f"{path}.hostname", host, _NOT_A_NAME)


def _points(ingress: Object) -> list[Object]:
    points: list[Object] = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return points


def _warn_ingress(new: Object, old: Object | None) -> list[str]:
    """The annotation was replaced by a field in networking/v1; only on create."""
    if old is not None or CLASS_ANNOTATION not in (new["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


# -- IngressClass -----------------------------------------------------------------------------------------------------


def _validate_ingress_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_ingress_class(new.get("spec") or {}, None if old is None else old.get("spec") or {}))


def _ingress_class(spec: Object, before: Object | None) -> Errors:
    controller, path = spec.get("controller", ""), "spec.controller"
    if before is not None:
        yield from checks.immutable(controller, before.get("controller", ""), path)
    if not controller:
        yield field.required(path)
    else:
        if len(controller) > _MAX_CONTROLLER:
            yield field.too_long(path, _MAX_CONTROLLER)
        yield from domain_prefixed_path(controller, path)
    if spec.get("parameters") is not None:
        yield from _parameters(spec["parameters"], "spec.parameters")


def domain_prefixed_path(text: str, path: Path) -> Errors:
    """`example.com/controller` (IsDomainPrefixedPath)."""
    domain, slash, rest = text.partition("/")
    if not slash or not domain or not rest:
        yield field.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from (field.invalid(path, domain, why) for why in dns1123_subdomain(domain))
    if not _is_path.fullmatch(rest):
        yield field.invalid(path, rest, _NOT_A_PATH)


def _parameters(reference: Object, path: Path) -> Errors:
    yield from _reference(reference, path)
    scope: str | None = reference.get("scope")
    namespace: str | None = reference.get("namespace")
    if scope is None:
        yield field.required(f"{path}.scope")
    elif scope not in _SCOPES:
        yield field.not_supported(f"{path}.scope", scope, _SCOPES)
    elif scope == "Cluster" and namespace is not None:
        yield field.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace":
        if namespace is None:
            yield field.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from checks.named(namespace, label_name, f"{path}.namespace")


# -- NetworkPolicy ----------------------------------------------------------------------------------------------------


def _validate_network_policy(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_network_policy(new.get("spec") or {}, (old or {}).get("spec") or {}))


def _network_policy(spec: Object, before: Object) -> Errors:
    any_value = bool(label_selector_errors(before.get("podSelector") or {}, ""))
    stored_cidrs = {
        text
        for _, peer in _peers(before)
        if (block := peer.get("ipBlock")) is not None
        for text in (block.get("cidr", ""), *(block.get("except") or ()))
    }
    yield from label_selector_errors(spec.get("podSelector") or {}, "spec.podSelector", any_value=any_value)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for n, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{n}]"
            yield from checks.each(rule.get("ports"), f"{path}.ports", _policy_port)
            for m, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, f"{path}.{peers}[{m}]", stored_cidrs, any_value=any_value)
    types = spec.get("policyTypes") or []
    if len(types) > len(_POLICY_TYPES):
        yield field.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for n, kind in enumerate(types):
        if kind not in _POLICY_TYPES:
            yield field.not_supported(f"spec.policyTypes[{n}]", as_json(kind), _POLICY_TYPES)


def _peers(spec: Object) -> Iterator[tuple[str, Object]]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(direction) or ():
            yield from ((direction, peer) for peer in rule.get(peers) or ())


def _policy_port(policy_port: Object, path: Path) -> Errors:
    protocol, port, end = policy_port.get("protocol"), policy_port.get("port"), policy_port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield field.not_supported(f"{path}.protocol", as_json(protocol), _PROTOCOLS)
    if port is None:
        if end is not None:
            yield field.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(port, int):
        yield from checks.port(port, f"{path}.port")
        if end is not None:
            if end < port:
                yield field.invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
            yield from checks.port_number(end, f"{path}.endPort")
    else:
        if end is not None:
            yield field.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from checks.port(port, f"{path}.port")


def _peer(peer: Object, path: Path, stored_cidrs: set[str], *, any_value: bool) -> Errors:
    selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in selectors:
        yield from label_selector_errors(peer[name], f"{path}.{name}", any_value=any_value)
    block = peer.get("ipBlock")
    if block is not None:
        yield from _ip_block(block, f"{path}.ipBlock", stored_cidrs)
        if selectors:
            yield field.forbidden(path, "may not specify both ipBlock and another peer")
    elif not selectors:
        yield field.required(path, "must specify a peer")


def _ip_block(block: Object, path: Path, stored_cidrs: set[str]) -> Errors:
    """`stored_cidrs` are the networks of the stored object, which may remain."""
    cidr = block.get("cidr", "")
    if not cidr:
        yield field.required(f"{path}.cidr")
        return
    yield from addresses.network(cidr, f"{path}.cidr", stored=stored_cidrs)
    outer = addresses.parsed_network(cidr)
    if outer is None:
        return
    for n, text in enumerate(block.get("except") or ()):
        where = f"{path}.except[{n}]"
        yield from addresses.network(text, where, stored=stored_cidrs)
        inner = addresses.parsed_network(text)
        if inner is not None and not (outer.contains(inner.addr) and outer.length < inner.length):
            yield field.invalid(where, text, "must be a strict subset of `cidr`")


# -- IPAddress, ServiceCIDR -------------------------------------------------------------------------------------------


def _validate_ip_address(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    parent = (new.get("spec") or {}).get("parentRef")
    path = "spec.parentRef"
    if old is not None:
        return list(
            checks.immutable(parent, (old.get("spec") or {}).get("parentRef"), path, "networking/v1.ParentReference")
        )
    return list(_parent(parent, path))


def _parent(parent: Object | None, path: Path) -> Errors:
    if parent is None:
        yield field.required(path)
        return
    group = parent.get("group", "")
    if group:
        yield from (field.invalid(f"{path}.group", group, text) for text in dns1123_subdomain(group))
    yield from _reference(parent, path, ("resource", "name"))
    if parent.get("namespace"):
        yield from checks.named(parent["namespace"], path_segment_name, f"{path}.namespace")


def _validate_service_cidr(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    if context.subresource:
        return []
    cidrs: list[str] = (new.get("spec") or {}).get("cidrs") or []
    if old is None:
        return list(_cidrs(cidrs))
    before: list[str] = (old.get("spec") or {}).get("cidrs") or []
    if len(before) == len(cidrs) or (len(before), len(cidrs)) == (1, 2):
        errors = [
            error for n, text in enumerate(before) for error in checks.immutable(cidrs[n], text, f"spec.cidrs[{n}]")
        ]
        return errors + (list(_cidrs(cidrs)) if len(before) < len(cidrs) else [])
    return list(checks.immutable(cidrs, before, "spec.cidrs"))


def _cidrs(cidrs: list[str]) -> Errors:
    path = "spec.cidrs"
    if not cidrs:
        yield field.required(path, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield field.invalid(path, as_json({"CIDRs": cidrs}), "may only hold up to 2 values")
        return
    for n, text in enumerate(cidrs):
        yield from addresses.network(text, f"{path}[{n}]", strict=True)
    families: list[Json] = [":" in text for text in cidrs if addresses.parsed_network(text) is not None]
    if len(families) == 2 and families[0] == families[1]:
        rule = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield field.invalid(path, cidrs, rule)


RULES: Final = {
    "Ingress": Rules(validate=_validate_ingress, warnings=_warn_ingress),
    "IngressClass": Rules(validate=_validate_ingress_class),
    "NetworkPolicy": Rules(validate=_validate_network_policy),
    "IPAddress": Rules(validate=_validate_ip_address),
    "ServiceCIDR": Rules(validate=_validate_service_cidr),
}
