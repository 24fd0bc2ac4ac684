"""Stages in a server: pods that live by stages, pods that are held up by one, and a custom resource that becomes ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.definitions import version, widgets

OWN = """
apiVersion: noxu.dev/v1
kind: Stages
stages:
- name: widget-is-ready
  resource: widgets.example.com
  when: {expression: "!has(self.status)"}
  delay: 5s
  do:
    event: {reason: Grown, message: it is ready}
    computed: '{"size": self.spec.size}'
- name: held-up
  when: {labels: app=slow}
  delay: 30s
  do: {patch: {metadata: {labels: {app: fast}}}}
- name: without-end
  when: {labels: app=mad}
  do: {status: "message: '{{ .metadata.resourceVersion }}'"}
- name: nothing-changes
  when: {name: same}
  do: {event: {reason: Same}, patch: {metadata: {labels: {app: same}}}}
- name: cannot-be-rendered
  when: {name: wrong}
  do: {status: "{{ .metadata.name.x }}"}
exec:
- {pods: "*", command: [id], stdout: "0"}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: widget-has-phase}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Widget}
  selector:
    matchExpressions:
    - {key: .status.size, operator: Exists}
    - {key: .status.phase, operator: DoesNotExist}
  next:
    statusTemplate: |
      phase: {{ .metadata.name | Quote }}
"""
KWOK = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: runs}
spec:
  resourceRef: {kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  delay: {durationMilliseconds: 2000, jitterDurationMilliseconds: 1000}
  next:
    event: {reason: Begun, message: by a stage}
    statusTemplate: |
      phase: Running
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
      conditions:
      - {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }} }
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: goes}
spec:
  resourceRef: {kind: Pod}
  selector:
    matchExpressions: [{key: .metadata.deletionTimestamp, operator: Exists}]
  next: {delete: true}
"""


def pod(name: str, **labels: str) -> Object:
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    path = tmp_path_factory.mktemp("stages") / "own.yaml"
    path.write_text(OWN)
    with Noxu(nodes=1, stages=path) as started:
        started.clock.freeze()
        yield started


def events(noxu: Noxu, name: str) -> list[str]:
    return [each["reason"] for each in noxu.list("events") if each["involvedObject"]["name"] == name]


def test_a_custom_resource_that_is_defined_later_becomes_ready(noxu: Noxu) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    noxu.apply(widgets({**version(schema), "subresources": {"status": {}}}))
    noxu.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}})
    noxu.idle()
    noxu.clock.advance("4s")
    assert "status" not in noxu.get("widgets", "w")
    noxu.clock.advance("1s")
    noxu.idle()
    assert noxu.get("widgets", "w")["status"] == {"size": 3, "phase": "w"}
    assert events(noxu, "w") == ["Grown"]


def test_a_stage_holds_up_a_pod_which_goes_on_then(noxu: Noxu) -> None:
    noxu.create(pod("slow", app="slow"))
    noxu.create(pod("usual"))
    noxu.clock.advance("29s")
    noxu.idle()
    assert [noxu.get("pods", name)["status"]["phase"] for name in ("slow", "usual")] == ["Pending", "Running"]
    noxu.clock.advance("1s")
    noxu.idle()
    assert noxu.get("pods", "slow")["status"]["phase"] == "Running"


def test_a_stage_that_changes_nothing_is_entered_once(noxu: Noxu) -> None:
    noxu.create(pod("same", app="same"))
    noxu.clock.advance("10s")
    noxu.idle()
    assert events(noxu, "same") == ["Same"]


def test_a_stage_without_end_does_not_occupy_the_server(noxu: Noxu) -> None:
    noxu.create(pod("mad", app="mad"))
    noxu.idle()
    assert int(noxu.get("pods", "mad")["metadata"]["resourceVersion"]) < 2000


def test_a_template_that_fails_says_so_at_the_object(noxu: Noxu) -> None:
    noxu.create(pod("wrong"))
    noxu.idle()
    [message] = [each["message"] for each in noxu.list("events") if each["involvedObject"]["name"] == "wrong"]
    assert message == "stage cannot-be-rendered: can't evaluate field x in wrong"


def test_commands_have_rules_of_the_file(noxu: Noxu) -> None:
    assert [each["command"] for each in noxu.pods.rules()["exec"]] == [["id"]]


def test_pods_live_by_the_stages_of_kwok_alone(tmp_path: Path) -> None:
    path = tmp_path / "kwok.yaml"
    path.write_text(KWOK)
    with Noxu(nodes=1, stages=path) as noxu:
        noxu.clock.freeze()
        noxu.create(pod("a"))
        noxu.idle()
        assert noxu.get("pods", "a")["status"]["phase"] == "Pending"
        noxu.clock.advance("1s")
        noxu.idle()
        status = noxu.get("pods", "a")["status"]
        assert (status["phase"], status["podIP"], status["hostIP"]) == ("Running", "10.244.0.2", "172.18.0.1")
        assert "containerStatuses" not in status
        assert events(noxu, "a") == ["Begun"]
        noxu.delete("pods", "a")
        noxu.idle()
        assert noxu.list("pods") == []
