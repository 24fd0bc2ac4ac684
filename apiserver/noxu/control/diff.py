"""What is different between two moments: objects that were created, deleted and changed in between.

    GET /_noxu/diff?from=-5m                              all objects that have changed since
    GET /_noxu/diff?from=41&to=57&type=widgets&name=a     one object

What has changed is found in the log between the moments, so it costs what was written, not what is stored. An object is
compared as it was served at each moment, at the preferred version of then, unless the type names one. So a definition that
has changed makes a difference, too, in objects that are asked for by their names.
"""

from __future__ import annotations

import asyncio
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.control import object_states
from noxu.control.arguments import INTEGER, TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.masked import MASK, masked
from noxu.control.moments import FORMS, NOW, Moment
from noxu.control.past import TimeTravel, View
from noxu.control.unified import difference, visible
from noxu.go.time import MICRO, format_time
from noxu.registry.cache import entries_of
from noxu.registry.conversion.converters import entries_at
from noxu.registry.offload import offload
from noxu.registry.resource import Resource, prepared
from noxu.registry.storage_form import as_json, is_temporary
from noxu.registry.stored_object import key_of, object_at
from noxu.values import Object
from noxu_storage import pins
from noxu_storage.store import Store
from noxu_storage.types import Key, KeyValue, Prefix, Revision

DIFFERENCES: Final = 500
"""Objects in an answer, by default."""
MAX_BYTES: Final = 2 * 1024 * 1024
"""Of the differences in an answer, but for the last one."""
_SLICE: Final = 1_000  # events that are looked at before other tasks run


async def diff(call: ControlCall) -> Object:
    """The objects that differ between two moments, each with its difference as text."""
    travel, query, store = call.control.part(TimeTravel), call.query, call.plane.store
    moments = [await travel.moments.find(query[name]) for name in ("from", "to")]
    views = [await travel.views.view(moment.revision) for moment in moments]
    if query["name"] and not query["type"]:
        raise errors.bad_request("name needs a type: the name of a kind, such as widgets")
    if query["limit"] < 1:
        raise errors.bad_request("limit: it is at least 1")
    resources = await _resources(views, query["type"]) if query["type"] else None
    async with object_states.looking_back():
        if resources is not None and query["name"]:
            known = resources[1] or resources[0]
            assert known is not None
            namespace = (query["namespace"] or object_states.DEFAULT_NAMESPACE) if known.namespaced else ""
            keys = [key_of(known, namespace, query["name"])]
        else:
            prefix = _prefix(resources, query["namespace"])
            keys = await _changed(store, prefix, *sorted(moment.revision for moment in moments))
        items: list[Object] = []
        size = compared = 0
        for key in keys:
            if len(items) == query["limit"] or size > MAX_BYTES:
                break
            compared += 1
            item = await _difference(store, key, views, resources, is_masked=query["mask"])
            await asyncio.sleep(0)  # small objects are compared in the loop
            if item is not None:
                items.append(item)
                size += len(item["diff"])
    return {
        **{name: _shown(moment) for name, moment in zip(("from", "to"), moments, strict=True)},
        "items": items,
        "remaining": len(keys) - compared,
    }


def _shown(moment: Moment) -> Object:
    return {
        "revision": moment.revision,
        "time": None if moment.time is None else format_time(moment.time, MICRO),
    }


async def _resources(views: list[View], text: str) -> list[Resource | None]:
    """The resource that a text named at each moment, None where it was not served. Raises ApiError if at neither."""
    found: list[Resource | None] = []
    refusal: ApiError | None = None
    for view in views:
        try:
            found.append(await object_states.resource_at(view, text))
        except ApiError as error:
            found.append(None)
            refusal = error
    if refusal is not None and not any(found):
        raise refusal
    return found


def _prefix(resources: list[Resource | None] | None, namespace: str) -> Prefix:
    known = None if resources is None else resources[1] or resources[0]
    return Prefix(None if known is None else known.collection, f"{namespace}/" if namespace else None)


async def _changed(store: Store, prefix: Prefix, after: Revision, upto: Revision) -> list[Key]:
    """The keys of objects that were written after a revision and up to another one, in order. Raises Compacted."""
    keys: set[Key] = set()
    if after >= upto:
        return []
    async for batch in store.watch(Prefix(prefix.collection), after=after):
        for start in range(0, len(batch.events), _SLICE):
            keys.update(
                [
                    event.key
                    for event in batch.events[start : start + _SLICE]
                    if event.revision <= upto and prefix.covers(event.key) and _is_object(event.key)
                ]
            )
            await asyncio.sleep(0)
        if batch.revision >= upto:
            break
    return await offload(len(keys) * 64, sorted, keys)


def _is_object(key: Key) -> bool:
    return key.collection != pins.COLLECTION and not is_temporary(key)


async def _difference(
    store: Store, key: Key, views: list[View], resources: list[Resource | None] | None, *, is_masked: bool
) -> Object | None:
    """What is different about one key, None if nothing is that people see."""
    stored = [await store.get(key, revision=view.revision) for view in views]
    if stored[0] is None and stored[1] is None:
        return None
    values = [
        await _value(view, state, None if resources is None else resources[side])
        for side, (view, state) in enumerate(zip(views, stored, strict=True))
    ]
    old, new = (masked(value) if value is not None and is_masked else value for value in values)
    value: Object = new or old or {}
    labels = [f"{view.revision}/{_file_name(value, key)}" for view in views]
    weight = sum(len(state.value) for state in stored if state is not None)
    text = await offload(weight * 4, difference, old, new, *labels)  # a diff takes several times the decoding
    if not text:
        return None
    return {
        "change": _change(old, new),
        "apiVersion": value.get("apiVersion"),
        "kind": value.get("kind"),
        **({"namespace": key.partition.removesuffix("/")} if key.partition else {}),
        "name": key.name,
        "diff": text,
    }


def _change(old: Object | None, new: Object | None) -> str:
    if old is None or new is None:
        return "created" if old is None else "deleted"
    return "changed" if old["metadata"].get("uid") == new["metadata"].get("uid") else "replaced"


def _file_name(value: Object, key: Key) -> str:
    """As kubectl diff names files: `example.com.v1.Widget.default.a`."""
    group, _, version = str(value.get("apiVersion", "")).rpartition("/")
    return ".".join(
        [part for part in (group, version, value.get("kind"), key.partition.removesuffix("/"), key.name) if part]
    )


async def _value(view: View, state: KeyValue | None, resource: Resource | None) -> Object | None:
    """A state as it was served at the moment of a view; as it is stored, if its kind was not served then."""
    if state is None:
        return None
    resource = resource or view.served.preferred.get(state.key.collection)
    if resource is None:
        raw: Object = await offload(len(state.value), lambda: codec.decode_stored(as_json(state.value)))
        return visible(raw)
    await prepared(resource.versions)
    [entry] = await entries_at(await entries_of([state]), resource)
    return await offload(len(state.value), object_at, entry, resource)


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/diff",
        diff,
        "Compare two moments: all objects, those of a kind, or one.",
        {
            "from": Argument(TEXT, f"a moment: {FORMS}", required=True),
            "to": Argument(TEXT, "another moment, by default now", NOW),
            "type": Argument(TEXT, "any name of a kind; all kinds without it", ""),
            "name": Argument(TEXT, "the name of an object", ""),
            "namespace": Argument(TEXT, "a namespace; all without it and without a name", ""),
            "limit": Argument(INTEGER, "how many objects at most", DIFFERENCES),
            "mask": MASK,
        },
    ),
)
