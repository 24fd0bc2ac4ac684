"""What `noxu check` says about a stored value and its key."""

from __future__ import annotations

import json
from typing import Any

from noxu.controllers.service_addresses import ADDRESSES, PORTS
from noxu.registry.storage_form import SERVER_LEASES, as_cbor, is_temporary, problem
from noxu_storage.types import Key, KeyValue
from tests.rows import rows

WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "default", "uid": "u"},
}
ZONE = {"apiVersion": "example.com/v1", "kind": "Zone", "metadata": {"name": "a", "uid": "u"}}
NAMESPACED = Key("example.com/widgets", "default/", "a")
CLUSTER = Key("example.com/zones", "", "a")


def changed(value: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**value, "metadata": {**value["metadata"], **metadata}}


ROWS: list[tuple[str, Key, Any, str]] = [
    ("an object", NAMESPACED, WIDGET, ""),
    ("an object of a cluster", CLUSTER, ZONE, ""),
    ("an empty namespace", CLUSTER, changed(ZONE, namespace=""), ""),
    ("CBOR", NAMESPACED, as_cbor(WIDGET), ""),
    ("white space", NAMESPACED, json.dumps(WIDGET, indent=1).encode(), ""),
    ("no JSON", NAMESPACED, b"not", "cannot be decoded: invalid character 'o' in literal null (expecting 'u')"),
    ("broken CBOR", NAMESPACED, as_cbor(WIDGET)[:-1], "cannot be decoded: invalid character 'Ù' looking for beginning of value"),
    ("a claim", Key("ranges/serviceips", "", "10.0.0.1"), {}, ""),
    ("protobuf", NAMESPACED, b"k8s\0\n", "is in protobuf, which cannot be decoded as this kind"),
    ("a list", NAMESPACED, [], "is not an object"),
    ("no metadata", NAMESPACED, {"kind": "Widget"}, "has no metadata"),
    ("metadata of another type", NAMESPACED, {**WIDGET, "metadata": "a"}, "has no metadata"),
    ("no version", NAMESPACED, {**WIDGET, "apiVersion": ""}, "has no apiVersion"),
    ("no kind", NAMESPACED, {**WIDGET, "kind": 1}, "has no kind"),
    ("no uid", NAMESPACED, changed(WIDGET, uid=None), "has no uid"),
    ("another name", NAMESPACED, changed(WIDGET, name="b"), "has the name 'b', which differs from its key"),
    ("another namespace", NAMESPACED, changed(WIDGET, namespace="n"), "is in the namespace 'n', which differs from its key"),
    ("no namespace", NAMESPACED, changed(WIDGET, namespace=None), "is in the namespace '', which differs from its key"),
]  # fmt: skip


def test_claims_of_addresses_and_ports_and_leases_of_servers_are_temporary() -> None:
    assert all(is_temporary(Key(collection, "", "1")) for collection in (ADDRESSES, PORTS, SERVER_LEASES))
    assert not is_temporary(NAMESPACED)


@rows(("key", "value", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_is_wrong_with_a_stored_value(key: Key, value: Any, expected: str) -> None:
    stored = value if isinstance(value, bytes) else json.dumps(value).encode()
    assert problem(KeyValue(key, stored, 7)) == expected
