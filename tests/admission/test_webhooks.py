"""Admission webhooks around a server: which are called, with what, and the effect of their responses.

Most of the webhooks are functions in the server's process; the same code runs the others.
tests/http/test_webhook_client.py has the calls over a network.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.admission.chain import Chain
from noxu.admission.plugins import DeferredMutating, DeferredValidating
from noxu.admission.reviews import hooks_of
from noxu.admission.webhooks import MutatingWebhooks
from noxu.http.trace_context import TRACE_CONTEXT
from noxu.testing.functions import Denied
from noxu.testing.handle import Noxu
from noxu.webhook.client import CallFailed
from tests import definitions
from tests.timing import HANGS_AFTER

pytestmark = pytest.mark.slow(every=3)

GROUP = "hooks.example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
V2 = f"/apis/{GROUP}/v2/namespaces/default/widgets"
MERGE, JSON_PATCH, APPLY = (
    f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "maximum": 100},
                "d": {"type": "string", "default": "dflt"},
                "trail": {"type": "string"},
                "replicas": {"type": "integer"},
                "deep": {"type": "object", "properties": {"x": {"type": "integer", "default": 5}}},
            },
        },
        "status": {"type": "object", "properties": {"s": {"type": "string"}}},
    },
}


def version(name: str) -> dict[str, Any]:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": scale},
    }


DEFINITION = definitions.widgets(version("v1"), version("v2"), group=GROUP)


def widget(name: str = "a", api: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": {"n": 1, **spec}}


class Server:
    """A server, called over HTTP, and its admission functions."""

    def __init__(self, noxu: Noxu, client: Client) -> None:
        self.noxu = noxu
        self.client = client
        self.seen: list[dict[str, Any]] = []

    def send(self, method: str, path: str = WIDGETS, body: Any = None, kind: str = "application/json") -> Answer:
        return self.client.send(method, path, body, kind)

    def get(self, name: str = "a") -> Any:
        return self.send("GET", f"{WIDGETS}/{name}").body

    def watch(self, kind: str = "validating", resource: str = f"widgets.{GROUP}", **options: Any) -> None:
        """Record the requests."""
        options = {"operations": ["CREATE", "UPDATE", "DELETE"], **options}

        @getattr(self.noxu, kind)(resource, **options)
        async def seen(request: Any) -> None:
            self.seen.append(request)

    def mutate(self, change: Callable[[Any], Any], **options: Any) -> None:
        self.noxu.mutating(f"widgets.{GROUP}", **options)(change)

    def warned(self, method: str, path: str, body: Any) -> list[str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        _, given, _ = self.client.exchange(method, path, json.dumps(body).encode(), headers)
        return [value for name, value in given if name == "Warning"]


@pytest.fixture
def server(noxu: Noxu) -> Iterator[Server]:
    noxu.apply(DEFINITION)
    with Client(noxu.url) as client:
        yield Server(noxu, client)


def chain_of(noxu: Noxu) -> Chain:
    chain = noxu._server.plane.admission
    assert isinstance(chain, Chain)
    return chain


# -- KEP-2332: the third pruning --------------------------------------------------------------------------------------


def test_unknown_fields_set_by_a_webhook_are_pruned(server: Server) -> None:
    """KEP-2332's example of a webhook that adds an unknown field; the reference shows and stores it."""

    def add(request: Any) -> None:
        request["object"]["spec"]["junk"] = {"x": 1}
        request["object"]["spec"]["deep"] = {"junk": 2}
        request["object"]["junk"] = 3
        request["object"]["metadata"]["junk"] = 4
        request["object"]["spec"]["trail"] = "seen"

    server.mutate(add)
    server.watch()
    created = server.send("POST", body=widget()).body
    assert created["spec"] == {"n": 1, "d": "dflt", "trail": "seen", "deep": {"x": 5}}
    assert "junk" not in created
    assert "junk" not in created["metadata"]
    assert [review["object"] for review in server.seen] == [
        {**created, "metadata": _without_version(created["metadata"])}
    ]
    assert len(server.send("GET").body["items"]) == 1  # from here on the collection is in the cache
    collection = server.noxu._server.plane.cache.collections.get(f"{GROUP}/widgets")
    assert collection is not None
    assert [b"junk" in entry.stored for entry in collection.entries.values()] == [False]


def _without_version(metadata: Any) -> Any:
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


# -- S16: the old object ----------------------------------------------------------------------------------------------

