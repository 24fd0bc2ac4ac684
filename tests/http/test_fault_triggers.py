"""Rules that wait for a state of an object; restarts; objects that change by themselves."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import ApiError, Noxu
from noxu.values import Object
from tests.timing import eventually

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def read(server: Noxu, name: str) -> dict[str, str]:
    data: dict[str, str] = server.get("configmap", name, namespace="default")["data"]
    return data


def test_a_rule_is_on_from_its_trigger_on(noxu: Noxu) -> None:
    trigger = {"created": "configmaps", "name": "b"}
    with noxu.fault(verbs=["create"], resource="configmaps", error="Conflict", times=1, trigger=trigger) as fault:
        noxu.create(config_map("a"))
        assert fault.hits == 0
        noxu.create(config_map("b"))
        with pytest.raises(ApiError, match="Operation cannot be fulfilled"):
            noxu.create(config_map("c"))
        noxu.create(config_map("c"))


def test_a_trigger_of_a_field_and_its_nth_time(noxu: Noxu) -> None:
    noxu.create(config_map("a", n="0"))
    trigger = {"updated": "cm", "changed": {"data.n": {"to": "x"}}, "nth": 2}
    with noxu.fault(verbs=["get"], resource="configmaps", error=500, trigger=trigger):
        for n in ("x", "1", "y", "x"):
            assert read(noxu, "a")
            noxu.apply(config_map("a", n=n))
        with pytest.raises(ApiError):
            read(noxu, "a")


def test_a_trigger_waits_in_object_time(noxu: Noxu) -> None:
    noxu.clock.freeze()
    with noxu.fault(verbs=["get"], error=500, resource="cm", trigger={"created": "cm", "after": "5s"}):
        noxu.create(config_map("a", n="1"))
        noxu.clock.advance("4s")
        assert read(noxu, "a") == {"n": "1"}
        noxu.clock.advance("1s")
        with pytest.raises(ApiError):
            read(noxu, "a")


def test_a_view_begins_with_its_trigger(noxu: Noxu) -> None:
    noxu.create(config_map("a", n="1"))
    with noxu.fault(resource="cm", view="freeze", trigger={"updated": "cm"}):
        noxu.apply(config_map("a", n="2"))
        noxu.apply(config_map("a", n="3"))
        [seen] = [value for value in noxu.list("configmaps", namespace="default") if value["metadata"]["name"] == "a"]
        assert seen["data"] == {"n": "2"}


def test_an_object_changes_by_itself(noxu: Noxu) -> None:
    noxu.create(config_map("other", n="1"))
    here: Any = {"patch": {"data": {"n": "broken"}}}
    there: Any = {"resource": "cm", "namespace": "default", "name": "other", "patch": {"data": None}}
    with (
        noxu.fault(mutate=here, trigger={"created": "cm"}),
        noxu.fault(mutate=there, trigger={"deleted": "cm"}) as fault,
    ):
        noxu.create(config_map("a", n="1"))
        eventually(lambda: read(noxu, "a") == {"n": "broken"})
        noxu.delete("configmap", "a", namespace="default")
        eventually(lambda: fault.hits)
        assert "data" not in noxu.get("configmap", "other", namespace="default")
        assert fault.fired[0]["request"] == {
            "verb": "patch", "resource": "configmaps", "namespace": "default", "name": "other", "user": "noxu:fault",
        }  # fmt: skip


def test_a_server_restarts(noxu: Noxu) -> None:
    noxu.clock.freeze()
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
    connection.request("GET", f"{MAPS}?watch=1&resourceVersion=1")
    watch = connection.getresponse()
    with noxu.fault(restart="2s", from_="1s"):
        noxu.list("configmaps")
        noxu.clock.advance("1s")
        lines = watch.read().splitlines()  # the stream has ended
        assert [json.loads(line)["type"] for line in lines] == ["ADDED"]
        asking = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        asking.request("GET", MAPS)
        with pytest.raises(ConnectionError):
            asking.getresponse()
        asking.close()
        noxu.clock.advance("2s")
        noxu.list("configmaps")
    connection.close()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"error": 500, "trigger": {"created": "widget"}}, "rules[0].trigger.created: no kind 'widget' is served"),
        ({"mutate": {"patch": {}, "resource": "widget", "name": "a"}, "trigger": {"created": "cm"}}, "rules[0].mutate.resource: no kind"),
    ],
)  # fmt: skip
def test_a_trigger_that_can_never_fire_is_refused(noxu: Noxu, rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as error, noxu.fault(**rule):
        pass
    assert message in error.value.message


def test_a_rule_that_waits_says_so(noxu: Noxu) -> None:
    with noxu.fault(rule_name="r", error=500, trigger={"created": "cm"}):
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        connection.request("GET", "/_noxu/faults")
        [rule] = json.loads(connection.getresponse().read())["rules"]
        connection.close()
    assert rule == {
        "name": "r", "error": 500, "trigger": {"created": "cm"}, "waits": True, "matched": 0, "hit": 0,
    }  # fmt: skip
