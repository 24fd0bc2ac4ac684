"""An operator written with `kopf`: it sets the status of every widget and records deletions."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any

import kopf
import kubernetes

WIDGETS = "example.com", "v1"
deleted_names: list[str] = []


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = logging.INFO


@kopf.on.create("example.com", "v1", "widgets")
@kopf.on.update("example.com", "v1", "widgets", field="spec.size")
def reconcile(spec: dict[str, Any], body: dict[str, Any], patch: Any, **_: Any) -> None:
    kopf.info(body, reason="Reconciled", message=f"size {spec['size']}")
    patch.status["size"] = spec["size"]


@kopf.on.delete("example.com", "v1", "widgets")
def record_deletion(name: str, **_: Any) -> None:
    deleted_names.append(name)


def use(namespace: str) -> None:
    api, widgets = kubernetes.client.CustomObjectsApi(), (*WIDGETS, namespace, "widgets")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 3}}
    api.create_namespaced_custom_object(*widgets, body)
    wait_until(lambda: api.get_namespaced_custom_object(*widgets, "a").get("status", {}).get("size") == 3)
    api.patch_namespaced_custom_object(*widgets, "a", {"spec": {"size": 4}})
    wait_until(lambda: api.get_namespaced_custom_object(*widgets, "a")["status"]["size"] == 4)
    assert api.get_namespaced_custom_object(*widgets, "a")["metadata"]["finalizers"]
    api.delete_namespaced_custom_object(*widgets, "a")
    wait_until(lambda: not api.list_namespaced_custom_object(*widgets)["items"])
    assert deleted_names == ["a"]
    events = kubernetes.client.CoreV1Api()
    wait_until(
        lambda: {"size 3", "size 4"} <= {event.message for event in events.list_namespaced_event(namespace).items}
    )


def wait_until(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.1)
    raise AssertionError("the condition does not hold after 60 s")


def main(kubeconfig: str, namespace: str) -> None:
    kubernetes.config.load_kube_config(kubeconfig)
    stop, ready = threading.Event(), threading.Event()
    operator = threading.Thread(
        target=lambda: asyncio.run(
            kopf.operator(namespace=namespace, standalone=True, stop_flag=stop, ready_flag=ready)
        )
    )
    operator.start()
    try:
        assert ready.wait(60)
        use(namespace)
    finally:
        stop.set()
        operator.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