WRITES: list[tuple[str, str, str, Any, str]] = [
    # name, method, path behind the object's, body, content type
    ("PUT", "PUT", "", widget(n=3), "application/json"),
    ("merge patch", "PATCH", "", {"spec": {"n": 3}}, MERGE),
    ("JSON patch", "PATCH", "", [{"op": "replace", "path": "/spec/n", "value": 3}], JSON_PATCH),
    ("apply", "PATCH", "?fieldManager=me&force=true", {**widget(), "spec": {"n": 3}}, APPLY),
    ("status", "PATCH", "/status", {"status": {"s": "x"}}, MERGE),
    ("a dry run", "PATCH", "?dryRun=All", {"spec": {"n": 3}}, MERGE),
    ("DELETE", "DELETE", "", None, "application/json"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES]
)
def test_the_old_object_is_the_stored_one(server: Server, method: str, path: str, body: Any, kind: str) -> None:
    """CVE-2021-25735: a webhook that decides by the old object must see the one that is stored."""
    stored = server.send("POST", body=widget(n=2)).body
    for resource in (f"widgets.{GROUP}", f"widgets.{GROUP}/status"):
        server.watch("mutating", resource)
        server.watch("validating", resource)
    if method == "PUT":
        body = {**body, "metadata": {**stored["metadata"], "labels": {"forged": "yes"}}}
    answer = server.send(method, f"{WIDGETS}/a{path}", body, kind)
    assert answer.code == 200, answer.body
    assert [review["oldObject"] for review in server.seen] == [stored, stored]


def test_the_old_objects_of_a_collection_that_is_deleted(server: Server) -> None:
    stored = [server.send("POST", body=widget(name)).body for name in "abc"]
    server.watch()
    assert server.send("DELETE", WIDGETS).code == 200
    assert sorted((review["oldObject"] for review in server.seen), key=lambda row: row["metadata"]["name"]) == stored
    assert [(review.get("name"), review["object"]) for review in server.seen] == [(None, None)] * 3


def test_the_old_scale(server: Server) -> None:
    server.send("POST", body=widget(replicas=2))
    server.watch("validating", f"widgets.{GROUP}/scale")
    assert server.send("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 3}}, MERGE).code == 200
    [request] = server.seen
    assert (request["kind"], request["subResource"]) == (
        {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "scale",
    )
    assert (request["oldObject"]["spec"], request["object"]["spec"]) == ({"replicas": 2}, {"replicas": 3})


def test_webhooks_called_again_after_a_lost_race_see_the_newer_object(server: Server) -> None:
    """A patch is applied to the newer object, and both chains see that one."""
    server.send("POST", body=widget())
    raced = threading.Event()

    @server.noxu.mutating(f"widgets.{GROUP}", operations=["UPDATE"])
    def overtake(request: Any) -> None:
        server.seen.append(request)
        if not raced.is_set():
            raced.set()
            with Client(server.noxu.url) as other:
                other.send("PATCH", f"{WIDGETS}/a", {"spec": {"trail": "other"}}, MERGE)

    assert server.send("PATCH", f"{WIDGETS}/a", {"spec": {"n": 7}}, MERGE).body["spec"] == {
        "n": 7,
        "d": "dflt",
        "trail": "other",
    }
    olds = [review["oldObject"]["spec"].get("trail") for review in server.seen]
    assert olds == [None, None, "other"]  # the patch, the other one, the patch once more


def test_a_dry_run_is_reviewed_and_stores_nothing(server: Server) -> None:
    server.mutate(lambda request: request["object"]["spec"].update(trail="hook"))
    server.watch()
    assert server.send("POST", f"{WIDGETS}?dryRun=All", widget()).body["spec"]["trail"] == "hook"
    assert [(review["dryRun"], review["options"]["dryRun"]) for review in server.seen] == [(True, ["All"])]
    assert server.send("GET", f"{WIDGETS}/a").code == 404


# -- the order --------------------------------------------------------------------------------------------------------


def follow(server: Server, name: str, **options: Any) -> Callable[[Any], Any]:
    """A mutating function that appends its name to a trail."""

    async def append(request: Any) -> None:
        request["object"]["spec"]["trail"] = request["object"]["spec"].get("trail", "") + name

    server.mutate(append, name=f"{name}.example.com", **options)
    return append


SELF_LINKED = [("POST", "POST", "", widget("b"), "application/json"), *WRITES[:4]]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), [row[1:] for row in SELF_LINKED], ids=[row[0] for row in SELF_LINKED]
)
def test_a_self_link_set_by_a_webhook_is_seen_by_later_ones_and_not_stored(
    server: Server, method: str, path: str, body: Any, kind: str
) -> None:
    server.send("POST", body=widget(n=2))

    async def link(request: Any) -> None:
        request["object"]["metadata"]["selfLink"] = "/a"

    server.mutate(link, name="a.example.com")
    server.watch("mutating", name="b.example.com")
    server.watch("validating")
    if method == "PUT":
        body = {**body, "metadata": server.get()["metadata"]}
    name = body["metadata"]["name"] if method == "POST" else "a"
    answer = server.send(method, WIDGETS if method == "POST" else f"{WIDGETS}/{name}{path}", body, kind)
    assert answer.code in (200, 201), answer.body
    assert [review["object"]["metadata"].get("selfLink") for review in server.seen] == ["/a", "/a"]
    assert "selfLink" not in answer.body["metadata"]
    assert "selfLink" not in server.get(name)["metadata"]


