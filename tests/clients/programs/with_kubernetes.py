"""The official Python client, `kubernetes`."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import kubernetes
from kubernetes import client
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

GROUP = "example.com", "v1"
OPERATIONS = "application/json-patch+json"


def widget(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"parity": "even" if spec["size"] % 2 == 0 else "odd"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def assert_refused(code: int, call: Any, *arguments: Any) -> None:
    """Assert that the call fails with this status code."""
    status = 0
    try:
        call(*arguments)
    except client.ApiException as error:
        status = error.status
    assert status == code


def create_get_update_patch_delete(namespace: str) -> None:
    api, widgets = client.CustomObjectsApi(), (*GROUP, namespace, "widgets")
    created = api.create_namespaced_custom_object(*widgets, widget("a", size=1))
    assert created["metadata"]["uid"]
    created["spec"]["size"] = 2
    assert api.replace_namespaced_custom_object(*widgets, "a", created)["metadata"]["generation"] == 2
    assert_refused(409, api.replace_namespaced_custom_object, *widgets, "a", created)
    assert api.patch_namespaced_custom_object(*widgets, "a", {"spec": {"size": 3}})["spec"] == {"size": 3}
    operations = [{"op": "replace", "path": "/spec/size", "value": 4}]
    patched = api.patch_namespaced_custom_object(*widgets, "a", operations, _content_type=OPERATIONS)
    assert patched["spec"] == {"size": 4}
    status = {"status": {"size": 4}, "spec": {"size": 9}}
    patched = api.patch_namespaced_custom_object_status(*widgets, "a", status)
    assert (patched["spec"], patched["status"]) == ({"size": 4}, {"size": 4})
    assert api.get_namespaced_custom_object_scale(*widgets, "a")["spec"] == {"replicas": 4}
    scaled = api.patch_namespaced_custom_object_scale(*widgets, "a", {"spec": {"replicas": 5}})
    assert scaled["spec"] == {"replicas": 5}
    assert api.get_namespaced_custom_object(*widgets, "a")["spec"] == {"size": 5}
    assert api.delete_namespaced_custom_object(*widgets, "a")["status"] == "Success"
    assert_refused(404, api.get_namespaced_custom_object, *widgets, "a")
    assert_refused(422, api.create_namespaced_custom_object, *widgets, widget("a", size=-1))


def lists_with_selectors_and_in_pages(namespace: str) -> None:
    api, widgets = client.CustomObjectsApi(), (*GROUP, namespace, "widgets")
    for size in range(5):
        colour = "red" if size < 2 else "green"
        api.create_namespaced_custom_object(*widgets, widget(f"w{size}", size=size, colour=colour))

    def names(**options: Any) -> tuple[list[str], str]:
        listed = api.list_namespaced_custom_object(*widgets, **options)
        return [item["metadata"]["name"] for item in listed["items"]], listed["metadata"].get("continue", "")

    assert names(label_selector="parity=odd")[0] == ["w1", "w3"]
    assert names(field_selector="spec.colour=red")[0] == ["w0", "w1"]
    pages, token = [], ""
    while not pages or token:
        page, token = names(limit=2, _continue=token)
        pages.append(page)
    assert pages == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    api.delete_collection_namespaced_custom_object(*widgets)
    assert names()[0] == []


def a_watch_resumes_from_the_last_revision(namespace: str) -> None:
    api, widgets = client.CustomObjectsApi(), (*GROUP, namespace, "widgets")
    api.create_namespaced_custom_object(*widgets, widget("a", size=1))
    start = api.list_namespaced_custom_object(*widgets)["metadata"]["resourceVersion"]
    api.patch_namespaced_custom_object(*widgets, "a", {"spec": {"size": 2}})
    watch, seen = kubernetes.watch.Watch(), []
    later = threading.Timer(0.3, api.delete_namespaced_custom_object, (*widgets, "a"))
    while len(seen) < 3:
        for event in watch.stream(
            api.list_namespaced_custom_object, *widgets, resource_version=start, timeout_seconds=30
        ):
            start = event["object"]["metadata"]["resourceVersion"]
            seen.append((event["type"], event["object"]["spec"]["size"]))
            watch.stop()
        if len(seen) == 1:
            api.patch_namespaced_custom_object(*widgets, "a", {"spec": {"size": 3}})
            later.start()
    later.join()
    assert seen == [("MODIFIED", 2), ("MODIFIED", 3), ("DELETED", 3)]


def definitions(namespace: str) -> None:
    api = client.ApiextensionsV1Api()
    schema = client.V1CustomResourceValidation(open_apiv3_schema=client.V1JSONSchemaProps(type="object"))
    crd = client.V1CustomResourceDefinition(
        metadata=client.V1ObjectMeta(name=f"gears.{namespace}.example.com"),
        spec=client.V1CustomResourceDefinitionSpec(
            group=f"{namespace}.example.com",
            scope="Cluster",
            names=client.V1CustomResourceDefinitionNames(plural="gears", kind="Gear"),
            versions=[client.V1CustomResourceDefinitionVersion(name="v1", served=True, storage=True, schema=schema)],
        ),
    )
    api.create_custom_resource_definition(crd)
    stored = api.read_custom_resource_definition(crd.metadata.name)
    assert {condition.type: condition.status for condition in stored.status.conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert crd.metadata.name in [item.metadata.name for item in api.list_custom_resource_definition().items]
    api.delete_custom_resource_definition(crd.metadata.name)


def built_in_kinds(namespace: str) -> None:
    api = client.CoreV1Api()
    api.create_namespaced_config_map(
        namespace, {"metadata": {"name": "c"}, "data": {"a": "b"}}
    )  # without apiVersion and kind
    assert api.patch_namespaced_config_map("c", namespace, {"data": {"c": "d"}}).data == {"a": "b", "c": "d"}
    secret = client.V1Secret(metadata={"name": "s"}, string_data={"a": "b"})
    assert api.create_namespaced_secret(namespace, secret).data == {"a": "Yg=="}
    by_name = {"field_selector": "metadata.name!=kube-root-ca.crt"}
    assert [item.metadata.name for item in api.list_namespaced_config_map(namespace, **by_name).items] == ["c"]
    api.delete_namespaced_config_map("c", namespace)
    assert api.list_namespaced_config_map(namespace, **by_name).items == []
    assert client.VersionApi().get_code().major == "1"


def the_dynamic_client(namespace: str) -> None:
    resource = kubernetes.dynamic.DynamicClient(client.ApiClient()).resources.get(
        api_version="example.com/v1", kind="Widget"
    )
    resource.create(body=widget("a", size=1), namespace=namespace)
    body = {**widget("a", size=2), "metadata": {"name": "a"}}
    applied = resource.server_side_apply(body=body, namespace=namespace, field_manager="me", force_conflicts=True)
    assert applied.spec.size == 2
    patch, merge = {"spec": {"colour": "red"}}, "application/merge-patch+json"
    assert resource.patch(body=patch, name="a", namespace=namespace, content_type=merge).spec.colour == "red"
    assert [item.metadata.name for item in resource.get(namespace=namespace, label_selector="parity=odd").items] == [
        "a"
    ]
    resource.delete(name="a", namespace=namespace)
    assert resource.get(namespace=namespace).items == []


def leader_election(namespace: str) -> None:
    """By a Lease: a candidate takes over when it has seen no renewal for its lease duration."""

    def candidate(name: str, seconds: int) -> LeaderElection:
        lock = LeaseLock("lock", namespace, name)
        return LeaderElection(Config(lock, seconds, 1.5, 1, onstarted_leading=str, onstopped_leading=None))

    first, second, third = candidate("first", 2), candidate("second", 300), candidate("third", 2)
    assert first.try_acquire_or_renew()
    assert not second.try_acquire_or_renew()
    assert first.try_acquire_or_renew()
    assert not second.try_acquire_or_renew()
    assert not third.try_acquire_or_renew()
    time.sleep(2.2)
    assert third.try_acquire_or_renew()
    assert client.CoordinationV1Api().read_namespaced_lease("lock", namespace).spec.holder_identity == "third"


if __name__ == "__main__":
    kubernetes.config.load_kube_config(sys.argv[1])
    create_get_update_patch_delete(sys.argv[2])
    lists_with_selectors_and_in_pages(sys.argv[2])
    a_watch_resumes_from_the_last_revision(sys.argv[2])
    definitions(sys.argv[2])
    built_in_kinds(sys.argv[2])
    the_dynamic_client(sys.argv[2])
    leader_election(sys.argv[2])
