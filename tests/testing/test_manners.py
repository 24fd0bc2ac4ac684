"""`noxu.report()`, `noxu.rbac()`: what real requests of clients look like in a report, and in roles that allow them."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import ApiError, Noxu
from noxu.control.manners import asking
from noxu.control.manners.observed import has_written
from noxu.http import recent_requests
from noxu.testing.handle import MakeNoxu
from tests.testing.widgets import DEFINITION, widget

pytestmark = pytest.mark.noxu(DEFINITION)
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


class Client:
    """A client with one connection. The answer is its status."""

    def __init__(self, noxu: Noxu, agent: str = "operator/v1 (linux)") -> None:
        self._connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        self._agent = agent

    def send(self, method: str, path: str, value: Any = None, content: str = "application/json") -> int:
        body = None if value is None else json.dumps(value)
        self._connection.request(method, path, body, {"Content-Type": content, "User-Agent": self._agent})
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def patch(self, path: str, **spec: Any) -> int:
        return self.send("PATCH", path, spec, MERGE)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def operator(noxu: Noxu) -> Any:
    client = Client(noxu)
    yield client
    client.close()


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def test_a_polite_client(noxu: Noxu, operator: Client) -> None:
    assert operator.send("POST", WIDGETS, widget("a")) == 201
    assert operator.patch(f"{WIDGETS}/a", metadata={"labels": {"a": "b"}}) == 200
    report = noxu.report()
    report.assert_polite()
    assert str(report).startswith("2 requests of 1 client, no bad manners\n\noperator/v1: 2 requests\n")
    assert report.habits == {}
    assert repr(report) == "<report of 2 requests: no bad manners>"


def test_the_requests_of_the_test_itself_do_not_count(noxu: Noxu) -> None:
    noxu.create(config_map())
    for _ in range(20):
        noxu.patch("configmaps", "a", {"data": {}})
        noxu.get("configmaps", "a")
    assert noxu.report().value["clients"] == []


def test_writes_that_change_nothing(noxu: Noxu, operator: Client) -> None:
    noxu.create(config_map(size="1"))
    before = noxu.get("configmaps", "a")
    for _ in range(7):
        operator.patch(f"{MAPS}/a", data={"size": "1"})
    operator.send("PUT", f"{MAPS}/a", before)
    operator.send("PUT", f"{MAPS}/a?dryRun=All", before)
    operator.patch(f"{MAPS}/a", data={"size": "2"})
    assert noxu.report().habits == {"no_op_writes": 8}
    with pytest.raises(
        AssertionError, match=r"(?s)clients have bad manners:\n- operator/v1: 8 × write that .* PATCH /api/v1/"
    ):
        noxu.report().assert_polite()
    noxu.report().assert_polite(no_op_writes=8)


def test_a_hot_loop_and_what_ends_it(noxu: Noxu, operator: Client) -> None:
    noxu.create(config_map(size="1"))
    for n in range(20):
        operator.patch(f"{MAPS}/a", metadata={"annotations": {"n": str(n)}})
        if n == 9:
            noxu.patch("configmaps", "a", {"data": {"size": "2"}})
    assert noxu.report().habits == {}
    operator.patch(f"{MAPS}/a", metadata={"annotations": {"n": "x"}})
    assert noxu.report().habits == {"hot_loops": 1}


def test_an_object_that_is_made_anew_is_another_one(noxu: Noxu, operator: Client) -> None:
    for _ in range(2):
        noxu.create(config_map(size="1"))
        for n in range(6):
            operator.patch(f"{MAPS}/a", metadata={"annotations": {"n": str(n)}})
        noxu.delete("configmaps", "a")
    assert noxu.report().habits == {}


def test_a_fight(noxu: Noxu, operator: Client) -> None:
    noxu.create(config_map(size="1"))
    rival = Client(noxu, "rival/v2")
    for n in range(4):
        (rival if n % 2 else operator).patch(f"{MAPS}/a", data={"size": str(n + 2)})
    rival.close()
    [one, other] = noxu.report().value["clients"]
    assert [one["habits"][0]["habit"], other["habits"][0]["habit"]] == ["fights", "fights"]
    assert (
        one["habits"][0]["seen"][0]["note"] == "configmaps default/a: operator and rival set data.size in turn, 4 times"
    )


def test_a_lost_update(noxu: Noxu, operator: Client) -> None:
    noxu.create(config_map(size="1"))
    operator.send("GET", f"{MAPS}/a")
    rival = Client(noxu, "rival/v2")
    rival.patch(f"{MAPS}/a", data={"size": "2"})
    rival.close()
    operator.send("PUT", f"{MAPS}/a", config_map(size="1"))
    assert noxu.report().habits == {"lost_updates": 1}


def test_requests(noxu: Noxu, operator: Client) -> None:
    with noxu.fault(verbs=["list"], resource="widgets", error={"code": 429, "retryAfter": 5}, times=1):
        assert [operator.send("GET", WIDGETS) for _ in range(2)] == [429, 200]
    operator.send("POST", WIDGETS, {**widget("a"), "sepc": {}})
    assert noxu.report().habits == {"early_retries": 1, "unknown_fields": 1}


def test_what_is_recorded_of_requests(noxu: Noxu, operator: Client) -> None:
    noxu.create(config_map())
    for request in (
        ("GET", f"{MAPS}?fieldSelector=metadata.name%3Da"),
        ("PUT", f"{MAPS}/a?dryRun=All", config_map()),
        ("POST", MAPS, config_map()),
        ("GET", "/api/v1/namespaces/default/events/x"),
    ):
        operator.send(*request)
    listed, put, post, get = noxu.requests(by_handle=False)
    assert (listed.named, listed.version, listed.objects) == ("a", "v1", 0)  # so few are not counted
    assert (put.dry_run, put.is_unconditional, put.named) == (True, True, "a")
    assert (post.named, post.name, post.is_unconditional) == ("", "a", False)
    assert (get.code, has_written(get), has_written(put)) == (404, False, False)
    assert listed.at <= put.at <= post.at <= get.at


def test_a_large_list(noxu: Noxu, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_requests, "FEW", 2)
    monkeypatch.setattr(asking, "LARGE", 2)
    for name in ("a", "b"):
        noxu.create({**config_map(), "metadata": {"name": name, "namespace": "kube-system"}})
    noxu.create(config_map())
    operator.send("GET", "/api/v1/namespaces/kube-public/configmaps")
    operator.send("GET", "/api/v1/namespaces/kube-system/configmaps?limit=500")
    operator.send("GET", "/api/v1/configmaps?resourceVersion=0")
    assert noxu.report().habits == {}
    operator.send("GET", "/api/v1/configmaps")
    assert noxu.report().habits == {"unlimited_lists": 1}
    assert [request.objects for request in noxu.requests("configmaps")] == [
        len(noxu.list("configmaps", namespace="kube-public")),
        len(noxu.list("configmaps", namespace="kube-system")),
        *[len(noxu.list("configmaps"))] * 2,
    ]


def test_selected_clients_and_times(noxu: Noxu, operator: Client) -> None:
    operator.send("GET", WIDGETS)
    assert noxu.report(client="operator/v1").value["requests"] == 1
    assert noxu.report(client="kubectl").value["requests"] == 0
    assert noxu.report(since="1h").value["requests"] == 1
    assert noxu.report(since="2100-01-01T00:00:00Z").value["requests"] == 0
    with pytest.raises(ApiError, match="since: 'yesterday' is no duration such as 5m"):
        noxu.report(since="yesterday")


def test_without_history(make_noxu: MakeNoxu) -> None:
    server = make_noxu(history="off")
    operator = Client(server)
    for _ in range(2):
        operator.send("POST", MAPS, config_map())
    for _ in range(20):
        operator.patch(f"{MAPS}/a", data={})
    operator.close()
    report = server.report()
    assert report.value["notes"] == ["what was written is not known: the server runs with --history off"]
    report.assert_polite()


async def test_in_a_coroutine(noxu: Noxu) -> None:
    (await noxu.report()).assert_polite()


def test_a_page(noxu: Noxu) -> None:
    assert noxu.report().to_html().startswith("<!doctype html>")


# -- the least roles ---------------------------------------------------------------------------------------------------


def test_a_user_with_the_roles_may_do_the_same_and_nothing_else(
    noxu: Noxu, operator: Client, make_noxu: MakeNoxu
) -> None:
    operator.send("POST", MAPS, config_map())
    operator.send("GET", f"{MAPS}/a")
    operator.send("GET", "/api/v1/configmaps")
    operator.send("GET", "/apis")
    roles = noxu.rbac(client="operator", bind="jane")
    assert [(role["kind"], role["metadata"]["name"]) for role in roles] == [
        ("ClusterRole", "operator"),
        ("ClusterRoleBinding", "operator"),
        ("Role", "operator"),
        ("RoleBinding", "operator"),
    ]
    guarded = make_noxu(authorization_modes=["RBAC"])
    for role in roles:
        guarded.apply(role)
    jane = guarded.user("jane")
    jane.create(config_map())
    jane.get("configmaps", "a", namespace="default")
    jane.list("configmaps")
    for refused in (
        lambda: jane.get("configmaps", "b", namespace="default"),
        lambda: jane.delete("configmaps", "a", namespace="default"),
        lambda: jane.list("secrets"),
    ):
        with pytest.raises(ApiError) as error:
            refused()
        assert error.value.code == 403


def test_what_roles_are_made_of(noxu: Noxu, operator: Client) -> None:
    assert noxu.rbac() == []
    noxu.get("namespaces", "default")
    assert noxu.rbac() == []  # the test itself asked
    operator.send("GET", f"{MAPS}/a")
    [role] = noxu.rbac(name="mine", any_name=True)
    assert role == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "mine", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    }
    assert noxu.rbac(user="jane") == noxu.rbac(client="kubectl") == noxu.rbac(since="2100-01-01T00:00:00Z") == []
    assert len(noxu.rbac(user="system:anonymous")) == 1
    with pytest.raises(ApiError, match="name: 'a/b'"):
        noxu.rbac(name="a/b")


async def test_roles_in_a_coroutine(noxu: Noxu) -> None:
    assert await noxu.rbac() == []


# -- over HTTP ---------------------------------------------------------------------------------------------------------


def test_over_http(noxu: Noxu, operator: Client) -> None:
    operator.send("GET", WIDGETS)
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    connection.request("GET", "/_noxu/report?client=operator")
    answer = json.loads(connection.getresponse().read())
    assert [client["userAgent"] for client in answer["clients"]] == ["operator/v1 (linux)"]
    connection.request("GET", "/_noxu/report?output=html")
    page = connection.getresponse()
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.read().startswith(b"<!doctype html>")
    connection.request("GET", "/_noxu/report?output=pdf")
    refused = connection.getresponse()
    assert refused.status == 400
    refused.read()
    connection.close()
