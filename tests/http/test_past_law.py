"""The law of time travel: what a client sees at a revision of the past is what a client saw then, byte for byte.

A random history creates, changes and deletes definitions and their objects, and restores snapshots. After each step all answers to `QUESTIONS` are
recorded with the revision of the store. Time passes before each step, so ages in tables grow. At the end every question is asked again at every recorded revision.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests import definitions
from tests.clocks import ManualClock

GROUP: Final = "past.example.com"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION: Final = f"{DEFINITIONS}/widgets.{GROUP}"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
JSON: Final = "application/json"
NAMES: Final = "abc"
STEPS: Final = 30
Answers = dict[tuple[str, str], tuple[int, str]]


def _version(name: str, *, storage: bool, **properties: Object) -> Object:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, **properties}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}},
    }


NOTE: Final = {"note": {"type": "string"}}
STATUS: Final = {"subresources": {"status": {}}}
COLUMNS: Final = {"additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}
RED: Final = {"color": {"type": "string", "default": "red"}}
BLUE: Final = {"color": {"type": "string", "default": "blue"}}
FORMS: Final[list[list[Object]]] = [
    [_version("v1", storage=True, **NOTE)],
    [_version("v1", storage=True, **NOTE, **RED)],
    [_version("v1", storage=True, **BLUE) | COLUMNS],
    [_version("v1", storage=True, **NOTE), _version("v2", storage=False, **RED) | COLUMNS],
    [_version("v1", storage=False, **RED) | STATUS, _version("v2", storage=True, **NOTE)],
]
"""The versions of a definition, which prune, default and show differently."""

RESOURCES: Final = [f"/apis/{GROUP}/{version}" for version in ("v1", "v2")]
QUESTIONS: Final = [
    ("/api", AGGREGATED), ("/apis", AGGREGATED), ("/apis", JSON), (f"/apis/{GROUP}", JSON), (DEFINITION, JSON),
    (DEFINITIONS, TABLE), ("/api/v1/namespaces", TABLE), ("/api/v1/namespaces/default/configmaps", JSON),
    ("/openapi/v3", JSON),
    *((resource, JSON) for resource in RESOURCES),
    *((f"{resource}/{path}", accept) for resource in RESOURCES for path, accept in (
        ("widgets", JSON), ("widgets", TABLE), ("widgets", METADATA), ("widgets?limit=1", JSON),
        ("namespaces/default/widgets", JSON), ("namespaces/default/widgets?labelSelector=even%3Dtrue&limit=1", JSON),
        ("namespaces/default/widgets?fieldSelector=metadata.name%3Da", JSON),
        ("widgets?resourceVersion=0&limit=1", JSON),
        ("namespaces/default/widgets/a", JSON), ("namespaces/default/widgets/a", TABLE),
        ("namespaces/default/widgets/b/status", JSON),
    )),
]  # fmt: skip


class History:
    """One server, its random history, and what was recorded of it."""

    def __init__(self, noxu: Noxu, seed: int) -> None:
        self.noxu = noxu
        self.random = random.Random(seed)
        self.client = Client(noxu.url)
        self.recorded: dict[int, Answers] = {}
        self._earlier = 0  # the revision when time has passed last

    def ask(self, method: str, path: str, body: Any = None, accept: str = JSON, **headers: str) -> tuple[int, str]:
        sent = None if body is None else json.dumps(body).encode()
        code, _, text = self.client.exchange(method, path, sent, {"Accept": accept, **headers})
        return code, text.decode()

    @property
    def revision(self) -> int:
        return int(json.loads(self.ask("GET", "/api/v1/nodes")[1])["metadata"]["resourceVersion"])

    # -- steps

    def wait(self, clock: ManualClock) -> None:
        """Let time pass. What a definition's deletion has written just before, unseen, was written at another time."""
        clock.jump(self.random.randrange(100))
        self._earlier = self.revision

    def step(self) -> None:
        steps: list[Callable[[], object]] = [self.write, self.write, self.write, self.change_status, self.delete]
        self.random.choice([*steps, self.define, self.annotate, self.withdraw, self.snapshot, self.restore])()

    def define(self) -> None:
        """Create the definition, or change its versions."""
        code, text = self.ask("GET", DEFINITION)
        wanted = definitions.widgets(*self.random.choice(FORMS), group=GROUP)
        if code == 404:
            self.ask("POST", DEFINITIONS, wanted)
            return
        definition = json.loads(text)
        stored = definition["status"]["storedVersions"]
        if set(stored) <= {version["name"] for version in wanted["spec"]["versions"]}:
            definition["spec"]["versions"] = wanted["spec"]["versions"]
            self.ask("PUT", DEFINITION, definition)

    def annotate(self) -> None:
        """Change the definition, but not what it serves."""
        patch = {"metadata": {"annotations": {"step": str(self.random.random())}}}
        self.ask("PATCH", DEFINITION, patch, **{"Content-Type": "application/merge-patch+json"})

    def withdraw(self) -> None:
        if self.random.random() < 0.3:
            self.ask("DELETE", DEFINITION)

    def snapshot(self) -> None:
        """Take a snapshot."""
        self.ask("POST", "/_noxu/snapshots", {})

    def restore(self) -> None:
        """Go back to any snapshot: a new revision, which the past has, too."""
        snapshots = json.loads(self.ask("GET", "/_noxu/snapshots")[1])["items"]
        if snapshots:
            name = self.random.choice(snapshots)["name"]
            assert self.ask("POST", f"/_noxu/snapshots/{name}/restore")[0] == 200

    @property
    def widgets(self) -> str:
        return f"/apis/{GROUP}/{self.random.choice(('v1', 'v2'))}/namespaces/default/widgets"

    def write(self) -> None:
        size, widgets, name = self.random.randrange(9), self.widgets, self.random.choice(NAMES)
        labels = {"even": "true"} if size % 2 == 0 else {}
        widget = {"apiVersion": widgets.split("/apis/")[1].rsplit("/", 3)[0], "kind": "Widget",
                  "metadata": {"name": name, "labels": labels}, "spec": {"size": size, "note": f"n{size}"}}  # fmt: skip
        code, _ = self.ask("POST", widgets, widget)
        if code == 409:
            patch = {"metadata": {"labels": {"even": labels.get("even")}}, "spec": widget["spec"]}
            self.ask("PATCH", f"{widgets}/{name}", patch, **{"Content-Type": "application/merge-patch+json"})

    def change_status(self) -> None:
        patch = {"status": {}}
        where = f"{self.widgets}/{self.random.choice(NAMES)}/status"
        self.ask("PATCH", where, patch, **{"Content-Type": "application/merge-patch+json"})

    def delete(self) -> None:
        self.ask("DELETE", f"{self.widgets}/{self.random.choice(NAMES)}")

    # -- answers

    def settle(self) -> None:
        """Wait until what follows from definitions has followed: a client may see a revision just before it."""

        async def settled() -> None:
            for follower in self.noxu._server.plane.writer.environment.followers.values():
                await follower.caught_up()

        asyncio.run_coroutine_threadsafe(settled(), self.noxu._loop).result()

    def record(self) -> None:
        """The answers of now, of one revision: again if something was written meanwhile."""
        while True:
            before = self.revision
            self.settle()  # afterwards: else something may be written in between, and what follows from it be missing
            answers = self.answers("")
            self.settle()
            if self.revision == before:
                if before > self._earlier:  # else time has passed without a write
                    self.recorded[before] = answers
                return

    def answers(self, prefix: str) -> Answers:
        return {question: self.ask("GET", prefix + question[0], accept=question[1]) for question in QUESTIONS}


