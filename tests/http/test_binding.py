"""pods/binding and bindings: a Pod is assigned to a node (pkg/registry/core/pod/storage.BindingREST)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Things
from tests.http.pods import CORE, PODS, Pods, condition

SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
PATHS: Final = {"pods/binding": f"{PODS}/p/binding", "bindings": f"{CORE}/bindings"}


def binding(name: str = "p", node: str = "n", **metadata: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_binding_assigns_the_pod(pods: Pods, path: str) -> None:
    before = pods.create(metadata={"labels": {"a": "1", "b": "1"}, "annotations": {"a": "1"}})
    sent = binding(labels={"b": "2"}, annotations={"c": "3"})
    reply = pods.api.ask("POST", path, sent)
    assert (reply.code, reply.body) == (201, SUCCESS)
    pod = pods.get().body
    assert (pod["spec"]["nodeName"], pod["metadata"]["labels"]) == ("n", {"a": "1", "b": "2"})
    assert pod["metadata"]["annotations"] == {"a": "1", "c": "3"}
    assert condition(pod, "PodScheduled") == [{"type": "PodScheduled", "status": "True", "observedGeneration": 1}]
    assert pod["metadata"]["generation"] == 1
    assert pod["metadata"]["managedFields"] == before["metadata"]["managedFields"]


def test_a_binding_ends_a_nomination(pods: Pods) -> None:
    pods.create()
    pods.set_status(f"{PODS}/p", nominatedNodeName="m")
    pods.api.ask("POST", f"{PODS}/p/binding", binding())
    assert "nominatedNodeName" not in pods.get().body["status"]


def test_a_binding_without_kind(pods: Pods) -> None:
    pods.create()
    assert pods.api.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}).code == 201


NODE: Final = {"name": "n"}
REFUSED: list[tuple[str, Any, int, str]] = [
    ("another name than in the path", binding("q"), 400, "name in URL does not match name in Binding object"),
    ("no name", {"target": NODE}, 400, "name in URL does not match name in Binding object"),
    ("no target", {"metadata": {"name": "p"}}, 500, "target.name: Required value"),
    ("a target without a name", binding(node=""), 500, "target.name: Required value"),
    ("a target that is no node", {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}}, 500,
     'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'),
    ("both", {"metadata": {"name": "p"}, "target": {"kind": "Pod"}}, 500,
     '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]'),
    ("another namespace", binding(namespace="other"), 400,
     "the namespace of the provided object does not match the namespace sent on the request"),
    ("another kind", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, 400, ""),
    ("an unknown version", {**binding(), "apiVersion": "v2"}, 400, ""),
    ("a wrong type", {**binding(), "target": 1}, 400, ""),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_binding_that_is_refused(pods: Pods, sent: Any, code: int, message: str) -> None:
    pods.create()
    reply = pods.api.ask("POST", f"{PODS}/p/binding", sent)
    assert (reply.code, reply.body["kind"]) == (code, "Status")
    assert not message or reply.message == message
    assert "nodeName" not in pods.get().body["spec"]


CONFLICT: Final = 'Operation cannot be fulfilled on pods/binding "p": pod p '


def test_a_pod_is_bound_once(pods: Pods) -> None:
    pods.create()
    pods.api.ask("POST", f"{PODS}/p/binding", binding())
    again = pods.api.ask("POST", f"{PODS}/p/binding", binding(node="m"))
    assert (again.code, again.message) == (409, CONFLICT + 'is already assigned to node "n"')
    assert again.body["details"] == {"name": "p", "kind": "pods/binding"}


def test_of_bindings_at_the_same_time_one_succeeds(pods: Pods, noxu_session: Noxu) -> None:
    pods.create()

    def ask(node: str) -> int:
        with Client(noxu_session.url) as client:
            return Things(client).ask("POST", f"{PODS}/p/binding", binding(node=node)).code

    with ThreadPoolExecutor(8) as threads:
        codes = sorted(threads.map(ask, "abcdefgh"))
    assert codes == [201] + [409] * 7


def test_a_pod_that_is_being_deleted_is_not_bound(pods: Pods) -> None:
    pods.create(metadata={"finalizers": ["example.com/hold"]})
    pods.api.ask("DELETE", f"{PODS}/p")
    reply = pods.api.ask("POST", f"{PODS}/p/binding", binding())
    assert (reply.code, reply.message) == (409, CONFLICT + "is being deleted, cannot be assigned to a host")


def test_a_pod_with_scheduling_gates_is_not_bound(pods: Pods) -> None:
    pods.create(schedulingGates=[{"name": "example.com/wait"}])
    reply = pods.api.ask("POST", f"{PODS}/p/binding", binding())
    assert (reply.code, reply.message) == (409, CONFLICT + "has non-empty .spec.schedulingGates")


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_pod_that_does_not_exist(pods: Pods, path: str) -> None:
    reply = pods.api.ask("POST", path, binding())
    assert (reply.code, reply.message) == (404, 'pods "p" not found')


def test_a_binding_names_its_pod(pods: Pods) -> None:
    reply = pods.api.ask("POST", PATHS["bindings"], {"target": NODE})
    assert (reply.code, reply.message) == (400, "Name parameter required.")


def test_uid_and_resource_version_are_preconditions(pods: Pods) -> None:
    metadata = pods.create()["metadata"]
    for name, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        reply = pods.api.ask("POST", f"{PODS}/p/binding", binding(**{name: "7"}))
        why = f"Precondition failed: {what} in precondition: 7, {what} in object meta: {metadata[name]}"
        assert (reply.code, reply.message) == (
            409,
            'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/default/p, '
            f"ResourceVersion: 0, AdditionalErrorMsg: {why}",
        )
    good = binding(uid=metadata["uid"], resourceVersion=metadata["resourceVersion"])
    assert pods.api.ask("POST", f"{PODS}/p/binding", good).code == 201


def test_bindings_has_no_precondition_on_the_uid(pods: Pods) -> None:
    pods.create()
    assert pods.api.ask("POST", PATHS["bindings"], binding(uid="7")).code == 201


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_dry_run_binds_nothing(pods: Pods, path: str) -> None:
    before = pods.create()
    assert pods.api.ask("POST", f"{path}?dryRun=All", binding()).body == SUCCESS
    assert pods.get().body == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_binding_can_only_be_created(pods: Pods, method: str) -> None:
    pods.create()
    for path in PATHS.values():
        assert pods.api.ask(method, path, {}).code == 405
    assert pods.api.ask("GET", f"{PATHS['bindings']}/p").code == 404


def test_unknown_fields_are_reported(pods: Pods) -> None:
    pods.create()
    sent = {**binding(), "target": {"kind": "Node", "name": "n", "x": 1}}
    refused = pods.api.ask("POST", f"{PODS}/p/binding?fieldValidation=Strict", sent)
    assert (refused.code, refused.message.endswith('strict decoding error: unknown field "target.x"')) == (400, True)
    assert pods.api.ask("POST", f"{PODS}/p/binding", sent).warnings == ['unknown field "target.x"']
