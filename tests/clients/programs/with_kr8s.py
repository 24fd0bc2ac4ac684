"""The client `kr8s`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import kr8s.asyncio
from kr8s.asyncio.objects import new_class

Widget = new_class(
    kind="Widget", version="example.com/v1", namespaced=True, plural="widgets", scalable=True, scalable_spec="size"
)


async def widget(api: Any, name: str, size: int) -> Any:
    labels = {"parity": "odd" if size % 2 else "even"}
    metadata = {"name": name, "namespace": api.namespace, "labels": labels}
    return await Widget({"metadata": metadata, "spec": {"size": size}}, api=api)


async def create_get_patch_scale_delete(api: Any) -> None:
    created = await widget(api, "a", 1)
    await created.create()
    await created.patch({"spec": {"colour": "red"}})
    assert dict(created.spec) == {"size": 1, "colour": "red"}
    await created.patch([{"op": "replace", "path": "/spec/size", "value": 2}], type="json")
    await created.patch({"status": {"size": 2}}, subresource="status")
    await created.scale(3)
    await created.label(x="y")
    await created.annotate(note="hello")
    found = await Widget.get("a", namespace=api.namespace, api=api)
    assert (dict(found.spec), dict(found.status), found.labels.x) == ({"size": 3, "colour": "red"}, {"size": 2}, "y")
    await found.delete()
    assert not await found.exists()


async def lists_with_selectors(api: Any) -> None:
    for size in range(5):
        await (await widget(api, f"w{size}", size)).create()

    async def names(**options: Any) -> list[str]:
        return [item.name async for item in api.get(Widget, namespace=api.namespace, **options)]

    assert await names() == ["w0", "w1", "w2", "w3", "w4"]
    assert await names(label_selector={"parity": "odd"}) == ["w1", "w3"]
    assert await names(field_selector="metadata.name=w3") == ["w3"]
    async for item in api.get("widgets.example.com", namespace=api.namespace):
        await item.delete()
    assert await names() == []


async def watches(api: Any) -> None:
    created = await widget(api, "a", 1)
    await created.create()
    seen: list[tuple[str, int]] = []

    async def change() -> None:
        await created.patch({"spec": {"size": 2}})
        await created.delete()

    async for event, changed in api.watch(Widget, namespace=api.namespace):
        seen.append((event, changed.spec.size))
        if len(seen) == 1:
            changing = asyncio.create_task(change())
        if event == "DELETED":
            break
    await changing
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]


async def waits_for_a_condition(api: Any) -> None:
    created = await widget(api, "a", 1)
    await created.create()
    wait = asyncio.create_task(created.wait("jsonpath='{.spec.size}'=2", timeout=60))
    await asyncio.sleep(0.1)
    await (await Widget.get("a", namespace=api.namespace, api=api)).patch({"spec": {"size": 2}})
    await wait
    assert created.spec.size == 2


async def version_and_discovery(api: Any) -> None:
    assert (await api.version())["gitVersion"].startswith("v1.")
    assert {"default", "kube-system"} <= {item.name async for item in api.get("namespaces")}
    assert "widgets" in [resource["name"] for resource in await api.api_resources()]


async def main(kubeconfig: str, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    await create_get_patch_scale_delete(api)
    await lists_with_selectors(api)
    await watches(api)
    await waits_for_a_condition(api)
    await version_and_discovery(api)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