def in_order(value: Any) -> Any:
    """A discovery document with its resources in order: else it is that in which their definitions came."""
    if isinstance(value, dict):
        value = {name: in_order(item) for name, item in value.items()}
        if "resources" in value:
            value["resources"].sort(key=json.dumps)
    return [in_order(item) for item in value] if isinstance(value, list) else value


def check(history: History) -> None:
    for revision, recorded in history.recorded.items():
        shown = history.answers(f"/_noxu/at/{revision}")
        for question, (code, text) in recorded.items():
            then = shown[question]
            if text.startswith("{") and "/v" not in question[0]:
                assert (code, in_order(json.loads(text))) == (then[0], in_order(json.loads(then[1]))), (
                    revision,
                    question,
                )
            else:
                assert (code, text) == then, (revision, question)


def converted(widget: Object, api_version: str) -> Object:
    """A conversion that leaves a trace."""
    annotations = {"from": widget["apiVersion"], **widget["metadata"].get("annotations", {})}
    return {**widget, "apiVersion": api_version, "metadata": {**widget["metadata"], "annotations": annotations}}


HISTORIES: Final = [
    *((seed, STEPS) for seed in (1, 2)),
    *(pytest.param(seed, STEPS, marks=pytest.mark.slow) for seed in range(3, 9)),
    *(pytest.param(seed, 5 * STEPS, marks=pytest.mark.slow) for seed in (9, 10)),
]


@pytest.mark.parametrize(("seed", "number"), HISTORIES)
def test_the_past_is_what_was_seen_then(seed: int, number: int, tmp_path: Path) -> None:
    """Odd seeds have SQLite, and even ones a function that converts."""
    clock = ManualClock()
    with Noxu(clock=clock, controllers=(), data=tmp_path / "data" if seed % 2 else None) as noxu:
        if seed % 2 == 0:
            noxu.converting(f"widgets.{GROUP}", later=True)(converted)
        history = History(noxu, seed)
        with history.client:
            history.define()
            for _ in range(number):
                history.record()
                history.wait(clock)
                history.step()
            history.record()
            assert len(history.recorded) > 5, "many steps write nothing, as without a definition"
            check(history)
