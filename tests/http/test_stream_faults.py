"""What faults do to watches: lost, repeated and late events, streams that end, views that are held at a revision."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import Noxu
from noxu.values import Object

MAPS = "/api/v1/namespaces/default/configmaps"
OPERATOR = "operator/1"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


class Watcher:
    """A client with one watch."""

    def __init__(self, server: Noxu, query: str = "", agent: str = OPERATOR) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        self._connection.request("GET", f"{MAPS}?watch=1&{query}", headers={"User-Agent": agent})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200

    def next(self) -> Object | None:
        """The next event; None: the stream has ended."""
        line = self._answer.readline()
        event: Object | None = json.loads(line) if line else None
        return event

    def take(self, number: int) -> list[str]:
        return [shown(self.next()) for _ in range(number)]

    def rest(self) -> list[str]:
        """The events until the end of the stream."""
        return [shown(event) for event in iter(self.next, None)]

    def close(self) -> None:
        self._connection.close()


def shown(event: Object | None) -> str:
    """An event in short: `ADDED a 1`."""
    if event is None:
        return "END"
    value = event["object"]
    if event["type"] == "ERROR":
        return f"ERROR {value['code']}"
    return " ".join(filter(None, (event["type"], value["metadata"].get("name"), (value.get("data") or {}).get("n"))))


def listed(server: Noxu, agent: str = OPERATOR, query: str = "") -> tuple[int, dict[str, str]]:
    """(The resourceVersion, `n` of each object) of a list."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request("GET", f"{MAPS}?{query}", headers={"User-Agent": agent})
    value = json.loads(connection.getresponse().read())
    connection.close()
    items = {item["metadata"]["name"]: item["data"]["n"] for item in value["items"] if "n" in item["data"]}
    return int(value["metadata"]["resourceVersion"]), items


def write(server: Noxu, *changes: str) -> None:
    """`a1` writes 1 to the object a, `a-` deletes it."""
    for change in changes:
        name, n = change[0], change[1:]
        if n == "-":
            server.delete("configmap", name, namespace="default")
        else:
            server.apply(config_map(name, n=n))


@contextmanager
def watching(server: Noxu, query: str = "", agent: str = OPERATOR) -> Iterator[Watcher]:
    """A watch from now on."""
    revision, _ = listed(server, agent)
    with closing(Watcher(server, f"resourceVersion={revision}&{query}", agent)) as watcher:
        yield watcher


@pytest.mark.parametrize(
    ("fault", "events"),
    [
        ({"watch": "drop", "breaks_contract": True}, ["ADDED a 1", "ADDED c 3"]),
        ({"watch": "duplicate"}, ["ADDED a 1", "ADDED b 2", "ADDED b 2", "ADDED c 3"]),
        ({"watch": {"late": "5ms..10ms"}}, ["ADDED a 1", "ADDED b 2", "ADDED c 3"]),
        ({"watch": "close"}, ["ADDED a 1", "END"]),
        ({"watch": "expire"}, ["ADDED a 1", "ERROR 410", "END"]),
    ],
)
@pytest.mark.parametrize("chosen", [{"nth": 2}, {"name": "b"}])
def test_an_event_is_hit(noxu: Noxu, fault: dict[str, Any], events: Sequence[str], chosen: dict[str, Any]) -> None:
    with (
        noxu.fault(resource="configmaps", user_agent="operator/*", **fault, **chosen) as hit,
        watching(noxu) as watcher,
    ):
        write(noxu, "a1", "b2", "c3")
        assert watcher.take(len(events)) == list(events)
        assert [value["request"]["name"] for value in hit.fired] == ["b"]


def test_an_open_watch_and_only_that_of_the_client_is_hit(noxu: Noxu) -> None:
    with watching(noxu) as operator, watching(noxu, agent="other/1") as other:
        write(noxu, "a1")
        assert operator.take(1) == other.take(1) == ["ADDED a 1"]
        with noxu.fault(resource="configmaps", user_agent=OPERATOR, watch="drop", breaks_contract=True):
            write(noxu, "b1")
            assert other.take(1) == ["ADDED b 1"]
            write(noxu, "b2")
            assert other.take(1) == ["MODIFIED b 2"]
        write(noxu, "c1")
        assert operator.take(1) == other.take(1) == ["ADDED c 1"]


@pytest.mark.slow
def test_a_silent_watch_has_no_bookmarks(noxu: Noxu) -> None:
    query = "allowWatchBookmarks=true&timeoutSeconds=3"
    with watching(noxu, query) as usual:
        assert usual.rest() == ["BOOKMARK"]
    with noxu.fault(resource="configmaps", watch="silent"), watching(noxu, query) as silent:
        assert silent.rest() == []