def test_mutating_webhooks_see_the_changes_of_those_before_them(server: Server) -> None:
    for name in "abc":
        follow(server, name)
    assert server.send("POST", body=widget()).body["spec"]["trail"] == "abc"


def test_webhooks_are_reinvoked_once_if_a_later_one_changed_the_object(server: Server) -> None:
    for name, again in (("a", True), ("b", False), ("c", True)):
        follow(server, name, reinvoke=again)
    assert server.send("POST", body=widget()).body["spec"]["trail"] == "abcac"


def test_no_webhook_is_reinvoked_if_nothing_changed(server: Server) -> None:
    called = []

    def look(request: Any) -> None:
        called.append(request["uid"])

    for _ in range(2):
        server.mutate(look, reinvoke=True)
    server.send("POST", body=widget())
    assert len(called) == len(set(called)) == 2


def test_a_webhook_that_did_not_match_at_first_is_not_reinvoked(server: Server) -> None:
    server.noxu.apply(
        configuration(server, "Mutating", objectSelector={"matchLabels": {"late": "yes"}}, url="http://127.0.0.1:1")
    )

    def label(request: Any) -> None:
        request["object"]["metadata"]["labels"] = {"late": "yes"}

    server.mutate(label)
    assert server.send("POST", body=widget()).code == 201


def test_a_denial_ends_the_mutating_chain(server: Server) -> None:
    def no(request: Any) -> None:
        raise Denied("no", code=403, reason="Forbidden")

    server.mutate(no, name="no.example.com")
    server.watch("mutating")
    server.watch("validating")
    answer = server.send("POST", body=widget())
    assert (answer.code, answer.body["message"]) == (403, 'admission webhook "no.example.com" denied the request: no')
    assert answer.body["reason"] == "Forbidden"
    assert server.seen == []


def test_all_validating_webhooks_are_called_concurrently(server: Server) -> None:
    together = asyncio.Barrier(3)

    @server.noxu.validating(f"widgets.{GROUP}", name="first.example.com")
    async def first(request: Any) -> str:
        await together.wait()
        return "no"

    for _ in range(2):

        @server.noxu.validating(f"widgets.{GROUP}")
        async def other(request: Any) -> None:
            await together.wait()
            server.seen.append(request)

    answer = server.send("POST", body=widget())
    assert answer.body["message"] == 'admission webhook "first.example.com" denied the request: no'
    assert len(server.seen) == 2


def test_an_object_invalid_after_mutation_is_not_sent_to_validating_webhooks(server: Server) -> None:
    server.mutate(lambda request: request["object"]["spec"].update(n=101))
    server.watch()
    answer = server.send("POST", body=widget())
    assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "spec.n")
    assert server.seen == []


def test_a_mutating_webhook_can_repair_an_invalid_object(server: Server) -> None:
    server.mutate(lambda request: request["object"]["spec"].update(n=100))
    assert server.send("POST", body=widget(n=1000)).body["spec"]["n"] == 100


def test_a_name_conflict_is_detected_after_admission(server: Server) -> None:
    server.send("POST", body=widget())
    server.watch("mutating")
    server.watch("validating")
    assert server.send("POST", body=widget()).code == 409
    assert len(server.seen) == 2


def test_a_stale_update_is_not_sent_to_validating_webhooks(server: Server) -> None:
    server.send("POST", body=widget())
    server.watch("mutating")
    server.watch("validating")
    stale = {**widget(n=5), "metadata": {"name": "a", "resourceVersion": "1"}}
    assert server.send("PUT", f"{WIDGETS}/a", stale).code == 409
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("PATCH", "/zz", {"spec": {"n": 2}}), ("DELETE", "/zz", None), ("GET", "", None), ("GET", "/a", None)],
)
def test_webhooks_are_not_called_for_missing_objects_or_reads(
    server: Server, method: str, path: str, body: Any
) -> None:
    server.send("POST", body=widget())
    server.watch("mutating")
    server.watch("validating")
    server.send(method, WIDGETS + path, body, MERGE if body else "application/json")
    assert server.seen == []


# -- what webhooks see ------------------------------------------------------------------------------------------------


