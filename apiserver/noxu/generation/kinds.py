"""Objects of a kind: made from the schema of its CRD, and validated by the stages of the server's pipeline.

An object is accepted if decoding, pruning, defaulting and validation of a create have no error, and prune nothing. `status`
is not made where it is a subresource, because a create drops it. A reference to the kind is the name of its CRD, with a
version if it is not the stored one: `widgets.example.com`, `widgets.example.com/v1beta1`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from noxu.api.field import FieldError
from noxu.crd import types
from noxu.generation.texts import Choose, text
from noxu.generation.valid import TRIES, CannotGenerate, ValueMaker, literals
from noxu.manifests import loading
from noxu.manifests.documents import Document, is_crd
from noxu.registry import custom
from noxu.registry.draft import Action, WriteRequest, draft_for
from noxu.registry.resource import Resource, Versions
from noxu.registry.strategies import STRATEGIES
from noxu.schema.structural import Structural
from noxu.values import Object, copy

_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_MAX_NAME: Final = 63
_META: Final = ("apiVersion", "kind", "metadata")


class UnknownDefinition(LookupError):
    """No CRD has this name, or it has no such version."""


def resource_of(documents: Iterable[Document], reference: str) -> Resource:
    """The resource of a kind that one of the documents defines. Raises UnknownDefinition, CannotGenerate, LoadError."""
    name, _, version = reference.partition("/")
    crds = {document.name: document for document in documents if is_crd(document.value)}
    if name not in crds:
        known = ", ".join(sorted(crds)) or "none"
        raise UnknownDefinition(f"no CRD is named {name}; there are: {known}")
    versions = versions_of(crds[name])
    if _keeps_unknown_fields(crds[name]):
        raise CannotGenerate(
            "", "spec.preserveUnknownFields is true, and a server refuses such a CRD of v1: `noxu lint`"
        )
    served = {resource.version: resource for resource in versions.all}
    if version and version not in served:
        raise UnknownDefinition(f"{name} has no version {version}; there are: {', '.join(served)}")
    resource = served[version] if version else versions.storage
    if resource.raw_schema is None:
        raise CannotGenerate("", f"version {resource.version} has no schema, and a server refuses a CRD without one")
    return resource


def _keeps_unknown_fields(document: Document) -> bool:
    """Whether a CRD of v1 has what only v1beta1 may have; one of v1beta1 is read as v1."""
    spec = document.value.get("spec")
    is_v1 = document.value.get("apiVersion") == "apiextensions.k8s.io/v1"
    return is_v1 and isinstance(spec, dict) and spec.get("preserveUnknownFields") is True


def versions_of(document: Document) -> Versions:
    """The versions of a kind that a CRD defines. Raises CannotGenerate, LoadError."""
    current, _notes = loading.as_v1(document)
    decoded = types.decode(current.value)
    if decoded.error:
        raise CannotGenerate("", f"the CRD {document.name} cannot be decoded: {decoded.error}; `noxu lint` says more")
    crd = types.default(decoded.value)
    try:
        return custom.versions_of({**crd, "status": {"acceptedNames": crd["spec"]["names"]}}, 0)
    except (KeyError, TypeError) as error:
        raise CannotGenerate("", f"the CRD {document.name} is invalid at {error}; `noxu lint` says more") from None


def errors_of(value: Object, resource: Resource) -> list[FieldError]:
    """The errors of creating an object, in the server's order; the object itself stays as it is."""
    draft = draft_for(WriteRequest(Action.CREATE, resource))
    draft.new = as_shown(value, resource)
    if resource.namespaced:
        draft.new["metadata"].setdefault("namespace", "default")
    STRATEGIES[resource.type].validate(draft)
    return draft.outcome.errors


def as_shown(value: Object, resource: Resource) -> Object:
    """An object as a server with the CRD shows it, pruned and with defaults; the object itself stays as it is."""
    shown: Object = copy(value)
    resource.codec.prune(resource, shown)
    resource.codec.default(resource, shown)
    return shown


def valid_object(resource: Resource, choose: Choose) -> Object:
    """An object that a server with the CRD accepts. Raises CannotGenerate."""
    schema, why = resource.schema, ""
    for _ in range(TRIES):
        value = object_of(resource, schema, choose)
        errors = errors_of(value, resource)
        if not errors:
            return value
        why = f"{errors[0].field}: {errors[0].body}"
    raise CannotGenerate("", f"no object is found that is accepted; the last one: {why}")


def object_of(resource: Resource, schema: Structural | None, choose: Choose, *, status: bool = False) -> Object:
    """An object of a kind within a schema, which may be narrower than its own; the rules of the root may refuse it.

    `status`: it has one even if that is a subresource. Raises CannotGenerate.
    """
    value: Object = {"apiVersion": resource.api_version, "kind": resource.kind}
    value["metadata"] = {"name": _name(resource, choose)}
    return value if schema is None else value | _content(resource, schema, choose, status=status)


def _name(resource: Resource, choose: Choose) -> str:
    metadata = resource.schema.properties.get("metadata") if resource.schema is not None else None
    node = metadata.properties.get("name") if metadata is not None else None
    words = literals(resource.schema) if resource.schema is not None and resource.schema.rules else ()
    validation = (node or Structural()).validation
    least, most = max(validation.min_length or 1, 1), min(validation.max_length or _MAX_NAME, _MAX_NAME)
    found = text(choose, validation.pattern or _NAME, validation.format, least, most, words)
    return found or "a"


def _content(resource: Resource, schema: Structural, choose: Choose, *, status: bool) -> Object:
    """The fields beside apiVersion, kind and metadata. What the server fills in or drops is left out."""
    left_out = {*_META, *(["status"] if "status" in resource.subresources and not status else [])}
    own = {name: node for name, node in schema.properties.items() if name not in left_out}
    required = tuple({*schema.validation.required, *({"spec"} & own.keys())} - left_out)
    content = replace(
        schema, properties=own, rules=(), validation=replace(schema.validation, required=required), nullable=False
    )
    made: Object = ValueMaker(choose).value(content, "", words=literals(schema))
    return made
