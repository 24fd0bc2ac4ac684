"""A resource: one version of a kind as the API serves it, with everything that is compiled for it.

Custom resources, CustomResourceDefinitions and built-in kinds are all `Resource`s; how their objects are decoded,
completed, validated and written is their `Behaviour`. `Versions` ties the versions of one resource together: objects
are stored once, in the storage version, and read at any served one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from apiserver.api.errors import Qualified
from apiserver.api.structs import Struct
from apiserver.api.types import Object
from apiserver.schema.compiled import Compiled
from apiserver.schema.defaulting import brings_nulls
from apiserver.schema.embedded import has_embedded
from apiserver.schema.structural import MISSING, Structural, has_rules, parse

if TYPE_CHECKING:
    from apiserver.cel.validation import Validator
    from apiserver.registry.conversion import Converter
    from apiserver.registry.pipeline import Draft

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which upstream lists them in discovery."""


class Behaviour(Protocol):
    """What differs between custom resources, definitions and built-in kinds. All of it is pure."""

    unconditional_update: bool
    """May an update leave out the resourceVersion?"""

    create_on_update: bool
    """Does an update of what is not there create it?"""

    sorted_keys: bool
    """Are objects written with sorted keys (custom resources), or in the order of declaration?"""

    struct: Struct | None
    """The table of a kind that has no schema."""

    def accept(self, resource: Resource, value: Object, *, stored: bool = False) -> bool:
        """Whether an object is clean at a look: `decode` (or `read`, if it is `stored`) would change nothing of it but
        its metadata, and after `default` the schema would be content. Metadata and defaults are as they should be then.

        False says nothing. Defaults that are sure may be there already.
        """
        ...

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        """Type an object that came in: the object, and the paths of unknown fields in upstream's order.

        This is where custom resources are pruned. Raises ValueError for what has the wrong type, in Go's words.
        """
        ...

    def read(self, resource: Resource, value: Object) -> None:
        """Bring a stored object into the shape that its version's schema describes now, in place (no defaults)."""
        ...

    def prune(self, resource: Resource, value: Object) -> Object:
        """The object without unknown fields; it may be changed in place. What has the wrong type stays as it is."""
        ...

    def convert(self, resource: Resource, value: Object) -> Object:
        """An object of another version of the same resource as one of this version, which may be the same dict."""
        ...

    def default(self, resource: Resource, value: Object) -> None:
        """Fill in defaults, in place."""
        ...

    def written(self, value: Object) -> Object:
        """The object as it is written: in the order of declaration, without what is left out when empty."""
        ...

    def prepare(self, draft: Draft) -> None:
        """Reset what the caller may not set (status, or everything but status), and count the generation."""
        ...

    def validate(self, draft: Draft) -> None:
        """Collect field errors in `draft.errors` and warnings in `draft.warnings`."""
        ...

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        """The dotted paths that a write to this subresource cannot change, and that nobody owns through it."""
        ...

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        """The fields beside metadata.name and metadata.namespace that field selectors may name."""
        ...

    def unknown_field_label(self, name: str) -> str:
        """What to say of a field that selectors may not name."""
        ...


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where /scale finds its numbers; JSON paths with their leading dot, as the definition has them."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(eq=False)
class Resource:
    """One version of one resource."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    behaviour: Behaviour
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    verbs: Sequence[str] = CUSTOM_VERBS
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths | None = None
    served: bool = True
    stored: bool = True
    """Otherwise an object is a question, that is answered and forgotten."""
    deprecation_text: str = ""
    """What every request to a deprecated version is warned with."""
    columns: Sequence[Object] | None = None
    selectable_fields: Sequence[str] = ()
    """JSON paths without the leading dot, as field selectors name them."""
    raw_schema: Object | None = None
    versions: Versions = field(init=False, repr=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def collection(self) -> str:
        """The storage collection; the same for all versions."""
        return self.versions.collection

    @cached_property
    def what(self) -> Qualified:
        """How error texts name the resource: `widgets.example.com`."""
        return Qualified(self.group, self.plural)

    @cached_property
    def kind_what(self) -> Qualified:
        """How error texts name the kind: `Widget.example.com`."""
        return Qualified(self.group, self.kind)

    @cached_property
    def schema(self) -> Structural | None:
        """The structural schema, parsed when first needed; None if there is none."""
        return None if self.raw_schema is None else parse(self.raw_schema)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The schema's fast path; None if there is no schema."""
        return None if self.schema is None else Compiled(self.schema)

    @cached_property
    def rules(self) -> Validator | None:
        """The rules of the schema (x-kubernetes-validations); None if it has none."""
        if self.schema is None or not has_rules(self.schema):
            return None
        from apiserver.cel.validation import Validator  # few need the engine, and it is large

        return Validator(self.schema)

    @property
    def awaits_rules(self) -> bool:
        """Whether it has rules that nobody has needed yet: to import the engine and to make them takes long."""
        return "rules" not in vars(self) and self.schema is not None and has_rules(self.schema)

    @cached_property
    def stored_head(self) -> bytes:
        """How a stored custom resource begins, if no top-level field sorts before metadata."""
        return f'{{"apiVersion":"{self.api_version}","kind":"{self.kind}","metadata":'.encode()

    @cached_property
    def has_embedded(self) -> bool:
        """Whether the schema declares embedded resources."""
        return has_embedded(self.schema)

    @cached_property
    def stores_shown(self) -> bool:
        """Whether what a write at this version leaves is what a read gives.

        Not so where a default fills in a status that creating has wiped, or brings nulls.
        """
        if brings_nulls(self.schema):
            return False
        status = self.schema.properties.get("status") if self.schema is not None and self.has_status else None
        return status is None or status.default is MISSING

    def prepare(self) -> None:
        """Make now what is otherwise made when it is first needed."""
        _ = self.schema, self.has_embedded, self.stores_shown

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


class Versions:
    """All versions of one resource.

    `since` is the revision from which on it is served as it is now; no watch starts before it. `terminating`: its
    definition is being deleted, nothing may be created any more. `converter` is who has to be asked how objects look at
    another version; None: nobody, the behaviours know.
    """

    converter: Converter | None = None

    def __init__(self, resources: Sequence[Resource], storage: Resource, since: int = 0) -> None:
        self.storage = storage
        self.since = since
        self.terminating = False
        self.collection = f"{storage.group}/{storage.plural}"
        self._by_api_version = {one.api_version: one for one in resources}
        for one in resources:
            one.versions = self

    @property
    def all(self) -> Iterable[Resource]:
        return self._by_api_version.values()

    def has(self, resource: Resource | None) -> bool:
        """Whether it is one of these versions."""
        return resource is not None and resource.versions is self

    def find(self, api_version: str) -> Resource | None:
        return self._by_api_version.get(api_version)

    def of(self, value: Object) -> Resource:
        """The version that a stored object was written in; the storage version if that one is gone."""
        return self._by_api_version.get(value.get("apiVersion", ""), self.storage)
