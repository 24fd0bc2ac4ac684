"""Tests as a user writes them, with types: `mypy --strict` passes (see test_types.py), and so do they."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import noxu as package
from noxu import ApiError, MakeNoxu, Noxu, UnknownFieldWarning

CONFIG_MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_sync(noxu: Noxu, make_noxu: MakeNoxu) -> None:
    stored: dict[str, Any] = noxu.create(CONFIG_MAP)
    assert noxu.get(stored)["metadata"]["name"] == "a"
    names: list[str] = [item["metadata"]["name"] for item in noxu.list("configmaps")]
    assert names
    with noxu.watch("configmaps") as events:
        for kind, value in events:
            assert kind == "ADDED"
            assert value["kind"] == "ConfigMap"
            break
    found: dict[str, Any] = noxu.wait(stored, lambda value: value["metadata"]["name"] == "a")
    assert [request.code for request in noxu.requests("configmaps", by_handle=True)]
    with pytest.warns(UnknownFieldWarning):
        noxu.patch(found, {"colour": "red"})
    with pytest.raises(ApiError) as refused:
        noxu.patch(found, [{"op": "add", "path": "/data", "value": {"a/b": "c"}}])
    assert [cause["field"] for cause in refused.value.causes] == ["data[a/b]"]
    with make_noxu(users={"jane": ["a"]}) as other:
        assert other.users["jane"].list("pods") == []
    with pytest.raises(RuntimeError, match="the server does not run"):
        other.list("pods")


async def test_async(noxu: Noxu, make_noxu: MakeNoxu) -> None:
    stored: dict[str, Any] = await noxu.create(CONFIG_MAP)
    both: tuple[dict[str, Any], list[dict[str, Any]]] = await asyncio.gather(noxu.get(stored), noxu.list("configmaps"))
    assert both
    async with noxu.watch("configmaps") as events:
        async for event in events:
            assert event.type == "ADDED"
            break

    async def ready(value: dict[str, Any]) -> bool:
        return bool(value)

    await noxu.wait("configmaps", "a", ready)
    other: Noxu = await make_noxu()
    assert await other.list("pods") == []

    @other.mutating("configmaps")
    def label(request: dict[str, Any]) -> None:
        request["object"]["metadata"]["labels"] = {}

    assert (await other.create(CONFIG_MAP))["metadata"].get("labels") is None
    label({"object": {"metadata": {}}})


def test_wrong(noxu: Noxu) -> None:
    with pytest.raises(ValueError, match="the name of the configmaps is missing"):
        noxu.get("configmaps")  # type: ignore[call-overload]
    with pytest.raises(package.ApiError):
        noxu.scale(CONFIG_MAP, "three")  # type: ignore[call-overload]
    size: int = noxu.apply(CONFIG_MAP)  # type: ignore[assignment]
    assert size
