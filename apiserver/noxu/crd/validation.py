"""Validation of CRDs (apiextensions/validation/validation.go), with upstream's order and messages.

These functions take decoded and defaulted v1 CRDs, before `types.written`. Paths are those of the internal form (see
`internal`). An update may keep violations of the stored CRD (see `strictness`). As upstream does, validation drops
unknown metadata fields from the defaults of embedded resources, so the validated object has to be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api.field import (
    FieldError,
    Path,
    Verbatim,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    not_supported,
    required,
    too_many,
)
from noxu.api.meta import validate_object_meta, validate_object_meta_update
from noxu.api.names import dns1035_label, dns1123_subdomain, subdomain_name
from noxu.crd.clientconfig import conversion_errors
from noxu.crd.conditions import APPROVAL_ANNOTATION, Approval, approval, is_protected, is_true
from noxu.crd.internal import Internal, echo_versions, internal, nodes
from noxu.crd.schemas import RuleCheckers, schema_errors
from noxu.crd.strictness import MAX_SELECTABLE_FIELDS, Strictness, has_ca_bundle, has_schema
from noxu.go.text import compact_json
from noxu.schema import patterns
from noxu.schema.fieldpath import NOT_A_FIELD, resolve
from noxu.schema.structural import NoStructuralForm, Structural, parse
from noxu.values import Json, Object

SCOPES: Final = ["Cluster", "Namespaced"]
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
MAX_DEPRECATION_WARNING: Final = 256  # bytes, though the text says characters


MAX_PATTERN_SIZE: Final = 500_000
"""Instructions of all patterns of a definition. Each takes about 32 bytes. Upstream has no such limit."""


def validate(crd: Object, *, checkers: RuleCheckers | None = None, spec_is_valid: bool = False) -> list[FieldError]:
    """The errors in a CRD that is prepared for creation. `spec_is_valid`: it is known, and not looked at (`known_definitions`)."""
    spec = internal(crd["spec"])
    names = spec.names

    def name_errors(name: str, prefix: bool) -> list[str]:
        errors = subdomain_name(name, prefix)
        if name != f"{names['plural']}.{spec.group}":
            errors = [*errors, 'must be spec.names.plural+"."+spec.group']
        return errors

    return [
        *validate_object_meta(crd["metadata"], namespaced=False, name_rule=name_errors),
        *(() if spec_is_valid else _spec_errors(spec, Strictness(spec), "spec", checkers)),
        *_rest(crd, None, spec),
    ] or ([] if spec_is_valid else _pattern_errors(spec))


def validate_update(
    new: Object, old: Object, *, checkers: RuleCheckers | None = None, spec_is_valid: bool = False
) -> list[FieldError]:
    """The errors in a CRD that is prepared to replace `old`.

    `spec_is_valid`: the spec could be created. Then it is not checked again, because the rules of an update are a part of
    those of a creation, except the one about CA bundles (`Strictness`).
    """
    spec, before = internal(new["spec"]), internal(old["spec"])
    strict = Strictness(spec, before, established=is_true(old, "Established"))
    spec_is_valid = spec_is_valid and not has_ca_bundle(spec)
    errors = validate_object_meta_update(new["metadata"], old["metadata"])
    errors += () if spec_is_valid else _spec_errors(spec, strict, "spec", checkers)
    immutable: list[tuple[Path, Json, Json]] = [
        ("spec.group", spec.group, before.group),
        ("spec.names.plural", spec.names["plural"], before.names["plural"]),
    ]
    if strict.immutable_names:
        immutable = [
            ("spec.scope", Verbatim(compact_json(spec.scope)), Verbatim(compact_json(before.scope))),
            ("spec.names.kind", spec.names["kind"], before.names["kind"]),
            *immutable,
        ]
    errors += [invalid(path, value, "field is immutable") for path, value, stored in immutable if value != stored]
    return errors + list(_rest(new, old, spec)) or ([] if spec_is_valid else _pattern_errors(spec))


def _pattern_errors(spec: Internal) -> list[FieldError]:
    """The error of patterns that take too much memory together. Each of them is valid."""
    distinct = {node["pattern"] for schema in spec.schemas() for node in nodes(schema) if node.get("pattern")}
    size = sum(map(patterns.size, distinct))
    if size <= MAX_PATTERN_SIZE:
        return []
    why = (
        f"the patterns have {size} instructions, and a definition may have at most {MAX_PATTERN_SIZE}: repeat classes of "
        "characters, such as \\pL, fewer times, and limit the length with maxLength"
    )
    return [forbidden("spec.versions", why)]


def validate_status_update(new: Object, old: Object) -> list[FieldError]:
    """The errors in an updated status; only the accepted names are validated."""
    errors = validate_object_meta_update(new["metadata"], old["metadata"])
    return errors + list(_name_errors(new["status"]["acceptedNames"], "status.acceptedNames"))


def _rest(crd: Object, old: Object | None, spec: Internal) -> Iterator[FieldError]:
    """The checks after those of the spec."""
    yield from _name_errors(crd["status"]["acceptedNames"], "status.acceptedNames")
    yield from _stored_version_errors(crd["status"]["storedVersions"], spec, "status.storedVersions")
    yield from _approval_errors(crd, old)
    preserved_before = old is not None and old["spec"].get("preserveUnknownFields")
    if spec.preserve_unknown_fields and not preserved_before:
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, why)


def _spec_errors(spec: Internal, strict: Strictness, path: Path, checkers: RuleCheckers | None) -> Iterator[FieldError]:
    yield from _group_errors(spec.group, child(path, "group"))
    if not spec.scope:
        yield required(child(path, "scope"))
    elif spec.scope not in SCOPES:
        yield not_supported(child(path, "scope"), spec.scope, SCOPES)
    yield from _missing_schema_errors(spec, strict, child(path, "versions"))
    if spec.preserve_unknown_fields and strict.has_defaults:
        why = "must be false in order to use defaults in the schema"
        yield invalid(child(path, "preserveUnknownFields"), True, why)
    versions = spec.versions or []
    statuses = _statuses(spec)
    for n, version in enumerate(versions):
        where, status = index(child(path, "versions"), n), statuses[version["name"]]
        yield from _version_errors(version, strict, where, checkers, status=status)
    names = [version["name"] for version in versions]
    if len(set(names)) < len(names):
        yield invalid(child(path, "versions"), echo_versions(spec.versions), "must contain unique version names")
    if sum(version["storage"] for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid(child(path, "versions"), echo_versions(spec.versions), why)
    if spec.version and (messages := dns1035_label(spec.version)):
        yield invalid(child(path, "version"), spec.version, ",".join(messages))
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec.names.get(name):
            yield required(child(path, "names", name))
    yield from _name_errors(spec.names, child(path, "names"))
    any_status = any(
        _has_status(declared) for declared in (spec.subresources, *(v.get("subresources") for v in versions))
    )
    yield from _holder_errors(
        spec.validation, child(path, "validation"), strict, spec.version, status=any_status, checkers=checkers
    )
    yield from _scale_errors(spec.subresources, child(path, "subresources"))
    for n, column in enumerate(spec.columns or []):
        yield from _column_errors(column, index(child(path, "additionalPrinterColumns"), n))
    if spec.selectable_fields:
        yield from _hoisted_selectable_field_errors(spec, strict, path)
    if spec.conversion is not None:
        where = child(path, "conversion")
        strategy = spec.conversion["strategy"]
        if strategy != "None" and spec.preserve_unknown_fields:
            why = "must be None if spec.preserveUnknownFields is true"
            yield invalid(child(where, "strategy"), Verbatim(compact_json(strategy)), why)
        yield from conversion_errors(
            spec.conversion,
            where,
            known_review_version=strict.known_review_version,
            readable_ca=strict.readable_ca,
        )


def _group_errors(group: str, path: Path) -> Iterator[FieldError]:
    if not group:
        yield required(path)
    elif messages := dns1123_subdomain(group):
        yield invalid(path, group, ",".join(messages))
    elif "." not in group:
        yield invalid(path, group, "should be a domain with at least one dot")


def _missing_schema_errors(spec: Internal, strict: Strictness, path: Path) -> Iterator[FieldError]:
    if has_schema(spec.validation) or (not strict.schemas and spec.preserve_unknown_fields):
        return
    for n, version in enumerate(spec.versions or []):
        if has_schema(version.get("schema")):
            continue
        where = child(index(path, n), "schema", "openAPIV3Schema")
        if strict.schemas:
            yield required(where)
        elif version["served"]:
            yield required(where, "because otherwise all fields are pruned")


def _version_errors(
    version: Object, strict: Strictness, path: Path, checkers: RuleCheckers | None, *, status: bool
) -> Iterator[FieldError]:
    """`status`: the version has the subresource."""
    if messages := dns1035_label(version["name"]):
        yield invalid(child(path, "name"), version["name"], ",".join(messages))
    warning = version.get("deprecationWarning")
    if warning is not None:
        shown = Verbatim(compact_json(warning))
        for why in _deprecation_warning_errors(warning, version.get("deprecated", False)):
            yield invalid(child(path, "deprecationWarning"), shown, why)
    holder = version.get("schema")
    yield from _holder_errors(
        holder,
        child(path, "schema"),
        strict,
        version["name"],
        status=status,
        checkers=checkers,
    )
    yield from _scale_errors(version.get("subresources"), child(path, "subresources"))
    for n, column in enumerate(version.get("additionalPrinterColumns") or []):
        yield from _column_errors(column, index(child(path, "additionalPrinterColumns"), n))
    fields = version.get("selectableFields")
    if not fields:
        return
    if holder is None or not has_schema(holder):
        why = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid(child(path, "selectableFields"), "", why)
    else:
        limit = strict.few_selectable_fields(version["name"])
        yield from _selectable_field_errors(fields, holder["openAPIV3Schema"], path, limited=limit)


def _deprecation_warning_errors(warning: str, deprecated: bool) -> Iterator[str]:
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > MAX_DEPRECATION_WARNING:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    position = 0
    for char in warning:
        if not char.isprintable():
            why = f"non-printable character found at index {position}"
            yield f"must only contain printable UTF-8 characters; {why}"
            return
        position += len(char.encode())


def _statuses(spec: Internal) -> dict[str, bool]:
    """Whether each version, by its name, has the subresource /status. Of versions with one name the first counts."""
    versions = spec.versions or []
    if all(version.get("subresources") is None for version in versions):
        return dict.fromkeys((version["name"] for version in versions), _has_status(spec.subresources))
    return {version["name"]: _has_status(version.get("subresources")) for version in reversed(versions)}


def _has_status(subresources: Object | None) -> bool:
    return subresources is not None and subresources.get("status") is not None


def _holder_errors(
    holder: Object | None,
    path: Path,
    strict: Strictness,
    version: str,
    *,
    status: bool,
    checkers: RuleCheckers | None,
) -> list[FieldError]:
    """A CustomResourceValidation."""
    if holder is None or not has_schema(holder):
        return []
    schema, where = holder["openAPIV3Schema"], child(path, "openAPIV3Schema")
    return schema_errors(schema, where, strict, version, status=status, checkers=checkers)


def _name_errors(names: Object, path: Path) -> Iterator[FieldError]:
    """The syntax of the names that are set."""
    for name in ("plural", "singular"):
        if names.get(name) and (messages := dns1035_label(names[name])):
            yield invalid(child(path, name), names[name], ",".join(messages))
    for name in ("kind", "listKind"):
        if names.get(name) and (messages := dns1035_label(names[name].lower())):
            why = f"may have mixed case, but should otherwise match: {','.join(messages)}"
            yield invalid(child(path, name), names[name], why)
    for n, name in enumerate(names.get("shortNames") or []):
        if messages := dns1035_label(name):
            yield invalid(index(child(path, "shortNames"), n), name, ",".join(messages))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(child(path, "listKind"), names["listKind"], "kind and listKind may not be the same")
    for n, name in enumerate(names.get("categories") or []):
        if messages := dns1035_label(name):
            yield invalid(index(child(path, "categories"), n), name, ",".join(messages))


def _column_errors(column: Object, path: Path) -> Iterator[FieldError]:
    """A printer column; the JSON path is not parsed."""
    if not column["name"]:
        yield required(child(path, "name"))
    types = f"must be one of {','.join(COLUMN_TYPES)}"
    if not column["type"]:
        yield required(child(path, "type"), types)
    elif column["type"] not in COLUMN_TYPES:
        yield invalid(child(path, "type"), column["type"], types)
    if column.get("format") and column["format"] not in COLUMN_FORMATS:
        yield invalid(child(path, "format"), column["format"], f"must be one of {','.join(COLUMN_FORMATS)}")
    where = child(path, "JSONPath")
    if not column["jsonPath"]:
        yield required(where)
    elif not column["jsonPath"].startswith("."):
        yield invalid(where, column["jsonPath"], _NOT_SIMPLE)


_NOT_SIMPLE: Final = "must be a simple json path starting with ."


def _scale_errors(subresources: Object | None, path: Path) -> Iterator[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for name, parts, where in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        scale_path, field = scale.get(name), child(path, f"scale.{name}")
        if not scale_path:
            if name != "labelSelectorPath":
                yield required(field)
        elif not scale_path.startswith("."):
            yield invalid(field, scale_path, _NOT_SIMPLE)
        elif not scale_path.startswith(parts):
            shown = Verbatim(compact_json(scale_path)) if name == "labelSelectorPath" else scale_path  # it is a pointer
            yield invalid(field, shown, f"should be a json path under {where}")


def _hoisted_selectable_field_errors(spec: Internal, strict: Strictness, path: Path) -> Iterator[FieldError]:
    """Selectable fields of all versions together. If the schemas differ, upstream has none to look them up in."""
    if spec.validation is None:
        why = "may only be set when validations.schema is included"
        yield invalid(child(path, "selectableFields"), "", why)
    else:
        schema, limit = spec.validation.get("openAPIV3Schema"), strict.few_selectable_fields("")
        yield from _selectable_field_errors(spec.selectable_fields or [], schema, path, limited=limit)


def _selectable_field_errors(
    fields: list[Object], schema: Object | None, path: Path, *, limited: bool
) -> Iterator[FieldError]:
    structural: Structural | None = None
    no_form = False  # upstream panics when it follows a path, so only paths that it cannot read are errors
    try:
        structural = parse(schema) if schema is not None else None
    except NoStructuralForm as error:
        yield invalid(child(path, "schema.openAPIV3Schema"), "", str(error))
        no_form = True
    seen: set[Path] = set()
    for n, field in enumerate(fields):
        json_path = field["jsonPath"]
        where = child(index(child(path, "selectableFields"), n), "jsonPath")
        if not json_path:
            yield required(where)
            continue
        try:
            declaration = resolve(json_path, structural, brackets=False)
        except ValueError as error:
            if no_form and str(error) == NOT_A_FIELD:
                continue
            yield invalid(where, json_path, f"is an invalid path: {error}")
            continue
        if declaration.root == "metadata":
            yield invalid(where, json_path, "must not point to fields in metadata")
        if declaration.schema is None or declaration.schema.type not in SELECTABLE_TYPES:
            why = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid(where, json_path, why)
        if declaration.path in seen:
            yield duplicate(where, json_path)
        seen.add(declaration.path)
    if len(seen) > MAX_SELECTABLE_FIELDS and limited:
        yield too_many(child(path, "selectableFields"), len(seen), MAX_SELECTABLE_FIELDS)


def _stored_version_errors(stored: list[str] | None, spec: Internal, path: Path) -> Iterator[FieldError]:
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    left = {version: n for n, version in enumerate(stored)}
    for version in spec.versions or []:
        name = version["name"]
        if version["storage"] and name not in left:
            yield invalid(path, stored, f"must have the storage version {name}")
        left.pop(name, None)
    for name, n in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        yield invalid(index(path, n), name, why)


def _approval_errors(crd: Object, old: Object | None) -> Iterator[FieldError]:
    """Groups of the Kubernetes community need an approval, or the statement that they have none."""
    if not is_protected(crd["spec"]["group"]):
        return
    state, reason = approval(crd)
    if old is not None and approval(old)[0] == state:
        return
    where = key("metadata.annotations", APPROVAL_ANNOTATION)
    if state is Approval.MISSING:
        yield required(where, reason)
    elif state is Approval.INVALID:
        yield invalid(where, crd["metadata"]["annotations"][APPROVAL_ANNOTATION], reason)
