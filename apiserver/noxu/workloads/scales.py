"""The scales of any resources, as scale.ScalesGetter of client-go reads and updates them: built-in kinds and custom resources.

A target names a kind, whose group counts, and not its version: all served versions are tried, the best first.
"""

from __future__ import annotations

import json
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.meta import parse_api_version
from noxu.controllers.controller import ControllerParts
from noxu.crd.types import version_priority
from noxu.go.text import quote
from noxu.registry.access import User
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.scale import scale_of
from noxu.registry.stored_object import object_at
from noxu.values import Object

NOT_FOUND: Final = "the server could not find the requested resource"


class Scales:
    """Those of one server."""

    def __init__(self, parts: ControllerParts) -> None:
        self._reader, self._writer, self._served = parts.reader, parts.writer, parts.served_resources

    async def read(self, target: Object, namespace: str) -> Object:
        """The Scale of a target. Raises ApiError."""
        resource = self._resource(target)
        entry = await self._reader.get(resource, namespace if resource.namespaced else "", target["name"])
        return scale_of(object_at(entry, resource), resource)

    async def write(self, target: Object, scale: Object, user: User, manager: str) -> None:
        """Update it. Raises ApiError."""
        resource, metadata = self._resource(target), scale["metadata"]
        await self._writer.write(
            WriteRequest(
                Action.REPLACE_SCALE,
                resource,
                metadata.get("namespace", ""),
                metadata["name"],
                "scale",
                Body(json.dumps(scale).encode()),
                Options(field_manager=manager),
                user=user,
            )
        )

    def _resource(self, target: Object) -> Resource:
        """Raises ApiError."""
        try:
            group, _ = parse_api_version(target.get("apiVersion") or "")
        except ValueError as error:
            raise errors.plain_error(str(error)) from None
        kind = target["kind"]
        found = [each for each in self._served.current.by_path.values() if (each.group, each.kind) == (group, kind)]
        if not found:
            raise errors.plain_error(f"no matches for kind {quote(kind)} in group {quote(group)}")
        scaled = [each for each in found if each.scale is not None]
        if not scaled:
            raise ApiError(404, NOT_FOUND, "NotFound")
        return max(scaled, key=lambda each: version_priority(each.version))
