"""What faults do to requests: the answers, the connections, and what is stored after them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import ApiError, Noxu
from noxu.values import Object
from tests.timing import eventually

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Reply:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.value = status, headers, json.loads(body or b"null")


def ask(server: Noxu, method: str, path: str, value: Any = None) -> Reply:
    """One request of a client, on a connection of its own. Raises ConnectionError, as the client sees it."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"Content-Type": "application/json", "User-Agent": "operator/1"})
        answer = connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def names(server: Noxu) -> list[str]:
    listed = server.list("configmaps", namespace="default")
    return [value["metadata"]["name"] for value in listed if value["metadata"]["name"] != "kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("error", "status", "reason", "message"),
    [
        ("Conflict", 409, "Conflict", 'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again'),
        ("NotFound", 404, "NotFound", 'configmaps "a" not found'),
        (500, 500, "InternalError", "Internal error occurred: a fault was injected"),
        (504, 504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
        ({"code": 503, "message": "the {verb} of {resource}"}, 503, "ServiceUnavailable", "the UPDATE of configmaps"),
    ],
)  # fmt: skip
def test_an_error_is_a_status_and_nothing_happens(
    noxu: Noxu, error: Any, status: int, reason: str, message: str
) -> None:
    noxu.create(config_map("a", x="1"), namespace="default")
    with noxu.fault(resource="configmaps", verbs=["update"], error=error) as fault:
        reply = ask(noxu, "PUT", f"{MAPS}/a", config_map("a", x="2"))
    assert (reply.status, reply.value["reason"], reply.value["message"]) == (status, reason, message)
    assert reply.value["details"] == {"name": "a", "kind": "configmaps"}
    assert noxu.get("configmap", "a", namespace="default")["data"] == {"x": "1"}
    assert fault.hits == 1


def test_too_many_requests_say_when_to_come_again(noxu: Noxu) -> None:
    with noxu.fault(error={"code": 429, "retryAfter": 7}):
        reply = ask(noxu, "GET", MAPS)
    assert (reply.status, reply.headers["Retry-After"], reply.value["details"]["retryAfterSeconds"]) == (429, "7", 7)


@pytest.mark.parametrize(("when", "stored"), [("before", []), ("after", ["a"])])
def test_a_connection_breaks_before_or_after_the_commit(noxu: Noxu, when: str, stored: list[str]) -> None:
    with noxu.fault(verbs=["create"], resource="configmaps", reset=when, times=1), pytest.raises(ConnectionError):
        ask(noxu, "POST", MAPS, config_map("a"))
    assert names(noxu) == stored
    assert ask(noxu, "POST", MAPS, config_map("a")).status == (409 if stored else 201)


def test_after_the_commit_only_requests_count_that_have_changed_something(noxu: Noxu) -> None:
    """A second delete finds nothing, and an update may change nothing."""
    noxu.create(config_map("a"), namespace="default")
    with noxu.fault(resource="configmaps", verbs=["update"], nth=2, reset="after"):
        for size in ("1", "1", "1"):
            assert ask(noxu, "PUT", f"{MAPS}/a", config_map("a", size=size)).status == 200
        with pytest.raises(ConnectionError):
            ask(noxu, "PUT", f"{MAPS}/a", config_map("a", size="2"))
    with noxu.fault(resource="configmaps", verbs=["delete"], nth=2, reset="after") as fault:
        assert [ask(noxu, "DELETE", f"{MAPS}/a").status for _ in range(3)] == [200, 404, 404]
        noxu.create(config_map("a"), namespace="default")
        with pytest.raises(ConnectionError):
            ask(noxu, "DELETE", f"{MAPS}/a")
    assert (names(noxu), fault.hits) == ([], 1)


@pytest.mark.parametrize(
    ("fault", "stored"),
    [("unavailable", []), ("unknown", ["a"])],
)
def test_the_store_fails(noxu: Noxu, fault: str, stored: list[str]) -> None:
    with noxu.fault(verbs=["create"], resource="configmaps", store=fault, times=1):
        assert ask(noxu, "POST", MAPS, config_map("a")).status == 500
        assert ask(noxu, "POST", MAPS, config_map("b")).status == 201
    assert names(noxu) == [*stored, "b"]


def test_a_store_fault_is_that_of_one_request_of_a_connection(noxu: Noxu) -> None:
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    statuses = []
    with noxu.fault(verbs=["create"], store="unavailable", nth=2):
        for name in "abc":
            connection.request("POST", MAPS, json.dumps(config_map(name)), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    connection.close()
    assert statuses == [201, 500, 201]


def test_a_delay_is_before_the_request(noxu: Noxu) -> None:
    with noxu.fault(delay="10ms..20ms", error=None, times=1) as fault:
        assert ask(noxu, "GET", MAPS).status == 200
    assert fault.hits == 1


def test_a_request_hangs_until_the_fault_is_cleared(noxu: Noxu) -> None:
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    with noxu.fault(hang=True) as fault:
        connection.request("GET", MAPS)
        eventually(lambda: fault.hits)
    with pytest.raises(ConnectionError):
        connection.getresponse()
    assert ask(noxu, "GET", MAPS).status == 200


def test_a_request_hangs_no_longer_although_other_faults_are_on(noxu: Noxu) -> None:
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    with noxu.fault(verbs=["create"], error=500):
        with noxu.fault(verbs=["list"], hang=True) as fault:
            connection.request("GET", MAPS)
            eventually(lambda: fault.hits)
        with pytest.raises(ConnectionError):
            connection.getresponse()


def test_a_server_with_a_request_that_hangs_stops(noxu: Noxu) -> None:
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    with noxu.fault(hang=True) as fault:
        connection.request("GET", MAPS)
        eventually(lambda: fault.hits)
        noxu.stop()
    with pytest.raises(ConnectionError):
        connection.getresponse()


def test_only_requests_that_match_are_hit(noxu: Noxu) -> None:
    with noxu.fault(user_agent="operator/*", verbs=["read"], error=500) as fault:
        assert ask(noxu, "GET", MAPS).status == 500
        assert names(noxu) == []  # the handle is another client
        assert ask(noxu, "POST", MAPS, config_map("a")).status == 201
        assert ask(noxu, "GET", "/version").status == 200
        assert ask(noxu, "GET", "/_noxu/faults").value["fired"] == 1
    assert fault.fired[0]["request"]["agent"] == "operator/1"


def test_who_may_not_ask_does_not_meet_a_fault(make_noxu: Any) -> None:
    server = make_noxu(authorization_modes=["RBAC"], users=["jane"])
    with server.fault(error=500) as fault:
        with pytest.raises(ApiError) as refused:
            server.users["jane"].list("configmaps", namespace="default")
        assert (refused.value.code, fault.hits) == (403, 0)


# -- the calls --------------------------------------------------------------------------------------------------------


def test_a_plan_over_http(noxu: Noxu) -> None:
    rule = {"name": "r", "match": {"resource": "cm", "verbs": ["get"]}, "error": "NotFound"}
    plan = ask(noxu, "PUT", "/_noxu/faults", {"seed": 7, "rules": [rule]})
    assert (plan.status, plan.value) == (200, {"seed": 7, "rules": [{**rule, "matched": 0, "hit": 0}], "fired": 0})
    assert ask(noxu, "GET", f"{MAPS}/kube-root-ca.crt").status == 404
    added = ask(noxu, "POST", "/_noxu/faults", {"rules": [{"delay": "1ms"}]})
    assert (added.status, added.value) == (201, {"rules": [{"name": "delay", "delay": "1ms"}]})
    fired = ask(noxu, "GET", "/_noxu/faults/fired").value
    assert (fired["total"], fired["fired"][0]["rule"], fired["fired"][0]["request"]["name"]) == (
        1,
        "r",
        "kube-root-ca.crt",
    )
    assert [value["name"] for value in ask(noxu, "DELETE", "/_noxu/faults/r").value["rules"]] == ["delay"]
    assert ask(noxu, "DELETE", "/_noxu/faults").value["rules"] == []
    assert ask(noxu, "GET", f"{MAPS}/kube-root-ca.crt").status == 200


@pytest.mark.parametrize(
    ("method", "path", "value", "status", "message"),
    [
        ("POST", "", {"rules": [{"match": {"resource": "widget"}, "error": 500}]}, 422, "rules[0].match.resource: no kind 'widget' is served"),
        ("POST", "", {"rules": [{"hang": True}, {"eror": 1}]}, 422, "rules[1].eror: there is no such field; did you mean error?"),
        ("PUT", "", {"seed": "x", "rules": []}, 422, 'seed: expected an integer, not "x"'),
        ("PUT", "", {}, 422, "rules: it is required"),
        ("DELETE", "/r", None, 404, 'there is no fault "r"; there are keep'),
    ],
)  # fmt: skip
def test_a_change_that_is_refused_changes_nothing(
    noxu: Noxu, method: str, path: str, value: Any, status: int, message: str
) -> None:
    with noxu.fault(rule_name="keep", delay="1ms"):
        reply = ask(noxu, method, f"/_noxu/faults{path}", value)
        assert reply.status == status
        assert message in reply.value["message"]
        assert [rule["name"] for rule in ask(noxu, "GET", "/_noxu/faults").value["rules"]] == ["keep"]


def test_a_verbose_report_says_that_faults_are_on(noxu: Noxu) -> None:
    def report() -> str:
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        connection.request("GET", "/readyz?verbose")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    with noxu.fault(rule_name="slow", delay="1ms"):
        assert "warn: faults are on: slow; `noxu fault clear` clears them\nreadyz check passed" in report()
    assert "faults" not in report()


async def test_in_a_coroutine(noxu: Noxu) -> None:
    async with noxu.fault(verbs=["create"], error=503) as fault:
        with pytest.raises(ApiError, match="currently unable"):
            await noxu.create(config_map("a"), namespace="default")
    assert fault.hits == 1
    assert (await noxu.fired())[0]["rule"] == "error"
    await noxu.create(config_map("a"), namespace="default")


def test_a_plan_of_a_file(noxu: Noxu, tmp_path: Any) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("seed: 3\npresets: [conflicts]\nrules:\n- {match: {verbs: create}, error: 500}\n")
    with noxu.faults(file) as plan:
        assert ask(noxu, "POST", MAPS, config_map("a")).status == 500
        assert plan.hits == 1
        value = ask(noxu, "GET", "/_noxu/faults").value
        assert (value["seed"], [rule["name"] for rule in value["rules"]]) == (3, ["conflicts", "error"])
    with pytest.raises(ApiError, match='there is no preset "conflict", only'):
        noxu.faults({"presets": ["conflict"]})


def test_a_context_counts_its_own_hits_only(noxu: Noxu) -> None:
    for _ in range(2):
        with noxu.fault(resource="configmaps", verbs=["create"], error="Conflict") as fault:
            assert ask(noxu, "POST", MAPS, config_map("a")).status == 409
        assert fault.hits == 1
