"""The behaviour of CustomResourceDefinitions: decoding, reading and writing (rules in `noxu.crd`)."""

from __future__ import annotations

from typing import Final

from noxu.crd import types, v1beta1
from noxu.registry.resource import DEFINITION, Resource, Versions
from noxu.registry.typed import TypedObjects
from noxu.values import Object

_DECODERS: Final = {types.API_VERSION: types.decode, v1beta1.API_VERSION: v1beta1.decode}
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class DefinitionBehaviour(TypedObjects):
    """The behaviour of the resource customresourcedefinitions."""

    unconditional_update = False
    create_on_update = False

    def __init__(self) -> None:
        super().__init__(types.CRD, _DECODERS)

    def read(self, resource: Resource, value: Object) -> None:
        """Convert a definition that another server stored as v1beta1; others were decoded when they were written."""
        if v1beta1.is_v1beta1(value) and (decoded := v1beta1.decode(value).value) is not None:
            value.clear()
            value.update(v1beta1.upgrade(decoded))

    def convert(self, resource: Resource, value: Object) -> Object:
        return v1beta1.upgrade(value) if v1beta1.is_v1beta1(value) else value

    def default(self, resource: Resource, value: Object) -> None:
        value.update(types.default(value))

    def written(self, value: Object) -> Object:
        return types.written(value)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        return ("spec",) if subresource == "status" else ("status",)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return {}

    def unknown_field_label(self, name: str) -> str:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def definitions_resource() -> Versions:
    resource = Resource(
        type=DEFINITION,
        group=types.GROUP,
        version=types.VERSION,
        plural=types.RESOURCE,
        singular=types.KIND.lower(),
        kind=types.KIND,
        list_kind=f"{types.KIND}List",
        namespaced=False,
        behaviour=DefinitionBehaviour(),
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        verbs=VERBS,
        subresources=frozenset({"status"}),
    )
    return Versions([resource], resource)