def test_a_request_in_every_detail(server: Server) -> None:
    server.watch("mutating")
    server.watch("validating")
    created = server.send("POST", f"{WIDGETS}?fieldManager=me&fieldValidation=Strict", widget()).body
    before, after = server.seen
    gvk, gvr = (
        {"group": GROUP, "version": "v1", name: value} for name, value in (("kind", "Widget"), ("resource", "widgets"))
    )
    assert {name: value for name, value in before.items() if name not in ("uid", "object")} == {
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": "a",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "system:anonymous", "groups": ["system:unauthenticated"]},
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    }
    assert before["uid"] != after["uid"]
    assert set(before["object"]["metadata"]) == {"name", "namespace", "managedFields"}
    assert after["object"]["metadata"] == _without_version(created["metadata"])


@pytest.mark.parametrize("traceparent", ["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])
def test_the_trace_of_the_client_is_handed_on(server: Server, traceparent: str) -> None:
    server.watch("validating")
    [hook] = chain_of(server.noxu).local_validating
    handed_on: list[str] = []
    original = hook.caller
    assert original is not None

    async def call(*arguments: Any, **options: Any) -> Any:
        context = TRACE_CONTEXT.get()
        handed_on.append("" if context is None else context.traceparent)
        return await original(*arguments, **options)

    hook.caller = call
    headers = {"Content-Type": "application/json"} | ({"Traceparent": traceparent} if traceparent else {})
    code, _, _ = server.client.exchange("POST", WIDGETS, json.dumps(widget()).encode(), headers)
    assert (code, handed_on) == (201, [traceparent])


def test_a_generated_name_is_known_when_it_is_generated(server: Server) -> None:
    server.watch("mutating")
    server.watch("validating")
    body = {**widget(), "metadata": {"generateName": "w-"}}
    name = server.send("POST", body=body).body["metadata"]["name"]
    assert [review.get("name") for review in server.seen] == [None, name]


def test_the_options_of_a_deletion(server: Server) -> None:
    server.send("POST", body=widget())
    server.watch()
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "propagationPolicy": "Background"}
    server.send("DELETE", f"{WIDGETS}/a", options)
    assert [review["options"] for review in server.seen] == [{**options, "apiVersion": "meta.k8s.io/v1"}]


def test_a_webhook_for_v1_sees_a_request_at_v2_as_v1(server: Server) -> None:
    def change(request: Any) -> None:
        server.seen.append(json.loads(json.dumps(request)))
        request["object"]["spec"]["trail"] = "v1"

    server.mutate(change, version="v1")
    server.mutate(server.seen.append, version="v2")
    created = server.send("POST", V2, widget(api="v2")).body
    first, second = server.seen
    assert (first["kind"]["version"], first["requestKind"]["version"]) == ("v1", "v2")
    assert first["object"]["apiVersion"] == f"{GROUP}/v1"
    assert (second["kind"]["version"], second["object"]["apiVersion"]) == ("v2", f"{GROUP}/v2")
    assert second["object"]["spec"]["trail"] == "v1"
    assert (created["apiVersion"], created["spec"]["trail"]) == (f"{GROUP}/v2", "v1")
    assert {entry["apiVersion"] for entry in created["metadata"]["managedFields"]} == {f"{GROUP}/v2"}


def test_definitions_are_reviewed_like_other_objects(server: Server) -> None:
    @server.noxu.validating("customresourcedefinitions.apiextensions.k8s.io", name="no.example.com")
    async def no(request: Any) -> bool:
        server.seen.append(request)
        return False

    other = json.loads(json.dumps(DEFINITION).replace("widgets", "gadgets").replace("Widget", "Gadget"))
    answer = server.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", other)
    assert answer.body["message"] == 'admission webhook "no.example.com" denied the request without explanation'
    assert server.seen[0]["object"]["spec"]["names"]["listKind"] == "GadgetList"


# -- what webhooks change ----------------------------------------------------------------------------------------------


def test_removed_defaults_are_set_again(server: Server) -> None:
    def undo(request: Any) -> None:
        del request["object"]["spec"]["d"]
        request["object"]["spec"]["deep"] = {}

    server.mutate(undo)
    assert server.send("POST", body=widget()).body["spec"] == {"n": 1, "d": "dflt", "deep": {"x": 5}}


def test_fields_set_by_a_webhook_have_no_owner(server: Server) -> None:
    server.mutate(lambda request: request["object"]["spec"].update(trail="hook"))
    config = {**widget(), "spec": {"n": 1}}
    server.send("PATCH", f"{WIDGETS}/a?fieldManager=one", config, APPLY)
    mine = {**widget(), "spec": {"trail": "mine"}}
    assert server.send("PATCH", f"{WIDGETS}/a?fieldManager=two", mine, APPLY).code == 200


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"op": "add", "path": "/metadata/uid", "value": "x"}, 201, ""),
        ({"op": "add", "path": "/metadata/generation", "value": 77}, 201, ""),
        ({"op": "add", "path": "/metadata/namespace", "value": "other"}, 400, "the namespace of the provided object does not match the namespace sent on the request"),
        ({"op": "add", "path": "/metadata/resourceVersion", "value": "5"}, 500, "resourceVersion should not be set on objects to be created"),
        ({"op": "add", "path": "/kind", "value": "Gadget"}, 422, f'Gadget.{GROUP} "a" is invalid: kind: Invalid value: "Gadget": must be Widget'),
        ({"op": "add", "path": "/apiVersion", "value": "x/v1"}, 500, f'x/v1, Kind=Widget is unstructured and is not suitable for converting to "{GROUP}/v1"'),
        ({"op": "add", "path": "/apiVersion", "value": f"{GROUP}/v9"}, 500, f"request to convert CR from an invalid group/version: {GROUP}/v9"),
        ({"op": "remove", "path": "/kind"}, 500, "Internal error occurred: Object 'Kind' is missing in '"),
        ({"op": "replace", "path": "", "value": []}, 500, "Internal error occurred: couldn't get version/kind; json parse error"),
        ({"op": "add", "path": "/metadata", "value": "x"}, 500, "Internal error occurred: system metadata was not initialized"),
        ({"op": "add", "path": "/metadata/labels", "value": 5}, 422, f'Widget.{GROUP} "a" is invalid: metadata: Invalid value: '),
        ({"op": "test", "path": "/spec/n", "value": 5}, 500, "Internal error occurred: testing value /spec/n failed: test failed"),
        ({"op": "frob", "path": "/spec/n"}, 500, "Internal error occurred: Unexpected kind: frob"),
    ],
)  # fmt: skip
def test_a_patch_of_fields_that_the_server_sets(server: Server, patch: Any, code: int, message: str) -> None:
    server.mutate(lambda request: [patch])
    answer = server.send("POST", body=widget())
    assert answer.code == code, answer.body
    if code == 201:
        assert (answer.body["metadata"]["generation"], answer.body["metadata"]["uid"] != "x") == (1, True)
    else:
        assert answer.body["message"].startswith(message)


