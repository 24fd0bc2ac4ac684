"""What the server of a run knows of each write: who has made it, and what its client had been shown before."""

from __future__ import annotations

from noxu.exploration.recording import CONTROLLER
from noxu.exploration.server import ExploredServer

SAID = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "said", "namespace": "default"},
    "involvedObject": {"kind": "ConfigMap", "name": "wanted", "namespace": "default"}, "type": "Normal", "reason": "Seen",
}  # fmt: skip


def config(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_an_event_between_a_state_and_what_follows_from_it_hides_no_cause() -> None:
    with ExploredServer(history="all") as server:
        begins = server.revision
        server.create(config("wanted"))
        controller = server.user(CONTROLLER, ["system:masters"])
        controller.get("configmaps", "wanted")
        controller.create(SAID)
        controller.create(config("made"))
        wanted, made = server.changes(begins, [])
    assert [change.place.name for change in (wanted, made)] == ["wanted", "made"]
    assert [(shown.how, shown.place.name) for shown in made.why] == [("get", "wanted")]


def test_a_claim_that_waits_for_a_pod_is_named_while_it_does() -> None:
    claims = [
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        for name in ("used", "unused")
    ]  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "containers": [{"name": "a", "image": "a"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "used"}}],
        },
    }  # fmt: skip
    with ExploredServer(nodes=1, history="all") as server:
        for claim in claims:
            server.create(claim)
        server.await_silence(0.2, 10)
        server.create(pod)
        server.wait("persistentvolumeclaims", "used", "self.status.phase == 'Bound'")
        server.await_silence(0.2, 10)
        warnings = server.warnings()
    assert warnings == [
        "WaitForFirstConsumer PersistentVolumeClaim unused: waiting for first consumer to be created before binding"
    ]


def test_a_claim_that_no_provisioner_serves_is_named() -> None:
    with ExploredServer(nodes=1, history="all") as server:
        for name, provisioner in (("served", "noxu.dev/simulated"), ("other", "example.com/disks")):
            server.create({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
            })  # fmt: skip
            server.create({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
                "spec": {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            })  # fmt: skip
        server.wait("persistentvolumeclaims", "served", "self.status.phase == 'Bound'")
        server.await_silence(0.2, 10)
        warnings = server.warnings()
    assert warnings == [
        "PersistentVolumeClaim other waits for the provisioner 'example.com/disks': volumes are made by 'noxu.dev/simulated' here"
    ]
