"""Services over HTTP: addresses and ports are allocated, kept, released, and found again after a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import ask

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def test_a_service_gets_an_address_and_keeps_it(client: Client) -> None:
    code, made = ask(client, "POST", SERVICES, service("a"))
    assert code == 201, made
    spec = made["spec"]
    assert list(spec) == [
        "ports", "clusterIP", "clusterIPs", "type", "sessionAffinity", "ipFamilies", "ipFamilyPolicy",
        "internalTrafficPolicy",
    ]  # fmt: skip
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    code, put = ask(client, "PUT", f"{SERVICES}/a", service("a", ports=[{"port": 81}]))
    assert (code, put["spec"]["clusterIP"]) == (200, spec["clusterIP"])
    code, refused = ask(client, "PUT", f"{SERVICES}/a", service("a", clusterIP="10.0.0.250"))
    assert (code, refused["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs[0]")


def test_an_address_is_free_when_its_service_is_deleted(client: Client) -> None:
    wanted = service("a", clusterIP="10.0.0.9")
    assert ask(client, "POST", SERVICES, wanted)[0] == 201
    code, refused = ask(client, "POST", SERVICES, {**wanted, "metadata": {"name": "b"}})
    assert (code, refused["message"].endswith("provided IP is already allocated")) == (422, True)
    code, deleted = ask(client, "DELETE", f"{SERVICES}/a")
    assert (code, deleted["kind"]) == (200, "Service")
    assert ask(client, "POST", SERVICES, {**wanted, "metadata": {"name": "b"}})[0] == 201


def test_a_dry_run_and_a_refused_service_reserve_nothing(client: Client) -> None:
    wanted = service("a", clusterIP="10.0.0.9")
    assert ask(client, "POST", f"{SERVICES}?dryRun=All", wanted)[0] == 201
    assert ask(client, "POST", SERVICES, service("b", clusterIP="10.0.0.9", ports=[]))[0] == 422
    assert ask(client, "POST", SERVICES, wanted)[0] == 201


def test_concurrent_services_have_different_addresses(client: Client, noxu: Noxu) -> None:
    def create(n: int) -> str:
        with Client(noxu.url) as own:
            code, made = ask(own, "POST", SERVICES, service(f"s{n}", type="NodePort"))
            assert code == 201, made
            return f"{made['spec']['clusterIP']} {made['spec']['ports'][0]['nodePort']}"

    with ThreadPoolExecutor(8) as threads:
        found = [each.split() for each in threads.map(create, range(64))]
    assert len({address for address, _ in found}) == 64
    assert len({port for _, port in found}) == 64


def test_the_type_can_be_patched(client: Client) -> None:
    assert ask(client, "POST", SERVICES, service("a"))[0] == 201
    merge = "application/merge-patch+json"
    code, node = ask(client, "PATCH", f"{SERVICES}/a", {"spec": {"type": "NodePort"}}, merge)
    assert code == 200, node
    assert 30_000 <= node["spec"]["ports"][0]["nodePort"] <= 32_767
    assert node["spec"]["externalTrafficPolicy"] == "Cluster"
    code, inside = ask(client, "PATCH", f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}}, merge)
    assert code == 200, inside
    assert "nodePort" not in inside["spec"]["ports"][0]
    name = {"spec": {"type": "ExternalName", "externalName": "example.com", "ports": None}}
    code, outside = ask(client, "PATCH", f"{SERVICES}/a", name, merge)
    assert code == 200, outside
    assert "clusterIP" not in outside["spec"]
    code, back = ask(
        client,
        "PATCH",
        f"{SERVICES}/a",
        {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 1}]}},
        merge,
    )
    assert code == 200, back
    assert back["spec"]["clusterIP"]
