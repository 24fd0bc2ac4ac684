"""How built-in kinds behave: as their `Kind` says, for all of them alike."""

from __future__ import annotations

from apiserver.api import meta
from apiserver.api.structs import decode
from apiserver.api.types import Object
from apiserver.registry import kinds
from apiserver.registry.kinds import Context, Kind
from apiserver.registry.pipeline import Draft, cannot_be_handled
from apiserver.registry.resource import Behaviour, Resource, Versions


class BuiltIn:
    """The behaviour of one built-in kind."""

    sorted_keys = False

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.unconditional_update = kind.unconditional_update

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        decoded = decode(self.kind.struct, value)
        if decoded.error:
            raise cannot_be_handled(resource, value, decoded.error)
        return decoded.value, decoded.unknown

    def read(self, resource: Resource, value: Object) -> None:
        """What is stored was decoded when it was written."""

    def default(self, resource: Resource, value: Object) -> None:
        self.kind.default(value)

    def prepare(self, draft: Draft) -> None:
        kinds.prepare(self.kind, draft.new, draft.old, draft.subresource)

    def written(self, value: Object) -> Object:
        return kinds.written(self.kind, value)

    def validate(self, draft: Draft) -> None:
        draft.errors += self.kind.validate(draft.new, draft.old, Context(draft.subresource))
        draft.errors += meta.validate_object_meta(
            draft.metadata, namespaced=self.kind.namespaced, name_rule=self.kind.name_rule
        )
        if draft.old is not None:
            draft.errors += meta.validate_object_meta_update(draft.metadata, draft.old["metadata"])
        draft.warnings += self.kind.warnings(draft.new, draft.old)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return kinds.selected(self.kind, value)

    def unknown_field_label(self, name: str) -> str:
        known = ", ".join(f'"{one}"' for one in ("metadata.name", "metadata.namespace", *self.kind.selectable))
        return f'"{name}" is not a known field selector: only {known}'


def resource_of(kind: Kind, behaviour: Behaviour) -> Resource:
    return Resource(
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        singular=kind.singular,
        kind=kind.kind,
        list_kind=kind.list_kind,
        namespaced=kind.namespaced,
        behaviour=behaviour,
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources=frozenset(one.name for one in kind.subresources),
        selectable_fields=tuple(kind.selectable),
    )


def built_in_versions() -> list[Versions]:
    """The built-in kinds that are stored, each in its one version."""
    return [Versions([resource_of(kind, BuiltIn(kind))], kind.version) for kind in kinds.served() if kind.stored]