# -- views ------------------------------------------------------------------------------------------------------------


def test_a_frozen_client_sees_the_past_and_others_the_present(noxu: Noxu) -> None:
    write(noxu, "a1")
    with watching(noxu) as before:
        with noxu.fault(resource="configmaps", user_agent="operator/*", view="freeze"):
            frozen, items = listed(noxu)
            write(noxu, "a2", "b1", "a3")
            assert listed(noxu) == (frozen, items)
            assert items == {"a": "1"}
            assert listed(noxu, "other/1")[1] == {"a": "3", "b": "1"}
            with closing(Watcher(noxu, f"resourceVersion={frozen}&timeoutSeconds=1")) as again:
                assert again.rest() == []  # after a restart of the client, too
            with closing(Watcher(noxu, "timeoutSeconds=1")) as fresh:
                assert [event for event in fresh.rest() if event != "ADDED kube-root-ca.crt"] == ["ADDED a 1"]
        assert before.take(3) == ["MODIFIED a 2", "ADDED b 1", "MODIFIED a 3"]
        write(noxu, "c1")
        assert before.take(1) == ["ADDED c 1"]


def test_a_held_client_lists_again_and_never_sees_the_states_between(noxu: Noxu) -> None:
    write(noxu, "a1")
    with watching(noxu) as held, watching(noxu) as unaffected:
        with noxu.fault(resource="configmaps", user_agent="operator/*", view="hold"):
            write(noxu, "a2", "a3")
        assert held.rest() == ["ERROR 410"]
        assert listed(noxu)[1] == {"a": "3"}
        assert unaffected.rest() == ["ERROR 410"]


def test_a_held_client_that_has_missed_nothing_goes_on(noxu: Noxu) -> None:
    with watching(noxu) as held:
        with noxu.fault(resource="configmaps", user_agent="operator/*", view="hold"):
            pass
        write(noxu, "a1")
        assert held.take(1) == ["ADDED a 1"]


def test_a_view_ends_at_its_time(noxu: Noxu) -> None:
    noxu.clock.freeze()
    with watching(noxu) as watcher, noxu.fault(resource="configmaps", view="freeze", until="30s"):
        write(noxu, "a1")
        assert listed(noxu)[1] == {}
        noxu.clock.advance("31s")
        assert watcher.take(1) == ["ADDED a 1"]
        assert listed(noxu)[1] == {"a": "1"}


def test_what_a_frozen_client_has_listed_is_a_cause_of_what_it_writes(noxu: Noxu) -> None:
    write(noxu, "a1")
    with noxu.fault(resource="configmaps", user_agent="operator/*", view="freeze"):
        frozen, _ = listed(noxu)
        write(noxu, "a2")
        listed(noxu)
        sent = json.dumps({"metadata": {"name": "made"}})
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        with closing(connection):
            connection.request("POST", MAPS, sent, {"Content-Type": "application/json", "User-Agent": "operator/1"})
            assert connection.getresponse().status == 201
    [made] = noxu.log("configmap", "made", why=True)
    assert [(cause.how, cause.resource, cause.revision) for cause in made.why] == [("list", "configmaps", int(frozen))]


@pytest.mark.parametrize("seed", range(3))
def test_the_events_of_a_released_client_are_those_of_one_that_was_never_frozen(noxu: Noxu, seed: int) -> None:
    chance = random.Random(seed)
    exists: set[str] = set()

    def changes(number: int) -> None:
        for n in range(number):
            name = chance.choice("abcde")
            if name in exists and chance.random() < 0.4:
                exists.remove(name)
                write(noxu, f"{name}-")
            else:
                exists.add(name)
                noxu.apply(config_map(name, n=f"{chance.random()}-{n}"))

    with watching(noxu) as frozen, watching(noxu, agent="other/1") as other:
        for _ in range(5):
            changes(chance.randrange(10))
            with noxu.fault(resource="configmaps", user_agent="operator/*", view="freeze"):
                shown_then = listed(noxu)
                changes(chance.randrange(20))
                assert listed(noxu) == shown_then
        write(noxu, "z1")
        events = [list(iter(lambda watcher=watcher: shown(watcher.next()), "ADDED z 1")) for watcher in (frozen, other)]
    assert events[0] == events[1] != []


# -- reads from the past ----------------------------------------------------------------------------------------------


def test_reads_that_accept_any_age_are_stale(noxu: Noxu) -> None:
    write(noxu, "a1", "a2")
    with noxu.fault(resource="configmaps", user_agent="operator/*", stale={"revisions": 1}):
        assert listed(noxu, query="resourceVersion=0")[1] == {"a": "1"}
        assert listed(noxu)[1] == {"a": "2"}
        assert listed(noxu, "other/1", "resourceVersion=0")[1] == {"a": "2"}
    with noxu.fault(resource="configmaps", user_agent="operator/*", stale={"revisions": 1, "all": True}):
        assert listed(noxu)[1] == {"a": "1"}