def test_metadata_that_the_server_sets_right_are_typed_like_others(server: Server) -> None:
    server.mutate(
        lambda request: request["object"]["metadata"].update(creationTimestamp=["x"], labels={"a": None}, junk=1)
    )
    created = server.send("POST", body=widget())
    assert (created.code, created.body["metadata"]["labels"]) == (201, {"a": ""})
    assert "junk" not in created.body["metadata"]


def test_invalid_managed_fields_from_a_webhook_are_restored(server: Server) -> None:
    entry = {"manager": "x", "operation": "Nope", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    server.mutate(lambda request: request["object"]["metadata"].update(managedFields=[entry]))
    [warning] = server.warned("POST", WIDGETS, widget())
    assert "please fix your requests: operation must be `Apply` or `Update`" in warning
    assert [entry["manager"] for entry in server.get()["metadata"]["managedFields"]] == ["unknown"]


def test_a_deletion_cannot_be_changed(server: Server) -> None:
    server.send("POST", body=widget())
    server.mutate(lambda request: [{"op": "add", "path": "/spec", "value": {}}], operations=["DELETE"], name="m")
    answer = server.send("DELETE", f"{WIDGETS}/a")
    why = 'admission webhook "m" attempted to modify the object, which is not supported for this operation'
    assert (answer.code, answer.body["message"]) == (500, f"Internal error occurred: {why}")


def test_the_replicas_of_a_scale_may_be_changed(server: Server) -> None:
    server.send("POST", body=widget(replicas=1))

    @server.noxu.mutating(f"widgets.{GROUP}/scale")
    def limit(request: Any) -> None:
        request["object"]["spec"]["replicas"] = min(request["object"]["spec"]["replicas"], 3)

    scale = server.send("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 10}}, MERGE).body
    assert (scale["spec"], server.get()["spec"]["replicas"]) == ({"replicas": 3}, 3)


def test_warnings_reach_the_client_once_and_in_order(server: Server) -> None:
    @server.noxu.mutating(f"widgets.{GROUP}")
    def first(request: Any) -> Any:
        return {"allowed": True, "warnings": ["one", "", "two", "one"]}

    @server.noxu.validating(f"widgets.{GROUP}")
    def second(request: Any) -> Any:
        return {"allowed": False, "warnings": ["three", "two"]}

    assert server.warned("POST", WIDGETS, widget()) == ['299 - "one"', '299 - "two"', '299 - "three"']


def test_audit_annotations_record_what_each_webhook_did(server: Server) -> None:
    drafts: list[Any] = []
    chain = chain_of(server.noxu)
    validate = chain.validate

    async def remember(draft: Any) -> None:
        await validate(draft)
        drafts.append(draft)

    chain.validate = remember  # type: ignore[method-assign]

    @server.noxu.mutating(f"widgets.{GROUP}", name="m.example.com")
    def annotate(request: Any) -> Any:
        return {"allowed": True, "auditAnnotations": {"why": "because", "not a key": "x"}}

    server.mutate(lambda request: request["object"]["spec"].update(n=2), name="n.example.com")
    created = server.send("POST", body=widget()).body
    assert "because" not in json.dumps(created)
    about = '"configuration":"in process","webhook":'
    mutation, patch = "mutation.webhook.admission.k8s.io", "patch.webhook.admission.k8s.io"
    assert drafts[0].outcome.audit_annotations == {
        "m.example.com/why": "because",
        f"{mutation}/round_0_index_0": f'{{{about}"m.example.com","mutated":false}}',
        f"{mutation}/round_0_index_1": f'{{{about}"n.example.com","mutated":true}}',
        f"{patch}/round_0_index_1": f'{{{about}"n.example.com",'
        '"patch":[{"op":"replace","path":"/spec/n","value":2}],"patchType":"JSONPatch"}',
    }


def test_a_webhook_at_another_version_sees_the_converted_object(server: Server) -> None:
    @server.noxu.converting(f"widgets.{GROUP}")
    def convert(value: Any, version: str) -> None:
        spec = value["spec"]
        if "trail" in spec:
            spec["trail"] = f"{spec['trail']}>{version[-2:]}"

    server.watch("validating", version="v1")
    created = server.send("POST", V2, widget(api="v2", trail="v2")).body
    assert [review["object"]["spec"]["trail"] for review in server.seen] == ["v2>v1"]
    assert created["spec"]["trail"] == "v2>v1>v2"


@pytest.mark.parametrize(("kind", "times"), [("mutating", 2), ("validating", 1)])
def test_an_object_that_cannot_be_converted_for_a_webhook(server: Server, kind: str, times: int) -> None:
    server.watch(kind, version="v1")

    @server.noxu.converting(f"widgets.{GROUP}")
    def fail(value: Any, version: str) -> None:
        raise Denied("nope")

    answer = server.send("POST", V2, widget(api="v2"))
    why = f"conversion webhook for {GROUP}/v2, Kind=Widget failed: nope"
    assert (answer.code, answer.body["message"]) == (500, "Internal error occurred: " * times + why)


@pytest.mark.parametrize(("resource", "shown"), [("configmaps", {"value": "hidden"}), ("secrets", {})])
def test_a_trace_shows_the_changes_of_each_webhook_but_no_secrets(server: Server, resource: str, shown: Any) -> None:
    @server.noxu.mutating(resource, name="m.example.com")
    def add(request: Any) -> Any:
        return [
            {"op": "add", "path": "/metadata/labels", "value": {}},
            {"op": "add", "path": "/metadata/labels/x", "value": "hidden"},
        ]

    @server.noxu.validating(resource, name="v.example.com")
    def deny(request: Any) -> str:
        return "no"

    headers = {"Content-Type": "application/json", "X-Noxu-Trace": "1"}
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    _, given, _ = server.client.exchange("POST", f"/api/v1/namespaces/default/{resource}", body, headers)
    trace = server.send("GET", f"/_noxu/traces/{dict(given)['X-Noxu-Trace']}").body
    steps = {step["stage"]: step for step in trace["steps"]}
    assert steps["webhook m.example.com"]["patch"][1] == {"op": "add", "path": "/metadata/labels/x", **shown}
    assert steps["webhook m.example.com"]["milliseconds"] > 0
    [note] = steps["webhook v.example.com"]["notes"]
    assert note["message"] == 'admission webhook "v.example.com" denied the request: no'


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_function_that_raises_is_a_call_that_failed(server: Server) -> None:
    def broken(request: Any) -> None:
        raise KeyError("oh")

    server.mutate(broken, name="broken.example.com")
    answer = server.send("POST", body=widget())
    why = "failed calling webhook \"broken.example.com\": failed to call webhook: KeyError: 'oh'"
    assert (answer.code, answer.body["message"]) == (500, f"Internal error occurred: {why}")
    assert answer.body["details"] == {"causes": [{"message": why}]}


def configuration(
    server: Server, kind: str, *, url: str = "https://127.0.0.1:1/x", name: str = "c", **hook: Any
) -> Any:
    rule = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["*"], "resources": ["widgets"]}
    default = {
        "name": "hook.example.com",
        "clientConfig": {"url": url},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [default | hook],
    }


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_webhook_that_cannot_be_reached(server: Server, kind: str) -> None:
    [stored] = server.noxu.apply(configuration(server, kind))
    answer = server.send("POST", body=widget())
    assert answer.code == 500
    assert answer.body["message"] == (
        'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    )
    server.noxu.apply(configuration(server, kind, failurePolicy="Ignore"))
    assert server.send("POST", body=widget()).code == 201
    path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations/{stored['metadata']['name']}"
    assert server.send("DELETE", path).code == 200
    assert server.send("POST", body=widget("b")).code == 201


ANSWERS: list[tuple[str, str, bytes]] = [
    ("a Status", "500 x", b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"canary"}'),
    ("text", "503 x", b"canary"),
    ("no JSON", "200 OK", b"canary"),
    ("another kind", "200 OK", b'{"kind":"canary","apiVersion":"v1"}'),
    ("a field of another type", "200 OK",
     b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"canary","allowed":"canary"}}'),
    ("another uid", "200 OK",
     b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"canary","allowed":true}}'),
    ("no HTTP", "", b"canary"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_the_log_says_that_a_call_failed_but_not_what_the_webhook_answered(
    server: Server, caplog: pytest.LogCaptureFixture, status: str, body: bytes
) -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nContent-Type: text/plain\r\n\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as peer:
                peer.recv(65536)
                peer.sendall(head + body if status else body + b"\r\n\r\n")
                while peer.recv(65536):
                    pass

        webhook = threading.Thread(target=answer, daemon=True)
        webhook.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.noxu.apply(configuration(server, "Validating", clientConfig={"url": url}))
        assert server.send("POST", body=widget()).code == 500
    [line] = [record.getMessage() for record in caplog.records if "Failed calling" in record.getMessage()]
    assert line == "Failed calling webhook, failing closed hook.example.com: its answer cannot be used"
    assert "canary" not in caplog.text


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "https://a..b/", "https://h\u00e9/"])
def test_an_address_that_cannot_be_used_is_a_call_that_failed(server: Server, kind: str, url: str) -> None:
    server.noxu.apply(configuration(server, kind, clientConfig={"url": url}))
    answer = server.send("POST", body=widget())
    assert answer.code == 500
    assert 'failed calling webhook "hook.example.com": failed to call webhook: Post "' in answer.body["message"]
    server.noxu.apply(configuration(server, kind, clientConfig={"url": url}, failurePolicy="Ignore"))
    assert server.send("POST", body=widget()).code == 201


