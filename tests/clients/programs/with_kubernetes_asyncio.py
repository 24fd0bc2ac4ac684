"""The client `kubernetes_asyncio`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kubernetes_asyncio import client, config
from kubernetes_asyncio.watch import Watch

MERGE, OPERATIONS = "application/merge-patch+json", "application/json-patch+json"


def widget(name: str, size: int) -> dict[str, Any]:
    labels = {"parity": "odd" if size % 2 else "even"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


async def assert_refused(code: int, call: Any) -> None:
    """Assert that the call fails with this status code."""
    status = 0
    try:
        await call
    except client.ApiException as error:
        status = error.status
    assert status == code


async def create_get_update_patch_delete(api: Any, widgets: tuple[str, ...]) -> None:
    created = await api.create_namespaced_custom_object(*widgets, widget("a", 1))
    created["spec"]["size"] = 2
    assert (await api.replace_namespaced_custom_object(*widgets, "a", created))["spec"] == {"size": 2}
    await assert_refused(409, api.replace_namespaced_custom_object(*widgets, "a", created))
    patch = {"spec": {"size": 3}}
    patched = await api.patch_namespaced_custom_object(*widgets, "a", patch, _content_type=MERGE)
    assert patched["spec"] == {"size": 3}
    status = {"status": {"size": 3}}
    patched = await api.patch_namespaced_custom_object_status(*widgets, "a", status, _content_type=MERGE)
    assert (patched["spec"], patched["status"]) == ({"size": 3}, {"size": 3})
    await api.delete_namespaced_custom_object(*widgets, "a")
    await assert_refused(404, api.get_namespaced_custom_object(*widgets, "a"))


async def lists_with_selectors_and_in_pages(api: Any, widgets: tuple[str, ...]) -> None:
    for size in range(5):
        await api.create_namespaced_custom_object(*widgets, widget(f"w{size}", size))

    async def names(**options: Any) -> tuple[list[str], str]:
        listed = await api.list_namespaced_custom_object(*widgets, **options)
        return [item["metadata"]["name"] for item in listed["items"]], listed["metadata"].get("continue", "")

    assert (await names(label_selector="parity in (odd)"))[0] == ["w1", "w3"]
    pages, token = [], ""
    while not pages or token:
        page, token = await names(limit=2, _continue=token)
        pages.append(page)
    assert pages == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    await api.delete_collection_namespaced_custom_object(*widgets)
    assert (await names())[0] == []


async def a_watch_resumes_from_the_last_revision(api: Any, widgets: tuple[str, ...]) -> None:
    await api.create_namespaced_custom_object(*widgets, widget("a", 1))
    seen, version = [], None

    async def change() -> None:
        patch = [{"op": "replace", "path": "/spec/size", "value": 2}]
        await api.patch_namespaced_custom_object(*widgets, "a", patch, _content_type=OPERATIONS)
        await asyncio.sleep(0.2)
        await api.delete_namespaced_custom_object(*widgets, "a")

    for connection_number in (1, 2):
        async with Watch() as watch:
            listing = api.list_namespaced_custom_object
            options = {"timeout_seconds": 30, **({"resource_version": version} if version else {})}
            async for event in watch.stream(listing, *widgets, **options):
                version = event["object"]["metadata"]["resourceVersion"]
                seen.append((event["type"], event["object"]["spec"]["size"]))
                if len(seen) == 2 * connection_number - 1:
                    break
        if connection_number == 1:
            changing = asyncio.create_task(change())
    await changing
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]


async def main(kubeconfig: str, namespace: str) -> None:
    await config.load_kube_config(kubeconfig)
    widgets = "example.com", "v1", namespace, "widgets"
    async with client.ApiClient() as api_client:
        api = client.CustomObjectsApi(api_client)
        await create_get_update_patch_delete(api, widgets)
        await lists_with_selectors_and_in_pages(api, widgets)
        await a_watch_resumes_from_the_last_revision(api, widgets)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
