"""The law of round trips: an object that is converted to another version and back is what it was.

    v1 {spec: {address: "a:80"}}    →    v2 {spec: {host: a, port: "80"}}    →    v1 {spec: {address: "a:80"}}

A server stores one version and shows all, so what is lost on the way is lost for clients of the other version: an update that
they send without having touched a field removes it. Objects are compared as a server shows them, pruned and with defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from noxu.api.errors import ApiError
from noxu.api.field import Path
from noxu.generation.kinds import as_shown, valid_object
from noxu.registry.conversion.converters import at_storage_version
from noxu.registry.resource import Resource
from noxu.schema.structural import MISSING
from noxu.upgrades.schema_places import differing_fields
from noxu.values import Json, Object, copy


class RoundTrip(NamedTuple):
    """An object, and the fields that differ when it has returned, with their values before and after.

    `error`: why it cannot be converted; the message is upstream's.
    """

    value: Object
    changed: list[tuple[Path, Json, Json]]
    error: str = ""

    @property
    def holds(self) -> bool:
        return not (self.changed or self.error)

    @property
    def why(self) -> str:
        """The first difference in words: `spec.port is lost`."""
        if self.error:
            return self.error
        if not self.changed:
            return ""
        path, before, after = self.changed[0]
        what = "is lost" if after is MISSING else "is new" if before is MISSING else "changes"
        return f"{path} {what}"


async def converted(value: Object, resource: Resource) -> Object:
    """An object at another version of its resource, pruned by its schema. The given object does not change. Raises ApiError."""
    found: Object = (await at_storage_version(copy(value), resource, 0)).values[0]
    return found


async def round_trip(value: Object, home: Resource, other: Resource) -> RoundTrip:
    """Convert an object of version `home` to `other` and back."""
    shown = as_shown(value, home)
    try:
        back = await converted(await converted(shown, other), home)
    except ApiError as error:
        return RoundTrip(shown, [], error.message)
    return RoundTrip(shown, list(differing_fields(shown, as_shown(back, home))))


def generated(resource: Resource, count: int, seed: str = "0") -> Iterator[Object]:
    """Valid objects of a version, the same ones for the same seed. Raises CannotGenerate."""
    for n in range(count):
        value = valid_object(resource, Random(f"{seed}/{n}").randrange)  # noqa: S311 - no secret
        place = {"namespace": "default"} if resource.namespaced else {}
        value["metadata"] |= {**place, "uid": f"00000000-0000-4000-8000-{n:012}"}  # a converter has to keep it
        yield value