@pytest.mark.parametrize(
    ("hook", "code", "message"),
    [
        ({"sideEffects": "Some"}, 400, 'admission webhook "hook.example.com" does not support dry run'),
        ({"sideEffects": "Unknown", "failurePolicy": "Ignore"}, 400, 'admission webhook "hook.example.com" does not support dry run'),
        ({"sideEffects": "NoneOnDryRun", "failurePolicy": "Ignore"}, 201, ""),
    ],
)  # fmt: skip
def test_side_effects_and_a_dry_run(server: Server, hook: Any, code: int, message: str) -> None:
    """Webhooks with side effects can no longer be configured, but old ones may exist: the plug-in is called directly."""
    given = configuration(server, "Validating", **hook)
    given["webhooks"][0] |= {"namespaceSelector": {}, "objectSelector": {}, "timeoutSeconds": 1}
    chain_of(server.noxu).local_validating += hooks_of(given)
    answer = server.send("POST", f"{WIDGETS}?dryRun=All", widget())
    assert (answer.code, answer.body.get("message", "")) == (code, message)


def test_an_invalid_selector_fails_only_requests_that_match_the_rules(server: Server) -> None:
    given = configuration(server, "Validating", namespaceSelector={"matchLabels": {"a": "no label"}}, objectSelector={})
    chain_of(server.noxu).local_validating += hooks_of(given)
    answer = server.send("POST", body=widget())
    assert (answer.code, "a valid label must be" in answer.body["message"]) == (500, True)
    assert server.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}).code == 201


