"""Does what a test says, by operators that are written with kopf: each of them is for one namespace.

`follow` and `seen` are those of `informer/driven/main.go`. `copy` starts an operator that copies the number of each ConfigMap
into an annotation; `copied` is the numbers that it was called with. `ended` is whether an operator has ended, by itself.

Where kopf waits a second or more, before it sends a request again or goes on after an error, it waits 50 ms here.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Final

import kopf

SHORT: Final = 0.05  # seconds
TRIES: Final = 3  # kopf's own number is larger
KINDS: Final = {None: "add", "ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}
"""The types of events; objects of a list have none."""

loop: Final = asyncio.new_event_loop()
events: Final[dict[str, list[str]]] = {}
stores: Final[dict[str, Mapping[str, Any]]] = {}
calls: Final[dict[str, list[str]]] = {}
starting: Final[dict[str, Coroutine[Any, Any, None]]] = {}
operators: Final[dict[str, Future[None]]] = {}


def follow(namespace: str) -> str:
    registry, told = operator(namespace), events.setdefault(namespace, [])

    @kopf.index("configmaps", registry=registry, id="store", field="data.n")
    async def index(body: kopf.Body, **_: Any) -> str:
        return shown(body)

    @kopf.on.event("configmaps", registry=registry, field="data.n")
    async def tell(type: str | None, body: kopf.Body, store: Any, **_: Any) -> None:  # noqa: A002 - kopf's name
        stores[namespace] = store
        told.append(f"{KINDS[type]} {shown(body)}")

    return "done"


def seen(namespace: str) -> dict[str, list[str]]:
    store = stores.get(namespace, {})
    return {"store": sorted(value for values in store.values() for value in values), "events": [*events[namespace]]}


def copy(namespace: str) -> str:
    registry, called = operator(namespace), calls.setdefault(namespace, [])

    @kopf.on.create("configmaps", registry=registry, field="data.n")
    @kopf.on.update("configmaps", registry=registry, field="data.n")
    async def annotate(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
        called.append(body["data"]["n"])
        patch.metadata.annotations["example.com/copied"] = body["data"]["n"]

    return "done"


def copied(namespace: str) -> list[str]:
    return [*calls[namespace]]


def ended(namespace: str) -> bool:
    return operators[namespace].done()


def operator(namespace: str) -> kopf.OperatorRegistry:
    """The registry of an operator that starts when this command has ended, so that its handlers can be added."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.networking.error_backoffs = [SHORT] * (TRIES - 1)
        settings.queueing.error_delays = [SHORT]
        settings.watching.reconnect_backoff = SHORT
        settings.posting.enabled = False  # no events: they would be writes, too

    starting[namespace] = kopf.operator(registry=registry, namespace=namespace, standalone=True)
    return registry


def shown(body: Mapping[str, Any]) -> str:
    return f"{body['metadata']['name']} {body['data']['n']}"


COMMANDS: Final = {each.__name__: each for each in (follow, seen, copy, copied, ended)}

if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for line in sys.stdin:
        command, *words = line.split()
        answer = COMMANDS[command](*words)
        while starting:
            namespace, coroutine = starting.popitem()
            operators[namespace] = asyncio.run_coroutine_threadsafe(coroutine, loop)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
