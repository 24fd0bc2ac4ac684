"""Lets objects enter their stages, each when its time has come: pods that are bound, nodes, and objects of any other kind.

A change of an object decides again which stage is next. As long as it is the same one, its time stays. A stage that changes nothing
is entered again only after a change by another writer. Kinds that are not served yet are followed as soon as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.controllers.controller import ControllerParts, Reconciler, controller
from noxu.registry import kind_names
from noxu.registry.draft import (
    NO_BODY,
    NO_DELETE_OPTIONS,
    Action,
    Body,
    DeleteOptions,
    Options,
    Preconditions,
    WriteRequest,
)
from noxu.registry.resource import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Resource
from noxu.registry.stored_object import object_at
from noxu.values import Object
from noxu.workloads import writes
from noxu.workloads.kubelet.addresses import host_addresses
from noxu.workloads.kubelet.kubelet import Kubelet
from noxu.workloads.nodes import is_lost
from noxu.workloads.objects import NODES, PODS
from noxu.workloads.stages import template_functions
from noxu.workloads.stages.reading import Stages
from noxu.workloads.stages.stage import (
    Stage,
    StageDelete,
    StageEvent,
    StageFinalizers,
    StagePatch,
    StageTarget,
    due,
)
from noxu.workloads.stages.templates import Function, TemplateError
from noxu.workloads.writes import NamespacedName
from noxu_storage.types import Event, Key, Revision

MANAGER: Final = "noxu-stages"
MOST_AT_ONCE: Final = 100
"""How many stages an object may enter while no time passes: more are a loop, which goes on after a second."""
_STRATEGIC: Final = (StageTarget("", "Pod"), StageTarget("", "Node"))
_MEDIA_TYPES: Final = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH}

log = logging.getLogger("noxu")


class _Progress(NamedTuple):
    """How far an object is. `entered`: how many stages, and `at_once` of them while no time passed, which was at `last`.

    `next` is the stage that it waits for, until `at`. `done_at`: the resourceVersion at which a stage has changed nothing.
    """

    uid: str
    entered: int = 0
    at_once: int = 0
    last: datetime | None = None
    next: str = ""
    at: datetime | None = None
    done_at: str = ""


class StageController(Reconciler[Key]):
    """Keys are those of the objects of the kinds that stages are about."""

    name = "stages"

    def __init__(self, parts: ControllerParts, kubelet: Kubelet, stages: Stages) -> None:
        super().__init__(parts, "the objects of stages")
        self._kubelet, self._stages = kubelet, stages.stages
        self._by_collection: dict[str, tuple[Resource, list[Stage]]] = {}
        self._progress: dict[Key, _Progress] = {}
        self._began = parts.clock.now()
        self.user = controller("kubelet")
        self.served_resources.followers.append(self._served)

    # -- following

    def _served(self) -> None:
        """Other kinds are served."""
        if self._is_started and self._resolved().keys() != self._by_collection.keys():
            self.end()

    def _resolved(self) -> dict[str, tuple[Resource, list[Stage]]]:
        """What is served of the kinds of the stages, by collection."""
        found: dict[str, tuple[Resource, list[Stage]]] = {}
        served = self.served_resources.current
        for stage in self._stages:
            try:
                resource = kind_names.find(served, f"{stage.target.name}.{stage.target.group}")
            except LookupError:
                continue
            found.setdefault(resource.collection, (resource, []))[1].append(stage)
        return found

    async def stop(self) -> None:
        self.reader.cache.watchers.pop(self, None)
        await super().stop()

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        for event in events:
            if event.key.collection in self._by_collection:
                self.queue.add(event.key)

    async def _synchronise(self) -> None:
        await self._kubelet.informer.observed()
        self.reader.cache.watchers[self] = None
        self._by_collection = self._resolved()
        for resource, _ in self._by_collection.values():
            for key in list((await self.reader.collection(resource)).keys):
                self.queue.add(key)
        self._set_synchronised()

    def _take_over(self, idle: Self) -> None:
        self._by_collection, self._progress = self._resolved(), dict(idle._progress)
        self.reader.cache.watchers[self] = None

    # -- reconciling

    async def reconcile(self, key: Key) -> float | None:
        resource, stages = self._by_collection.get(key.collection, (None, ()))
        if resource is None:
            return None
        try:
            entry = await self.reader.get(resource, key.partition[:-1], key.name)
            value = object_at(entry, resource)
            if key.collection == _collection(PODS) and not self._has_kubelet(value):
                return None
            return await self._go_on(key, value, resource, stages)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            self._progress.pop(key, None)
            return None

    def _has_kubelet(self, pod: Object) -> bool:
        node = self._kubelet.objects.get(NODES, NamespacedName("", pod["spec"].get("nodeName") or ""))
        return node is not None and bool(host_addresses(node)) and not is_lost(node)

    async def _go_on(self, key: Key, value: Object, resource: Resource, stages: Sequence[Stage]) -> float | None:
        """Enter the next stage if it is time."""
        metadata, now = value["metadata"], self.clock.now()
        before = self._progress.get(key)
        progress = before if before is not None and before.uid == metadata["uid"] else _Progress(metadata["uid"])
        following = due(stages, value, now, progress.entered)
        if following is None or progress.done_at == metadata["resourceVersion"]:
            self._progress[key] = progress._replace(next="", at=None)
            return None
        if progress.next != following.stage.name or progress.at is None:
            progress = progress._replace(
                next=following.stage.name, at=now + timedelta(seconds=following.seconds), done_at=""
            )
        assert progress.at is not None
        self._progress[key] = progress
        left = (progress.at - now).total_seconds()
        at_once = progress.at_once + 1 if progress.last == now else 0
        if left > 0:
            return left
        if at_once > MOST_AT_ONCE:
            log.warning("%s: %s enters stages without end: %s", self.name, metadata["name"], following.stage.name)
            self._progress[key] = progress._replace(at_once=0, last=None)
            return 1.0
        version = await self._enter(following.stage, value, resource)
        done_at = metadata["resourceVersion"] if version in ("", metadata["resourceVersion"]) else ""
        self._progress[key] = _Progress(metadata["uid"], progress.entered + 1, at_once, now, done_at=done_at)
        return None

    async def _enter(self, stage: Stage, value: Object, resource: Resource) -> str:
        """Do what a stage does; the resourceVersion of the object then, "" if nothing has written it."""
        functions = template_functions.at(self.clock.now(), self._began, self._places(value))
        version = ""
        for step in stage.steps:
            match step:
                case StageEvent(type_, reason, message):
                    about = {"apiVersion": resource.api_version, "kind": resource.kind, **value}
                    host = (value.get("spec") or {}).get("nodeName") or ""
                    await self._kubelet.carry_out([writes.NewEvent(about, type_, reason, message, host)])
                case StageFinalizers():
                    patch = {"metadata": {"finalizers": step.of(value["metadata"].get("finalizers") or ())}}
                    version = await self._patch(value, resource, patch, MERGE_PATCH, "")
                case StagePatch():
                    version = await self._render(stage, step, value, resource, functions) or version
                case StageDelete():
                    await self._delete(value, resource)
                    return "deleted"
        return version

    async def _render(
        self, stage: Stage, step: StagePatch, value: Object, resource: Resource, functions: Mapping[str, Function]
    ) -> str:
        try:
            patch = step.render(value, functions)
        except TemplateError as error:
            message = f"stage {stage.name}: {error}"
            about = {"apiVersion": resource.api_version, "kind": resource.kind, **value}
            await self._kubelet.carry_out([writes.NewEvent(about, writes.WARNING, "StageFailed", message)])
            return ""
        if step.type == "json":
            operations: list[Any] = patch if isinstance(patch, list) else []
            rooted = (
                [{**each, "path": f"/{step.root}{each['path']}"} for each in operations] if step.root else operations
            )
            return await self._patch(value, resource, rooted, JSON_PATCH, step.subresource)
        is_strategic = StageTarget(resource.group, resource.kind) in _STRATEGIC
        media_type = _MEDIA_TYPES[step.type or ("strategic" if is_strategic else "merge")]
        rooted_patch = {step.root: patch} if step.root else patch
        return await self._patch(value, resource, rooted_patch, media_type, step.subresource)

    def _places(self, value: Object) -> dict[str, Function]:
        """What templates know of addresses."""
        objects, lives = self._kubelet.objects, self._kubelet.lives

        def of_node(name: str) -> list[str]:
            node = objects.get(NODES, NamespacedName("", name))
            return host_addresses(node) if node is not None else []

        def of_pod(name: str, in_host_network: object = False, *_names: object) -> list[str]:
            node = objects.get(NODES, NamespacedName("", name))
            if node is None:
                return []
            given = (value.get("status") or {}).get("podIP")
            if in_host_network:
                return of_node(name)
            return [given or lives.addresses.give(value, node, objects)]

        own = (value.get("spec") or {}).get("nodeName") or value["metadata"]["name"]
        return {
            "NodeIP": lambda: next(iter(of_node(own)), ""),
            "NodeName": lambda: own,
            "NodePort": lambda: 10250,
            "PodIP": lambda: next(iter(of_pod(own)), ""),
            "NodeIPWith": lambda name: next(iter(of_node(name)), ""),
            "NodeIPsWith": of_node,
            "PodIPWith": lambda *arguments: next(iter(of_pod(*arguments)), ""),
            "PodIPsWith": of_pod,
        }

    # -- writing

    async def _patch(self, value: Object, resource: Resource, patch: object, media_type: str, subresource: str) -> str:
        """The resourceVersion then."""
        body = Body(codec.encode(patch, sort_keys=False), media_type)
        return await self._send(Action.PATCH, value, resource, subresource, body)

    async def _delete(self, value: Object, resource: Resource) -> None:
        options = DeleteOptions(preconditions=Preconditions(uid=value["metadata"]["uid"]), grace=0)
        await self._send(Action.DELETE, value, resource, delete_options=options)

    async def _send(
        self,
        action: Action,
        value: Object,
        resource: Resource,
        subresource: str = "",
        body: Body = NO_BODY,
        delete_options: DeleteOptions = NO_DELETE_OPTIONS,
    ) -> str:
        metadata, options = value["metadata"], Options(field_manager=MANAGER)
        written = await self.writer.write(
            WriteRequest(
                action,
                resource,
                metadata.get("namespace", ""),
                metadata["name"],
                subresource,
                body,
                options,
                delete_options,
                user=self.user,
            )
        )
        return "" if written.entry is None else str(written.entry.revision)


def _collection(kind: tuple[str, str]) -> str:
    return f"{kind[0]}/{kind[1]}"
