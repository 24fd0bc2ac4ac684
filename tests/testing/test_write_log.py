"""`noxu.log()`: who wrote what, and why, in tests and in coroutines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noxu import ApiError
from noxu.testing.errors import UnknownKind
from noxu.testing.handle import MakeNoxu, Noxu


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_what_was_written(noxu: Noxu) -> None:
    created = noxu.create(config_map("a", k="1"))
    noxu.user("jane").patch("configmaps", "a", {"data": {"k": "2"}})
    first, second = noxu.log("configmaps", "a")
    assert (first.verb, first.event, first.changed, first.why) == ("create", "ADDED", [], [])
    assert (second.verb, second.user, second.changed) == ("patch", "jane", ["data.k"])
    assert (second.resource, second.namespace, second.name) == ("configmaps", "default", "a")
    assert first.time is not None
    assert second.time is not None
    assert first.time <= second.time
    assert noxu.log(created, since=first.revision) == [second]


def test_why_it_was_written(noxu: Noxu) -> None:
    """A client that reads an object and then writes another: the handle itself."""
    noxu.create(config_map("cause"))
    shown = noxu.get("configmaps", "cause")
    noxu.create(config_map("effect"))
    [write] = noxu.log("configmaps", "effect", why=True)
    [cause] = [cause for cause in write.why if cause.how == "get"]
    assert (cause.name, cause.resource) == ("cause", "configmaps")
    assert cause.revision == int(shown["metadata"]["resourceVersion"])


def test_why_it_was_written_of_a_watch(noxu: Noxu) -> None:
    """The handle watches, and writes when it has seen what another user has written."""
    jane = noxu.user("jane")
    with noxu.watch("configmaps", namespace="default", labels="role=cause") as events:
        jane.create(config_map("other"))
        caused = jane.create({**config_map("cause"), "metadata": {"name": "cause", "labels": {"role": "cause"}}})
        while next(events).object["metadata"]["name"] != "cause":
            pass
        noxu.create(config_map("effect"))
        jane.patch("configmaps", "cause", {"data": {"k": "later"}})
    [write] = noxu.log("configmaps", "effect", why=True)
    watched = [cause for cause in write.why if cause.how == "watch"]
    assert [(cause.name, cause.event) for cause in watched] == [("cause", "ADDED")]
    assert watched[0].revision == int(caused["metadata"]["resourceVersion"])


async def test_in_a_coroutine(noxu: Noxu) -> None:
    await noxu.create(config_map("a"))
    [write] = await noxu.log("configmaps", "a")
    assert write.verb == "create"


def test_what_is_refused(noxu: Noxu) -> None:
    with pytest.raises(UnknownKind, match="did you mean configmaps"):
        noxu.log("configmapz")
    with pytest.raises(ApiError, match="since: 'soon' is no revision"):
        noxu.log(since="soon")
    with pytest.raises(ApiError, match="limit: 0 is not between 1 and 5000"):
        noxu.log(limit=0)


def test_a_restart_keeps_who_wrote_before(noxu: Noxu) -> None:
    noxu.create(config_map("a"))
    before = noxu.log("configmaps", "a")
    noxu.stop()
    noxu.start()
    assert noxu.log("configmaps", "a") == before


def test_another_server_knows_who_wrote_what_is_in_its_file(make_noxu: MakeNoxu, tmp_path: Path) -> None:
    first = make_noxu(data=tmp_path / "data")
    first.create(config_map("a"))
    before = first.log("configmaps", "a")
    first.stop()
    assert make_noxu(data=tmp_path / "data").log("configmaps", "a") == before
