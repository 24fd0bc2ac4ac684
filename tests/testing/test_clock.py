"""`noxu.clock`: the object time of a server, from a test and from a coroutine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from noxu import ApiError, Noxu
from noxu.values import Object

NEW_YEAR = datetime(2099, 1, 1, tzinfo=UTC)


def event(name: str) -> Object:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved}


def test_an_event_is_gone_after_an_hour(noxu: Noxu) -> None:
    noxu.clock.freeze()
    noxu.create(event("a"))
    noxu.clock.advance("59m")
    assert [value["metadata"]["name"] for value in noxu.list("events")] == ["a"]
    assert noxu.clock.advance(minutes=1).woken == 1
    assert noxu.list("events") == []


async def test_in_a_coroutine_it_is_awaited(noxu: Noxu) -> None:
    frozen = await noxu.clock.freeze(NEW_YEAR)
    assert (frozen.mode, frozen.now) == ("frozen", NEW_YEAR)
    moved = await noxu.clock.advance(timedelta(days=1))
    assert moved.now == datetime(2099, 1, 2, tzinfo=UTC)
    created: Any = await noxu.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    )
    assert created["metadata"]["creationTimestamp"] == "2099-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda clock: clock.freeze("2001-01-01T00:00:00Z"), "cannot be set back"),
        (lambda clock: clock.advance("-1h"), "object time never goes back"),
        (lambda clock: clock.advance(), "write how far"),
        (lambda clock: clock.set_speed(0), "speed 0 is not between"),
    ],
)
def test_what_is_refused(noxu: Noxu, call: Any, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        call(noxu.clock)


def test_a_restarted_server_keeps_its_time(noxu: Noxu) -> None:
    noxu.clock.freeze(NEW_YEAR)
    noxu.stop()
    noxu.start()
    assert noxu.clock.state()[:2] == ("frozen", NEW_YEAR)
    noxu.clock.set_speed(60)
    assert noxu.clock.state().mode == "speed"


def test_what_was_written_before_an_advance_has_its_effects_first() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    }
    spec = {"minReadySeconds": 300, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with Noxu(nodes=1) as noxu:
        noxu.clock.freeze()
        noxu.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
        noxu.clock.advance("5m")  # no pod exists yet when it is called
        assert noxu.get("deployment", "web")["status"]["availableReplicas"] == 1
