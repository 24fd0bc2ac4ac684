"""The health checks of a server: their names, and when each fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from noxu.control_plane import running
from noxu.controllers.controller import Reconciler
from noxu.observability.health import POST_START_HOOKS, Check, Checks, alive, checks_of
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.http.scrapes import serving


async def broken() -> str:
    return "disk full"


def controllers() -> list[Reconciler[object]]:
    return assemble(MemoryStore(), controllers=["*"]).all_controllers


def checks(storage: Check = alive, log: Check = alive, *, stopping: bool = False) -> Checks:
    return checks_of(storage, log, controllers(), lambda: stopping)


async def failing(found: Checks, endpoint: str) -> dict[str, str]:
    reasons = {name: await check() for name, check in found.of(endpoint).items()}
    return {name: reason for name, reason in reasons.items() if reason}


async def test_the_names() -> None:
    found = checks()
    names = list(found.of("readyz"))
    assert list(found.of("livez")) == list(found.of("healthz"))
    assert names[:5] == ["ping", "log", "etcd", "storage", "poststarthook/start-apiextensions-informers"]
    assert names[-1] == "shutdown"
    assert {"poststarthook/crd-informer-synced", "poststarthook/bootstrap-controller"} <= set(found.live)
    assert "poststarthook/rbac/bootstrap-roles" not in names  # without RBAC
    own = {"etcd-readiness", "informer-sync", "watch-cache", "garbage-collector-controller", "namespace-controller"}
    assert own <= set(found.ready)
    assert set(found.ready) & set(found.live) == set()


# what is wrong, the checks that fail at /livez, those that fail at /readyz besides
FAULTS = [
    ("the storage", {"storage": broken}, {"etcd", "storage"}, {"etcd-readiness"}),
    ("the watch cache", {"log": broken}, set(), {"watch-cache"}),
    ("the server stops", {"stopping": True}, set(), {"shutdown"}),
]


@pytest.mark.parametrize(("parts", "live", "ready"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
async def test_what_fails(parts: dict[str, Any], live: set[str], ready: set[str]) -> None:
    plane = assemble(MemoryStore())
    async with running(plane):
        given: dict[str, Any] = {"storage": alive, "log": alive, "stopping": False} | parts
        found = checks_of(
            given["storage"],
            given["log"],
            plane.all_controllers,
            lambda: bool(given["stopping"]),  # type: ignore[arg-type]
        )
        assert set(await failing(found, "livez")) == live
        assert set(await failing(found, "readyz")) == live | ready


async def test_a_controller_that_does_not_follow_its_objects_is_named() -> None:
    found = checks_of(alive, alive, controllers(), lambda: False)
    reasons = await failing(found, "readyz")
    assert reasons["informer-sync"].startswith(
        f"{len(controllers())} informers not started yet: [crd-establishing-controller "
    )
    assert reasons["poststarthook/crd-informer-synced"] == "not finished"


async def test_a_hook_that_has_finished_does_not_fail_again() -> None:
    plane = assemble(MemoryStore())
    async with running(plane):
        found = checks_of(alive, alive, plane.all_controllers, lambda: False)
        assert await failing(found, "readyz") == {}
        plane.cache.reset(plane.store.revision)  # nothing is followed until the next turn of the loop
        reasons = await failing(found, "readyz")
        assert "informer-sync" in reasons
        assert not [name for name in reasons if name.startswith("poststarthook/")]
        assert await failing(found, "livez") == {}


async def test_the_hooks_are_unique_and_their_controllers_exist() -> None:
    names = [hook for hook, _ in POST_START_HOOKS]
    assert len(set(names)) == len(names)
    sources = "".join(
        path.read_text() for path in Path(checks_of.__code__.co_filename).parents[1].glob("controllers/*.py")
    )
    for _, controller in POST_START_HOOKS:
        assert f'name = "{controller}"' in sources


# path, code, text
ANSWERS = [
    ("/readyz", 200, "ok"),
    ("/readyz/etcd", 200, "ok"),
    ("/livez/poststarthook/crd-informer-synced", 200, "ok"),
    ("/livez?exclude=etcd&verbose", 200, r"\[\+\]ping ok\n\[\+\]log ok\n\[\+\]etcd excluded: ok\n.*\nlivez check passed\n"),
    ("/livez?exclude=none&verbose=false", 200,
     r'.*\nwarn: some health checks cannot be excluded: no matches for "none"\nlivez check passed\n'),
    ("/livez/informer-sync", 404, r'\{\n  "paths": \[.*'),
    ("/readyz/none", 404, r'\{\n  "paths": \[.*'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "code", "text"), ANSWERS)
async def test_the_answer_of(path: str, code: int, text: str) -> None:
    async with serving() as client:
        found, content_type, body = await client.send("GET", path)
    assert found == code
    assert re.fullmatch(text, body, re.DOTALL), body
    assert content_type == ("application/json" if code == 404 else "text/plain; charset=utf-8")
