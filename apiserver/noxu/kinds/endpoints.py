"""core/v1: Endpoints; discovery.k8s.io/v1: EndpointSlice.

The rules are those of k8s.io/kubernetes: ValidateEndpoints in pkg/apis/core/validation, and pkg/apis/discovery/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import dns1123_label, dns1123_subdomain, subdomain_name
from noxu.go.net import is_ipv4, is_ipv6
from noxu.kinds import addresses, checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

_PROTOCOLS: Final = ["SCTP", "TCP", "UDP"]
_ADDRESS_TYPES: Final = ["FQDN", "IPv4", "IPv6"]
_MAX_ENDPOINTS: Final = 1000
_MAX_ADDRESSES: Final = 100
_MAX_PORTS: Final = 20_000
_MAX_TOPOLOGY: Final = 16
_MAX_HINTS: Final = 8


def _port(port: Object, path: Path) -> Errors:
    protocol = port.get("protocol", "")
    if not protocol:
        yield field.required(f"{path}.protocol")
    elif protocol not in _PROTOCOLS:
        yield field.not_supported(f"{path}.protocol", as_json(protocol), _PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from checks.qualified(port["appProtocol"], f"{path}.appProtocol")


# -- Endpoints --------------------------------------------------------------------------------------------------------


def _validate_endpoints(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    stored_ips = {address["ip"] for _, _, address in _addresses(old or {})}
    return [
        error
        for n, subset in enumerate(new.get("subsets") or ())
        for error in _subset(subset, f"subsets[{n}]", stored_ips)
    ]


def _addresses(endpoints: Object) -> list[tuple[str, int, Object]]:
    return [
        (kind, n, address)
        for subset in endpoints.get("subsets") or ()
        for kind in ("addresses", "notReadyAddresses")
        for n, address in enumerate(subset.get(kind) or ())
    ]


def _subset(subset: Object, path: Path, stored_ips: set[str]) -> Errors:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield field.required(path, "must specify `addresses` or `notReadyAddresses`")
    for kind, n, address in _addresses({"subsets": [subset]}):
        yield from _address(address, f"{path}.{kind}[{n}]", stored_ips)
    ports = subset.get("ports") or []
    for n, port in enumerate(ports):
        where, name = f"{path}.ports[{n}]", port.get("name", "")
        if name:
            yield from checks.label(name, f"{where}.name")
        elif len(ports) > 1:
            yield field.required(f"{where}.name")
        yield from checks.port_number(port.get("port", 0), f"{where}.port")
        yield from _port(port, where)


def _address(address: Object, path: Path, stored_ips: set[str]) -> Errors:
    ip = address.get("ip", "")
    yield from checks.address(ip, f"{path}.ip", stored_ips)
    if address.get("hostname"):
        yield from checks.label(address["hostname"], f"{path}.hostname")
    if address.get("nodeName") is not None:
        yield from checks.named(address["nodeName"], subdomain_name, f"{path}.nodeName")
    yield from addresses.of_endpoint(ip, f"{path}.ip")


# -- EndpointSlice ----------------------------------------------------------------------------------------------------


def _validate_slice(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    kind = new.get("addressType", "")
    errors = []
    if not kind:
        errors.append(field.required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        errors.append(field.not_supported("addressType", as_json(kind), _ADDRESS_TYPES))
    stored_addresses = {
        text for endpoint in (old or {}).get("endpoints") or () for text in endpoint.get("addresses") or ()
    }
    errors += _endpoints(new.get("endpoints") or [], kind, stored_addresses)
    errors += _slice_ports(new.get("ports") or [])
    if old is not None:
        errors += checks.immutable(kind, old.get("addressType", ""), "addressType")
    return errors


def _endpoints(endpoints: list[Object], kind: str, stored_addresses: set[str]) -> Errors:
    if len(endpoints) > _MAX_ENDPOINTS:
        yield field.too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)
        return
    for n, endpoint in enumerate(endpoints):
        path, texts = f"endpoints[{n}]", endpoint.get("addresses") or []
        if not texts:
            yield field.required(f"{path}.addresses", "must contain at least 1 address")
        elif len(texts) > _MAX_ADDRESSES:
            yield field.too_many(f"{path}.addresses", len(texts), _MAX_ADDRESSES)
        for m, text in enumerate(texts):
            yield from _slice_address(text, kind, f"{path}.addresses[{m}]", stored_addresses)
        if endpoint.get("nodeName") is not None:
            yield from checks.named(endpoint["nodeName"], subdomain_name, f"{path}.nodeName")
        topology = endpoint.get("deprecatedTopology") or {}
        if len(topology) > _MAX_TOPOLOGY:
            yield field.too_many(f"{path}.deprecatedTopology", len(topology), _MAX_TOPOLOGY)
        yield from checks.labels(topology, f"{path}.deprecatedTopology")
        if endpoint.get("hostname") is not None:
            yield from checks.label(endpoint["hostname"], f"{path}.hostname")
        yield from _hints(endpoint.get("hints") or {}, f"{path}.hints")


def _slice_address(text: str, kind: str, path: Path, stored_addresses: set[str]) -> Errors:
    if kind == "FQDN":
        yield from _domain_name(text, path)
    elif kind in ("IPv4", "IPv6"):
        wrong = list(checks.address(text, path, stored_addresses))
        is_of_family = is_ipv4 if kind == "IPv4" else is_ipv6
        if not wrong and not is_of_family(text, sloppy=True):
            wrong = [field.invalid(path, text, f"must be an {kind} address")]
        yield from wrong
        yield from addresses.of_endpoint(text, path)


def _domain_name(text: str, path: Path) -> Errors:
    """A subdomain with at least two labels, perhaps with a final dot (IsFullyQualifiedDomainName)."""
    if not text:
        yield field.required(path)
        return
    name = text.removesuffix(".")
    wrong = dns1123_subdomain(name)
    if wrong:
        yield from (field.invalid(path, name, why) for why in wrong)
    elif "." not in name:
        yield field.invalid(path, name, "should be a domain with at least two segments separated by dots")
    else:
        labels = name.split(".")
        yield from (field.invalid(path, label, why) for label in labels for why in dns1123_label(label))


def _hints(hints: Object, path: Path) -> Errors:
    for kind, check in (("forZones", checks.qualified), ("forNodes", None)):
        items: list[Object] = hints.get(kind) or []
        if len(items) > _MAX_HINTS:
            yield field.too_many(f"{path}.{kind}", len(items), _MAX_HINTS)
            return
        seen = set()
        for n, item in enumerate(items):
            where, name = f"{path}.{kind}[{n}].name", item.get("name", "")
            if name in seen:
                yield field.duplicate(where, name)
            seen.add(name)
            if check is not None:
                yield from check(name, where)
            else:
                yield from checks.named(name, subdomain_name, where)


def _slice_ports(ports: list[Object]) -> Errors:
    if len(ports) > _MAX_PORTS:
        yield field.too_many("ports", len(ports), _MAX_PORTS)
        return
    seen = set()
    for n, port in enumerate(ports):
        path, name = f"ports[{n}]", port.get("name") or ""
        if name:
            yield from checks.label(name, f"{path}.name")
        if name in seen:
            yield field.duplicate(f"{path}.name", name)
        seen.add(name)
        if port.get("port") is not None:
            yield from checks.port_number(port["port"], f"{path}.port")
        yield from _port(port, path)


RULES: Final = {"Endpoints": Rules(validate=_validate_endpoints)}
DISCOVERY_RULES: Final = {"EndpointSlice": Rules(validate=_validate_slice)}
