"""The behaviour of built-in kinds: decoding, reading and writing (rules in their `Kind`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from noxu.go.structs import Struct, decode
from noxu.kinds import events, scheme
from noxu.kinds.autoscaling import SCALE
from noxu.kinds.kind import VIRTUAL_VERBS, Kind, Subresource, reset_fields, selected, written
from noxu.registry.resource import BUILT_IN, VIRTUAL, Behaviour, Resource, ScalePaths, Versions
from noxu.registry.typed import TypedObjects
from noxu.values import Object


class BuiltIn(TypedObjects):
    """The behaviour of one built-in kind."""

    def __init__(
        self,
        kind: Kind,
        other: Kind | None = None,
        adopt: Callable[[Object], Object] = lambda value: value,
        *,
        has_foreign: bool = False,
    ) -> None:
        """`adopt` converts an object of `other`, the same kind in another group, to this one.

        `has_foreign`: stored objects may be those of other programs, so they are decoded into structs when they are read.
        """
        versions = [kind] if other is None else [kind, other]
        super().__init__(kind.struct, {version.api_version: partial(decode, version.struct) for version in versions})
        self.kind = kind
        self.unconditional_update = kind.unconditional_update
        self.create_on_update = kind.create_on_update
        self._adopt = adopt
        self._has_foreign = has_foreign

    def convert(self, resource: Resource, value: Object) -> Object:
        return self._adopt(value)

    def read(self, resource: Resource, value: Object) -> None:
        if self._has_foreign:
            decoded, _ = self.decode(resource, value)
            value.clear()
            value.update(decoded)

    def default(self, resource: Resource, value: Object) -> None:
        self.kind.default(value)

    def written(self, value: Object) -> Object:
        return written(self.kind, value)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        return reset_fields(self.kind, subresource)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return selected(self.kind, value)

    def unknown_field_label(self, name: str) -> str:
        if self.kind.unknown_label:
            return self.kind.unknown_label.replace("%s", name)
        known = ", ".join(f'"{label}"' for label in (*self.kind.metadata_labels, *self.kind.selectable))
        return f'"{name}" is not a known field selector: only {known}'


def resource_of(kind: Kind, behaviour: Behaviour) -> Resource:
    return Resource(
        type=BUILT_IN if kind.stored else VIRTUAL,
        table=kind,
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
        subresources=frozenset(subresource.name for subresource in kind.subresources),
        scale=_scale_paths(kind),
        bodies=_bodies(kind),
        deprecation_text=kind.deprecation,
        selectable_fields=tuple(kind.selectable),
    )


def _bodies(kind: Kind) -> dict[str, Resource]:
    return {
        part.name: _body(kind, part.body, part)
        for part in kind.subresources
        if part.body is not None and (part.connect or part.verbs == VIRTUAL_VERBS)
    }


def _body(kind: Kind, struct: Struct, part: Subresource) -> Resource:
    body = Kind(
        group=part.body_group,
        version=part.body_version,
        kind=struct.name,
        struct=struct,
        plural=kind.plural,
        namespaced=kind.namespaced,
        verbs=VIRTUAL_VERBS,
    )
    resource = resource_of(body, BuiltIn(body))
    Versions([resource], resource)
    return resource


def _scale_paths(kind: Kind) -> ScalePaths | None:
    found = kind.subresource("scale")
    if found is None or found.scale is None:
        return None
    return ScalePaths(*(f".{found.scale[name]}" for name in ("spec", "status", "selector")))


_SCALE_KIND: Final = Kind(
    group="autoscaling", kind="Scale", struct=SCALE, plural="scales", namespaced=True, verbs=VIRTUAL_VERBS
)
SCALE_RESOURCE: Final = resource_of(_SCALE_KIND, BuiltIn(_SCALE_KIND))
"""The body of the /scale of built-in kinds."""


def _autoscaler_v1(value: Object) -> Object:
    from noxu.kinds import autoscaler_versions  # imported late: many servers have no such objects

    return autoscaler_versions.to_v1(value)


def _autoscaler_v2(value: Object) -> Object:
    from noxu.kinds import autoscaler_versions

    return autoscaler_versions.to_v2(value)


_Converter = Callable[[Object], Object]
_SEVERAL: Final[tuple[tuple[str, tuple[str, _Converter], tuple[str, _Converter]], ...]] = (
    ("Event", (events.CORE, events.to_core), (events.EVENTS, events.from_core)),
    ("HorizontalPodAutoscaler", ("autoscaling/v2", _autoscaler_v2), ("autoscaling/v1", _autoscaler_v1)),
)
"""The kinds that are served in two versions or groups: (the kind, the stored version, the other one), with converters."""


def built_in_versions(*, has_foreign: bool = False) -> list[Versions]:
    """The built-in kinds, in the order of discovery; then those with several versions.

    `has_foreign`: other programs may have stored objects.
    """
    several = {kind for kind, _, _ in _SEVERAL}
    versions = []
    for kind in scheme.served():
        if kind.kind not in several:
            resource = resource_of(kind, BuiltIn(kind, has_foreign=has_foreign))
            versions.append(Versions([resource], resource))
    for name, (stored_version, to_stored), (other_version, to_other) in _SEVERAL:
        stored, other = (scheme.by_group_kind()[version, name] for version in (stored_version, other_version))
        both = [
            resource_of(stored, BuiltIn(stored, other, to_stored, has_foreign=has_foreign)),
            resource_of(other, BuiltIn(other, stored, to_other, has_foreign=has_foreign)),
        ]
        versions.append(Versions(both, both[0]))
    return versions