CONDITIONS: list[tuple[str, list[str], str, int, str]] = [
    # name, the conditions, failurePolicy, the code, the message's end (500: the webhook was called)
    ("all true", ["object.spec.n == 1", "request.operation == 'CREATE'"], "Fail", 500, "connection refused"),
    ("one false", ["object.spec.n == 1", "object.spec.n == 2"], "Fail", 201, ""),
    ("false beats an error", ["object.spec.nothing == 1", "false"], "Fail", 201, ""),
    ("an error", ["object.spec.nothing == 1"], "Fail", 403, "\"a\" is forbidden: expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"),
    ("an error under Ignore", ["object.spec.nothing == 1"], "Ignore", 201, ""),
    ("empty fields are absent", ["request.subResource == ''"], "Fail", 403, "no such key: subResource"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "policy", "code", "message"), [row[1:] for row in CONDITIONS], ids=[row[0] for row in CONDITIONS]
)
def test_match_conditions(server: Server, conditions: list[str], policy: str, code: int, message: str) -> None:
    given = [{"name": f"c{n}", "expression": condition} for n, condition in enumerate(conditions)]
    server.noxu.apply(configuration(server, "Validating", matchConditions=given, failurePolicy=policy))
    answer = server.send("POST", body=widget())
    assert answer.code == code, answer.body
    assert answer.body.get("message", "").endswith(message)


