"""Ingresses, network policies and the addresses of services: defaults, validation, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, name_errors, prepared, typed
from tests.rows import rows

NETWORKING = "networking.k8s.io/v1"
INGRESS = kind_of(NETWORKING, "Ingress")
POLICY = kind_of(NETWORKING, "NetworkPolicy")
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(path: Object | None = None, **spec: object) -> Object:
    """An ingress with one path."""
    whole = {"path": "/", "pathType": "Prefix", "backend": BACKEND, **(path or {})}
    return {"spec": {"rules": [{"http": {"paths": [{k: v for k, v in whole.items() if v is not None}]}}], **spec}}


PATH = "spec.rules[0].http.paths[0]"
INGRESSES: list[tuple[str, Object, list[str]]] = [
    ("one path", ingress(), []),
    ("only a default", {"spec": {"defaultBackend": BACKEND}}, []),
    ("nothing", {"spec": {}}, ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]),
    ("no type of path", ingress({"pathType": None}), [f"{PATH}.pathType: Required value: pathType must be specified"]),
    (
        "an unknown type of path",
        ingress({"pathType": "Regex"}),
        [f'{PATH}.pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"'],
    ),
    ("a relative path", ingress({"path": "x"}), [f'{PATH}.path: Invalid value: "x": must be an absolute path']),
    ("no path, as the implementation wants", ingress({"path": None, "pathType": "ImplementationSpecific"}), []),
    (
        "a path with dots",
        ingress({"path": "/a//../b/.."}),
        [
            f"{PATH}.path: Invalid value: \"/a//../b/..\": must not contain '//'",
            f"{PATH}.path: Invalid value: \"/a//../b/..\": must not contain '/../'",
            f"{PATH}.path: Invalid value: \"/a//../b/..\": cannot end with '/..'",
        ],
    ),
    (
        "no backend",
        ingress({"backend": {}}),
        [f'{PATH}.backend: Invalid value: "": resource or service backend is required'],
    ),
    (
        "two backends",
        ingress({"backend": {**BACKEND, "resource": {"kind": "K", "name": "n"}}}),
        [f'{PATH}.backend: Invalid value: "": cannot set both resource and service backends'],
    ),
    (
        "no port",
        ingress({"backend": {"service": {"name": "web"}}}),
        [f"{PATH}.backend: Required value: port name or number is required"],
    ),
    (
        "two ports",
        ingress({"backend": {"service": {"name": "web", "port": {"name": "a", "number": 1}}}}),
        [f'{PATH}.backend: Invalid value: "": cannot set both port name & port number'],
    ),
    (
        "a service that begins with a digit",
        ingress({"backend": {"service": {"name": "1a", "port": {"name": "a"}}}}),
        [],
    ),
    (
        "an address as host",
        {"spec": {"rules": [{"host": "1.2.3.4"}]}},
        ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ),
    ("a wildcard", {"spec": {"rules": [{"host": "*.example.com"}], "tls": [{"hosts": ["*.example.com"]}]}}, []),
]


@rows(("new", "expected"), [row[1:] for row in INGRESSES], ids=[row[0] for row in INGRESSES])
def test_ingresses_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(INGRESS, new) == expected


def test_a_wildcard_stands_at_the_beginning() -> None:
    (error,) = errors(INGRESS, {"spec": {"rules": [{"host": "a.*.com"}]}})
    assert error.startswith(
        'spec.rules[0].host: Invalid value: "a.*.com": a wildcard DNS-1123 subdomain must start with'
    )


def test_the_class_of_an_ingress_is_given_once() -> None:
    annotated = {"metadata": {"name": "x", "annotations": {"kubernetes.io/ingress.class": "a"}}}
    new = annotated | ingress(ingressClassName="b")
    rule = "must match `ingressClassName` when both are specified"
    assert errors(INGRESS, new) == [f'annotations.kubernetes.io/ingress.class: Invalid value: "a": {rule}']
    assert errors(INGRESS, new, new) == []
    assert INGRESS.warnings(typed(INGRESS, annotated), None) == [
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
    ]


def test_the_status_of_an_ingress_has_names_that_are_no_addresses() -> None:
    new = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "1.2.3.4"}, {"ip": "x"}]}}}
    assert errors(INGRESS, new, {}, "status") == [
        'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
        'status.loadBalancer.ingress[2].ip: Invalid value: "x": '
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    ]


CLASSES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("a class", {"controller": "example.com/c"}, None, []),
    ("no controller", {}, None, ["spec.controller: Required value"]),
    (
        "a controller without domain",
        {"controller": "c"},
        None,
        ['spec.controller: Invalid value: "c": must be a domain-prefixed path (such as "acme.io/foo")'],
    ),
    (
        "another controller",
        {"controller": "example.com/d"},
        {"controller": "example.com/c"},
        ['spec.controller: Invalid value: "example.com/d": field is immutable'],
    ),
    (
        "a namespace with parameters of the cluster",
        {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "namespace": "ns"}},
        None,
        ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ),
    (
        "no namespace with parameters in one",
        {"controller": "a.b/c", "parameters": {"scope": "Namespace"}},
        None,
        [
            "spec.parameters.kind: Required value",
            "spec.parameters.name: Required value",
            "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        ],
    ),
]


@pytest.mark.parametrize(("new", "old", "expected"), [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES])
def test_ingress_classes_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert (
        errors(kind_of(NETWORKING, "IngressClass"), {"spec": new}, None if old is None else {"spec": old}) == expected
    )


def policy(peer: Object | None = None, port: Object | None = None) -> Object:
    rule: Object = {}
    if peer is not None:
        rule["from"] = [peer]
    if port is not None:
        rule["ports"] = [port]
    return {"spec": {"podSelector": {}, "ingress": [rule]}}


PEER, PORT = "spec.ingress[0].from[0]", "spec.ingress[0].ports[0]"
POLICIES: list[tuple[str, Object, list[str]]] = [
    ("all pods", {"spec": {"podSelector": {}}}, []),
    ("a network", policy({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}), []),
    ("no peer", policy({}), [f"{PEER}: Required value: must specify a peer"]),
    (
        "two kinds of peers",
        policy({"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}),
        [f"{PEER}: Forbidden: may not specify both ipBlock and another peer"],
    ),
    ("no network", policy({"ipBlock": {"cidr": ""}}), [f"{PEER}.ipBlock.cidr: Required value"]),
    (
        "no prefix",
        policy({"ipBlock": {"cidr": "10.0.0.0"}}),
        [
            f'{PEER}.ipBlock.cidr: Invalid value: "10.0.0.0": '
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        ],
    ),
    (
        "bits beyond the prefix",
        policy({"ipBlock": {"cidr": "10.0.0.1/8"}}),
        [f'{PEER}.ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length'],
    ),
    (
        "an exception outside",
        policy({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8", "11.0.0.0/16"]}}),
        [
            f'{PEER}.ipBlock.except[{n}]: Invalid value: "{text}": must be a strict subset of `cidr`'
            for n, text in enumerate(["10.0.0.0/8", "11.0.0.0/16"])
        ],
    ),
    ("a range of ports", policy(port={"port": 1, "endPort": 2}), []),
    (
        "a range that ends before it begins",
        policy(port={"port": 3, "endPort": 2}),
        [f"{PORT}.endPort: Invalid value: 2: must be greater than or equal to `port`"],
    ),
    (
        "a range without beginning",
        policy(port={"endPort": 2}),
        [f"{PORT}.endPort: Invalid value: 2: may not be specified when `port` is not specified"],
    ),
    (
        "a range from a name",
        policy(port={"port": "web", "endPort": 2}),
        [f"{PORT}.endPort: Invalid value: 2: may not be specified when `port` is non-numeric"],
    ),
    (
        "an unknown protocol",
        policy(port={"protocol": "ICMP"}),
        [f'{PORT}.protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
    ),
    (
        "unknown types",
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress", "X"]}},
        ['spec.policyTypes[1]: Unsupported value: "X": supported values: "Ingress", "Egress"'],
    ),
]


@rows(("new", "expected"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES])
def test_network_policies_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(POLICY, new) == expected


def test_a_network_that_is_stored_may_remain() -> None:
    old = policy({"ipBlock": {"cidr": "10.0.0.1/8"}})
    assert errors(POLICY, old, old) == []


def test_network_policies_are_defaulted_and_counted() -> None:
    assert filled(POLICY, policy(port={}))["spec"]["policyTypes"] == ["Ingress"]
    assert filled(POLICY, {"spec": {"podSelector": {}, "egress": [{}]}})["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert filled(POLICY, policy(port={}))["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP"}]
    assert prepared(POLICY, policy())["metadata"]["generation"] == 1


NAMES = [
    ("10.0.0.1", []),
    ("2001:db8::1", []),
    ("010.0.0.1", ["must not have leading 0s"]),
    ("2001:DB8::1", ['must be in canonical form ("2001:db8::1")']),
    ("::ffff:1.2.3.4", ["must not be an IPv4-mapped IPv6 address"]),
    ("a", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_the_name_of_an_ip_address_is_an_address(name: str, expected: list[str]) -> None:
    found = name_errors(kind_of(NETWORKING, "IPAddress"), name, {})
    assert found == [f'metadata.name: Invalid value: "{name}": {text}' for text in expected]


PARENT = {"spec": {"parentRef": {"resource": "services", "name": "a", "namespace": "b"}}}
CIDRS: list[tuple[str, str, Object, Object | None, list[str]]] = [
    ("an address", "IPAddress", PARENT, None, []),
    ("an address of nothing", "IPAddress", {"spec": {}}, None, ["spec.parentRef: Required value"]),
    (
        "an address of something else",
        "IPAddress",
        {"spec": {"parentRef": {"resource": "services", "name": "c"}}},
        PARENT,
        ['spec.parentRef: Invalid value: {"resource":"services","name":"c"}: field is immutable'],
    ),
    ("a range", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24"]}}, None, []),
    ("no range", "ServiceCIDR", {"spec": {}}, None, ["spec.cidrs: Required value: at least one CIDR required"]),
    (
        "two ranges of one family",
        "ServiceCIDR",
        {"spec": {"cidrs": ["10.0.0.0/24", "10.1.0.0/24"]}},
        None,
        [
            'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: '
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        ],
    ),
    ("a second range", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24", "fd00::/108"]}}, {"spec": {"cidrs": ["10.0.0.0/24"]}}, []),
    (
        "another range",
        "ServiceCIDR",
        {"spec": {"cidrs": ["10.1.0.0/24"]}},
        {"spec": {"cidrs": ["10.0.0.0/24"]}},
        ['spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "new", "old", "expected"), [row[1:] for row in CIDRS], ids=[row[0] for row in CIDRS])
def test_addresses_of_services_are_validated(kind: str, new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(kind_of(NETWORKING, kind), new, old) == expected