def test_a_watch_that_is_hit_ends_with_the_server(noxu: Noxu) -> None:
    with noxu.fault(resource="configmaps", view="freeze"), watching(noxu) as watcher:
        write(noxu, "a1")
        noxu.stop()
        assert watcher.rest() == []


# -- views of some objects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["freeze", "hold"])
def test_one_object_is_frozen_and_the_others_are_not(noxu: Noxu, view: str) -> None:
    write(noxu, "a1", "b1")
    with watching(noxu) as watcher:
        with noxu.fault(resource="configmaps", user_agent="operator/*", name="a", view=view):
            write(noxu, "a2", "b2", "a-", "c1")
            assert watcher.take(2) == ["MODIFIED b 2", "ADDED c 1"]
            assert listed(noxu)[1] == {"a": "1", "b": "2", "c": "1"}
            assert listed(noxu, "other/1")[1] == {"b": "2", "c": "1"}
            assert listed(noxu, query="limit=1")[1] == {"a": "1"}
            with closing(Watcher(noxu, "timeoutSeconds=1")) as fresh:
                seen = [event for event in fresh.rest() if event != "ADDED kube-root-ca.crt"]
                assert seen == ["ADDED a 1", "ADDED b 2", "ADDED c 1"]
        assert watcher.rest() == ["ERROR 410"]  # it lists again, and learns that a is gone
        assert listed(noxu)[1] == {"b": "2", "c": "1"}


def test_a_client_that_has_missed_nothing_of_an_object_goes_on(noxu: Noxu) -> None:
    with watching(noxu) as watcher:
        with noxu.fault(resource="configmaps", user_agent="operator/*", name="a", view="freeze"):
            write(noxu, "b1")
        write(noxu, "a1")
        assert watcher.take(2) == ["ADDED b 1", "ADDED a 1"]


def test_what_has_happened_to_an_object_before_its_view_is_shown(noxu: Noxu) -> None:
    write(noxu, "a1")
    version, _ = listed(noxu)
    write(noxu, "a2")
    with noxu.fault(resource="configmaps", user_agent="operator/*", name="a", view="hold"):
        write(noxu, "a3")
        with closing(Watcher(noxu, f"resourceVersion={version}&timeoutSeconds=1")) as behind:
            assert behind.rest() == ["MODIFIED a 2"]


def test_another_rule_changes_nothing_about_a_view(noxu: Noxu) -> None:
    with watching(noxu) as held, watching(noxu, agent="other/1") as partial:
        with (
            noxu.fault(resource="configmaps", user_agent="operator/*", view="hold"),
            noxu.fault(resource="configmaps", user_agent="other/*", name="a", view="freeze"),
        ):
            write(noxu, "a1", "b1")
            assert partial.take(1) == ["ADDED b 1"]
            with noxu.fault(resource="secrets", error=500):
                write(noxu, "b2")
            assert partial.take(1) == ["MODIFIED b 2"]
        assert held.rest() == partial.rest() == ["ERROR 410"]


def test_the_objects_of_a_namespace_are_frozen(noxu: Noxu) -> None:
    noxu.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    write(noxu, "a1")
    everywhere = "/api/v1/configmaps"
    with noxu.fault(resource="configmaps", user_agent="operator/*", namespace="default", view="freeze"):
        write(noxu, "a2")
        noxu.apply({**config_map("a", n="7"), "metadata": {"name": "a", "namespace": "shop"}})
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        connection.request("GET", everywhere, headers={"User-Agent": OPERATOR})
        items = json.loads(connection.getresponse().read())["items"]
        connection.close()
        values = {
            f"{item['metadata']['namespace']}/{item['metadata']['name']}": item["data"].get("n") for item in items
        }
        assert (values["default/a"], values["shop/a"]) == ("1", "7")
        assert listed(noxu)[1] == {"a": "1"}


def test_a_held_client_that_asks_again_from_before_has_to_list(noxu: Noxu) -> None:
    version, _ = listed(noxu)
    with noxu.fault(resource="configmaps", user_agent="operator/*", view="hold"):
        write(noxu, "a1", "a2")
    for agent, status in ((OPERATOR, 410), ("other/1", 200)):
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        connection.request(
            "GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1", headers={"User-Agent": agent}
        )
        answer = connection.getresponse()
        assert answer.status == status
        connection.close()
    with watching(noxu) as watcher:
        write(noxu, "a3")
        assert watcher.take(1) == ["MODIFIED a 3"]
