"""The behaviour of CustomResourceDefinitions: decoding, reading and writing (rules in `noxu.apiserver.crd`)."""

from __future__ import annotations

from typing import Final

from noxu.apiserver.crd import defaults, types
from noxu.apiserver.registry.resource import DEFINITION, Resource, Versions
from noxu.apiserver.registry.typed import TypedObjects
from noxu.apiserver.values import Object

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class DefinitionBehaviour(TypedObjects):
    """The behaviour of the resource customresourcedefinitions."""

    unconditional_update = False
    create_on_update = False

    def __init__(self) -> None:
        super().__init__(types.CRD)

    def convert(self, resource: Resource, value: Object) -> Object:
        return value

    def default(self, resource: Resource, value: Object) -> None:
        value.update(defaults.default(value))

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
