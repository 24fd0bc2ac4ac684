"""The strictness of validation: an update may keep violations that the stored CRD already has.

Every rule that was introduced later has such an exception (apiextensions/validation's
ValidateCustomResourceDefinitionUpdate). The stored CRD is examined only if a rule is violated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.crd.clientconfig import REVIEW_VERSIONS
from noxu.crd.default_values import has_unknown_fields
from noxu.crd.internal import Internal, nodes, same
from noxu.crd.lists import has_composite_items, presence_errors
from noxu.crd.types import SELECTABLE_FIELD, VALIDATION
from noxu.go import x509
from noxu.go.base64 import decode as decode_base64
from noxu.go.structs import List
from noxu.schema.lint import structural_errors
from noxu.schema.structural import NoStructuralForm, parse
from noxu.values import Object, cached_property

TYPES: Final = ["array", "boolean", "integer", "number", "object", "string"]
MAX_SELECTABLE_FIELDS: Final = 8


class Strictness:
    """The rules that apply to `new`. Without `old`, at creation, all rules apply but that about CA bundles."""

    def __init__(self, new: Internal, old: Internal | None = None, *, established: bool = False) -> None:
        self.new = new
        self.old = old
        self.immutable_names = established

    def _nodes(self) -> Iterator[Object]:
        for schema in self.old.schemas() if self.old else ():
            yield from nodes(schema)

    @cached_property
    def schemas(self) -> bool:
        """Whether every version must have a schema."""
        return self.old is None or _has_all_schemas(self.old)

    @cached_property
    def structural(self) -> bool:
        """Whether schemas must be structural. CRDs that preserve unknown fields, a relic of v1beta1, may be exempt."""
        return (
            self.old is None
            or not self.new.preserve_unknown_fields
            or self.has_defaults
            or any(_has_extensions(node) for schema in self.new.schemas() for node in nodes(schema))
            or all(map(_is_structural, self.old.schemas()))
        )

    @cached_property
    def has_defaults(self) -> bool:
        return any(node.get("default") is not None for schema in self.new.schemas() for node in nodes(schema))

    @cached_property
    def valid_types(self) -> bool:
        return all(node.get("type", "") in ("", *TYPES) for node in self._nodes())

    @cached_property
    def pruned_defaults(self) -> bool:
        return self.old is None or not any(map(has_unknown_fields, self.old.schemas()))

    @cached_property
    def atomic_sets(self) -> bool:
        return not any(map(has_composite_items, self._nodes()))

    @cached_property
    def keys_present(self) -> bool:
        """Whether items of sets and maps, and the keys of maps, must be present and not null."""
        return not any(any(presence_errors(node, "")) for node in self._nodes())

    @cached_property
    def known_review_version(self) -> bool:
        versions = _webhook(self.old).get("conversionReviewVersions") or []
        return not versions or not set(versions).isdisjoint(REVIEW_VERSIONS)

    @cached_property
    def readable_ca(self) -> bool:
        """Whether an unreadable CA bundle is an error. Before a CRD is established, it only keeps it from becoming so."""
        bundle = (_webhook(self.old).get("clientConfig") or {}).get("caBundle")
        return self.immutable_names and not (bundle and x509.load_error(decode_base64(bundle)))

    def few_selectable_fields(self, version: str) -> bool:
        """Whether the number of selectable fields is limited; `version` is "" for hoisted ones."""
        if self.old is None:
            return True
        before, after = _selectable_fields(self.old, version), _selectable_fields(self.new, version)
        unchanged = same(List(SELECTABLE_FIELD), before, after)
        return not (unchanged and len(before) > MAX_SELECTABLE_FIELDS)

    @cached_property
    def stored_rules(self) -> frozenset[str]:
        """The rules of the stored CRD; they may use features that new rules may not yet."""
        return frozenset(rule["rule"] for node in self._nodes() for rule in node.get("x-kubernetes-validations") or ())

    @cached_property
    def stored_messages(self) -> frozenset[str]:
        """The messageExpressions of the stored CRD."""
        rules = (rule for node in self._nodes() for rule in node.get("x-kubernetes-validations") or ())
        return frozenset(rule["messageExpression"] for rule in rules if rule.get("messageExpression"))

    @cached_property
    def unchanged(self) -> frozenset[str]:
        """The versions with an unchanged schema; the costs of their single rules are not limited."""
        if self.old is None:
            return frozenset()
        names = set()
        for version in self.new.versions or []:
            name = version["name"]
            try:
                if same(VALIDATION, self.new.schema(name), self.old.schema(name)):
                    names.add(name)
            except LookupError:
                continue
        return frozenset(names)


def _has_all_schemas(spec: Internal) -> bool:
    if has_schema(spec.validation):
        return True
    return all(has_schema(version.get("schema")) for version in spec.versions or [])


def has_schema(holder: Object | None) -> bool:
    """Whether a CustomResourceValidation has a schema."""
    return holder is not None and holder.get("openAPIV3Schema") is not None


def has_ca_bundle(spec: Internal) -> bool:
    return bool((_webhook(spec).get("clientConfig") or {}).get("caBundle"))


def _webhook(spec: Internal | None) -> Object:
    conversion = spec.conversion if spec else None
    return (conversion or {}).get("webhook") or {}


def _selectable_fields(spec: Internal, version: str) -> list[Object]:
    if not version:
        return spec.selectable_fields or []
    named = (candidate for candidate in reversed(spec.versions or []) if candidate["name"] == version)
    return next(named, {}).get("selectableFields") or []


_EXTENSIONS: Final = (
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)  # fmt: skip
_EXTENSIONS_EVEN_IF_ZERO: Final = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type")


def _has_extensions(schema: Object) -> bool:
    return any(schema.get(name) for name in _EXTENSIONS) or any(
        schema.get(name) is not None for name in _EXTENSIONS_EVEN_IF_ZERO
    )


def _is_structural(schema: Object) -> bool:
    try:
        return not structural_errors(parse(schema))
    except NoStructuralForm:
        return False
