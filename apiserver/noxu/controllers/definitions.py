"""Definitions: names accepted, established, served, withdrawn (upstream's apiextensions controllers).

A definition is served when its POST is answered: the conditions are set in upstream's order, each with its event, and
the served resources are replaced before the answer is sent. One worker reconciles all definitions, in the order of
their writes: of two definitions with the same name, the first one gets it.

Status updates by the controllers of definitions, with the effect of upstream's updates through /status.

The condition KubernetesAPIApprovalPolicyConformant of definitions in protected groups (upstream's apiapproval).

A write that changes the approval annotation is answered before the condition changes. The condition does not affect what
is served, and a client that updates a definition twice in a row can use the resourceVersion of the first answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple, Self

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.clock import Clock, rfc3339_now
from noxu.containment import Contained
from noxu.controllers.controller import Controller, ControllerParts
from noxu.crd import conditions, types
from noxu.crd.conditions import AcceptedNames, Condition
from noxu.crd.internal import same
from noxu.crd.types import NAMES, storage_version
from noxu.features import Features
from noxu.registry.cache import Change
from noxu.registry.conversion.converters import Conversions
from noxu.registry.offload import offload
from noxu.registry.persistence import attempt_again
from noxu.registry.resource import Resource, Versions
from noxu.registry.stored_object import StoredObject, key_of, new_entry_with_spec, object_at, stored_spec, taken_object
from noxu.values import Object, copy

MANAGER: Final = "kube-apiserver"


class Updated(NamedTuple):
    """The entry of a definition that is about to be written, and the definition as it is decoded from it.

    That has no resourceVersion: the entry gets its revision when it is written.
    """

    entry: StoredObject
    crd: Object


def with_status(entry: StoredObject, live: Object, crd: Object, resource: Resource, clock: Clock) -> Updated:
    """A definition with the metadata and status of `crd`; `live` is what the entry has. Both have the spec of the entry.

    The field manager is that of upstream's controllers.
    """
    from noxu.registry.ownership import update_status  # 12 ms, with the first definition

    owned = update_status(_without_spec(live), _without_spec(crd), resource, manager=MANAGER, now=rfc3339_now(clock))
    changed = {**crd, "metadata": owned["metadata"]}
    updated = new_entry_with_spec(entry, live, resource, changed)
    return Updated(updated, {**resource.codec.written(_without_spec(changed)), "spec": crd["spec"]})


def to_change(crd: Object) -> Object:
    """A copy of a definition in which metadata and status can be changed. The spec, nearly all of it, is shared."""
    return {name: value if name == "spec" else copy(value) for name, value in crd.items()}


def at_revision(crd: Object, entry: StoredObject) -> Object:
    """A definition with the resourceVersion of its entry, as `object_at` returns it."""
    return {**crd, "metadata": {**crd["metadata"], "resourceVersion": str(entry.revision)}}


def _without_spec(crd: Object) -> Object:
    return {name: value for name, value in crd.items() if name != "spec"}


# -- definition approval ----------------------------------------------------------------------------------------------


DELAY: Final = 0.004  # seconds after a change


class ApprovalController(Controller[str]):
    """Keeps the condition up to date. Keys are names."""

    name = "crd-api-approval-controller"
    follows = ((types.GROUP, types.RESOURCE),)
    on_process_time = True

    def observe(self, change: Change) -> Iterable[str]:
        if change.entry is not None and _may_be_approved(change.entry):
            self.queue.add_after(change.key.name, DELAY)
        return ()

    def resync(self) -> Iterable[str]:
        return [key.name for key, entry in self.collection.entries.items() if _may_be_approved(entry)]

    async def reconcile(self, name: str) -> None:
        while (entry := self.collection.entries.get(key_of(self.resource, "", name))) is not None:
            crd = await offload(len(entry.stored), object_at, entry, self.resource)
            approved = conditions.approved(crd)
            if approved is None or conditions.find(crd, conditions.APPROVED) is None:
                return  # the establishing controller sets it first
            if conditions.is_set(crd, approved):
                return
            new = to_change(crd)
            conditions.set_condition(new, approved, rfc3339_now(self.clock))
            updated = await offload(len(entry.stored), with_status, entry, crd, new, self.resource, self.clock)
            if await self.persistence.replace(entry, updated.entry):
                return


def _may_be_approved(entry: StoredObject) -> bool:
    """Whether a definition may have the condition, which the establishing controller sets first."""
    return conditions.APPROVED.encode() in entry.stored


# -- definitions ------------------------------------------------------------------------------------------------------


class ReadDefinition(NamedTuple):
    """A definition, a digest of the parts of it that determine what is served (None: nothing is), and its stored spec."""

    crd: Object
    digest: bytes | None = None
    spec: memoryview | None = None


def read_definition(entry: StoredObject, resource: Resource, read: Object | None = None) -> ReadDefinition:
    """Read a stored definition. `read` is the decoded one; None: it has to be decoded."""
    crd = taken_object(entry, resource) if read is None else read
    entry.decoded = None
    if not conditions.is_true(crd, conditions.ESTABLISHED) or storage_version(crd) is None:
        return ReadDefinition(crd)
    spec = stored_spec(entry, crd, resource)
    return ReadDefinition(crd, _digest(crd, spec, resource), spec)


def _digest(crd: Object, spec: memoryview | None, resource: Resource) -> bytes:
    """A digest of what determines what is served: the spec as it is stored or would be, and the accepted names."""
    digest = hashlib.sha256(
        codec.encode(resource.codec.written(crd)["spec"], sort_keys=False) if spec is None else spec
    )
    digest.update(codec.encode(crd["status"]["acceptedNames"], sort_keys=True))
    return digest.digest()


def served_versions(read: ReadDefinition, entry: StoredObject, features: Features) -> Versions:
    """The versions that a definition serves. Its schemas are parts of the bytes of its entry."""
    from noxu.registry.custom import (
        stored_schemas,
        versions_of,  # with the first definition
    )

    crd, digest, spec = read
    versions = versions_of(crd, entry.revision, field_selectors=features.field_selectors)
    versions.keep_encoded(entry.stored, stored_schemas(spec, crd["spec"]) if spec is not None else None)
    versions.digest = digest
    return versions


class _Parsed(NamedTuple):
    """A definition, the digest of what it serves (None: nothing is served), and its versions.

    `versions` is None if nothing is served, or if the served resources have these versions already.
    """

    crd: Object
    served: bytes | None = None
    versions: Versions | None = None


class _Known:
    """What the controller has found out about all definitions."""

    def __init__(self) -> None:
        self.served: dict[str, bytes] = {}
        """By definition: `_Parsed.served` of what is served."""
        self.names: dict[str, tuple[str, Object]] = {}
        """By definition: its group and accepted names."""
        self.accepted: dict[str, AcceptedNames] = {}
        """By group: the same names."""
        self.structure_seen: dict[str, int] = {}
        """By definition: the generation whose NonStructuralSchema was written."""
        self.reconciled: dict[str, tuple[StoredObject, int]] = {}
        """By definition: the state, and `naming` then."""
        self.naming = 0
        """How often `names` has changed."""

    def copy(self) -> _Known:
        new = _Known()
        new.served, new.names, new.naming = self.served.copy(), self.names.copy(), self.naming
        new.structure_seen, new.reconciled = self.structure_seen.copy(), self.reconciled.copy()
        for group, names in new.names.values():
            new.accepted.setdefault(group, AcceptedNames()).add(names)
        return new


class DefinitionController(Controller[str]):
    """Keeps the served resources and the conditions of definitions up to date. Keys are names."""

    name = "crd-establishing-controller"
    follows = ((types.GROUP, types.RESOURCE),)

    def __init__(self, parts: ControllerParts, conversions: Conversions, features: Features) -> None:
        super().__init__(parts)
        self.conversions, self.features = conversions, features
        self._facts = _Known()
        self._shares = False  # what is known is also that of other servers
        self._to_read: dict[str, None] = {}  # definitions whose accepted names are not known yet

    @property
    def _known(self) -> _Known:
        """What is known, to be changed in place."""
        if self._shares:
            self._facts, self._shares = self._facts.copy(), False  # with the first change of a definition
        return self._facts

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._facts, self._shares = idle._facts, True

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        if change.entry is not None:
            return [name]
        if name not in self._known.names:
            return [name]
        group, _ = self._known.names[name]  # others may now get its names
        return [
            name,
            *(sibling for sibling, (theirs, _) in self._known.names.items() if theirs == group and sibling != name),
        ]

    def resync(self) -> Iterable[str]:
        names = [key.name for key in self.collection.keys]
        for deleted in self._known.names.keys() - set(names):
            self._withdraw(deleted)
            self._set_names(deleted, None)
        self._known.reconciled.clear()
        self._to_read = dict.fromkeys(names)
        return names

    async def reconcile(self, name: str) -> None:
        """Serve a definition in its newest state, and set its conditions, one after the other.

        Its own writes are changes, too: the last of them needs nothing more, unless names have changed.
        """
        while self._to_read:  # after a resync: names are accepted only when all accepted names are known
            await self._read_names(next(iter(self._to_read)))
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        if entry is not None and self._known.reconciled.get(name) == (entry, self._known.naming):
            return
        written: Updated | None = None
        while (read := await self._read(name, written)) is not None:
            entry, live = read
            crd, group = to_change(live), live["spec"]["group"]
            if not advance(crd, self._known.accepted[group], rfc3339_now(self.clock)) and not await self._set_structure(
                name, entry, crd
            ):
                self._known.reconciled[name] = entry, self._known.naming
                return
            written = await offload(len(entry.stored), with_status, entry, live, crd, self.resource, self.clock)
            await self.persistence.replace(entry, written.entry)  # after a conflict, the newest state is read

    async def _set_structure(self, name: str, entry: StoredObject, crd: Object) -> bool:
        """Update the condition NonStructuralSchema, in place, once for each generation; whether it changed."""
        generation = crd["metadata"].get("generation", 0)
        if generation == self._known.structure_seen.get(name):  # a restored definition has an earlier one
            return False
        changed = await offload(len(entry.stored), set_structure, crd, rfc3339_now(self.clock))
        if changed:
            self._known.structure_seen[name] = generation
        return changed

    async def _read_names(self, name: str) -> None:
        """Read a definition for its accepted names. One that cannot be read has none, and fails when it is reconciled."""
        with suppress(ApiError), Contained(f"{self.name}: {name}", passing=ApiError):
            await self._read(name)
        self._to_read.pop(name, None)

    async def _read(self, name: str, written: Updated | None = None) -> tuple[StoredObject, Object] | None:
        """Read the newest state of a definition and update the served resources; None: the definition does not exist.

        If that state is what this controller has `written` last, it is not decoded again.
        """
        attempts = 1
        while True:
            entry = self.collection.entries.get(key_of(self.resource, "", name))
            if entry is None:
                self._to_read.pop(name, None)
                self._withdraw(name)
                self._set_names(name, None)
                self._known.structure_seen.pop(name, None)
                self._known.reconciled.pop(name, None)
                return None
            crd = at_revision(written.crd, entry) if written is not None and written.entry is entry else None
            parsed = await offload(len(entry.stored), self._parse, entry, crd)
            if self.collection.entries.get(entry.key) is entry:
                self._to_read.pop(name, None)
                self._serve(entry, parsed)
                return entry, parsed.crd
            attempts = await attempt_again(attempts, self.resource.group_resource, name)

    def _parse(self, entry: StoredObject, read: Object | None) -> _Parsed:
        """`read` is the decoded definition; None: it has to be decoded."""
        definition = read_definition(entry, self.resource, read)
        crd, served, _ = definition
        if served is None:
            return _Parsed(crd)
        name = entry.key.name
        current = self.served_resources.current.defined.get(name)
        if current is not None and self._known.served.get(name) == served:
            if not current.is_shared:
                current.keep_encoded(entry.stored)  # so that those before can be freed
            return _Parsed(crd, served)
        return _Parsed(crd, served, served_versions(definition, entry, self.features))

    def _serve(self, entry: StoredObject, parsed: _Parsed) -> None:
        name, (crd, served, versions) = entry.key.name, parsed
        accepted = crd["status"]["acceptedNames"]
        self._set_names(name, (crd["spec"]["group"], accepted))
        if served is None:
            self._withdraw(name)
            return
        if versions is not None:
            versions.converter = self.conversions.define(name, crd["spec"])
            self._known.served[name] = served
            self.served_resources.replace(self.served_resources.current.with_definition(name, versions))
            self.reader.cache.end_watches(versions.collection)
        deletes_instances = conditions.is_true(crd, conditions.TERMINATING)
        terminating = deletes_instances or bool(crd["metadata"].get("deletionTimestamp"))
        current = self.served_resources.current.defined[name]
        if (current.terminating, current.deletes_instances) == (terminating, deletes_instances):
            return
        own = self.served_resources.own(name)
        own.terminating = terminating
        if own.deletes_instances != deletes_instances:
            own.deletes_instances = deletes_instances
            # documents are kept until other resources are served: those of now have other verbs
            self.served_resources.replace(self.served_resources.current.with_definition(name, own))

    def _set_names(self, name: str, names: tuple[str, Object] | None) -> None:
        """Keep the group and the accepted names of a definition; None: it does not exist."""
        before = self._known.names.pop(name, None)
        if names is not None:
            self._known.names[name] = names
        if before == names:
            return
        self._known.naming += 1
        if before is not None:
            group, accepted = before
            self._known.accepted[group].remove(accepted)
            if not self._known.accepted[group]:
                del self._known.accepted[group]
        if names is not None:
            group, accepted = names
            self._known.accepted.setdefault(group, AcceptedNames()).add(accepted)

    def _withdraw(self, name: str) -> None:
        """Stop serving a definition."""
        if self._known.served.pop(name, None) is not None:
            collection = self.served_resources.current.defined[name].collection
            self.served_resources.replace(self.served_resources.current.with_definition(name, None))
            self.reader.cache.withdraw(collection)


def set_structure(crd: Object, time: str) -> bool:
    """Set or remove the condition NonStructuralSchema, in place; whether it changed.

    Only what an older server stored, which preserves unknown fields, can have a schema that is not structural.
    """
    old = conditions.find(crd, conditions.NON_STRUCTURAL)
    if old is None and not crd["spec"].get("preserveUnknownFields"):
        return False
    condition = conditions.non_structural(crd)
    if condition is None:
        conditions.remove_condition(crd, conditions.NON_STRUCTURAL)
        return old is not None
    if conditions.is_set(crd, condition):
        return False
    conditions.set_condition(crd, condition, time)
    return True


def advance(crd: Object, of_group: AcceptedNames, time: str) -> bool:
    """Set the next conditions, in place; False if all are set. `of_group`: the names of all definitions of the group.

    The conditions that depend on names come first, then Established. Each step is an event, as upstream.
    """
    status = crd["status"]
    due: list[Condition] = []
    accepted = status["acceptedNames"]
    if not same(NAMES, crd["spec"]["names"], accepted):  # else upstream's naming controller leaves the conditions alone
        naming = conditions.names_conditions(crd, of_group)
        if not conditions.is_set(crd, naming.names_accepted) or naming.accepted != accepted:
            due, accepted = [naming.names_accepted, naming.established], naming.accepted
    if conditions.find(crd, conditions.APPROVED) is None and (approved := conditions.approved(crd)):
        due.append(approved)
    changed = [condition for condition in due if not conditions.is_set(crd, condition)]
    if changed or accepted != status["acceptedNames"]:
        status["acceptedNames"] = accepted
        for condition in changed:
            conditions.set_condition(crd, condition, time)
        return True
    if not conditions.is_true(crd, conditions.NAMES_ACCEPTED) or conditions.is_true(crd, conditions.ESTABLISHED):
        return False
    established = conditions.established(crd)
    if conditions.is_set(crd, established):
        return False
    conditions.set_condition(crd, established, time)
    return True
