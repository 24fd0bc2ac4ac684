"""Collects the counts of all custom objects that are written, in one server or in several.

    collector = Collector()
    collector.follow(plane)        # from now on
    collector.collected()          # {"schemas": {"widgets.example.com": {"v1": {…}}}, "counts": {…}}

A collector stands before the admission chain: there a write has its defaults, and nothing has refused it for what its fields are.
So a server that does not collect has no trace of this. Only what is written counts, not what a server begins with (templates,
snapshots), and not what mutating admission adds.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.coverage.counting import CountedWrite, add, counts, merged
from noxu.registry.bodies import decode_body
from noxu.registry.draft import ENCODED, Action, Admission, Draft
from noxu.registry.patch import read_configuration
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.values import Json, Object

if TYPE_CHECKING:
    from noxu.control_plane import ControlPlane

MERGE_PATCH: Final = "application/merge-patch+json"


class CountingAdmission:
    """An admission chain, before which each write is counted. See `registry.draft.Admission`."""

    def __init__(self, chain: Admission, count: Callable[[Draft], None]) -> None:
        self._chain = chain
        self._count = count

    def is_idle(self, reader: Reader) -> bool:
        return self._chain.is_idle(reader)

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        self._count(draft)
        return self._chain.mutate(draft)

    def validate(self, draft: Draft) -> Awaitable[None] | None:
        return self._chain.validate(draft)

    def check_again(self, draft: Draft) -> None:
        self._chain.check_again(draft)


class Collector:
    """The counts of the writes that it has seen, and the schemas of their definitions."""

    def __init__(self) -> None:
        self._schemas: dict[str, dict[str, Object]] = {}
        self._counts: Object = {}
        self._lock = threading.Lock()  # servers have threads of their own, and large writes are in others

    def follow(self, plane: ControlPlane) -> None:
        """Count what is written in a server from now on."""
        self.add_definitions(plane)
        environment = plane.writer.environment
        chain = CountingAdmission(environment.admission, self._count)
        plane.writer.use(dataclasses.replace(environment, admission=chain))  # of all who have this writer

    def add_definitions(self, plane: ControlPlane) -> None:
        """Know the definitions that are served, also if no object of them was written."""
        with self._lock:
            for resource in plane.served_resources.current.resources:
                if resource.is_custom:
                    self._know(resource)

    def collected(self) -> Object:
        """The schemas and counts until now, as `noxu.coverage.trees` reads them."""
        with self._lock:
            return {"schemas": {name: dict(of) for name, of in self._schemas.items()}, "counts": merged([self._counts])}

    def _know(self, resource: Resource) -> None:
        schema = resource.declared_schema
        if schema is not None:  # the newest one, where a definition has changed
            self._schemas.setdefault(_definition(resource), {})[resource.version] = schema

    def _count(self, draft: Draft) -> None:
        resource = draft.resource
        if not resource.is_custom or resource.schema is None or not draft.new or draft.operation == "DELETE":
            return
        counted = counts(
            CountedWrite(
                resource.schema,
                resource.rules,
                draft.new,
                draft.old,
                given(draft),
                status_apart=resource.has_status,
                of_status=draft.request.subresource == "status",
            )
        )
        with self._lock:
            self._know(resource)
            add(self._counts, {_definition(resource): {resource.version: counted}})


def _definition(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"


def given(draft: Draft) -> list[Json]:
    """What says which fields were set: the body, and the old object where the body has only parts of the new one.

    The operations of a JSON patch, and a scale, are not objects: all that the new object has was set then.
    """
    content, media_type, _ = draft.request.body
    old = [] if draft.old is None else [draft.old]
    with suppress(ApiError, ValueError):  # it could be decoded before: only another form would fail
        match draft.request.action:
            case Action.CREATE | Action.REPLACE:
                if isinstance(content, dict):
                    return [content]
                if media_type == ENCODED:
                    return [codec.decode_stored(content)]
                return [decode_body(content, media_type, draft.resource.gvk, strict=False, typed=False).value]
            case Action.APPLY if isinstance(content, bytes):
                return [read_configuration(content, media_type).value, *old]
            case Action.PATCH if isinstance(content, bytes) and media_type == MERGE_PATCH:
                return [codec.decode_fast(content), *old]
    return [draft.new]
