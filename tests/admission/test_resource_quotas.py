"""ResourceQuota: what objects use, and which writes exceed it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noxu.admission.builtin.usage import evaluator_of, printed
from noxu.admission.chain import Chain
from noxu.admission.plugins import resource_quotas
from noxu.api.errors import Qualified
from noxu.registry.stored_object import object_at
from tests.admission.cluster import Cluster, claim, container, needs, of_kind, pod
from tests.rows import rows

NOW = 1_767_323_045.0  # 2026-01-02T03:04:05Z
ONE_POD = {"count/pods": "1", "pods": "1"}


def service(**spec: Any) -> Any:
    return of_kind("Service", spec={"ports": [{"port": 80}, {"port": 81, "nodePort": 30001}], **spec})


SERVICE = {"count/services": "1", "services": "1"}
CLAIM = {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1"}
USED: list[tuple[str, str, Any, dict[str, str]]] = [
    ("a config map", "configmaps", of_kind("ConfigMap"), {"count/configmaps": "1", "configmaps": "1"}),
    ("a deployment", "deployments.apps", of_kind("Deployment", "apps/v1"), {"count/deployments.apps": "1"}),
    ("a pod without resources", "pods", pod(), ONE_POD),
    ("a pod", "pods", pod(containers=[needs({"cpu": "1", "memory": "1Gi"}, {"cpu": "2"}), needs({"cpu": "500m"}, name="d")]),
     ONE_POD | {"cpu": "1500m", "requests.cpu": "1500m", "memory": "1Gi", "requests.memory": "1Gi", "limits.cpu": "2"}),
    ("the overhead of a pod", "pods", pod(containers=[needs({"cpu": "1"})], overhead={"cpu": "1"}),
     ONE_POD | {"cpu": "2", "requests.cpu": "2"}),
    ("extended resources", "pods", pod(containers=[needs({"example.com/gpu": "2", "hugepages-2Mi": "4Mi"})]),
     ONE_POD | {"requests.example.com/gpu": "2", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}),
    ("a pod that has finished", "pods", pod() | {"status": {"phase": "Succeeded"}}, {"count/pods": "1"}),
    ("a pod that is being deleted", "pods", pod({"deletionTimestamp": "2026-01-02T03:04:00Z", "deletionGracePeriodSeconds": 30}), ONE_POD),
    ("a pod that should be deleted", "pods", pod({"deletionTimestamp": "2026-01-02T03:04:00Z", "deletionGracePeriodSeconds": 1}),
     {"count/pods": "1"}),
    ("a service", "services", service(type="ClusterIP"), SERVICE | {"services.nodeports": "0", "services.loadbalancers": "0"}),
    ("ports of nodes", "services", service(type="NodePort"), SERVICE | {"services.nodeports": "2", "services.loadbalancers": "0"}),
    ("a load balancer", "services", service(type="LoadBalancer"), SERVICE | {"services.nodeports": "2", "services.loadbalancers": "1"}),
    ("a load balancer without ports of nodes", "services", service(type="LoadBalancer", allocateLoadBalancerNodePorts=False),
     SERVICE | {"services.nodeports": "1", "services.loadbalancers": "1"}),
    ("a claim", "persistentvolumeclaims", claim("1500m"), CLAIM | {"requests.storage": "2"}),
    ("a claim of a class", "persistentvolumeclaims", claim("1Gi", storageClassName="gold"),
     CLAIM | {"requests.storage": "1Gi", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
              "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}),
]  # fmt: skip


@rows(("what", "value", "used"), [row[1:] for row in USED], ids=[row[0] for row in USED])
def test_what_is_used_by(what: str, value: Any, used: dict[str, str]) -> None:
    plural, _, group = what.partition(".")
    assert printed(evaluator_of(Qualified(group, plural)).uses(value, NOW)) == dict(sorted(used.items()))


def quota(hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q", **spec: Any) -> Any:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    return of_kind("ResourceQuota", name=name, spec={"hard": hard, **spec}, status=status)


async def used_of(cluster: Cluster, name: str = "q") -> Any:
    resource = cluster.resource(quota({}))
    entry = await cluster.environment.reader.get(resource, "default", name)
    return object_at(entry, resource)["status"]["used"]


FULL = quota({"pods": "1"}, {"pods": "1"})
CPU = quota({"requests.cpu": "2", "pods": "9"}, {"requests.cpu": "1500m", "pods": "3"})
CHECKED: list[tuple[str, Any, Any, str]] = [
    ("nothing is left", FULL, pod(), "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
    ("too little is left", CPU, pod(containers=[needs({"cpu": "1"})]),
     "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2"),
    ("enough is left", CPU, pod(containers=[needs({"cpu": "500m"})]), ""),
    ("a container does not say what it needs", CPU, pod(initContainers=[container("b")], containers=[needs({"cpu": "1m"}), container("a")]),
     "failed quota: q: must specify requests.cpu for: a,b"),
    ("nothing was counted yet", quota({"pods": "1", "count/pods": "2"}, {}), pod(),
     "status unknown for quota: q, resources: count/pods,pods"),
    ("the status has no limits", of_kind("ResourceQuota", name="q", spec={"hard": {"pods": "0"}}), pod(), ""),
    ("other kinds are limited", FULL, of_kind("ConfigMap"), ""),
    ("the number of objects is limited", quota({"configmaps": "0", "count/configmaps": "0"}), of_kind("ConfigMap"),
     "exceeded quota: q, requested: configmaps=1,count/configmaps=1, used: configmaps=0,count/configmaps=0, "
     "limited: configmaps=0,count/configmaps=0"),
    ("pods in another scope are limited", quota({"pods": "0"}, scopes=["Terminating"]), pod(), ""),
    ("pods in its scope are limited", quota({"pods": "0"}, scopes=["NotTerminating", "BestEffort"]), pod(),
     "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"),
    ("it is in one of two scopes", quota({"pods": "0"}, scopes=["NotTerminating", "NotBestEffort"]), pod(), ""),
    ("pods of its priority are limited",
     quota({"pods": "0"}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}),
     pod(priorityClassName="high"), "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"),
    ("pods of other priorities are limited",
     quota({"pods": "0"}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]}),
     pod(priorityClassName="high"), ""),
    ("what it requests is negative", quota({"cpu": "1"}), pod(containers=[needs({"cpu": "-1"})]),
     "quota usage is negative for resource(s): cpu,requests.cpu"),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "new", "why"), [row[1:] for row in CHECKED], ids=[row[0] for row in CHECKED])
async def test_an_object_is_checked_if(cluster: Cluster, limits: Any, new: Any, why: str) -> None:
    await cluster.put(limits)
    assert await cluster.refusal("ResourceQuota", new=new) == why


async def test_what_is_used_is_added_to_the_status_of_each_quota(cluster: Cluster) -> None:
    await cluster.put(
        CPU, quota({"memory": "9Gi"}, {"memory": "1Gi"}, "other"), quota({"services": "1"}, name="unconcerned")
    )
    await cluster.write("ResourceQuota", new=pod(containers=[needs({"cpu": "100m", "memory": "1Gi"})]))
    assert await used_of(cluster) == {"requests.cpu": "1600m", "pods": "4"}
    assert await used_of(cluster, "other") == {"memory": "2Gi"}
    assert await used_of(cluster, "unconcerned") == {"services": "0"}


async def test_an_update_adds_the_difference(cluster: Cluster) -> None:
    await cluster.put(quota({"requests.storage": "5Gi"}, {"requests.storage": "2Gi"}))
    await cluster.write("ResourceQuota", new=claim("3Gi"), old=claim("2Gi"))
    assert await used_of(cluster) == {"requests.storage": "3Gi"}
    why = (
        "exceeded quota: q, requested: requests.storage=3Gi, used: requests.storage=3Gi, limited: requests.storage=5Gi"
    )
    assert await cluster.refusal("ResourceQuota", new=claim("6Gi"), old=claim("3Gi")) == why
    await cluster.write("ResourceQuota", new=claim("1Gi"), old=claim("3Gi"))
    assert await used_of(cluster) == {"requests.storage": "3Gi"}  # the controller counts again


async def test_writes_at_the_same_time_use_each_their_share(cluster: Cluster) -> None:
    await cluster.put(quota({"pods": "5"}))
    chain = Chain(cluster.environment.served_resources.current, {"ResourceQuota"})
    chain.validating.append(resource_quotas(cluster.environment.served_resources.current))
    writes = (cluster.refusal(new=pod({"name": f"p{number}"}), chain=chain) for number in range(8))
    assert sorted(map(bool, await asyncio.gather(*writes))) == [False] * 5 + [True] * 3
    assert await used_of(cluster) == {"pods": "5"}


async def test_quotas_of_other_namespaces_and_events_do_not_matter(cluster: Cluster) -> None:
    await cluster.put({**FULL, "metadata": {"name": "q", "namespace": "other"}}, quota({"count/events": "0"}))
    assert await cluster.refusal("ResourceQuota", new=pod()) == ""
    event = of_kind("Event", involvedObject={"namespace": "default"})
    assert await cluster.refusal("ResourceQuota", new=event) == ""