def test_a_webhook_that_does_not_answer_fails_at_its_timeout(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        server.noxu.apply(configuration(server, "Validating", url=url, timeoutSeconds=1))
        began = time.monotonic()
        answer = server.send("POST", WIDGETS, widget())
        assert time.monotonic() - began >= 1
    assert answer.body["message"].endswith(f'Post "{url}?timeout=1s": context deadline exceeded')


def test_other_requests_are_answered_while_a_webhook_does_not_answer(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANGS_AFTER)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        server.noxu.apply(configuration(server, "Validating", url=url, timeoutSeconds=30))
        answers: list[Any] = []

        def write() -> None:
            with Client(server.noxu.url) as client:
                answers.append(client.send("POST", WIDGETS, widget()))

        writer = threading.Thread(target=write)
        writer.start()
        connection, _ = silent.accept()
        for _ in range(20):
            assert server.send("GET", WIDGETS).code == 200
        assert answers == []
        connection.close()
        writer.join()
    [answer] = answers
    assert (answer.code, f'Post "{url}?timeout=30s": ' in answer.body["message"]) == (500, True)


@pytest.mark.parametrize(
    ("query", "timeout"),
    [("", 10), ("?timeout=3s", 3), ("?timeout=1500ms", 2), ("?timeout=30s", 10), ("?timeout=0", 10)],
)
def test_a_webhook_has_no_more_time_than_the_request(server: Server, query: str, timeout: int) -> None:
    given: list[int] = []

    async def call(*_: Any, timeout: int, **__: Any) -> Any:  # noqa: ASYNC109
        given.append(timeout)
        raise CallFailed("enough")

    server.noxu.apply(configuration(server, "Mutating"))
    for plugin in chain_of(server.noxu).mutating:
        assert isinstance(plugin, DeferredMutating)
        if isinstance(plugin._made, MutatingWebhooks):
            plugin._made._caller = call
    assert server.send("POST", WIDGETS + query, widget()).code == 500
    assert given == [timeout]


def test_a_request_that_exceeds_its_timeout(server: Server) -> None:
    @server.noxu.validating(f"widgets.{GROUP}")
    async def never(request: Any) -> None:
        await asyncio.Event().wait()

    answer = server.send("POST", f"{WIDGETS}?timeout=500ms", widget())
    text = "Timeout: request did not complete within the allotted timeout"
    assert (answer.code, answer.body["message"], answer.body["reason"]) == (504, text, "Timeout")
    assert server.send("GET", f"{WIDGETS}/a").code == 404


def test_an_invalid_timeout(server: Server) -> None:
    answer = server.send("POST", f"{WIDGETS}?timeout=5", widget())
    text = 'invalid timeout specified in the request URL - time: missing unit in duration "5"'
    assert (answer.code, answer.body["message"]) == (400, text)


def test_a_patch_bomb_is_refused_and_the_server_keeps_running(server: Server) -> None:
    def bomb(request: Any) -> Any:
        grow = [{"op": "add", "path": "/spec/trail", "value": "x" * 100_000}]
        return grow + [{"op": "copy", "from": "/spec", "path": f"/metadata/x{n}"} for n in range(100)]

    server.mutate(bomb)
    answer = server.send("POST", body=widget())
    assert answer.code == 500
    assert "Unable to complete the copy, the accumulated size increase of copy is" in answer.body["message"]
    assert server.send("GET", WIDGETS).code == 200


# -- without configurations -------------------------------------------------------------------------------------------


def test_without_configurations_no_plug_in_is_created(server: Server) -> None:
    server.send("POST", body=widget())
    chain = chain_of(server.noxu)
    for plugin in (*chain.mutating, *chain.validating):
        assert isinstance(plugin, DeferredMutating | DeferredValidating)
        assert plugin._made is None
        assert plugin.is_idle(server.noxu._server.plane.reader)


def test_webhook_configurations_are_exempt_from_webhooks(server: Server) -> None:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    for kind in ("Mutating", "Validating"):
        server.noxu.apply(configuration(server, kind, rules=[rule]))
    assert server.send("POST", body=widget()).code == 500
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    assert server.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review).code == 201
    for kind in ("mutating", "validating"):
        assert server.send("DELETE", f"{CONFIGURATIONS}/{kind}webhookconfigurations/c").code == 200
    assert server.send("POST", body=widget()).code == 201
