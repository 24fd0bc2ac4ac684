"""No spelling of a request gives a user more than their rules: path forms × methods × users, against what they must not get.

Objects that a user may not read have a mark in them, and the store has a revision. So whatever the server makes of a request,
an answer with the mark is a leak, and a new revision is a write that was not allowed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest

from tests.http.exchanges import ServedApp, serving_app
from tests.http.test_authorization import config_map, grant, rule, send

MARK: Final = "forbidden-mark"
USERS: Final = ("dev", "system:serviceaccount:default:robot", "")
METHODS: Final = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "LINK",
    "QUERY",
)
TARGETS: Final = (
    "/api/v1/namespaces/other/configmaps/hidden",
    "/api/v1/namespaces/other/configmaps",
    "/api/v1/namespaces/default/secrets/hidden",
    "/api/v1/configmaps",
    "/api/v1/namespaces/other",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/hidden",
)
"""What dev, who reads the ConfigMaps of the namespace default, may not get."""


def _inserted(text: str) -> Callable[[str], str]:
    """After the first two segments, which are those of the API."""
    return lambda path: "/".join(path.split("/")[:3]) + text + "/".join(path.split("/")[3:])


FORMS: Final[dict[str, Callable[[str], str]]] = {
    "as it is": lambda path: path,
    "with a slash at the end": lambda path: path + "/",
    "with two slashes at the end": lambda path: path + "//",
    "with two slashes at the start": lambda path: "/" + path,
    "with all slashes doubled": lambda path: path.replace("/", "//"),
    "with a doubled slash": _inserted("//"),
    "with a segment ./": _inserted("/./"),
    "with a segment ../": _inserted("/v1/../"),
    "with an encoded segment": _inserted("/%2e%2e/v1/"),
    "from below an allowed path": lambda path: "/healthz/.." + path,
    "from below an allowed encoded path": lambda path: "/healthz/%2e%2e" + path,
    "from below allowed objects": lambda path: "/api/v1/namespaces/default/configmaps/../../../../.." + path,
    "with encoded slashes": lambda path: path.replace("/", "%2F"),
    "with the last slash encoded": lambda path: "%2f".join(path.rsplit("/", 1)),
    "with slashes encoded twice": lambda path: path.replace("/", "%252F"),
    "with encoded letters": lambda path: path.replace("e", "%65").replace("o", "%6F"),
    "in upper case": str.upper,
    "with a resource in upper case": lambda path: path.replace("configmaps", "ConfigMaps").replace("secrets", "Secrets"),
    "with a backslash": lambda path: path.replace("/namespaces/", "\\namespaces\\"),
    "with NUL at the end": lambda path: path + "%00",
    "with NUL and an allowed suffix": lambda path: path + "%00/healthz",
    "with a parameter of the path": lambda path: path + ";a=b",
    "with a fragment": lambda path: path + "#/healthz",
    "with an encoded query": lambda path: path + "%3Fa=b",
    "below watch": _inserted("/watch/"),
    "below proxy": _inserted("/proxy/"),
    "below watch twice": _inserted("/watch/watch/"),
    "as a whole URL": lambda path: f"http://127.0.0.1{path}",
    "as a whole URL of another host": lambda path: f"http://localhost{path}",
    "as a URL without a scheme": lambda path: f"//127.0.0.1{path}",
    "with another version": lambda path: path.replace("/v1/", "/v1beta1/"),
    "in another group": lambda path: path.replace("/api/v1", "/apis//v1"),
    "in the group core": lambda path: path.replace("/api/v1", "/apis/core/v1"),
    "in an empty namespace": lambda path: path.replace("/other", "/"),
    "in the namespace default, by the query": lambda path: path + "?namespace=default",
    "as a watch": lambda path: path + "?watch=true&timeoutSeconds=1",
    "as a watch, in upper case": lambda path: path + "?WATCH=TRUE",
    "by a field selector": lambda path: path + "?fieldSelector=metadata.namespace%3Ddefault",
    "by the name of an allowed object": lambda path: path + "?fieldSelector=metadata.name%3Dopen",
    "as a table": lambda path: path + "?includeObject=Object",
    "as a dry run": lambda path: path + "?dryRun=All",
}  # fmt: skip
HEADERS: Final = {
    "none": (),
    "another method": ("X-HTTP-Method-Override: GET", "X-Method-Override: GET", "X-HTTP-Method: GET"),
    "another path": ("X-Original-URL: /healthz", "X-Rewrite-URL: /healthz", "X-Forwarded-Prefix: /healthz"),
    "another user": ("Impersonate-User: root", "Impersonate-Group: system:masters"),
    "a front proxy": ("X-Remote-User: root", "X-Remote-Group: system:masters"),
    "groups": ("Impersonate-Group: system:masters",),
    "forwarded for": ("X-Forwarded-For: 127.0.0.1", "X-Forwarded-User: root", "Forwarded: for=127.0.0.1"),
}


@pytest.fixture
async def app() -> AsyncIterator[ServedApp]:
    async with serving_app(authorization_modes=("RBAC",)) as served:
        for namespace in ("other",):
            made = {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": namespace, "annotations": {"a": MARK}},
            }
            assert (await send(served, "root", "POST", "/api/v1/namespaces", made)).code == 201
        hidden = config_map("hidden") | {"data": {"a": MARK}}
        assert (await send(served, "root", "POST", "/api/v1/namespaces/other/configmaps", hidden)).code == 201
        secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "hidden"}, "stringData": {"a": MARK}}
        secret["metadata"] = {"name": "hidden", "annotations": {"a": MARK}}
        assert (await send(served, "root", "POST", "/api/v1/namespaces/default/secrets", secret)).code == 201
        role = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "rules": []}
        role["metadata"] = {"name": "hidden", "annotations": {"a": MARK}}
        assert (await send(served, "root", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)).code == 201
        opened = config_map("open")
        assert (await send(served, "root", "POST", "/api/v1/namespaces/default/configmaps", opened)).code == 201
        await grant(served, rule("get list watch", "configmaps"), namespace="default")
        yield served


async def exchanged(app: ServedApp, method: str, target: str, user: str, headers: tuple[str, ...] = ()) -> bytes:
    """The answer to a request that is sent as it is. What a watch sends within its time belongs to it."""
    host, _, port = app.url.removeprefix("http://").rstrip("/").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    named = (f"X-User: {user}",) if user else ()
    body = json.dumps(config_map("hidden") | {"data": {"a": "changed"}})
    lines = (
        f"{method} {target} HTTP/1.1",
        f"Host: {host}:{port}",
        "Connection: close",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
        *named,
        *headers,
    )
    writer.write("\r\n".join((*lines, "", body)).encode())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except (TimeoutError, ConnectionError):
        return b""
    finally:
        writer.close()


def requests() -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """(user, method, target, headers): each form with each method, and each set of headers with each target."""
    for user in USERS:
        for target in TARGETS:
            for form in FORMS.values():
                methods = METHODS if (user, target) == ("dev", TARGETS[0]) else ("GET", "DELETE")
                yield from ((user, method, form(target), ()) for method in methods)
            yield from (
                (user, method, target, given) for given in HEADERS.values() for method in ("GET", "POST", "PUT")
            )


@pytest.mark.slow
async def test_no_spelling_of_a_request_is_a_way_around(app: ServedApp) -> None:
    store = app.app.backend.reader.store
    before, found, codes = store.revision, [], dict[bytes, int]()
    limit = asyncio.Semaphore(16)

    async def attempt(user: str, method: str, target: str, headers: tuple[str, ...]) -> None:
        async with limit:
            answer = await exchanged(app, method, target, user, headers)
        code = answer[9:12]
        codes[code] = codes.get(code, 0) + 1
        if MARK.encode() in answer:
            found.append((user, method, target, headers, answer[:300]))

    await asyncio.gather(*(attempt(*request) for request in requests()))
    assert found == []
    assert store.revision == before
    assert codes[b"403"] > 1000
    assert b"500" not in codes


async def test_the_same_requests_of_an_administrator_find_it(app: ServedApp) -> None:
    """So the mark is where the test above looks for it."""
    for target in TARGETS:
        reply: Any = await send(app, "root", "GET", target)
        assert MARK in reply.text


async def test_a_continue_token_of_all_namespaces_is_no_way_into_them(app: ServedApp) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    page = json.loads((await send(app, "root", "GET", "/api/v1/configmaps?limit=1")).text)
    token = page["metadata"]["continue"]
    reply = await send(app, "dev", "GET", f"{path}?limit=500&continue={token}")
    assert MARK not in reply.text


async def test_a_resource_with_the_plural_namespaces(app: ServedApp) -> None:
    """The path of a namespace is that of its object of the same name, which is all that its watch may show."""
    names = {"plural": "namespaces", "singular": "namespace", "kind": "Space", "listKind": "SpaceList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    crd["metadata"] = {"name": "namespaces.example.com"}
    crd["spec"] = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    path = "/apis/example.com/v1"
    created = await send(app, "root", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert created.code == 201
    space = {"apiVersion": "example.com/v1", "kind": "Space", "metadata": {"name": "default"}}
    for namespace, mark in (("default", "open"), ("other", MARK)):
        made = await send(app, "root", "POST", f"{path}/namespaces/{namespace}/namespaces", space | {"mark": mark})
        assert made.code == 201
    await grant(app, rule("get list watch", "namespaces", "example.com"), namespace="default", to="robot")
    watched = await exchanged(app, "GET", f"{path}/watch/namespaces/default?timeoutSeconds=1", "robot")
    assert b'"open"' in watched
    assert MARK.encode() not in watched
