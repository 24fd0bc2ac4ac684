"""Endpoints and EndpointSlices: defaults, validation, generations."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, prepared
from tests.rows import rows

ENDPOINTS, SLICE = kind_of("v1", "Endpoints"), kind_of("discovery.k8s.io/v1", "EndpointSlice")
LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def subset(ip: str, *ports: Object) -> Object:
    return {"subsets": [{"addresses": [{"ip": ip}], "ports": list(ports)}]}


OLD: list[tuple[str, Object, list[str]]] = [
    ("an address", subset("10.0.0.1", {"port": 80}), []),
    ("no address", {"subsets": [{}]}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
    (
        "no such address",
        subset("x"),
        [
            f'subsets[0].addresses[0].ip: Invalid value: "x": {NOT_AN_ADDRESS}',
            'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address',
        ],
    ),
    ("this host", subset("127.0.0.1"), [f'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": {LOOPBACK}']),
    ("the link", subset("fe80::1"), [f'subsets[0].addresses[0].ip: Invalid value: "fe80::1": {LINK_LOCAL}']),
    (
        "ports without names",
        subset("10.0.0.1", {"port": 80}, {"port": 0, "name": "b", "protocol": "X"}),
        [
            "subsets[0].ports[0].name: Required value",
            "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            'subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
]


@pytest.mark.parametrize(("new", "expected"), [row[1:] for row in OLD], ids=[row[0] for row in OLD])
def test_endpoints_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(ENDPOINTS, new) == expected


def slice_of(*addresses: str, kind: str = "IPv4", ports: list[Object] | None = None, **more: object) -> Object:
    return {"addressType": kind, "endpoints": [{"addresses": list(addresses)}], "ports": ports or [], **more}


FIRST = "endpoints[0].addresses[0]"
SLICES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("a slice", slice_of("10.0.0.1"), None, []),
    ("no type", {"endpoints": []}, None, ["addressType: Required value"]),
    (
        "an unknown type",
        slice_of("a", kind="IP"),
        None,
        ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'],
    ),
    ("another type", slice_of("fd00::1", kind="IPv6"), slice_of("10.0.0.1"), ['addressType: Invalid value: "IPv6": field is immutable']),
    ("no address", slice_of(), None, ["endpoints[0].addresses: Required value: must contain at least 1 address"]),
    (
        "an address of the other family",
        slice_of("fd00::1"),
        None,
        [f'{FIRST}: Invalid value: "fd00::1": must be an IPv4 address'],
    ),
    ("this host", slice_of("127.0.0.1"), None, [f'{FIRST}: Invalid value: "127.0.0.1": {LOOPBACK}']),
    ("a domain", slice_of("a.example.com", kind="FQDN"), None, []),
    (
        "no domain",
        slice_of("a", kind="FQDN"),
        None,
        [f'{FIRST}: Invalid value: "a": should be a domain with at least two segments separated by dots'],
    ),
    (
        "too many addresses",
        slice_of(*(f"10.0.0.{n}" for n in range(1, 102))),
        None,
        ["endpoints[0].addresses: Too many: 101: must have at most 100 items"],
    ),
    ("a port twice", slice_of("10.0.0.1", ports=[{}, {}]), None, ['ports[1].name: Duplicate value: ""']),
]  # fmt: skip


@rows(("new", "old", "expected"), [row[1:] for row in SLICES], ids=[row[0] for row in SLICES])
def test_slices_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(SLICE, new, old) == expected


def test_ports_are_defaulted() -> None:
    assert filled(SLICE, slice_of("10.0.0.1", ports=[{}]))["ports"] == [{"name": "", "protocol": "TCP"}]
    assert filled(ENDPOINTS, subset("10.0.0.1", {"port": 1}))["subsets"][0]["ports"] == [{"port": 1, "protocol": "TCP"}]


CHANGES: list[tuple[str, Object, int]] = [
    ("nothing", {}, 3),
    ("another address", {"endpoints": [{"addresses": ["10.0.0.2"]}]}, 4),
    ("a label", {"metadata": {"name": "x", "labels": {"a": "b"}}}, 4),
    ("an annotation", {"metadata": {"name": "x", "annotations": {"a": "b"}}}, 3),
]


@pytest.mark.parametrize(("change", "generation"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_generations_of_slices_count_labels_too(change: Object, generation: int) -> None:
    old = slice_of("10.0.0.1", metadata={"name": "x", "generation": 3})
    value = prepared(SLICE, {**slice_of("10.0.0.1"), **change}, old)
    assert value["metadata"]["generation"] == generation
