"""The client `lightkube`."""

from __future__ import annotations

import sys
import threading
from typing import Any

import lightkube
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace
from lightkube.types import PatchType

Widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")


def widget(name: str, size: int) -> Any:
    labels = {"parity": "odd" if size % 2 else "even"}
    return Widget(metadata={"name": name, "labels": labels}, spec={"size": size})


def refusal(call: Any, *arguments: Any) -> str:
    """The message of the ApiError, or an empty string if the call succeeds."""
    try:
        call(*arguments)
    except ApiError as error:
        return str(error)
    return ""


def create_get_update_patch_delete(client: Any) -> None:
    created = client.create(widget("a", 1))
    created.spec["size"] = 2
    assert client.replace(created).metadata.generation == 2
    assert refusal(client.replace, created).startswith("Operation cannot be fulfilled on widgets.example.com")
    assert client.patch(Widget, "a", {"spec": {"size": 3}}, patch_type=PatchType.MERGE).spec == {"size": 3}
    operations = [{"op": "replace", "path": "/spec/size", "value": 4}]
    assert client.patch(Widget, "a", operations, patch_type=PatchType.JSON).spec == {"size": 4}
    spec = {"colour": "red", "size": 4}
    applied = client.apply(Widget(apiVersion="example.com/v1", kind="Widget", metadata={"name": "a"}, spec=spec))
    assert applied.spec == spec
    assert client.patch(Widget.Status, "a", {"status": {"size": 4}}, patch_type=PatchType.MERGE).status == {"size": 4}
    scale = client.get(Widget.Scale, "a")
    assert (scale.spec.replicas, scale.status.replicas) == (4, 4)
    client.delete(Widget, "a")
    assert refusal(client.get, Widget, "a") == 'widgets.example.com "a" not found'


def lists_with_selectors_and_in_pages(client: Any) -> None:
    for size in range(5):
        client.create(widget(f"w{size}", size))
    assert [item.metadata.name for item in client.list(Widget, labels={"parity": "odd"})] == ["w1", "w3"]
    assert [item.metadata.name for item in client.list(Widget, fields={"metadata.name": "w4"})] == ["w4"]
    assert [item.metadata.name for item in client.list(Widget, chunk_size=2)] == ["w0", "w1", "w2", "w3", "w4"]
    client.deletecollection(Widget)
    assert list(client.list(Widget)) == []


def a_watch_resumes_from_the_last_revision(client: Any) -> None:
    version = client.create(widget("a", 1)).metadata.resourceVersion
    client.patch(Widget, "a", {"spec": {"size": 2}}, patch_type=PatchType.MERGE)
    later = threading.Timer(0.2, client.delete, (Widget, "a"))
    later.start()
    seen = []
    for event, changed in client.watch(Widget, resource_version=version, server_timeout=30):
        seen.append((event, changed.spec["size"]))
        if event == "DELETED":
            break
    later.join()
    assert seen == [("MODIFIED", 2), ("DELETED", 2)]


def waiting_for_a_condition(client: Any) -> None:
    client.create(widget("a", 1))
    ready = [{"type": "Ready", "status": "True"}]
    patch = {"patch_type": PatchType.MERGE}
    later = threading.Timer(0.2, client.patch, (Widget.Status, "a", {"status": {"conditions": ready}}), patch)
    later.start()
    assert client.wait(Widget, "a", for_conditions=["Ready"]).status["conditions"] == ready
    later.join()


def built_in_kinds(client: Any) -> None:
    created = client.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "b"}))
    assert created.data == {"a": "b"}
    assert client.patch(ConfigMap, "c", {"data": {"c": "d"}}).data == {"a": "b", "c": "d"}
    assert client.get(Namespace, client.namespace).status.phase == "Active"


if __name__ == "__main__":
    client = lightkube.Client(
        lightkube.KubeConfig.from_file(sys.argv[1]), namespace=sys.argv[2], field_manager="me", trust_env=False
    )
    create_get_update_patch_delete(client)
    lists_with_selectors_and_in_pages(client)
    a_watch_resumes_from_the_last_revision(client)
    waiting_for_a_condition(client)
    built_in_kinds(client)
