"""LimitRanger."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.cluster import Cluster, claim, container, needs, of_kind, pod


def limit_range(kind: str = "Container", name: str = "limits", **limit: Any) -> Any:
    return of_kind("LimitRange", name=name, spec={"limits": [{"type": kind, **limit}]})


async def test_new_containers_get_defaults_and_an_annotation_says_so(cluster: Cluster) -> None:
    await cluster.put(limit_range(default={"memory": "1Gi", "cpu": "1"}, defaultRequest={"cpu": "100m"}))
    new = pod(
        initContainers=[needs({"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}, "init")],
        containers=[needs({"cpu": "5m"}), container("d")],
    )
    found = (await cluster.write("LimitRanger", new=new)).new
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "5m", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert found["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] == "1"
    assert found["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container c; cpu, memory limit for "
        "container c; cpu, memory request for container d; cpu, memory limit for container d"
    }


async def test_what_is_complete_is_not_annotated(cluster: Cluster) -> None:
    await cluster.put(limit_range(default={"cpu": "1"}))
    found = (await cluster.write("LimitRanger", new=pod(containers=[needs({"cpu": "1"}, {"cpu": "1"})]))).new
    assert "annotations" not in found["metadata"]


REFUSED: list[tuple[str, Any, Any, str]] = [
    ("a request below the minimum", limit_range(min={"memory": "1Gi"}), needs({"memory": "1Mi"}),
     "minimum memory usage per Container is 1Gi, but request is 1Mi"),
    ("a limit below the minimum", limit_range(min={"cpu": "1"}), needs({"cpu": "1"}, {"cpu": "500m"}),
     "minimum cpu usage per Container is 1, but limit is 500m"),
    ("no request", limit_range("Pod", min={"cpu": "1"}), container(),
     "minimum cpu usage per Pod is 1.  No request is specified"),
    ("a limit above the maximum", limit_range(max={"cpu": "1"}), needs({"cpu": "1"}, {"cpu": "2"}),
     "maximum cpu usage per Container is 1, but limit is 2"),
    ("no limit", limit_range("Pod", max={"cpu": "1"}), container(), "maximum cpu usage per Pod is 1.  No limit is specified"),
    ("a request above the maximum", limit_range(max={"cpu": "1"}), needs({"cpu": "2"}, {"cpu": "1"}),
     "maximum cpu usage per Container is 1, but request is 2"),
    ("several faults", limit_range(max={"cpu": "1"}, min={"memory": "1Gi"}), needs({"memory": "1Mi"}, {"cpu": "2", "memory": "1Gi"}),
     "[minimum memory usage per Container is 1Gi, but request is 1Mi, maximum cpu usage per Container is 1, but limit is 2]"),
    ("too large a ratio", limit_range(maxLimitRequestRatio={"cpu": "2"}), needs({"cpu": "400m"}, {"cpu": "1"}),
     "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"),
    ("a ratio without a request", limit_range(maxLimitRequestRatio={"cpu": "2"}), container(),
     "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
    ("a ratio without a limit", limit_range(maxLimitRequestRatio={"cpu": "2"}), needs({"cpu": "1"}),
     "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
    ("what fits", limit_range(max={"cpu": "1"}, min={"cpu": "1"}), needs({"cpu": "1"}, {"cpu": "1"}), ""),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "given", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_a_pod_is_refused_for(cluster: Cluster, limits: Any, given: Any, why: str) -> None:
    await cluster.put(limits)
    assert await cluster.refusal("LimitRanger", new=pod(containers=[given])) == why


async def test_the_containers_of_a_pod_are_added_up(cluster: Cluster) -> None:
    """Init containers run one after another, so the largest counts; a sidecar runs beside all others."""
    await cluster.put(limit_range("Pod", max={"cpu": "3"}))
    half = {"cpu": "1500m"}
    two = [needs(half, half, "a"), needs(half, half, "b")]
    initial = needs({"cpu": "3"}, {"cpu": "3"}, "init")
    assert await cluster.refusal("LimitRanger", new=pod(containers=two, initContainers=[initial])) == ""
    sidecar = {**needs({"cpu": "1"}, {"cpu": "1"}, "s"), "restartPolicy": "Always"}
    why = "maximum cpu usage per Pod is 3, but limit is 4"
    assert await cluster.refusal("LimitRanger", new=pod(containers=two, initContainers=[sidecar])) == why
    assert await cluster.refusal("LimitRanger", new=pod(containers=two[:1], initContainers=[sidecar, initial])) == why


CLAIMS: list[tuple[str, Any, str, str]] = [
    ("too small", {"min": {"storage": "2Gi"}}, "1Gi",
     "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
    ("too large", {"max": {"storage": "2Gi"}}, "3Gi",
     "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"),
    ("between", {"max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}, "1500Mi", ""),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "size", "why"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS])
async def test_a_claim_is(cluster: Cluster, limit: Any, size: str, why: str) -> None:
    await cluster.put(limit_range("PersistentVolumeClaim", **limit))
    assert await cluster.refusal("LimitRanger", new=claim(size)) == why
    assert await cluster.refusal("LimitRanger", new=claim(size), old=claim()) == why


async def test_updates_of_pods_and_what_is_being_deleted_are_not_checked(cluster: Cluster) -> None:
    await cluster.put(
        limit_range("Pod", min={"cpu": "1"}), limit_range("PersistentVolumeClaim", "c", max={"storage": "1"})
    )
    assert await cluster.refusal("LimitRanger", new=pod(), old=pod()) == ""
    assert await cluster.refusal("LimitRanger", new=pod(), old=pod(), subresource="resize") != ""
    old = claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert await cluster.refusal("LimitRanger", new=old, old=old) == ""


async def test_limits_of_other_namespaces_do_not_matter(cluster: Cluster) -> None:
    other = limit_range("Pod", min={"cpu": "1"})
    await cluster.put({**other, "metadata": {"name": "x", "namespace": "other"}})
    assert await cluster.refusal("LimitRanger", new=pod()) == ""


async def test_sums_that_are_out_of_range_are_refused(cluster: Cluster) -> None:
    await cluster.put(limit_range("Pod", min={"cpu": "1"}))
    large = [needs({"cpu": "1"}, name="a"), needs({"cpu": "1e200000"}, name="b")]
    assert await cluster.refusal("LimitRanger", new=pod(containers=large)) == "quantity out of range"
