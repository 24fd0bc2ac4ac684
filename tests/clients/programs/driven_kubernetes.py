"""Does what a test says, through the official Python client. The commands are those of `informer/driven/main.go`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import kubernetes
from kubernetes.client import ApiException, V1ConfigMap, V1ObjectMeta
from kubernetes.informer import SharedInformer
from urllib3.exceptions import HTTPError, MaxRetryError, ReadTimeoutError

MOST_TRIES: Final = 5
KINDS: Final = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}

followers: dict[str, tuple[SharedInformer, list[str]]] = {}


def api() -> Any:
    """The API, through connections of its own: informers and writes do not share them."""
    client = kubernetes.client.ApiClient()
    client.user_agent = "driven/kubernetes"
    return kubernetes.client.CoreV1Api(client)


def create(namespace: str, name: str, seconds: str = "") -> str:
    body = V1ConfigMap(metadata=V1ObjectMeta(name=name), data={"n": "1"})
    more = {"_request_timeout": float(seconds)} if seconds else {}
    return outcome(lambda: api().create_namespaced_config_map(namespace, body, **more))


def ensure(namespace: str, name: str) -> list[str]:
    return repeat(lambda: create(namespace, name))


def generate(namespace: str, prefix: str) -> list[str]:
    body = V1ConfigMap(metadata=V1ObjectMeta(generate_name=prefix), data={"n": "1"})
    return repeat(lambda: outcome(lambda: api().create_namespaced_config_map(namespace, body)))


def increase(namespace: str, name: str) -> list[str]:
    def update() -> None:
        found = api().read_namespaced_config_map(name, namespace)
        found.data["n"] = str(int(found.data["n"]) + 1)
        api().replace_namespaced_config_map(name, namespace, found)

    return repeat(lambda: outcome(update))


def repeat(request: Callable[[], str]) -> list[str]:
    outcomes: list[str] = []
    while len(outcomes) < MOST_TRIES and not {"done", "AlreadyExists"} & {*outcomes}:
        outcomes.append(request())
    return outcomes


def outcome(request: Callable[[], Any]) -> str:
    try:
        request()
    except ApiException as error:
        return str(json.loads(error.body)["reason"])
    except HTTPError as error:
        cause = error.reason if isinstance(error, MaxRetryError) else error
        return "timed out" if isinstance(cause, ReadTimeoutError) else "lost"
    return "done"


def follow(namespace: str) -> str:
    events: list[str] = []
    informer = SharedInformer(api().list_namespaced_config_map, namespace=namespace)
    for kind, name in KINDS.items():
        informer.add_event_handler(
            kind, lambda value, name=name: "n" in value.data and events.append(f"{name} {shown(value)}")
        )
    informer.start()
    followers[namespace] = informer, events
    return "done"


def seen(namespace: str) -> dict[str, Any]:
    informer, events = followers[namespace]
    store = [shown(value) for value in informer.cache.list() if "n" in value.data]
    return {"store": sorted(store), "events": list(events)}


def shown(value: V1ConfigMap) -> str:
    return f"{value.metadata.name} {value.data['n']}"


COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each for each in (create, ensure, generate, increase, follow, seen)
}

if __name__ == "__main__":
    kubernetes.config.load_kube_config(sys.argv[1])
    for line in sys.stdin:
        command, *words = line.split()
        sys.stdout.write(json.dumps(COMMANDS[command](*words)) + "\n")
        sys.stdout.flush()
