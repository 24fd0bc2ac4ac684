"""The engine of workload controllers: it runs their steps, and carries out what they want to be written.

A controller is a subclass with tables and two pure functions: `affected` says which keys a change concerns, `steps` what a
key requires (see writes.py). All of them share one informer. Writes take the way of a client's, as the controller's user and with
kube-controller-manager as field manager, so quotas, webhooks and policies apply to them. Those of one step are carried
out at the same time, and become one transaction.

A conflict means that the steps have looked at an older state: they begin again, with what the index contains then.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar, Final, Self, assert_never

from noxu.api.errors import ApiError
from noxu.config import Config
from noxu.controllers.controller import CONTROLLER_MANAGER, ControllerParts, Reconciler, controller
from noxu.registry.access import User
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
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object
from noxu.workloads.events import Recorder
from noxu.workloads.informer import Informer
from noxu.workloads.objects import BINDINGS, EVENTS, Objects, name_of
from noxu.workloads.scales import Scales
from noxu.workloads.writes import (
    Bind,
    Create,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    ReadScale,
    Replace,
    Result,
    Steps,
    Write,
    WriteScale,
)

log = logging.getLogger("noxu")

BINDING: Final = {"apiVersion": "v1", "kind": "Binding"}
MAX_CONFLICTS: Final = 20  # attempts in a row, before the engine waits for the next one as after any failure


class WorkloadController(Reconciler[NamespacedName]):
    """Keys are the names of objects of its kind, unless a controller says otherwise."""

    kind: ClassVar[Kind]
    """The kind that it controls."""
    looks_at: ClassVar[Sequence[Kind]] = ()
    """The other kinds whose objects it reads. It gets the changes of all of them."""
    account: ClassVar[str] = ""
    """The name of its service account, which upstream gives it; "": its own name."""
    component: ClassVar[str] = ""
    """The component that its Events name; "": the name of its account."""
    field_manager: ClassVar[str] = CONTROLLER_MANAGER

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, f"what {self.name} looks at")
        self.informer, self.objects = informer, informer.objects
        account = self.account or self.name
        self.user: User = controller(account)
        self._recorder = Recorder(self.component or account)
        self._scales = Scales(parts)
        self.config = config
        informer.listen(self, self.follows())

    @classmethod
    def follows(cls) -> Sequence[Kind]:
        """All kinds that it looks at."""
        return (cls.kind, *cls.looks_at)

    # -- what a controller defines

    @abstractmethod
    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        """What the newest state of a key requires. Pure, see writes.py."""

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        """The keys that a change concerns: `old` None: created, `new` None: deleted. Pure, and fast: the writer waits for it."""
        if kind == self.kind:
            yield name_of(new or old or {})

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        """All keys, at the start and whenever changes may have been missed."""
        return [name_of(value) for value in objects.all(self.kind)]

    # -- following

    def changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        for key in self.affected(self.objects, kind, old, new):
            self.queue.add(key)

    def reset(self) -> None:
        for key in self.keys(self.objects):
            self.queue.add(key)

    async def _synchronise(self) -> None:
        await self.informer.observed()
        self.reset()
        self._set_synchronised()

    def _take_over(self, idle: Self) -> None:
        """The informer has the objects, and this listens to it already."""

    # -- carrying out

    async def reconcile(self, key: NamespacedName) -> float | None:
        for _ in range(MAX_CONFLICTS):
            try:
                return await self._run_steps(key)
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
        return await self._run_steps(key)

    async def _run_steps(self, key: NamespacedName) -> float | None:
        steps = self.steps(self.objects, key, self.clock.now())
        results: Sequence[Result] | None = None
        try:
            while True:
                writes = next(steps) if results is None else steps.send(results)
                results = await self.carry_out(writes)
        except StopIteration as end:
            again_after: float | None = end.value
            return again_after
        finally:
            steps.close()

    async def carry_out(self, writes: Sequence[Write]) -> Sequence[Result]:
        """Do what is wanted, at the same time; an ApiError is a result."""
        if len(writes) == 1:
            return [await self._result(writes[0])]
        return await asyncio.gather(*map(self._result, writes))

    async def _result(self, write: Write) -> Result:
        try:
            return await self._write(write)
        except ApiError as error:
            return error

    async def _write(self, write: Write) -> Object | None:
        """Raises ApiError, StoreError."""
        match write:
            case Create(kind, value):
                return await self._store(
                    kind, Action.CREATE, NamespacedName(value["metadata"].get("namespace", ""), ""), value
                )
            case Replace(kind, value, subresource):
                return await self._store(kind, Action.REPLACE, name_of(value), value, subresource)
            case Delete(kind, value, grace, propagation):
                options = DeleteOptions(
                    propagation=propagation, preconditions=Preconditions(uid=value["metadata"]["uid"]), grace=grace
                )
                await self._send(kind, Action.DELETE, name_of(value), delete_options=options)
                return None
            case Bind(pod, node):
                await self._bind(pod, node)
                return None
            case ReadScale(target, namespace):
                return await self._scales.read(target, namespace)
            case WriteScale(target, scale):
                await self._scales.write(target, scale, self.user, self.field_manager)
                return None
            case NewEvent():
                await self._record(write)
                return None
            case _:
                assert_never(write)

    async def _store(
        self, kind: Kind, action: Action, at: NamespacedName, value: Object, subresource: str = ""
    ) -> Object | None:
        """The stored object."""
        written = await self._send(kind, action, at, subresource, Body(value))
        if written is None:
            return None
        name = NamespacedName(at.namespace, written.key.name)
        return self.objects.get(kind, name) or object_at(written, self.informer.resource_of(kind))

    async def _send(
        self,
        kind: Kind,
        action: Action,
        at: NamespacedName,
        subresource: str = "",
        body: Body = NO_BODY,
        delete_options: DeleteOptions = NO_DELETE_OPTIONS,
    ) -> StoredObject | None:
        """The stored entry. Raises ApiError, StoreError."""
        resource = self.informer.resource_of(kind)
        options = Options(field_manager=self.field_manager)
        written = await self.writer.write(
            WriteRequest(
                action,
                resource,
                at.namespace,
                at.name,
                subresource,
                body,
                options,
                delete_options,
                user=self.user,
            )
        )
        return written.entry

    async def _bind(self, pod: Object, node: str) -> None:
        namespace, name = name_of(pod)
        target = {"kind": "Node", "name": node}
        binding = {**BINDING, "metadata": {"name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]}}
        await self._send(BINDINGS, Action.ACT, NamespacedName(namespace, ""), body=Body({**binding, "target": target}))

    async def _record(self, event: NewEvent) -> None:
        """Write an Event, or count one that was written before. As upstream's recorder, it only logs what fails."""
        wanted = self._recorder.record(event, self.clock.now())
        if wanted is None:
            return
        action, value = wanted
        name = name_of(value)
        try:
            if action == "create":
                await self._send(EVENTS, Action.CREATE, name._replace(name=""), body=Body(value))
            else:
                await self._send(EVENTS, Action.REPLACE, name, body=Body(value))
        except ApiError as error:
            self._recorder.forget(value)  # it has expired, or was deleted: the next one is created
            log.debug("%s: the Event %s is not written: %s", self.name, event.reason, error)
