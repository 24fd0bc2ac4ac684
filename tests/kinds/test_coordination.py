"""Leases, and the Scale."""

from __future__ import annotations

from noxu.go.structs import decode
from noxu.kinds.kind import Context, prepare, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

LEASE = by_group_kind()["coordination.k8s.io/v1", "Lease"]


def typed(spec: Object) -> Object:
    decoded = decode(LEASE.struct, {"metadata": {"name": "leader", "namespace": "x"}, "spec": spec})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    LEASE.default(value)
    return value


KNOWN = 'supported values: "OldestEmulationVersion"'
LEASES: list[tuple[str, Object, list[str]]] = [
    ("nothing", {}, []),
    ("a released lease", {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}, []),
    ("no duration", {"leaseDurationSeconds": 0}, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
    ("a negative duration", {"leaseDurationSeconds": -1}, ["spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0"]),
    ("negative transitions", {"leaseTransitions": -1}, ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]),
    ("a known strategy and a preferred holder", {"strategy": "OldestEmulationVersion", "preferredHolder": "me"}, []),
    ("a strategy of one's own", {"strategy": "example.com/mine"}, []),
    ("an unknown strategy", {"strategy": "Mine"}, [f'spec.strategy.strategy: Unsupported value: "Mine": {KNOWN}']),
    ("a strategy that is no name", {"strategy": "example.com/"}, [
        'spec.strategy.strategy: Invalid value: "example.com/": name part must be non-empty',
        "spec.strategy.strategy: Invalid value: \"example.com/\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ]),
    ("a preferred holder without strategy", {"preferredHolder": "me"}, ["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"]),
    ("an empty preferred holder", {"preferredHolder": ""}, []),
]  # fmt: skip


@rows(("spec", "messages"), [row[1:] for row in LEASES], ids=[row[0] for row in LEASES])
def test_leases_are_validated(spec: Object, messages: list[str]) -> None:
    assert [str(error) for error in LEASE.validate(typed(spec), None, Context())] == messages
    assert [str(error) for error in LEASE.validate(typed(spec), typed({}), Context())] == messages


def test_an_empty_holder_is_not_the_same_as_none() -> None:
    held = written(LEASE, typed({"holderIdentity": "", "acquireTime": None}))
    assert held["spec"] == {"holderIdentity": ""}
    assert written(LEASE, typed({}))["spec"] == {}


def test_an_update_of_a_lease_needs_its_resource_version_and_may_create_it() -> None:
    assert not LEASE.unconditional_update
    assert LEASE.create_on_update


def test_generations_of_leases_are_not_counted() -> None:
    new, old = typed({"leaseTransitions": 2}), typed({"leaseTransitions": 1})
    new["metadata"]["generation"] = 1
    prepare(LEASE, new, old)
    assert "generation" not in new["metadata"]
