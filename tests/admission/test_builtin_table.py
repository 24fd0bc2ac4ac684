"""Which plug-ins about built-in kinds there are, and for which requests they are consulted."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.admission.builtin.table import TABLE
from noxu.features import PLUGINS
from noxu.values import copy
from tests.admission.cluster import Cluster, claim, of_kind, pod

NAMES = [listed.name for listed in TABLE]


def test_they_run_in_the_order_of_the_flags() -> None:
    assert [name for name in PLUGINS if name in NAMES] == NAMES


def test_their_resources_exist() -> None:
    known = {resource.collection for resource in Cluster().environment.served_resources.current.resources}
    assert {collection for listed in TABLE for collection in listed.collections} <= known


BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
QUOTA = of_kind("ResourceQuota", spec={"hard": {"pods": "0"}}, status={"hard": {"pods": "0"}, "used": {"pods": "0"}})
BODIES: list[tuple[str, Any, str, Any]] = [
    ("the binding of a pod", pod(), "binding", BINDING),
    ("the eviction of a pod", pod(), "eviction", EVICTION),
    ("a token", of_kind("ServiceAccount"), "token", TOKEN),
]


@pytest.mark.parametrize(("of", "subresource", "body"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_bodies_of_other_kinds_are_left_alone(cluster: Cluster, of: Any, subresource: str, body: Any) -> None:
    await cluster.put(of_kind("Namespace", name="default"), QUOTA)
    draft = await cluster.write(*NAMES, "ResourceQuota", new=of, subresource=subresource, body=copy(body))
    assert draft.new == body


@pytest.mark.parametrize("value", [pod(), claim(), of_kind("Node"), of_kind("PersistentVolume")])
async def test_updates_of_the_status_are_left_alone(cluster: Cluster, value: Any) -> None:
    await cluster.put(of_kind("Namespace", name="default"))
    draft = await cluster.write(*NAMES, new=value, old=value, subresource="status")
    assert draft.new == cluster.typed(value)
