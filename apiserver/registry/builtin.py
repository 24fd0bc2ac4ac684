"""How built-in kinds behave: as their `Kind` says, for all of them alike."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.api import meta
from apiserver.api.structs import Struct, decode
from apiserver.api.types import Object
from apiserver.registry import kinds
from apiserver.registry.kinds import Context, Kind, events
from apiserver.registry.kinds.expressions import Checker
from apiserver.registry.kinds.matching import Unevaluable
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Behaviour, Resource, Versions


class BuiltIn:
    """The behaviour of one built-in kind."""

    sorted_keys = False

    def __init__(self, kind: Kind, adopt: Callable[[Object], Object] = lambda value: value) -> None:
        """`adopt` makes an object of the kind's other version one of this."""
        self.kind = kind
        self.struct: Struct | None = kind.struct
        self.unconditional_update = kind.unconditional_update
        self.create_on_update = kind.create_on_update
        self._adopt = adopt

    def accept(self, resource: Resource, value: Object, *, stored: bool = False) -> bool:
        return False

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        decoded = decode(self.kind.struct, value)
        if decoded.error:
            raise ValueError(decoded.error)
        return decoded.value, decoded.unknown

    def read(self, resource: Resource, value: Object) -> None:
        """What is stored was decoded when it was written."""

    def prune(self, resource: Resource, value: Object) -> Object:
        return self.decode(resource, value)[0]

    def convert(self, resource: Resource, value: Object) -> Object:
        return self._adopt(value)

    def default(self, resource: Resource, value: Object) -> None:
        self.kind.default(value)

    def prepare(self, draft: Draft) -> None:
        kinds.prepare(self.kind, draft.new, draft.old, draft.subresource)

    def written(self, value: Object) -> Object:
        return kinds.written(self.kind, value)

    def validate(self, draft: Draft) -> None:
        new, old = draft.new, draft.old
        if self.kind.stored:
            draft.errors += meta.validate_object_meta(
                new["metadata"], namespaced=self.kind.namespaced, name_rule=self.kind.name_rule
            )
        if old is not None:
            draft.errors += meta.validate_object_meta_update(new["metadata"], old["metadata"])
        strict = draft.options.field_validation == "Strict"
        for error in self.kind.validate(new, old, Context(draft.subresource, Checker())):
            if strict or not isinstance(error, Unevaluable):
                draft.errors.append(error)
            else:
                draft.warnings.append(" ".join(str(error).split()))
        draft.warnings += self.kind.warnings(new, old)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        for one in self.kind.subresources:
            if one.name == subresource:
                return one.kept
        return self.kind.kept

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
        stored=kind.stored,
        subresources=frozenset(one.name for one in kind.subresources),
        selectable_fields=tuple(kind.selectable),
    )


def built_in_versions() -> list[Versions]:
    """The built-in kinds. All have one version, but for events: they are served in two groups."""
    versions = []
    for kind in kinds.served():
        if kind.kind != "Event":
            resource = resource_of(kind, BuiltIn(kind))
            versions.append(Versions([resource], resource))
    core, other = (kinds.by_group_kind()[version, "Event"] for version in (events.CORE, events.EVENTS))
    both = [resource_of(core, BuiltIn(core, events.to_core)), resource_of(other, BuiltIn(other, events.from_core))]
    return [*versions, Versions(both, both[0])]
