"""`noxu.tenant()`: further servers of a test, sync and async."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import noxu as package
from noxu.testing.handle import MakeNoxu, Noxu
from tests.definitions import widgets

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


@pytest.fixture
def served(make_noxu: MakeNoxu) -> Noxu:
    return make_noxu(manifests=[widgets()])


def names(listed: list[dict]) -> set[str]:
    return {each["metadata"]["name"] for each in listed}


def test_a_tenant_has_what_the_server_was_started_with_and_objects_of_its_own(served: Noxu) -> None:
    with served.tenant() as tenant:
        tenant.create(WIDGET)
        tenant.create(MAP)
        assert names(tenant.list("widgets")) == {"a"}
        assert names(served.list("widgets")) == set()
        assert tenant.url != served.url
        assert json.loads(tenant.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == tenant.url
        assert tenant.kubeconfig.stat().st_mode & 0o777 == 0o600
        assert repr(tenant) == f"<tenant {tenant.name} {tenant.url}>"
    assert not tenant.kubeconfig.exists()
    assert not tenant.kubeconfig.parents[1].exists()
    with pytest.raises(package.Stopped):
        tenant.list("widgets")


async def test_in_a_coroutine_it_is_awaited(served: Noxu) -> None:
    async with served.tenant() as first, served.tenant() as second:
        await asyncio.gather(first.create(WIDGET), second.create(MAP))
        assert names(await first.list("widgets")) == {"a"}
        assert names(await second.list("widgets")) == set()


def test_a_tenant_may_be_empty_or_have_more(served: Noxu, tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    file.write_text(json.dumps(MAP))
    with served.tenant(file, empty=True) as tenant:
        assert names(tenant.list("customresourcedefinitions")) == set()
        assert "a" in names(tenant.list("configmaps"))
    with served.tenant(file, WIDGET) as tenant:
        assert names(tenant.list("widgets")) == {"a"}


def test_a_tenant_may_begin_with_a_snapshot(served: Noxu) -> None:
    served.create(WIDGET)
    taken = served.snapshot()
    served.delete("widgets", "a")
    with served.tenant(snapshot=taken) as tenant:
        assert names(tenant.list("widgets")) == {"a"}


def test_a_tenant_has_a_clock_snapshots_and_faults_of_its_own(served: Noxu) -> None:
    with served.tenant() as tenant:
        tenant.clock.freeze("2040-01-01T00:00:00Z")
        with tenant.rollback():
            assert tenant.create(MAP)["metadata"]["creationTimestamp"] == "2040-01-01T00:00:00Z"
        assert "a" not in names(tenant.list("configmaps"))
        with tenant.fault(resource="configmaps", error="Conflict"), pytest.raises(package.ApiError):
            tenant.list("configmaps")
        assert served.create(MAP)["metadata"]["creationTimestamp"] < "2040"


def test_a_name_is_taken_once(served: Noxu) -> None:
    with served.tenant(name="a"), pytest.raises(package.ApiError, match='tenants "a" already exists'):
        served.tenant(name="a").__enter__()
    with served.tenant(name="a"):
        pass


def test_a_tenant_that_is_refused_leaves_nothing(served: Noxu) -> None:
    unknown = {**WIDGET, "apiVersion": "example.org/v1"}
    with pytest.raises(package.ApiError, match="the tenant does not start"), served.tenant(unknown):
        pass
    assert not (served.kubeconfig.parent / "tenants").exists()


def test_a_tenant_ends_with_its_server(served: Noxu) -> None:
    with served.tenant() as tenant:
        served.stop()
    assert not tenant.kubeconfig.exists()
