"""The filters that look at one node: upstream's tables (fit_test.go, node_ports_test.go, taint_toleration_test.go and others)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.scheduler.fitting import misfit, node_names
from tests.rows import rows
from tests.workloads.scheduler.clusters import cluster, facts, node, pod

CORDONED = {"unschedulable": True}
TAINTED = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def port(number: int, address: str = "", protocol: str = "TCP") -> Object:
    return {"containerPort": 80, "hostPort": number, "protocol": protocol, **({"hostIP": address} if address else {})}


def with_ports(name: str, *ports: Object, on: str = "", **spec: Any) -> Object:
    return pod(name, on, containers=[{"name": "main", "ports": list(ports)}], **spec)


def init_port(number: int, **more: str) -> Object:
    return {"initContainers": [{"name": "init", "ports": [port(number)], **more}]}


@rows(
    "what, of_node, pods, wanted, expected",
    [
        ("an empty node", node("n"), [], pod("web"), None),
        ("a cordoned node", node("n", spec=CORDONED), [], pod("web"), ["node(s) were unschedulable"]),
        (
            "a cordoned node is tolerated",
            node("n", spec=CORDONED),
            [],
            pod("web", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            None,
        ),
        ("a taint", node("n", spec=TAINTED), [], pod("web"), ["node(s) had untolerated taint(s)"]),
        ("a taint is tolerated", node("n", spec=TAINTED), [], pod("web", tolerations=[{"operator": "Exists"}]), None),
        (
            "a soft taint",
            node("n", spec={"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}),
            [],
            pod("web"),
            None,
        ),
        (
            "another label",
            node("n"),
            [],
            pod("web", nodeSelector={"disk": "ssd"}),
            ["node(s) didn't match Pod's node affinity/selector"],
        ),
        ("cpu is left", node("n"), [pod("a", "n", requests={"cpu": "3"})], pod("web", requests={"cpu": "1"}), None),
        (
            "no cpu is left",
            node("n"),
            [pod("a", "n", requests={"cpu": "3"})],
            pod("web", requests={"cpu": "1001m"}),
            ["Insufficient cpu"],
        ),
        (
            "neither cpu nor memory",
            node("n"),
            [pod("a", "n", requests={"cpu": "4", "memory": "8Gi"})],
            pod("web", requests={"cpu": "1", "memory": "1"}),
            ["Insufficient cpu", "Insufficient memory"],
        ),
        (
            "a full node takes pods that request nothing",
            node("n"),
            [pod("a", "n", requests={"cpu": "4"})],
            pod("web"),
            None,
        ),
        (
            "it requests zero",
            node("n"),
            [pod("a", "n", requests={"cpu": "9"})],
            pod("web", requests={"cpu": "0"}),
            None,
        ),
        ("too many pods", node("n", pods="1"), [pod("a", "n")], pod("web"), ["Too many pods"]),
        (
            "pods that have ended do not count",
            node("n", pods="1"),
            [pod("a", "n", status={"phase": "Failed"})],
            pod("web"),
            None,
        ),
        (
            "a device that the node has not",
            node("n"),
            [],
            pod("web", requests={"example.com/gpu": "1"}),
            ["Insufficient example.com/gpu"],
        ),
        (
            "ephemeral storage",
            node("n", ephemeral_storage="1Gi"),
            [],
            pod("web", requests={"ephemeral-storage": "2Gi"}),
            ["Insufficient ephemeral-storage"],
        ),
        ("a free port", node("n"), [with_ports("a", port(80), on="n")], with_ports("web", port(8080)), None),
        (
            "a port that is taken",
            node("n"),
            [with_ports("a", port(80), on="n")],
            with_ports("web", port(443), port(80)),
            ["node(s) didn't have free ports for the requested pod ports"],
        ),
        (
            "another protocol",
            node("n"),
            [with_ports("a", port(80), on="n")],
            with_ports("web", port(80, protocol="UDP")),
            None,
        ),
        (
            "another address",
            node("n"),
            [with_ports("a", port(80, "10.0.0.1"), on="n")],
            with_ports("web", port(80, "10.0.0.2")),
            None,
        ),
        (
            "all addresses against one",
            node("n"),
            [with_ports("a", port(80, "0.0.0.0"), on="n")],
            with_ports("web", port(80, "10.0.0.2")),
            ["node(s) didn't have free ports for the requested pod ports"],
        ),
        (
            "a sidecar's port",
            node("n"),
            [with_ports("a", port(80), on="n")],
            pod("web", **init_port(80, restartPolicy="Always")),
            ["node(s) didn't have free ports for the requested pod ports"],
        ),
        ("an init container's port", node("n"), [with_ports("a", port(80), on="n")], pod("web", **init_port(80)), None),
        (
            "the first filter is named",
            node("n", spec={**CORDONED, **TAINTED}),
            [],
            pod("web"),
            ["node(s) were unschedulable"],
        ),
    ],
)
def test_a_pod_fits_a_node(
    what: str, of_node: Object, pods: list[Object], wanted: Object, expected: list[str] | None
) -> None:
    found = misfit(facts(wanted), cluster([of_node], pods).nodes[0])
    assert (None if found is None else found.reasons) == expected


@rows(
    "what, of_node, pods, wanted, may_change",
    [
        ("a taint stays", node("n", spec=TAINTED), [], pod("web"), False),
        ("pods can go", node("n"), [pod("a", "n", requests={"cpu": "4"})], pod("web", requests={"cpu": "4"}), True),
        ("the node is too small", node("n"), [], pod("web", requests={"cpu": "5"}), False),
        (
            "one resource is too small",
            node("n"),
            [pod("a", "n", requests={"cpu": "4"})],
            pod("web", requests={"cpu": "1", "memory": "9Gi"}),
            False,
        ),
        ("too many pods can go", node("n", pods="1"), [pod("a", "n")], pod("web"), True),
        ("a port can be freed", node("n"), [with_ports("a", port(80), on="n")], with_ports("web", port(80)), True),
    ],
)
def test_a_preemption_may_help(
    what: str, of_node: Object, pods: list[Object], wanted: Object, may_change: bool
) -> None:
    found = misfit(facts(wanted), cluster([of_node], pods).nodes[0])
    assert found is not None
    assert found.may_change is may_change


def named(*terms: list[Object]) -> Object:
    selector = {"nodeSelectorTerms": [{"matchFields": fields} for fields in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def names(*values: str) -> Object:
    return {"key": "metadata.name", "operator": "In", "values": list(values)}


@rows(
    "what, spec, expected",
    [
        ("no affinity", {}, None),
        ("one name", named([names("a")]), {"a"}),
        ("terms are alternatives", named([names("a")], [names("b")]), {"a", "b"}),
        ("fields of a term are not", named([names("a", "b"), names("b", "c")]), {"b"}),
        ("they conflict", named([names("a"), names("b")]), set()),
        ("a term without a name", named([names("a")], []), None),
    ],
)
def test_the_nodes_that_an_affinity_names(what: str, spec: Object, expected: set[str] | None) -> None:
    assert node_names(spec) == expected
