"""Functions in the place of webhooks: what they may return and raise."""

from __future__ import annotations

import time
import urllib.request
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.testing.functions import Denied
from noxu.testing.handle import Noxu
from tests.timing import HANGS_AFTER

GROUP = "example.com"
SPEC = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
VERSION = {
    "served": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": SPEC}}},
    "subresources": {"status": {}},
}
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "storage": True, **VERSION}, {"name": "v2", "storage": False, **VERSION}],
    },
}


@pytest.fixture
def server(noxu: Noxu) -> Noxu:
    noxu.apply(WIDGETS)
    return noxu


def widget(name: str = "a", version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def in_place(request: Any) -> None:
    request["object"]["spec"]["hook"] = True


def another(request: Any) -> Any:
    return {**request["object"], "spec": {**request["object"]["spec"], "hook": True}}


def patch(request: Any) -> Any:
    return [{"op": "add", "path": "/spec/hook", "value": True}]


def response(request: Any) -> Any:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvaG9vayIsInZhbHVlIjp0cnVlfV0=",
    }


async def asynchronous(request: Any) -> None:
    in_place(request)


@pytest.mark.parametrize("function", [in_place, another, patch, response, asynchronous])
def test_a_mutating_function(server: Noxu, function: Any) -> None:
    assert server.mutating("widgets.example.com")(function) is function
    [stored] = server.apply(widget(n=1))
    assert stored["spec"] == {"n": 1, "hook": True}


REFUSALS: list[tuple[str, Any, int, str]] = [
    ("false", lambda request: False, 400, 'admission webhook "hook" denied the request without explanation'),
    ("a message", lambda request: "no", 400, 'admission webhook "hook" denied the request: no'),
    ("a response", lambda request: {"allowed": False, "status": {"code": 418, "message": "tea"}}, 418, 'admission webhook "hook" denied the request: tea'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "code", "message"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_a_validating_function_that_refuses(server: Noxu, function: Any, code: int, message: str) -> None:
    server.validating("widgets.example.com", name="hook")(function)
    with pytest.raises(ApiError) as error:
        server.apply(widget())
    assert (error.value.code, error.value.message) == (code, message)


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_a_function_may_raise_denied(server: Noxu, kind: str) -> None:
    @getattr(server, kind)("widgets.example.com")
    def hook(request: Any) -> None:
        raise Denied("not today", code=403, reason="Forbidden")

    with pytest.raises(ApiError) as error:
        server.apply(widget())
    assert (error.value.code, error.value.reason) == (403, "Forbidden")
    assert error.value.message == 'admission webhook "hook" denied the request: not today'


@pytest.mark.parametrize("outcome", [None, True, {"allowed": True}])
def test_a_validating_function_that_allows(server: Noxu, outcome: Any) -> None:
    server.validating("widgets.example.com")(lambda request: outcome)
    assert server.apply(widget())


def test_a_function_is_called_only_for_its_resource_and_operations(server: Noxu) -> None:
    requests: list[Any] = []
    server.validating("widgets.example.com/status")(requests.append)
    server.validating("configmaps")(requests.append)
    server.validating("*.apps")(requests.append)
    server.validating("widgets.example.com", operations=["DELETE"])(requests.append)
    server.apply(widget())
    assert requests == []
    server.status(widget(), {"ready": True})
    assert [request["subResource"] for request in requests] == ["status"]


def test_a_function_gets_objects_in_its_version(server: Noxu) -> None:
    seen: list[str] = []
    server.validating("widgets.example.com", version="v2")(lambda request: seen.append(request["object"]["apiVersion"]))
    server.apply(widget(), widget("b", "v2"))
    assert seen == ["example.com/v2", "example.com/v2"]


def test_a_plain_function_may_send_requests_to_the_server(server: Noxu) -> None:
    @server.validating("widgets.example.com")
    def send_request(request: Any) -> bool:
        with urllib.request.urlopen(f"{server.url}/apis/example.com/v1/widgets", timeout=HANGS_AFTER) as answer:
            return bool(answer.status == 200)

    assert server.apply(widget())


def test_a_plain_function_may_block(server: Noxu) -> None:
    server.validating("widgets.example.com")(lambda request: time.sleep(0.2))
    began = time.monotonic()
    server.apply(widget())
    assert time.monotonic() - began >= 0.2


# -- conversion -------------------------------------------------------------------------------------------------------


def in_place_conversion(value: Any, version: str) -> None:
    value["spec"]["at"] = version


def another_object(value: Any, version: str) -> Any:
    return {**value, "spec": {**value["spec"], "at": version}}


async def asynchronous_conversion(value: Any, version: str) -> None:
    in_place_conversion(value, version)


@pytest.mark.parametrize("function", [in_place_conversion, another_object, asynchronous_conversion])
def test_a_converting_function(server: Noxu, function: Any) -> None:
    assert server.converting("widgets.example.com")(function) is function
    server.apply(widget())
    with urllib.request.urlopen(f"{server.url}/apis/example.com/v2/namespaces/default/widgets/a") as answer:
        assert b'"spec":{"at":"example.com/v2"}' in answer.read()


@pytest.mark.parametrize(("error", "why"), [(Denied("cannot"), "cannot"), (KeyError("spec"), "KeyError: 'spec'")])
def test_a_converting_function_that_fails(server: Noxu, error: Exception, why: str) -> None:
    @server.converting("widgets.example.com")
    def fail(value: Any, version: str) -> None:
        raise error

    with pytest.raises(ApiError) as refused:
        server.apply(widget(version="v2"))
    text = f"conversion webhook for example.com/v2, Kind=Widget failed: {why}"
    assert (refused.value.code, refused.value.message) == (500, text)
