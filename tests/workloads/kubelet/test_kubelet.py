"""What becomes of a pod on a simulated node, as time passes."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.kubelet.kubelet import PodLives
from noxu.workloads.kubelet.simulation import PodRule
from noxu.workloads.nodes import node, node_status
from noxu.workloads.objects import NODES, PODS
from noxu.workloads.pods import SIMULATE, condition
from tests.rows import rows
from tests.workloads.plays import NOW, Play

POD = "default/web-1"
IMAGE = "present on machine and can be accessed by the pod"


def pod(simulate: str = "", *, owner: str = "", **spec: Any) -> Object:
    """A pod that is bound to node-1."""
    metadata: Object = {"name": "web-1", "namespace": "default", "uid": "uid-web"}
    if simulate:
        metadata["annotations"] = {SIMULATE: simulate}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "owner", "uid": "o", "controller": True}]
    spec = {"nodeName": "node-1", "restartPolicy": "Always", "containers": [{"name": "c", "image": "nginx"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def play(value: Object) -> Play:
    machine = {**node("node-1", 1), "status": node_status("node-1", 1, NOW)}
    return Play((NODES, machine), (PODS, value))


def shown(value: Object) -> str:
    """A pod as `kubectl get pods` would show it: ready containers, what they do, restarts."""
    status = value["status"]
    init, main = (status.get(field) or [] for field in ("initContainerStatuses", "containerStatuses"))
    ready = sum(each["ready"] for each in main)
    states = "+".join(_state(each["state"]) for each in (*init, *main))
    restarts = sum(each["restartCount"] for each in (*init, *main))
    is_ready = (condition(value, "Ready") or {}).get("status") == "True"
    return f"{status['phase']} {ready}/{len(main)} {states} {restarts}{' Ready' if is_ready else ''}"


def _state(state: Object) -> str:
    [(kind, value)] = state.items()
    return str(value.get("reason") or kind)


class Timeline:
    """A pod that is looked at whenever it wants to be, until `seconds` have passed."""

    def __init__(self, value: Object) -> None:
        self.play, self.lives, self.passed = play(value), PodLives(), 0.0

    def until(self, seconds: float) -> str:
        """The pod then."""
        while True:
            again = self.play.run(self.lives.steps, POD)
            if again is None or self.passed + again > seconds:
                break
            self._pass(again)
        self._pass(seconds - self.passed)
        return shown(self.play.get(PODS, POD))

    def _pass(self, seconds: float) -> None:
        self.play.pass_time(seconds)
        self.passed += seconds


DELAYED = {"name": "c", "image": "nginx", "readinessProbe": {"initialDelaySeconds": 5}}
STARTS_LATE = {"name": "c", "image": "nginx", "startupProbe": {"initialDelaySeconds": 3}}
INIT = {"name": "i", "image": "init"}
SIDECAR = {"name": "s", "image": "proxy", "restartPolicy": "Always"}
BACK_OFF = "CrashLoopBackOff"


@rows(
    "situation, value, expected",
    [
        ("comes up at once", pod(), {0: "Running 1/1 running 0 Ready"}),
        (
            "is ready after the delay of its probe",
            pod(containers=[DELAYED]),
            {0: "Running 0/1 running 0", 4: "Running 0/1 running 0", 5: "Running 1/1 running 0 Ready"},
        ),
        (
            "waits for the startup probe",
            pod(containers=[STARTS_LATE]),
            {0: "Running 0/1 running 0", 3: "Running 1/1 running 0 Ready"},
        ),
        ("runs its init containers first", pod(initContainers=[INIT]), {0: "Running 1/1 Completed+running 0 Ready"}),
        (
            "starts its sidecars, which go on",
            pod(initContainers=[SIDECAR, INIT]),
            {0: "Running 1/1 running+Completed+running 0 Ready"},
        ),
        (
            "waits for an init container that takes long",
            pod("i:exit=0@10s", initContainers=[INIT]),
            {0: "Pending 0/1 running+PodInitializing 0", 10: "Running 1/1 Completed+running 0 Ready"},
        ),
        (
            "does not start while an init container fails",
            pod("i:crash-loop", initContainers=[INIT]),
            {0: f"Pending 0/1 {BACK_OFF}+PodInitializing 1", 10: f"Pending 0/1 {BACK_OFF}+PodInitializing 2"},
        ),
        (
            "fails with its init container if it never restarts",
            pod("i:exit=1", initContainers=[INIT], restartPolicy="Never"),
            {0: "Failed 0/1 Error+PodInitializing 0"},
        ),
        (
            "of a Job succeeds",
            pod(owner="Job", restartPolicy="Never"),
            {0: "Running 1/1 running 0 Ready", 1: "Succeeded 0/1 Completed 0"},
        ),
        (
            "of a Job ends with its sidecar",
            pod(owner="Job", restartPolicy="OnFailure", initContainers=[SIDECAR]),
            {0: "Running 1/1 running+running 0 Ready", 1: "Succeeded 0/1 Completed+Completed 0"},
        ),
        ("that never restarts runs on without a Job", pod(restartPolicy="Never"), {100: "Running 1/1 running 0 Ready"}),
        (
            "crashes, and is restarted ever more slowly",
            pod("crash-loop"),
            {
                0: f"Running 0/1 {BACK_OFF} 1",
                9: f"Running 0/1 {BACK_OFF} 1",
                10: f"Running 0/1 {BACK_OFF} 2",
                30: f"Running 0/1 {BACK_OFF} 3",
                3600: f"Running 0/1 {BACK_OFF} 16",
            },
        ),
        ("runs out of memory", pod("oom", restartPolicy="Never"), {0: "Failed 0/1 OOMKilled 0"}),
        (
            "ends some time after each start",
            pod("exit=3@10s"),
            {
                9: "Running 1/1 running 0 Ready",
                10: "Running 1/1 running 1 Ready",
                20: f"Running 0/1 {BACK_OFF} 1",
                30: "Running 1/1 running 2 Ready",
            },
        ),
        (
            "fails when it ends and is not restarted",
            pod("exit=3@10s", restartPolicy="Never"),
            {10: "Failed 0/1 Error 0"},
        ),
        ("restarts on failure only", pod("exit=0@10s", restartPolicy="OnFailure"), {10: "Succeeded 0/1 Completed 0"}),
        (
            "of a Job fails as its annotation says",
            pod("exit=3", owner="Job", restartPolicy="Never"),
            {0: "Failed 0/1 Error 0"},
        ),
        (
            "waits for an image that is not there",
            pod("image-pull-error"),
            {
                0: "Pending 0/1 ErrImagePull 0",
                1: "Pending 0/1 ImagePullBackOff 0",
                10: "Pending 0/1 ErrImagePull 0",
                29: "Pending 0/1 ImagePullBackOff 0",
                30: "Pending 0/1 ErrImagePull 0",
            },
        ),
        ("is never ready", pod("never-ready"), {0: "Running 0/1 running 0", 10_000: "Running 0/1 running 0"}),
        ("is ready late", pod("slow-ready=30s"), {29: "Running 0/1 running 0", 30: "Running 1/1 running 0 Ready"}),
        ("is evicted before it starts, so that it has no containers", pod("evicted"), {0: "Failed 0/0  0"}),
        (
            "has one container that fails",
            pod("b:crash-loop", containers=[{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]),
            {0: f"Running 1/2 running+{BACK_OFF} 1"},
        ),
        ("is warned of what is not known, and comes up", pod("crash-lop"), {0: "Running 1/1 running 0 Ready"}),
        ("waits for its readiness gate", pod(readinessGates=[{"conditionType": "a/b"}]), {0: "Running 1/1 running 0"}),
    ],
)
def test_a_pod(situation: str, value: Object, expected: dict[int, str]) -> None:
    timeline = Timeline(value)
    assert {seconds: timeline.until(seconds) for seconds in expected} == expected


def test_the_containers_of_a_pod_are_created_and_then_it_is_ready() -> None:
    timeline = Timeline(pod())
    timeline.until(0)
    assert timeline.play.done() == [
        "update pods/status web-1",
        f'event Normal Pulled: Container image "nginx" already {IMAGE}',
        "event Normal Created: Container created",
        "event Normal Started: Container started",
        "update pods/status web-1",
    ]
    timeline.until(1000)
    assert timeline.play.done() == []


def test_a_pod_has_addresses_and_the_conditions_of_a_kubelet() -> None:
    timeline = Timeline(pod())
    timeline.until(0)
    status = timeline.play.get(PODS, POD)["status"]
    assert (status["podIP"], status["podIPs"]) == ("10.244.0.2", [{"ip": "10.244.0.2"}])
    assert (status["hostIP"], status["hostIPs"]) == ("172.18.0.1", [{"ip": "172.18.0.1"}])
    assert [each["type"] for each in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
    ]


def test_a_pod_of_the_network_of_its_node_has_its_address() -> None:
    timeline = Timeline(pod(hostNetwork=True))
    timeline.until(0)
    assert timeline.play.get(PODS, POD)["status"]["podIP"] == "172.18.0.1"


@rows(
    "situation, simulate, events",
    [
        (
            "an image that is not there",
            "image-pull-error",
            [
                'event Normal Pulling: Pulling image "nginx"',
                'event Warning Failed: Failed to pull image "nginx": rpc error: code = NotFound desc = failed to pull and unpack '
                'image "docker.io/library/nginx:latest": failed to resolve reference "docker.io/library/nginx:latest": '
                "docker.io/library/nginx:latest: not found",
                "event Warning Failed: Error: ErrImagePull",
                'event Normal BackOff: Back-off pulling image "nginx"',
                "event Warning Failed: Error: ImagePullBackOff",
            ],
        ),
        (
            "a crash",
            "crash-loop",
            [
                f'event Normal Pulled: Container image "nginx" already {IMAGE}',
                "event Normal Created: Container created",
                "event Normal Started: Container started",
            ]
            * 2
            + ["event Warning BackOff: Back-off restarting failed container c in pod web-1_default(uid-web)"],
        ),
        (
            "what is not known",
            "crash-lop",
            [
                'event Warning UnknownSimulation: noxu.dev/simulate: "crash-lop" is not known: '
                "there are image-pull-error, crash-loop, oom, never-ready, slow-ready=30s, exit=3@10s, evicted, node-lost, "
                "ready; did you mean crash-loop?",
                f'event Normal Pulled: Container image "nginx" already {IMAGE}',
                "event Normal Created: Container created",
                "event Normal Started: Container started",
            ],
        ),
    ],
)
def test_the_events_of(situation: str, simulate: str, events: list[str]) -> None:
    timeline = Timeline(pod(simulate))
    timeline.until(5)
    assert [line for line in timeline.play.done() if line.startswith("event")] == events


def test_a_container_that_waits_to_be_restarted_says_how_it_ended() -> None:
    timeline = Timeline(pod("oom"))
    timeline.until(10)
    [status] = timeline.play.get(PODS, POD)["status"]["containerStatuses"]
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["finishedAt"]) == (137, "OOMKilled", "2026-01-01T00:00:10Z")
    assert status["state"]["waiting"] == {
        "reason": BACK_OFF,
        "message": "back-off 20s restarting failed container=c pod=web-1_default(uid-web)",
    }


def test_a_debugger_runs_beside_a_container_that_crashes() -> None:
    timeline = Timeline(pod("crash-loop", ephemeralContainers=[{"name": "debugger", "image": "busybox"}]))
    timeline.until(0)
    [status] = timeline.play.get(PODS, POD)["status"]["ephemeralContainerStatuses"]
    assert status["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def test_a_debugger_that_is_added_to_a_pod_runs() -> None:
    timeline = Timeline(pod())
    timeline.until(3)
    value = timeline.play.get(PODS, POD)
    debugged = {**value["spec"], "ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}
    timeline.play.add(PODS, {**value, "spec": debugged})
    timeline.play.run(timeline.lives.steps, POD)
    [status] = timeline.play.get(PODS, POD)["status"]["ephemeralContainerStatuses"]
    assert (status["name"], list(status["state"])) == ("debugger", ["running"])


# -- deletion ---------------------------------------------------------------------------------------------------------


def end(timeline: Timeline, **metadata: Any) -> list[str]:
    """Delete the pod, as a server marks it: what its kubelet does."""
    timeline.play.done()
    value = timeline.play.get(PODS, POD)
    marks = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30, **metadata}
    timeline.play.add(PODS, {**value, "metadata": {**value["metadata"], **marks}})
    timeline.play.run(timeline.lives.steps, POD)
    return timeline.play.done()


def test_a_pod_that_is_deleted_ends_at_once() -> None:
    timeline = Timeline(pod(initContainers=[SIDECAR]))
    timeline.until(0)
    assert end(timeline) == [
        "event Normal Killing: Stopping container s",
        "event Normal Killing: Stopping container c",
        "delete pods web-1",
    ]


def test_a_pod_that_is_deleted_before_it_runs_ends_without_a_word() -> None:
    assert end(Timeline(pod())) == ["delete pods web-1"]


def test_a_finished_pod_only_goes() -> None:
    timeline = Timeline(pod("exit=1", restartPolicy="Never"))
    timeline.until(0)
    assert end(timeline) == ["delete pods web-1"]


def test_a_pod_that_a_finalizer_keeps_shows_how_it_ended() -> None:
    timeline = Timeline(pod(owner="Job", restartPolicy="Never"))
    timeline.until(0)
    assert end(timeline, finalizers=["batch.kubernetes.io/job-tracking"]) == [
        "event Normal Killing: Stopping container c",
        "update pods/status web-1",
        "delete pods web-1",
    ]


def test_a_pod_that_only_a_finalizer_keeps_is_left_alone() -> None:
    timeline = Timeline(pod(owner="Job", restartPolicy="Never"))
    timeline.until(0)
    assert end(timeline, finalizers=["a/b"], deletionGracePeriodSeconds=0) == []


# -- nodes and rules --------------------------------------------------------------------------------------------------


def test_nothing_happens_on_a_lost_node_until_it_is_back() -> None:
    timeline = Timeline(pod())
    machine = timeline.play.get(NODES, "node-1")
    lost = {**machine, "metadata": {**machine["metadata"], "annotations": {SIMULATE: "node-lost"}}}
    timeline.play.add(NODES, lost)
    assert timeline.play.run(timeline.lives.steps, POD) is None
    assert end(timeline) == []
    timeline.play.add(NODES, machine)
    assert end(timeline) == ["delete pods web-1"]


def test_a_rule_goes_before_the_annotation_and_the_newest_one_first() -> None:
    timeline = Timeline(pod("never-ready"))
    assert timeline.until(0) == "Running 0/1 running 0"
    timeline.lives.simulation.add(PodRule("web-*", "ready"))
    assert timeline.until(0) == "Running 1/1 running 0 Ready"
    timeline.lives.simulation.add(PodRule("default/web-1", "crash-loop"))
    assert timeline.until(0) == f"Running 0/1 {BACK_OFF} 1"


def test_a_pod_that_is_never_ready_is_not_looked_at_again_after_the_delay_of_its_probe() -> None:
    timeline = Timeline(pod("never-ready", containers=[DELAYED]))
    assert timeline.until(0) == "Running 0/1 running 0"
    assert timeline.play.run(timeline.lives.steps, POD) is None


def test_a_pod_that_shall_be_ready_waits_no_longer() -> None:
    timeline = Timeline(pod("crash-loop", containers=[DELAYED]))
    assert timeline.until(100) == f"Running 0/1 {BACK_OFF} 4"
    timeline.lives.simulation.add(PodRule("web-1", "ready"))
    assert timeline.until(100) == "Running 1/1 running 5 Ready"
