"""Pods: what a new one has, what updates may change, the subresources, and warnings."""

from __future__ import annotations

import pytest

from noxu.kinds.resource_requirements import quality_of_service
from noxu.values import Json, Object
from tests.kinds.objects import NOW, created, kind_of, merged, update_messages, updated
from tests.rows import rows

POD = kind_of("v1", "Pod")
GATED = {"schedulingGates": [{"name": "a"}]}
PARTS: Json = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "200m", "memory": "1Gi"}}


def pod(status: Json = None, annotations: Json = None, **spec: Json) -> Object:
    metadata = {"name": "x", **({"annotations": annotations} if annotations else {})}
    stored = created(POD, {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec}})
    found: Object = merged(stored, {"status": status or {}})
    return found


def with_resources(**more: Json) -> Object:
    return pod(containers=[{"name": "c", "image": "nginx", "resources": PARTS}], **more)


def test_a_new_pod_is_pending() -> None:
    new = created(POD, {"metadata": {"name": "x"}, "spec": {}, "status": {"phase": "Running", "podIP": "1.2.3.4"}})
    assert (new["status"], new["metadata"]["generation"]) == ({"phase": "Pending", "qosClass": "BestEffort"}, 1)


def test_a_new_pod_with_gates_is_not_scheduled() -> None:
    assert pod(**GATED)["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": NOW,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_label_keys_become_requirements_of_a_new_pod() -> None:
    term = {"topologyKey": "t", "labelSelector": {}, "matchLabelKeys": ["a", "b"], "mismatchLabelKeys": ["c"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["a"]}  # fmt: skip
    spec = {"containers": [], "affinity": affinity, "topologySpreadConstraints": [spread]}
    new = created(POD, {"metadata": {"name": "x", "labels": {"a": "1", "c": "2"}}, "spec": spec})["spec"]
    same = {"key": "a", "operator": "In", "values": ["1"]}
    merged_term = new["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert merged_term["labelSelector"] == {
        "matchExpressions": [same, {"key": "c", "operator": "NotIn", "values": ["2"]}]
    }
    assert new["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": [same]}


def holding(requests: Json, limits: Json) -> Json:
    return {"resources": {"requests": requests, "limits": limits}}


FULL = holding({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1Gi"})
QUALITIES: list[tuple[str, Json, str]] = [
    ("nothing", {"containers": [{"resources": {}}]}, "BestEffort"),
    ("other resources", {"containers": [holding({"ephemeral-storage": "1"}, {})]}, "BestEffort"),
    ("zero", {"containers": [holding({"cpu": "0"}, {})]}, "BestEffort"),
    ("all that is requested", {"containers": [FULL]}, "Guaranteed"),
    ("not all containers", {"containers": [FULL, {"resources": {}}]}, "Burstable"),
    ("not the init container", {"containers": [FULL], "initContainers": [{"resources": {}}]}, "Burstable"),
    ("less than the limit", {"containers": [holding({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})]}, "Burstable"),
    ("only CPU", {"containers": [holding({"cpu": "1"}, {"cpu": "1"})]}, "Burstable"),
    ("the pod as a whole", {"containers": [{"resources": {}}], **FULL}, "Guaranteed"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "quality"), [row[1:] for row in QUALITIES], ids=[row[0] for row in QUALITIES])
def test_the_quality_of_service(spec: Json, quality: str) -> None:
    assert quality_of_service(spec) == quality


UPDATABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
KEY = "requiredDuringSchedulingIgnoredDuringExecution"


def nodes(*names: str) -> Json:
    terms = [{"matchExpressions": [{"key": name, "operator": "Exists"} for name in names]}]
    return {"affinity": {"nodeAffinity": {KEY: {"nodeSelectorTerms": terms}}}}


TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
ONLY_SECONDS = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
UPDATES: list[tuple[str, Object, Json, list[str]]] = [
    ("nothing", {}, {}, []),
    ("an image", {}, {"containers": {"0": {"image": "b"}}}, []),
    ("an image in spaces", {}, {"containers": {"0": {"image": "b "}}}, ['spec.containers[0].image: Invalid value: "b ": must not have leading or trailing whitespace']),
    ("a container more", {}, {"containers": {"1": {"name": "d", "image": "b"}}}, ["spec.containers: Forbidden: pod updates may not add or remove containers"]),
    ("a host name", {}, {"hostname": "a"}, [f'{UPDATABLE}\n+ spec.hostname: "a"']),
    ("a command", {}, {"containers": {"0": {"command": ["a"]}}}, [f'{UPDATABLE}\n+ spec.containers[0].command: ["a"]']),
    ("a policy", {}, {"dnsPolicy": "Default"}, [f'{UPDATABLE}\n- spec.dnsPolicy: "ClusterFirst"\n+ spec.dnsPolicy: "Default"']),
    ("a deadline", {}, {"activeDeadlineSeconds": 5}, []),
    ("a shorter deadline", {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}, []),
    ("a longer deadline", {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6}, ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"]),
    ("no deadline any more", {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": None}, ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"]),
    ("a toleration more", {}, {"tolerations": [TOLERATION]}, []),
    ("a toleration for a time", {"tolerations": [TOLERATION]}, {"tolerations": [{**TOLERATION, "tolerationSeconds": 3}]}, []),
    ("a toleration less", {"tolerations": [TOLERATION]}, {"tolerations": None}, [ONLY_SECONDS]),
    ("a gate less", GATED, {"schedulingGates": None}, []),
    ("a gate more", {}, GATED, ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"]),
    ("a node selector", {}, {"nodeSelector": {"a": "b"}}, [f'{UPDATABLE}\n+ spec.nodeSelector: {{"a":"b"}}']),
    ("a node selector while gated", GATED, {"nodeSelector": {"a": "b"}}, []),
    ("another node while gated", {**GATED, "nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "c"}}, ['spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)']),
    ("an affinity while gated", GATED, nodes("a"), []),
    ("fewer nodes while gated", {**GATED, **nodes("a")}, nodes("a", "b"), []),
    ("other nodes while gated", {**GATED, **nodes("a")}, nodes("b"), [f'spec.affinity.nodeAffinity.{KEY}.nodeSelectorTerms[0]: Invalid value: {{"matchExpressions":[{{"key":"b","operator":"Exists"}}]}}: only additions are allowed (no mutations or deletions)']),
]  # fmt: skip


@rows(("spec", "change", "messages"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_updates_are_validated(spec: Object, change: Json, messages: list[str]) -> None:
    assert update_messages(POD, pod(**spec), {"spec": change}) == messages


def test_a_mirror_pod_stays_one() -> None:
    stored = pod(annotations={"kubernetes.io/config.mirror": "a"}, nodeName="n")
    messages = update_messages(POD, stored, {"metadata": {"annotations": None}})
    assert messages == [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"
    ]


GENERATIONS: list[tuple[str, Json, str, int]] = [
    ("an image", {"spec": {"containers": {"0": {"image": "b"}}}}, "", 2),
    ("a label", {"metadata": {"labels": {"a": "b"}}}, "", 1),
    ("a phase", {"status": {"phase": "Running"}}, "status", 1),
    ("a spec through the status", {"spec": {"activeDeadlineSeconds": 5}}, "status", 1),
    ("an ephemeral container", {"spec": {"ephemeralContainers": [{"name": "e", "image": "a"}]}}, "ephemeralcontainers", 2),
    ("resources", {"spec": {"containers": {"0": {"resources": {"requests": {"cpu": "101m"}}}}}}, "resize", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "subresource", "generation"), [row[1:] for row in GENERATIONS], ids=[row[0] for row in GENERATIONS]
)
def test_generations_count_changes_of_the_spec(change: Json, subresource: str, generation: int) -> None:
    assert updated(POD, with_resources(), change, subresource)["metadata"]["generation"] == generation


# -- subresources -----------------------------------------------------------------------------------------------------


def state(name: str, **more: Json) -> Json:
    return {"name": "c", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": {name: more}}


NOT_AGAIN = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
ENDED = {"containerStatuses": [state("terminated", exitCode=0)]}
FAILED = {"containerStatuses": [state("terminated", exitCode=1)]}
RUNNING = {"containerStatuses": [state("running")]}
STATUSES: list[tuple[str, Object, Json, Json, list[str]]] = [
    ("a phase", {}, {}, {"phase": "Running"}, []),
    ("a restart", {}, ENDED, RUNNING, []),
    ("a restart that is not allowed", {"restartPolicy": "Never"}, ENDED, RUNNING, [NOT_AGAIN]),
    ("a restart after success", {"restartPolicy": "OnFailure"}, ENDED, RUNNING, [NOT_AGAIN]),
    ("a restart after failure", {"restartPolicy": "OnFailure"}, FAILED, RUNNING, []),
    ("another quality", {}, {}, {"qosClass": "Guaranteed"}, ['status.qosClass: Invalid value: "Guaranteed": field is immutable']),
    ("an address that is none", {}, {}, {"podIP": "x"}, ['status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']),
    ("addresses of two families", {}, {}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}, []),
    ("addresses of one family", {}, {}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}, ['status.podIPs: Invalid value: [{"ip":"1.2.3.4"},{"ip":"1.2.3.5"}]: may specify no more than one IP for each IP family']),
    ("an address of the host", {}, {}, {"hostIPs": [{"ip": "1.2.3.4"}]}, ['status.hostIPs[0].ip: Invalid value: "1.2.3.4": must be equal to `hostIP`']),
    ("a node that is none", {}, {}, {"nominatedNodeName": "-"}, ["status.nominatedNodeName: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
]  # fmt: skip


@rows(("spec", "status", "change", "messages"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_statuses_are_validated(spec: Object, status: Json, change: Json, messages: list[str]) -> None:
    assert update_messages(POD, pod(status, **spec), {"status": change}, "status") == messages


def test_a_status_keeps_what_old_clients_leave_out() -> None:
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    before = pod({"observedGeneration": 3, "conditions": [{**condition, "observedGeneration": 3}]})
    change = {
        "status": {"qosClass": None, "observedGeneration": None, "conditions": [{**condition, "status": "False"}]}
    }
    status = updated(POD, before, change, "status")["status"]
    assert (status["qosClass"], status["observedGeneration"]) == ("BestEffort", 3)
    assert [each["observedGeneration"] for each in status["conditions"]] == [3]


ADDRESSES: list[tuple[str, Json, Json]] = [
    ("one", {"podIP": "1.2.3.4"}, ["1.2.3.4"]),
    ("several", {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}, ["1.2.3.4", "::1"]),
    ("another one", {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.5"}]}, ["1.2.3.4"]),
]


@pytest.mark.parametrize(("change", "addresses"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES])
def test_pod_ip_is_the_first_of_pod_ips(change: Json, addresses: list[str]) -> None:
    status = updated(POD, pod(), {"status": change}, "status")["status"]
    assert (status["podIP"], [each["ip"] for each in status["podIPs"]]) == (addresses[0], addresses)


EPHEMERAL = {"name": "e", "image": "a"}
EXISTING = "spec.ephemeralContainers: Forbidden: existing ephemeral containers"
EPHEMERALS: list[tuple[str, list[Json], list[Json], list[str]]] = [
    ("one more", [], [EPHEMERAL], []),
    ("one less", [EPHEMERAL], [], [f'{EXISTING} "e" may not be removed\n']),
    ("another image", [EPHEMERAL], [{**EPHEMERAL, "image": "b"}], [f'{EXISTING} "e" may not be changed\n- image: "a"\n+ image: "b"']),
    ("a name of another container", [], [{**EPHEMERAL, "name": "c"}], ['spec.ephemeralContainers[0].name: Duplicate value: "c"']),
    ("with ports", [], [{**EPHEMERAL, "ports": [{"containerPort": 1}]}], ["spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"]),
    ("for a container that is none", [], [{**EPHEMERAL, "targetContainerName": "x"}], ['spec.ephemeralContainers[0].targetContainerName: Not found: "x"']),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "messages"), [row[1:] for row in EPHEMERALS], ids=[row[0] for row in EPHEMERALS]
)
def test_ephemeral_containers_are_only_added(old: list[Json], new: list[Json], messages: list[str]) -> None:
    stored = updated(POD, pod(), {"spec": {"ephemeralContainers": old}}, "ephemeralcontainers")
    change = {"spec": {"ephemeralContainers": new, "hostname": "ignored"}}
    assert update_messages(POD, stored, change, "ephemeralcontainers") == messages
    assert "hostname" not in updated(POD, stored, change, "ephemeralcontainers")["spec"]


def resources(**change: Json) -> Json:
    return {"containers": {"0": {"resources": change}}}


ONLY_COMPUTING = "spec: Forbidden: only cpu and memory resources are mutable"
RESIZES: list[tuple[str, Object, Json, list[str]]] = [
    ("more CPU", {}, resources(requests={"cpu": "150m"}), []),
    ("more than the limit", {}, resources(requests={"cpu": "1"}), ['spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 200m']),
    ("less memory", {}, resources(requests={"memory": "1Mi"}, limits={"memory": "1Mi"}), []),
    ("as much as the limit", {}, resources(requests={"cpu": "200m"}), ['spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing']),
    ("no request", {}, {"containers": {"0": {"resources": {"requests": {"cpu": None}, "limits": {"cpu": None}}}}}, [
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
    ]),
    ("storage", {}, resources(requests={"ephemeral-storage": "1"}), [ONLY_COMPUTING]),
    ("an image, which is ignored", {}, {"containers": {"0": {"image": "b"}}}, []),
    ("another name", {}, {"containers": {"0": {"name": "d"}}}, ["spec.containers: Forbidden: containers may not be renamed or reordered on resize"]),
    ("one container more", {}, {"containers": {"1": {"name": "d", "image": "a"}}}, ["spec.containers: Forbidden: containers may not be added or removed on resize"]),
    ("an init container", {"initContainers": [{"name": "i", "image": "a", "resources": PARTS}]}, {"initContainers": {"0": {"resources": {"requests": {"cpu": "1m"}}}}}, ["spec: Forbidden: resources for non-sidecar init containers are immutable"]),
    ("a sidecar", {"initContainers": [{"name": "i", "image": "a", "resources": PARTS, "restartPolicy": "Always"}]}, {"initContainers": {"0": {"resources": {"requests": {"cpu": "1m"}}}}}, []),
    ("Windows", {"os": {"name": "windows"}}, resources(requests={"cpu": "150m"}), ["[]: Forbidden: windows pods cannot be resized"]),
]  # fmt: skip


@rows(("spec", "change", "messages"), [row[1:] for row in RESIZES], ids=[row[0] for row in RESIZES])
def test_resizes_are_validated(spec: Object, change: Json, messages: list[str]) -> None:
    assert update_messages(POD, with_resources(**spec), {"spec": change}, "resize") == messages


def test_a_resize_changes_resources_only() -> None:
    change = {"spec": {"containers": {"0": {"image": "b", "resources": {"requests": {"cpu": "150m"}}}}}}
    container = updated(POD, with_resources(), change, "resize")["spec"]["containers"][0]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == ("nginx", "150m")


# -- warnings ---------------------------------------------------------------------------------------------------------


def env(*variables: Json) -> Json:
    return {"containers": {"0": {"env": list(variables)}}}


HIDDEN = 'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
PORT = {"containerPort": 80}
WARNINGS: list[tuple[str, Json, list[str]]] = [
    ("nothing", {}, []),
    ("a variable twice", env({"name": "A", "value": "1"}, {"name": "A", "value": "2"}), [HIDDEN]),
    ("a variable that extends another", env({"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}), []),
    ("a label of nodes", {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}, ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead']),
    ("a volume", {"volumes": [{"name": "v", "gitRepo": {"repository": "a"}}]}, ["spec.volumes[0].gitRepo: deprecated in v1.11"]),
    ("half a byte", {"containers": {"0": {"resources": {"requests": {"memory": "500m"}}}}}, ['spec.containers[0].resources.requests[memory]: fractional byte value "500m" is invalid, must be an integer']),
    ("a port twice", {"containers": {"0": {"ports": [PORT, PORT]}}}, ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"]),
    ("a port of the host, and another", {"containers": {"0": {"ports": [PORT, {**PORT, "hostPort": 8080}]}}}, ["spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"]),
    ("an address without port", {"containers": {"0": {"ports": [{**PORT, "hostIP": "1.2.3.4"}]}}}, ["spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"]),
    ("a secret twice", {"imagePullSecrets": [{"name": "s"}, {"name": "s"}]}, ['spec.imagePullSecrets[1].name: duplicate name "s"']),
    ("no selector", {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule"}]}, ["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"]),
]  # fmt: skip


@rows(("change", "warnings"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_new_pods_and_templates_have_warnings(change: Json, warnings: list[str]) -> None:
    spec = merged({"containers": [{"name": "c", "image": "a"}]}, change)
    new = created(POD, {"metadata": {"name": "x"}, "spec": spec})
    assert POD.warnings(new, None) == warnings
    assert POD.warnings(new, new) == [], "only new ones"
    template = kind_of("v1", "PodTemplate")
    other = created(template, {"metadata": {"name": "x"}, "template": {"spec": spec}})
    assert template.warnings(other, None) == [
        f"template.{warning}".replace("with spec", "with template.spec") for warning in warnings
    ]


def test_a_name_should_be_a_label() -> None:
    new = created(POD, {"metadata": {"name": "a.b"}, "spec": {}})
    assert POD.warnings(new, None) == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
        "recommended: [must not contain dots]"
    ]


def test_annotations_have_warnings() -> None:
    annotations = {
        "scheduler.alpha.kubernetes.io/critical-pod": "",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
    }
    assert POD.warnings(pod(annotations=annotations), None) == [
        "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "
        '"priorityClassName" field instead',
        "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "
        '"seccompProfile" field instead',
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "
        '"appArmorProfile" field instead',
    ]
