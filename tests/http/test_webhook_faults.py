"""What faults do to webhooks: they cannot be reached, are late, or deny what they review; and to the renewal of Leases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from noxu import ApiError, Noxu
from noxu.values import Object


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def _version(name: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}


WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [_version("v1"), _version("v2")],
    },
}

PATIENT = 30  # seconds that a webhook may take, which answers at once


def set_timeout(server: Noxu, seconds: int) -> None:
    """Let calls of the webhook take so long."""
    configuration = server.get("validatingwebhookconfiguration", "review")
    configuration["webhooks"][0]["timeoutSeconds"] = seconds
    server.update(configuration)


class Allowing(BaseHTTPRequestHandler):
    """A webhook that allows everything, and counts."""

    calls = 0

    def do_POST(self) -> None:
        type(self).calls += 1
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], "allowed": True}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def reviewed(noxu: Noxu) -> Iterator[Noxu]:
    """A server whose ConfigMaps a webhook reviews."""
    Allowing.calls = 0
    server = HTTPServer(("127.0.0.1", 0), Allowing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "review.example.com",
        "clientConfig": {"url": f"http://127.0.0.1:{server.server_port}/review"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": PATIENT,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    noxu.create({**kind, "metadata": {"name": "review"}, "webhooks": [webhook]})
    yield noxu
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("fault", "code", "message", "calls"),
    [
        ("fail", 500, 'failed calling webhook "review.example.com": failed to call webhook: Post', 0),
        ("deny", 403, 'admission webhook "review.example.com" denied the request: a fault was injected', 0),
        ({"deny": "not today"}, 403, 'admission webhook "review.example.com" denied the request: not today', 0),
        ({"delay": "30s"}, 500, "context deadline exceeded", 0),
    ],
)  # fmt: skip
def test_a_write_that_a_webhook_reviews(reviewed: Noxu, fault: Any, code: int, message: str, calls: int) -> None:
    with reviewed.fault(resource="configmaps", name="a", webhook=fault) as hit:
        reviewed.create(config_map("b"))
        assert Allowing.calls == 1
        set_timeout(reviewed, 1)  # the one that is late is waited for; none of the rows is called
        with pytest.raises(ApiError) as refused:
            reviewed.create(config_map("a"))
        set_timeout(reviewed, PATIENT)
    assert (refused.value.code, hit.hits) == (code, 1)
    assert message in refused.value.message
    assert Allowing.calls == 1 + calls
    reviewed.create(config_map("a"))


def test_a_webhook_that_is_a_little_late(reviewed: Noxu) -> None:
    with reviewed.fault(webhook={"delay": "1ms..5ms"}) as hit:
        reviewed.create(config_map("a"))
    assert (hit.hits, Allowing.calls) == (1, 1)
    assert hit.fired[0]["request"]["resource"] == "configmaps"


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("fail", 500, 'failed calling webhook "review": failed to call webhook: Post "function://review?timeout=10s"'),
        ("deny", 403, 'admission webhook "review" denied the request: a fault was injected'),
        ({"deny": "not today"}, 403, 'admission webhook "review" denied the request: not today'),
    ],
)  # fmt: skip
def test_a_write_that_a_function_reviews(noxu: Noxu, kind: str, fault: Any, code: int, message: str) -> None:
    called: list[str] = []

    def review(request: Any) -> None:
        called.append(request["name"])

    getattr(noxu, kind)("configmaps", name="review")(review)
    with noxu.fault(resource="configmaps", name="a", webhook=fault) as hit:
        noxu.create(config_map("b"))
        with pytest.raises(ApiError) as refused:
            noxu.create(config_map("a"))
    assert (refused.value.code, hit.hits, called) == (code, 1, ["b"])
    assert message in refused.value.message
    noxu.create(config_map("a"))
    assert called == ["b", "a"]


def test_a_function_that_is_late(noxu: Noxu) -> None:
    @noxu.validating("configmaps")
    async def review(_: Any) -> None: ...

    with noxu.fault(webhook={"delay": "1ms..5ms"}) as hit:
        noxu.create(config_map("a"))
    assert hit.hits == 1


def test_a_conversion_by_a_function() -> None:
    """It has no resource and no name, so only rules without them are about it."""
    with Noxu(manifests=[WIDGETS]) as noxu:

        @noxu.converting("widgets.example.com")
        def convert(value: Any, _: str) -> Any:
            return value

        noxu.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        failed = 'failed: Post "function://widgets.example.com?timeout=30s": dial tcp: connect: connection refused'
        with noxu.fault(webhook="fail") as hit, pytest.raises(ApiError) as refused:
            noxu.get("widgets.v2.example.com", "a")
        assert (refused.value.code, hit.hits) == (500, 1)
        assert refused.value.message.endswith(failed)
        with noxu.fault(webhook={"delay": "1ms"}) as hit:
            assert noxu.get("widgets.v2.example.com", "a")["apiVersion"] == "example.com/v2"
        assert hit.hits == 1
        for of_writes in ({"webhook": "deny"}, {"webhook": "fail", "verbs": ["update"]}):
            with noxu.fault(**of_writes, times=1) as hit:
                assert noxu.get("widgets.v2.example.com", "a")
            assert hit.hits == 0  # which is left for a write


def test_a_lease_cannot_be_renewed(noxu: Noxu) -> None:
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader", "namespace": "default"},
        "spec": {"holderIdentity": "one"},
    }
    created = noxu.create(lease)
    with noxu.fault(lease="lost", user_agent="*"):
        with pytest.raises(ApiError, match="Operation cannot be fulfilled on leases"):
            noxu.update({**created, "spec": {"holderIdentity": "one"}})
        noxu.create(config_map("a"))
    noxu.update({**created, "spec": {"holderIdentity": "one"}})


def test_a_plan_for_leases_of_another_resource_is_refused(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match="lease is about leases"), noxu.fault(lease="lost", resource="configmaps"):
        pass
