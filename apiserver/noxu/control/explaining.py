"""Explain what a write would do, and what a changed definition would do to the objects that are stored. Nothing is stored.

    POST /_noxu/explain {"object": …}                              as a dry run on this server: with its admission
    POST /_noxu/explain {"object": …, "definition": …}             in a trial: as if the definition were that one
    POST /_noxu/explain {"definition": …, "stored": 200}           what of the stored objects would be pruned, or refused

An object and a definition are JSON objects, or texts of YAML. A trial is a control plane of its own in memory, without
controllers and admission plug-ins that know other objects: it has the definition, and the stored objects that are asked about,
as they are. Each of them is written again as it is, so what ratcheting forgives is listed, too.

What it may take is limited: MAX_SECONDS, MAX_STORED objects and MAX_STORED_BYTES of them; those that are left are counted
(`remaining`). Writes are those of any client, with their budgets of processor time (`registry.write`); what reads large
texts runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.control.arguments import BOOLEAN, INTEGER, Argument, ArgumentType, refused
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.reasons import reasons
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, assemble, running
from noxu.crd.lint import as_written
from noxu.manifests import loading, restoring
from noxu.manifests.documents import Document, LoadError, is_crd
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.draft import Options, Outcome
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Resource, prepared
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.registry.trace import Trace, as_json
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Conflict

MAX_SECONDS: Final = 20.0
"""The time that an answer may take; stored objects are no longer looked at after half of it."""
MAX_STORED: Final = 1_000
MAX_STORED_BYTES: Final = 8 * 1024 * 1024
DEFAULT_STORED: Final = 200
MANAGER: Final = "noxu-explain"
_UNREADABLE: Final = (Conflict, ValueError, TypeError, AttributeError, KeyError)
"""What a stored object raises that has not the form of its kind."""


def _object_or_text(value: Json) -> Json:
    if not isinstance(value, dict | str):
        raise ValueError("expected an object, or its YAML as a text")
    return value


def _in_a_query(_texts: Sequence[str]) -> Json:
    raise ValueError("it may only be in a body")


NO_DEFINITION: Final = "it is no CustomResourceDefinition of apiextensions.k8s.io"
WRITTEN: Final = ArgumentType("an object, or its YAML as a text", _object_or_text, _in_a_query)


async def decoded(value: Json, field: str) -> Document | None:
    """The object of an argument, with an `error` if it is a text that is none; None if there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, dict):
        return Document(value, field)
    return await offload(len(value), _read, value, field)


