"""The behaviour that all kinds with a struct table share: built-in kinds and CustomResourceDefinitions.

As in Go, decoding into a struct drops unknown fields. So requests are pruned when they are decoded, and stored objects
need no pruning. There is no fast path.
"""

from __future__ import annotations

from collections.abc import Mapping

from noxu.go.structs import Struct
from noxu.registry.claimed_kind import Decoder, decode
from noxu.registry.resource import Resource
from noxu.values import Object


class TypedObjects:
    """Objects that are decoded into structs. `struct` is that of the resource's own version."""

    def __init__(self, struct: Struct, decoders: Mapping[str, Decoder]) -> None:
        """`decoders`: by apiVersion, those of all versions that can be converted to the resource's."""
        self.struct: Struct | None = struct
        self._decoders = decoders

    def accept(self, resource: Resource, value: Object, *, stored: bool = False, old: Object | None = None) -> bool:
        return False

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        return decode(resource, value, self._decoders)

    def prune(self, resource: Resource, value: Object) -> list[str]:
        return []  # done by `decode`

    def prune_mutated(self, resource: Resource, value: Object) -> Object:
        return self.decode(resource, value)[0]

    def read(self, resource: Resource, value: Object) -> None:
        """Objects that this server has stored were decoded when they were written."""
