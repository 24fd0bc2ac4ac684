"""A request is judged by what any server with the same store has answered before it, even at one that lags behind."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from noxu.config import Authentication, Config, Etcd
from noxu.process.server import Server
from noxu_storage.store import Store
from tests.definitions import version, widgets
from tests.etcd_server import EtcdServer

pytestmark = pytest.mark.slow(every=5)

LAG = 0.15  # seconds by which the second server learns later what happens in etcd
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
MAPS = "/api/v1/namespaces/default/configmaps"


def delay(store: Store) -> None:
    """Let a store apply events LAG seconds after they have arrived."""
    loop, apply = asyncio.get_running_loop(), store._apply  # type: ignore[attr-defined]

    def later(*arguments: Any) -> None:
        loop.call_later(LAG, apply, *arguments)

    store._apply = later  # type: ignore[attr-defined]


class Two:
    """A server, and one that lags behind. Each request is of the administrator, or of the user `ann`."""

    def __init__(self, first: Server, lagging: Server, session: aiohttp.ClientSession) -> None:
        self.first, self.lagging, self.session = first, lagging, session

    async def at_first(self, method: str, path: str, body: Any = None, user: str = "admin") -> Any:
        return await self._ask(self.first, method, path, body, user)

    async def at_lagging(self, method: str, path: str, body: Any = None, user: str = "admin") -> Any:
        return await self._ask(self.lagging, method, path, body, user)

    async def _ask(self, server: Server, method: str, path: str, body: Any, user: str) -> tuple[int, Any]:
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {user}"}
        async with self.session.request(method, server.url + path, data=data, headers=headers) as answer:
            text = await answer.text()  # not JSON: where no resource is served
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text


@pytest.fixture
async def two(etcd: EtcdServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    tokens.write_text('admin,admin,1,"system:masters"\nann,ann,2\n')
    config = Config(
        port=0,
        etcd=Etcd((etcd.url,), f"/registry/{uuid4()}"),
        authorization_modes=("RBAC",),
        authentication=Authentication(token_auth_file=tokens),
    )
    async with contextlib.AsyncExitStack() as stack:
        server, lagging = [await stack.enter_async_context(Server(config)) for _ in range(2)]
        delay(lagging.plane.store)
        yield Two(server, lagging, await stack.enter_async_context(aiohttp.ClientSession()))


def definition(**size: Any) -> dict[str, Any]:
    return widgets(version({"type": "object", "properties": {"size": {"type": "integer", **size}}}))


def widget(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "size": size}


@pytest.mark.slow
async def test_a_changed_schema(two: Two) -> None:
    code, current = await two.at_first("POST", DEFINITIONS, definition())
    assert code == 201
    assert (await two.at_lagging("POST", WIDGETS, widget("a", 10)))[0] == 201, "a new definition"
    for maximum in (5, 20, 6):
        code, current = await two.at_first("GET", f"{DEFINITIONS}/widgets.example.com")
        changed = copy.deepcopy(current) | {"spec": definition(maximum=maximum)["spec"]}
        assert (await two.at_first("PUT", f"{DEFINITIONS}/widgets.example.com", changed))[0] == 200
        code, _ = await two.at_lagging("POST", WIDGETS, widget(f"b{maximum}", 10))
        assert code == (422 if maximum < 10 else 201)


async def test_a_deleted_definition(two: Two) -> None:
    assert (await two.at_first("POST", DEFINITIONS, definition()))[0] == 201
    assert (await two.at_lagging("POST", WIDGETS, widget("a", 10)))[0] == 201
    assert (await two.at_first("DELETE", f"{DEFINITIONS}/widgets.example.com"))[0] == 200
    assert (await two.at_lagging("POST", WIDGETS, widget("b", 10)))[0] in (403, 404, 405)


async def test_a_policy_and_its_binding(two: Two) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "false"}]}
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "before"}}))[0] == 201
    for path, name, value in (
        ("validatingadmissionpolicies", "p", spec),
        ("validatingadmissionpolicybindings", "b", binding),
    ):
        assert (await two.at_first("POST", f"{POLICIES}/{path}", {"metadata": {"name": name}, "spec": value}))[0] == 201
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "denied"}}))[0] == 422
    assert (await two.at_first("DELETE", f"{POLICIES}/validatingadmissionpolicybindings/b"))[0] == 200
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "after"}}))[0] == 201


LARGE = [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{n}"]} for n in range(2_000)]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], LARGE], ids=["a role", "a role that is compiled in a thread"])
async def test_a_role_and_its_binding(two: Two, more: list[Any]) -> None:
    rules = [{"verbs": ["create", "list"], "apiGroups": [""], "resources": ["configmaps"]}, *more]
    subjects = [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]
    ref = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "b"}, "subjects": subjects, "roleRef": ref}
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "a"}}, user="ann"))[0] == 403
    assert (await two.at_first("POST", f"{ROLES}/rolebindings", binding))[0] == 201
    assert (await two.at_first("POST", f"{ROLES}/roles", {"metadata": {"name": "r"}, "rules": rules}))[0] == 201
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "b"}}, user="ann"))[0] == 201
    assert (await two.at_first("DELETE", f"{ROLES}/rolebindings/b"))[0] == 200
    assert (await two.at_lagging("POST", MAPS, {"metadata": {"name": "c"}}, user="ann"))[0] == 403
    assert (await two.at_first("POST", f"{ROLES}/rolebindings", binding))[0] == 201
    assert (await two.at_lagging("GET", MAPS, user="ann"))[0] == 200, "reads, too"
    assert (await two.at_first("DELETE", f"{ROLES}/roles/r"))[0] == 200
    assert (await two.at_lagging("GET", MAPS, user="ann"))[0] == 403


async def test_a_namespace(two: Two) -> None:
    assert (await two.at_first("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}))[0] == 201
    path = "/api/v1/namespaces/n/configmaps"
    held = {"metadata": {"name": "held", "finalizers": ["example.com/wait"]}}
    assert (await two.at_lagging("POST", path, held))[0] == 201
    assert (await two.at_first("DELETE", "/api/v1/namespaces/n"))[0] == 200
    assert (await two.at_lagging("POST", path, {"metadata": {"name": "late"}}))[0] == 403


async def test_reads_and_watches_without_a_version_begin_with_the_newest_state(two: Two) -> None:
    assert (await two.at_first("POST", MAPS, {"metadata": {"name": "new"}}))[0] == 201
    assert (await two.at_lagging("GET", f"{MAPS}/new"))[0] == 200
    assert (await two.at_first("POST", MAPS, {"metadata": {"name": "newer"}}))[0] == 201
    names = [item["metadata"]["name"] for item in (await two.at_lagging("GET", MAPS))[1]["items"]]
    assert {"new", "newer"} <= set(names)
    assert (await two.at_first("DELETE", f"{MAPS}/new"))[0] == 200
    url = f"{two.lagging.url}{MAPS}?watch=1&timeoutSeconds=1"
    async with two.session.get(url, headers={"Authorization": "Bearer admin"}) as stream:
        events = [json.loads(line) async for line in stream.content]
    assert "new" not in {event["object"]["metadata"]["name"] for event in events}


@pytest.mark.slow
async def test_a_read_from_a_version_does_not_wait(two: Two) -> None:
    """An informer reads with resourceVersion=0: what this server has."""
    await two.at_first("POST", MAPS, {"metadata": {"name": "new"}})
    names = [
        item["metadata"]["name"] for item in (await two.at_lagging("GET", f"{MAPS}?resourceVersion=0"))[1]["items"]
    ]
    assert "new" not in names
