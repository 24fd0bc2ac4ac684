"""The graph of owners: which changes lead to what work, and what it makes of objects that are not as they should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.controllers.owner_graph import ABSENT, OwnerGraph, OwnerState, Work, state_of
from noxu.registry.storage_form import as_cbor
from noxu.values import Json, Object
from noxu_storage.types import Key


def key(name: str) -> Key:
    return Key("/configmaps", "default/", name)


def stored(name: str, *owners: str, blocks: bool = False, **metadata: Json) -> bytes:
    """An object whose uid is its name in capitals, and whose owners are named in the same way."""
    found: Object = {"name": name, "uid": name.upper(), **metadata}
    if owners:
        found["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": one, "uid": one.upper(), "blockOwnerDeletion": blocks}
            for one in owners
        ]
    value = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": found}
    return json.dumps(value, separators=(",", ":")).encode()


DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
WAITS: Object = DELETED | {"finalizers": ["foregroundDeletion"]}
ORPHANS: Object = DELETED | {"finalizers": ["orphan"]}


@pytest.fixture
def graph() -> OwnerGraph:
    """Of an object `child` that blocks its owner `a`, at revision 5."""
    graph = OwnerGraph()
    graph.put(key("child"), stored("child", "a", blocks=True), 5)
    return graph


PUTS: dict[str, tuple[str, bytes, list[Work]]] = {
    "a plain object": ("x", stored("x"), []),
    "an owner": ("a", stored("a"), []),
    "an owner that is being deleted": ("a", stored("a", **DELETED), []),
    "an owner that waits": ("a", stored("a", **WAITS), ["A", key("a")]),
    "an owner that orphans": ("a", stored("a", **ORPHANS), [key("a")]),
    "an owner that will orphan": ("a", stored("a", finalizers=["orphan"]), []),
    "another dependent": ("x", stored("x", "a"), [key("x")]),
    "the same dependent": ("child", stored("child", "a", blocks=True, labels={"a": "b"}), []),
    "a dependent with another owner": ("child", stored("child", "b"), [key("child")]),
    "a dependent that no longer blocks": ("child", stored("child", "a"), [key("child")]),
    "a dependent without owners": ("child", stored("child"), []),
    "no JSON": ("x", b'{"ownerReferences":', []),
    "no object": ("x", b'["ownerReferences":{}]', []),
    "no metadata": ("x", b'{"metadata":["ownerReferences":1]}', []),
    "owners that are no list of objects": ("x", b'{"metadata":{"ownerReferences":[1,"a"]}}', []),
}


def test_an_owner_that_was_deleted_may_return_with_its_uid(graph: OwnerGraph) -> None:
    """A restored snapshot has it again; nothing else gives a uid twice."""
    graph.remove(key("a"), stored("a"))
    assert graph.owners["A"].gone is not None
    graph.put(key("child"), stored("child", "a", labels={"a": "b"}), 6)
    graph.put(key("a"), stored("a").replace(b'"A"', b'"another"'), 7)
    assert graph.owners["A"].gone is not None
    graph.put(key("a"), stored("a"), 8)
    assert graph.owners["A"].gone is None
    graph.remove(key("a"), stored("a"))
    assert graph.copy().owners["A"].gone is not None
    graph.remove(key("child"), stored("child", "a"))
    graph.put(key("a"), stored("a"), 9)
    assert graph.owners == {}


def test_objects_may_be_stored_as_cbor(graph: OwnerGraph) -> None:
    def in_cbor(value: bytes) -> bytes:
        return as_cbor(json.loads(value))

    long = "a" * 30
    assert list(graph.put(key("x"), in_cbor(stored("x", "a", long)), 6)) == [key("x")]
    assert list(graph.put(key("plain"), in_cbor(stored("plain")), 7)) == []
    assert list(graph.remove(key("plain"), in_cbor(stored("plain", uid="PLAIN")))) == []
    assert list(graph.remove(key(long), in_cbor(stored(long)))) == [long.upper()]
    assert list(graph.remove(key("a"), in_cbor(stored("a")))) == ["A"]
    assert state_of(key("a"), in_cbor(stored("a", **WAITS))) == OwnerState("A", waits=True)


@pytest.mark.parametrize(("name", "value", "work"), PUTS.values(), ids=PUTS)
def test_the_work_that_a_write_leads_to(graph: OwnerGraph, name: str, value: bytes, work: list[Work]) -> None:
    assert list(graph.put(key(name), value, 6)) == work
    assert list(graph.put(key(name), value, 7)) == []


REMOVALS: dict[str, tuple[str, bytes | None, list[Work]]] = {
    "a plain object": ("x", stored("x"), []),
    "a plain object that names the owner": ("x", stored("x", labels={"uid": "A"}), []),
    "the owner": ("a", stored("a"), ["A"]),
    "the owner, which was corrupt": ("a", b"", [key("child")]),
    "another object, which was corrupt": ("x", b"", []),
    "the dependent": ("child", stored("child", "a", blocks=True), []),
    "an object that did not exist": ("x", None, []),
}


@pytest.mark.parametrize(("name", "previous", "work"), REMOVALS.values(), ids=REMOVALS)
def test_the_work_that_a_deletion_leads_to(
    graph: OwnerGraph, name: str, previous: bytes | None, work: list[Work]
) -> None:
    assert list(graph.remove(key(name), previous)) == work


@pytest.mark.parametrize("last", [stored("child", "a"), stored("child", "b", blocks=True), stored("child"), None])
def test_an_owner_that_waits_is_reconciled_when_nothing_blocks_it(graph: OwnerGraph, last: bytes | None) -> None:
    graph.put(key("a"), stored("a", **WAITS), 6)
    assert graph.is_blocked("A")
    work = graph.remove(key("child"), b"") if last is None else graph.put(key("child"), last, 7)
    assert key("a") in work
    assert not graph.is_blocked("A")


def test_an_object_that_was_created_again_is_another_one(graph: OwnerGraph) -> None:
    before = graph.nodes[key("child")]
    again = stored("child", "a", blocks=True).replace(b'"CHILD"', b'"ANOTHER"')
    assert list(graph.put(key("child"), again, 6)) == [key("child")]
    assert graph.nodes[key("child")] is not before
    assert graph.is_blocked("A")
    assert graph.dependents("A") == [key("child")]


def test_a_node_remains_while_its_owners_do(graph: OwnerGraph) -> None:
    node = graph.nodes[key("child")]
    graph.put(key("child"), stored("child", "a", blocks=True, **DELETED), 9)
    assert graph.nodes[key("child")] is node
    assert (node.revision, node.deleted) == (9, True)


def test_dependents_of_one_owner_share_their_reference(graph: OwnerGraph) -> None:
    graph.put(key("x"), stored("x", "a", blocks=True), 6)
    assert graph.nodes[key("x")].owners[0] is graph.nodes[key("child")].owners[0]


STATES: dict[str, tuple[bytes | None, OwnerState]] = {
    "nothing": (None, ABSENT),
    "an object": (stored("a"), OwnerState("A", waits=False)),
    "one that is being deleted": (stored("a", **DELETED), OwnerState("A", waits=False)),
    "one that waits": (stored("a", **WAITS), OwnerState("A", waits=True)),
    "one that orphans": (stored("a", **ORPHANS), OwnerState("A", waits=False)),
    "one that will wait": (stored("a", finalizers=["foregroundDeletion"]), OwnerState("A", waits=False)),
    "one without metadata": (b"{}", ABSENT),
}


@pytest.mark.parametrize(("value", "state"), STATES.values(), ids=STATES)
def test_the_state_of_an_owner(value: bytes | None, state: OwnerState) -> None:
    assert state_of(key("a"), value) == state
