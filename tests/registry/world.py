"""The registry over a store in memory: Widgets, ConfigMaps, Namespaces and reviews; without HTTP and controllers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.identifiers import Identifiers
from noxu.registry import custom
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.cache import WatchCache
from noxu.registry.draft import (
    ADMIT_ALL,
    Action,
    Admission,
    Body,
    Draft,
    Options,
    Outcome,
    WriteEnvironment,
    Writer,
    WriteRequest,
    Written,
)
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource, Versions
from noxu.registry.served_resources import LiveResources, ServedResources
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.registry.trace import Trace
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import Key
from tests.clocks import StoppedClock

GROUP: Final = "example.com"
NOW: Final = "2026-01-02T03:04:05Z"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
SPEC: Final[Object] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "default": 1},
        "color": {"type": "string"},
        "replicas": {"type": "integer"},
    },
}
STATUS: Final[Object] = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
}
SCHEMA: Final[Object] = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
SCALE: Final[Object] = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def version(name: str = "v1", schema: Object = SCHEMA, **fields: Json) -> Object:
    """A version of the definition of Widgets; v1 is the storage version."""
    subresources = {"status": {}, "scale": SCALE}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        **fields,
    }


def widgets(*versions: Object, scope: str = "Namespaced", since: int = 1) -> Versions:
    """The resources of the definition of Widgets."""
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": GROUP, "scope": scope, "names": names, "versions": list(versions or [version()])}
    return custom.versions_of({"spec": spec, "status": {"acceptedNames": names}}, since)


def widget(
    name: str = "a", *, api_version: str = f"{GROUP}/v1", metadata: Object | None = None, **spec: Json
) -> Object:
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


class CountedIdentifiers:
    """The uids uid-1, uid-2, …, and the suffixes of generated names in the given order."""

    def __init__(self, suffixes: Sequence[str] = ()) -> None:
        self._uids = 0
        self._suffixes = iter(suffixes)
        self.identifiers = Identifiers(self._new_uid, lambda: next(self._suffixes))

    def _new_uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"


class Hook(Protocol):
    def __call__(self, draft: Draft, /) -> Awaitable[None] | None: ...


class Hooks:
    """An admission chain that calls `on_mutate` and `on_validate`."""

    def __init__(self, on_mutate: Hook | None = None, on_validate: Hook | None = None) -> None:
        self._on_mutate, self._on_validate = on_mutate, on_validate

    def is_idle(self, reader: Reader) -> bool:
        return self._on_mutate is None and self._on_validate is None

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        return self._on_mutate(draft) if self._on_mutate else None

    def validate(self, draft: Draft) -> Awaitable[None] | None:
        return self._on_validate(draft) if self._on_validate else None

    def check_again(self, draft: Draft) -> None: ...


class World:
    """A registry whose watch cache follows the store."""

    def __init__(self, store: Store, defined: Versions) -> None:
        self.store = store
        self.cache = WatchCache(store)
        self.reader, self.persistence = Reader(store, self.cache), Persistence(store, self.cache)
        self.served_resources = LiveResources(
            ServedResources([definitions_resource(), *built_in_versions()], {f"widgets.{GROUP}": defined})
        )
        self.widgets = defined.storage
        self.environment = WriteEnvironment(
            self.reader,
            self.persistence,
            self.served_resources,
            clock=StoppedClock(),
            identifiers=CountedIdentifiers().identifiers,
        )

    @property
    def writer(self) -> Writer:
        return Writer(self.environment)

    def use(self, *, admission: Admission = ADMIT_ALL, suffixes: Sequence[str] = (), **parts: Any) -> None:
        """Replace parts of the environment."""
        identifiers = CountedIdentifiers(suffixes).identifiers
        self.environment = replace(self.environment, admission=admission, identifiers=identifiers, **parts)

    def resource(self, plural: str, group: str = "", version: str = "v1") -> Resource:
        found = self.served_resources.current.find(group, version, plural)
        assert found is not None, plural
        return found

    async def write(
        self,
        action: Action,
        value: Object | bytes = b"",
        *,
        resource: Resource | None = None,
        namespace: str = "default",
        name: str = "",
        media_type: str = "application/json",
        options: Options = Options(field_manager="test"),
        outcome: Outcome | None = None,
        trace: Trace | None = None,
        **fields: Any,
    ) -> Written:
        """Send a request of a client."""
        resource = resource or self.widgets
        is_sent = isinstance(value, bytes) or action is Action.CONNECT  # whose options are in the query
        content = value if is_sent else codec.encode(value, sort_keys=False)
        request = WriteRequest(
            action,
            resource,
            namespace if resource.namespaced else "",
            name,
            body=Body(content, media_type),
            options=options,
            **fields,
        )
        return await self.writer.write(request, outcome, trace)

    async def create(self, value: Object | None = None, **fields: Any) -> Object:
        """Create an object (default: the Widget a) and return it."""
        return self.value_of(await self.write(Action.CREATE, value or widget(), **fields), fields.get("resource"))

    async def replace(self, value: Object, **fields: Any) -> Object:
        name = value["metadata"]["name"]
        return self.value_of(await self.write(Action.REPLACE, value, name=name, **fields), fields.get("resource"))

    async def patch(self, patch: Object, name: str = "a", **fields: Any) -> Object:
        written = await self.write(Action.PATCH, patch, name=name, media_type=MERGE_PATCH, **fields)
        return self.value_of(written, fields.get("resource"))

    def value_of(self, written: Written, resource: Resource | None = None) -> Object:
        value: Object = codec.decode_stored(written.body(resource or self.widgets))
        return value

    async def stored(self, name: str = "a", *, resource: Resource | None = None, namespace: str = "default") -> Object:
        """An object as it is read."""
        resource = resource or self.widgets
        entry = await self.reader.get(resource, namespace if resource.namespaced else "", name)
        return object_at(entry, resource)

    async def exists(self, name: str = "a", **fields: Any) -> bool:
        return await error_of(self.stored(name, **fields)) == ""

    async def interfere(self, change: Callable[[Object], None], name: str = "a") -> None:
        """Change a stored Widget without admission, like another writer."""
        value = await self.stored(name)
        change(value)
        await self.writer.write(
            WriteRequest(
                Action.REPLACE,
                self.widgets,
                "default",
                name,
                body=Body(value),
                options=Options(field_manager="other"),
                internal=True,
            )
        )

    async def entry(self, name: str = "a", namespace: str = "default") -> StoredObject:
        return await self.reader.find(self.widgets, namespace, name)

    def key(self, name: str = "a", namespace: str = "default") -> Key:
        return key_of(self.widgets, namespace, name)


async def error_of(call: Awaitable[object]) -> str:
    """The message of the ApiError that a call raises, "" if it succeeds."""
    try:
        await call
    except ApiError as error:
        return error.message
    return ""


@contextlib.asynccontextmanager
async def world_of(store: Store | None = None, defined: Versions | None = None) -> AsyncIterator[World]:
    """A registry whose watch cache follows the store until the end of the block."""
    world = World(store or MemoryStore(), defined or widgets())
    following = asyncio.create_task(world.cache.follow())
    try:
        yield world
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