def _read(text: str, field: str) -> Document:
    try:
        read = codec.decode_yaml(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return Document({}, field, error=str(error))
    if not isinstance(read.value, dict):
        return Document({}, field, error="it is no object: write its apiVersion, kind and metadata")
    return Document(read.value, field, duplicates=read.duplicates)


# -- the call ----------------------------------------------------------------------------------------------------------


async def explain(call: ControlCall) -> Object:
    """What an object and a definition would do, as `ROUTES` says. Raises ApiError, StoreError."""
    body, plane = call.body, call.plane
    if not 0 <= body["stored"] <= MAX_STORED:
        raise refused("stored", f"it is between 0 and {MAX_STORED}")
    document, definition = await decoded(body["object"], "object"), await decoded(body["definition"], "definition")
    if document is None and definition is None:
        raise refused("", "object or definition: one of them is required")
    options = Options(dry_run=True, field_manager=MANAGER, field_validation="Strict" if body["strict"] else "Warn")
    try:
        async with asyncio.timeout(MAX_SECONDS):
            if definition is None:
                assert document is not None
                return {"object": await explained(plane, document, options, call.user)}
            return await _in_a_trial(plane, definition, document, options, body["stored"])
    except TimeoutError:
        raise errors.timeout(f"this takes more than {MAX_SECONDS:g} seconds: ask about fewer objects", 0) from None


async def explained(plane: ControlPlane, document: Document, options: Options, user: User = ANONYMOUS) -> Object:
    """The verdict on an object, with its trace and the reasons; it is created, or replaces the one that is there."""
    trace: Trace = []
    outcome = Outcome()
    status, result, weight = None, None, 0
    value = document.value
    try:
        if document.error:
            raise errors.bad_request(document.error)
        content = codec.encode(value, sort_keys=False)
        weight = len(content)
        written, resource = await loading.write(
            plane, value, content, options, duplicates=document.duplicates, outcome=outcome, trace=trace, user=user
        )
        body = written.body(resource)
        result = await offload(len(body), codec.decode_stored, body)
    except ApiError as error:
        status = error.status
    steps, found = await offload(weight, _steps_and_reasons, trace, status)
    return {
        "accepted": status is None,
        "apiVersion": value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": document.namespace,
        "name": document.name,
        "reasons": found,
        "warnings": outcome.warnings,
        "status": status,
        "result": result,
        "steps": steps,
    }


def _steps_and_reasons(trace: Trace, status: Object | None) -> tuple[list[Object], list[Object]]:
    """(The steps of a trace, the reasons in it.) A large object may have as many as it has fields."""
    steps = as_json(trace)
    return steps, reasons(steps, status)


# -- a trial -----------------------------------------------------------------------------------------------------------


async def _in_a_trial(
    plane: ControlPlane, definition: Document, document: Document | None, options: Options, stored: int
) -> Object:
    """What becomes of an object, and of stored ones, if the definition of their kind were this one."""
    config = replace(WITHOUT_CONTROLLERS, features=plane.features)
    async with running(assemble(config, MemoryStore())) as trial:
        answer: Object = {"definition": await _defined(trial, definition)}
        if not answer["definition"]["accepted"]:
            return answer
        live = await _live_resource(plane, definition.value)
        ends = asyncio.get_running_loop().time() + MAX_SECONDS / 2
        if document is not None:
            await _restore_same(plane, trial, document)
            answer["object"] = await explained(trial, document, options)
        if live is not None and stored:
            answer["stored"] = await _rewritten(plane, trial, live, options, stored, ends)
        return answer


async def _defined(trial: ControlPlane, definition: Document) -> Object:
    """Create the definition in a trial: whether it is accepted and served."""
    try:
        if definition.error or not is_crd(definition.value):
            raise errors.bad_request(definition.error or NO_DEFINITION)
        value = (await offload(LOOP_LIMIT + 1, loading.as_v1, definition))[0].value
        metadata = {name: item for name, item in (value.get("metadata") or {}).items() if name in _KEPT}
        value = {**value, "metadata": metadata}
        value.pop("status", None)
        await loading.apply(trial, value)
    except ApiError as error:
        found = reasons((), error.status)
        for reason in found:
            reason["path"] = as_written(definition.value, reason["path"])
        return {"accepted": False, "status": error.status, "reasons": found}
    except LoadError as error:
        status = errors.bad_request(str(error)).status
        return {"accepted": False, "status": status, "reasons": reasons((), status)}
    return {"accepted": True, "status": None, "reasons": []}


_KEPT: Final = ("name", "labels", "annotations")
"""Of the metadata of a stored definition that is edited."""


async def _live_resource(plane: ControlPlane, definition: Object) -> Resource | None:
    """The stored kind that a definition defines, at its preferred version; None if there is none yet."""
    spec = definition["spec"]  # it was accepted
    group, served = str(spec["group"]), plane.served_resources.current
    for version in served.groups.get(group, ()):
        if (resource := served.find(group, version, str(spec["names"]["plural"]))) is not None:
            await prepared(resource.versions)
            return resource
    return None


async def _restore_same(plane: ControlPlane, trial: ControlPlane, document: Document) -> None:
    """Store in a trial what is stored under the name of an object, so that its write is an update there, too."""
    resource, name = loading.resource_of(plane, document.value), loading.name_of(document.value)
    namespace = "" if resource is None else loading.namespace_of(resource, document.value)
    if (there := loading.resource_of(trial, document.value)) is not None:
        await loading.ensure_namespace(trial, loading.namespace_of(there, document.value))
    if resource is None or not name:
        return
    collection = await plane.reader.collection(resource)
    entry = collection.entries.get(key_of(resource, namespace, name))
    if entry is not None:
        await _restored(trial, entry, resource)


async def _restored(trial: ControlPlane, entry: StoredObject, resource: Resource) -> Object | None:
    """Store an object in a trial as it is, unless it is there. Returns what a client would write again; None if it cannot be stored."""
    value = _without_identity(await offload(len(entry.stored), object_at, entry, resource))
    there = loading.resource_of(trial, value)
    if there is None:
        return None
    key = key_of(there, loading.namespace_of(there, value), loading.name_of(value))
    try:
        await prepared(there.versions)
        if key not in (await trial.reader.collection(there)).entries:
            await restoring.store(trial, value, len(entry.stored))
    except (ApiError, *_UNREADABLE):
        return None
    return value


def _without_identity(value: Object) -> Object:
    metadata = {name: item for name, item in value["metadata"].items() if name not in _OF_THE_SERVER}
    return {**value, "metadata": metadata}


_OF_THE_SERVER: Final = ("resourceVersion", "uid", "managedFields")


async def _rewritten(
    plane: ControlPlane, trial: ControlPlane, live: Resource, options: Options, most: int, ends: float
) -> Object:
    """What becomes of the stored objects of a kind when each is written again as it is."""
    items: list[Object] = []
    counts = {"checked": 0, "accepted": 0, "changed": 0, "refused": 0}
    entries = list((await plane.reader.collection(live)).entries.values())
    async for entry in _limited(entries, most, ends):
        name = {"namespace": entry.key.partition.removesuffix("/"), "name": entry.key.name}
        value = await _restored(trial, entry, live)
        counts["checked"] += 1
        if value is None:
            why = f"{live.api_version} is not served, or the object has another form"
            verdict: Object = {"accepted": False, "reasons": [{"what": "refused", "path": "", "message": why}]}
        else:
            verdict = await explained(trial, Document(value, "stored"), options)
        notable = [reason for reason in verdict["reasons"] if reason["what"] in ("refused", "forgiven", "pruned")]
        counts["accepted" if verdict["accepted"] else "refused"] += 1
        if notable:
            counts["changed"] += verdict["accepted"]
            items.append({**name, "accepted": verdict["accepted"], "reasons": notable[:MAX_NOTABLE]})
    return {**counts, "remaining": len(entries) - counts["checked"], "items": items}


MAX_NOTABLE: Final = 20
"""Reasons that are listed of a stored object."""


async def _limited(entries: Sequence[StoredObject], most: int, ends: float) -> AsyncIterator[StoredObject]:
    """The first entries, as far as their number, their bytes and the time suffice."""
    size, loop = 0, asyncio.get_running_loop()
    for entry in entries[:most]:
        size += len(entry.stored)
        if size > MAX_STORED_BYTES or loop.time() > ends:
            return
        yield entry
        await asyncio.sleep(0)  # small objects never wait


ROUTES: Final = (
    ControlRoute(
        "POST",
        "/_noxu/explain",
        explain,
        "Say what a write would do and why, also with another definition. Nothing is stored.",
        body={
            "object": Argument(WRITTEN, "what is written"),
            "definition": Argument(WRITTEN, "a CustomResourceDefinition instead of the one that is served"),
            "strict": Argument(BOOLEAN, "refuse unknown fields", default=False),
            "stored": Argument(
                INTEGER, "with a definition: how many stored objects are checked by it", default=DEFAULT_STORED
            ),
        },
    ),
)
