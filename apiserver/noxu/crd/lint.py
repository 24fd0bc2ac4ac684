"""`noxu lint`: whether a server would accept a CRD, and automatic fixes for one that it would refuse.

`narrowings` are the findings of an upgrade: what the new version of a CRD no longer serves, keeps or accepts.

Both versions are decoded CRDs of v1. Servers accept most of these changes, but stored objects and clients break. The
versions in a CRD are compared by their names. Changes that servers refuse, such as another scope of an established CRD,
are findings, too.

`advice_on_bounds` finds bounds that make a CEL rule affordable: a sufficient `maxItems`, `maxLength` or
`maxProperties`.

A rule's estimated cost grows with unbounded values: the strings, lists and maps that it reads, and the lists and maps
that contain its node. So the estimate is repeated on a small CRD with this rule only, in which one of these nodes has a
bound: bisection finds the largest bound that suffices. If no node alone suffices, all get the same bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from noxu.api.field import OMIT, ROOT, FieldError, Path, child, index, invalid, key, not_supported
from noxu.crd import types, v1beta1
from noxu.crd.schemas import RuleCheckers
from noxu.crd.types import default
from noxu.crd.unknown import unknown_fields
from noxu.crd.update import prepare_for_create, prepare_for_update
from noxu.crd.validation import validate, validate_update
from noxu.go.structs import DecodedStruct, arrange
from noxu.go.text import compact_json
from noxu.schema.completion import PRESERVE, CompletionNote, complete
from noxu.schema.lint import Remark, incomplete
from noxu.schema.lint import remarks as schema_remarks
from noxu.schema.narrowing import Narrowing
from noxu.schema.narrowing import narrowings as schema_narrowings
from noxu.schema.structural import NoStructuralForm, Structural, parse
from noxu.values import Json, Object, equal

_VERSIONS: Final = "spec.versions"
_NAMES: Final = (("plural", "plural"), ("kind", "kind"), ("singular", "singular"), ("listKind", "listKind"))
_LISTS_OF_NAMES: Final = (("shortNames", "short name"), ("categories", "category"))
_SCALE_PATHS: Final = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def narrowings(old: Object, new: Object) -> list[Narrowing]:
    """The findings in the new CRD; paths are in it, even if the field is not in it any more. None if one has no versions."""
    before, now = old.get("spec") or {}, new.get("spec") or {}
    if not (before.get("versions") and now.get("versions")):
        return []
    return [
        *_of_spec(before, now),
        *_of_names(before.get("names") or {}, now.get("names") or {}),
        *_of_versions(before, now, (old.get("status") or {}).get("storedVersions") or []),
        *_of_conversion(before.get("conversion") or {}, now.get("conversion") or {}),
    ]


def _of_spec(old: Object, new: Object) -> Iterator[Narrowing]:
    if old.get("scope") != new.get("scope"):
        yield Narrowing(
            "scope-changed", "spec.scope", f"the scope was {old.get('scope')}, and is {new.get('scope')} now"
        )
    if old.get("preserveUnknownFields") and not new.get("preserveUnknownFields"):
        yield Narrowing("no-longer-kept", "spec.preserveUnknownFields", "unknown fields were kept; now they are pruned")


def _of_names(old: Object, new: Object) -> Iterator[Narrowing]:
    for field, name in _NAMES:
        if old.get(field) and old[field] != new.get(field):
            now = f"is {new[field]} now" if new.get(field) else "is none now"
            yield Narrowing("names-changed", f"spec.names.{field}", f"the {name} was {old[field]}, and {now}")
    for field, name in _LISTS_OF_NAMES:
        for gone in [value for value in old.get(field) or () if value not in (new.get(field) or ())]:
            yield Narrowing("names-changed", f"spec.names.{field}", f"the {name} {gone} is gone")


def _of_versions(old: Object, new: Object, stored: list[Json]) -> Iterator[Narrowing]:
    versions = {version.get("name"): (n, version) for n, version in enumerate(new.get("versions") or ())}
    for before in old.get("versions") or ():
        name = before.get("name")
        if name not in versions:
            may_be_stored = name in stored or before.get("storage")
            why = "; objects may be stored in it: `noxu migrate` rewrites them" if may_be_stored else ""
            if before.get("served") or may_be_stored:
                yield Narrowing("version-removed", _VERSIONS, f"version {name} is removed{why}", subject=str(name))
            continue
        n, now = versions[name]
        yield from _of_version(before, now, index(_VERSIONS, n))
    old_storage, new_storage = _storage(old), _storage(new)
    if old_storage and new_storage and old_storage != new_storage and new_storage in versions:
        path = child(index(_VERSIONS, versions[new_storage][0]), "storage")
        yield Narrowing("storage-version-changed", path, f"objects were stored as {old_storage}, and are stored as {new_storage} when they are written: `noxu migrate` rewrites them")  # fmt: skip


def _storage(spec: Object) -> str:
    return next((str(version.get("name")) for version in spec.get("versions") or () if version.get("storage")), "")


def _of_version(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    if old.get("served") and not new.get("served"):
        name = str(old.get("name"))
        yield Narrowing("version-removed", child(path, "served"), f"version {name} is no longer served", subject=name)
    yield from _of_subresources(
        old.get("subresources") or {}, new.get("subresources") or {}, child(path, "subresources")
    )
    for field in old.get("selectableFields") or ():
        if not any(
            selectable.get("jsonPath") == field.get("jsonPath") for selectable in new.get("selectableFields") or ()
        ):
            at = child(path, "selectableFields")
            yield Narrowing("field-selector-removed", at, f"{field.get('jsonPath')} can no longer be selected by")
    before, now = ((version.get("schema") or {}).get("openAPIV3Schema") for version in (old, new))
    at = child(path, "schema.openAPIV3Schema")
    if isinstance(before, dict) and isinstance(now, dict):
        yield from schema_narrowings(before, now, at)
    elif isinstance(now, dict):
        yield Narrowing("narrower-type", at, "there was no schema, and there is one now")


def _of_subresources(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    for name in ("status", "scale"):
        if old.get(name) is not None and new.get(name) is None:
            yield Narrowing("subresource-removed", path, f"the subresource {name} is gone")
    if old.get("status") is None and new.get("status") is not None:
        why = "there is a subresource status now: other writes no longer change the status, nor set it when they create an object"
        yield Narrowing("subresource-added", child(path, "status"), why)
    for name in _SCALE_PATHS:
        before, now = ((subresources.get("scale") or {}).get(name) for subresources in (old, new))
        if before and new.get("scale") is not None and before != now:
            said = f"and is {now} now" if now else "and there is none now"
            yield Narrowing("subresource-changed", child(path, "scale", name), f"the path was {before}, {said}")


def _of_conversion(old: Object, new: Object) -> Iterator[Narrowing]:
    before, now = old.get("strategy") or "None", new.get("strategy") or "None"
    if before != now:
        yield Narrowing(
            "conversion-changed", "spec.conversion.strategy", f"the conversion was {before}, and is {now} now"
        )
    old_versions, new_versions = (
        (conversion.get("webhook") or {}).get("conversionReviewVersions") or [] for conversion in (old, new)
    )
    if before == now == "Webhook" and (gone := [version for version in old_versions if version not in new_versions]):
        at = "spec.conversion.webhook.conversionReviewVersions"
        yield Narrowing(
            "conversion-changed", at, f"{', '.join(map(compact_json, gone))} is no longer sent to the webhook"
        )
    targets = [_target(conversion) for conversion in (old, new)]
    if before == now == "Webhook" and not equal(*targets):
        yield Narrowing("conversion-changed", "spec.conversion.webhook.clientConfig", "the webhook is another one now")


def _target(conversion: Object) -> Object:
    """Where a webhook is, without the CA, which is renewed."""
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = config.get("service")
    return {"url": config.get("url"), "service": {"port": 443, **service} if isinstance(service, dict) else None}


class Fixed(NamedTuple):
    """`crd` is a v1 CRD, None if violations are left that cannot be fixed automatically."""

    crd: Object | None
    notes: list[CompletionNote]
    violations: list[FieldError]


def lint_crd(crd: Json, *, checkers: RuleCheckers | None = None, old: Json = None) -> list[FieldError]:
    """The errors in a v1 or v1beta1 CRD as JSON; a v1beta1 CRD is validated as v1.

    With `old`, the former CRD, they are those of an update, which may keep some errors.
    """
    if wrong := _type_errors(crd):
        return wrong
    decoded = _decode(crd)
    if decoded.error:
        return [invalid(ROOT, OMIT, decoded.error)]
    unknown = [unknown_field.error for unknown_field in unknown_fields(crd)]
    value, before = _upgraded(crd, decoded), None if old is None else _former(old)
    if before is None:
        return unknown + validate(prepare_for_create(value), checkers=checkers)
    value = {**value, "metadata": {**value["metadata"], "resourceVersion": "1"}}
    return unknown + validate_update(prepare_for_update(value, before), before, checkers=checkers)


def _upgraded(crd: Json, decoded: DecodedStruct) -> Object:
    return v1beta1.upgrade(decoded.value) if v1beta1.is_v1beta1(crd) else default(decoded.value)


def _former(crd: Json) -> Object | None:
    """A former CRD as it is stored and established, None if it is unreadable."""
    decoded = _decode(crd)
    if _type_errors(crd) or decoded.error:
        return None
    stored = prepare_for_create(_upgraded(crd, decoded))
    established = {"type": "Established", "status": "True"}
    metadata = {**stored["metadata"], "resourceVersion": "1"}
    return {**stored, "metadata": metadata, "status": {**stored["status"], "conditions": [established]}}


def as_v1(crd: Json) -> Object | None:
    """A CRD in the form of v1 with its defaults, None if it is unreadable."""
    if not isinstance(crd, dict) or _type_errors(crd):
        return None
    decoded = _decode(crd)
    return None if decoded.error else _upgraded(crd, decoded)


def upgrade(old: Json, new: Json) -> list[Narrowing]:
    """The narrowings from the old to the new CRD; none if one of them is unreadable."""
    before, now = as_v1(old), as_v1(new)
    return [] if before is None or now is None else narrowings(before, now)


def more_errors(crd: Json) -> list[FieldError]:
    """Errors in the schemas of a CRD that servers do not report (see `schema.lint.incomplete`)."""
    return [error for schema, path in _structural(crd) for error in incomplete(schema, path)]


def remarks(crd: Json) -> list[Remark]:
    """Warnings about the schemas of a CRD."""
    return [remark for schema, path in _structural(crd) for remark in schema_remarks(schema, path)]


def _structural(crd: Json) -> list[tuple[Structural, Path]]:
    """The structural schemas of a CRD with their paths, as written; a schema for all versions (v1beta1) comes once."""
    decoded = _decode(crd)
    if _type_errors(crd) or decoded.error:
        return []
    spec = decoded.value["spec"]
    holders = [(spec.get("validation"), "spec.validation")]
    holders += [
        (version.get("schema"), f"spec.versions[{n}].schema") for n, version in enumerate(spec.get("versions") or [])
    ]
    schemas = []
    for holder, path in holders:
        if holder is not None and holder.get("openAPIV3Schema") is not None:
            with suppress(NoStructuralForm):
                schemas.append((parse(holder["openAPIV3Schema"]), f"{path}.openAPIV3Schema"))
    return schemas


_HOISTED: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of the spec that apply to all versions, and their names in a version."""


def as_written(crd: Object, path: Path) -> Path:
    """The path in a CRD of a field that an error is about.

    Errors have the paths of the internal form, where what all versions share is in the spec, or of v1:

        spec.validation.openAPIV3Schema    spec.versions[0].schema.openAPIV3Schema     in v1
        spec.versions[0].subresources      spec.subresources                           in v1beta1
    """
    spec = crd.get("spec")
    parts = _HOISTABLE.fullmatch(path)
    if parts is None or not isinstance(spec, dict):
        return path
    version, name, rest = parts.groups()
    rest = rest.replace(".JSONPath", ".jsonPath") if not v1beta1.is_v1beta1(crd) else rest
    if version is None:
        return f"spec.{name}{rest}" if name in spec else f"spec.versions[0].{_HOISTED.get(name, name)}{rest}"
    top = next((top for top, inner in _HOISTED.items() if inner == name), name)
    return f"spec.{top}{rest}" if top in spec else f"spec.{version}{name}{rest}"


_HOISTABLE: Final = re.compile(rf"spec\.(versions\[\d+\]\.)?({'|'.join([*_HOISTED, 'schema'])})\b(.*)", re.DOTALL)


def fix(crd: Json, *, checkers: RuleCheckers | None = None, drop_unknown: bool = False) -> Fixed:
    """Convert a v1 or v1beta1 CRD as JSON to a v1 CRD without violations.

    A CRD with unknown fields has no such form: they may be misspelt, and nothing is dropped that is not understood.
    `drop_unknown`: drop them, as servers do.
    """
    decoded = _decode(crd)
    if decoded.error or _type_errors(crd):
        return Fixed(None, [], lint_crd(crd))
    unknown = unknown_fields(crd)
    if v1beta1.is_v1beta1(crd):
        value, notes = convert(decoded.value)
        notes.insert(0, CompletionNote("apiVersion", f"{v1beta1.API_VERSION} became {types.API_VERSION}"))
    else:
        value, notes = complete_schemas(default(decoded.value))
    fixed = types.written(types.decode(value).value)
    violations = lint_crd(fixed, checkers=checkers)
    if drop_unknown:
        notes += [CompletionNote(unknown_field.path, "unknown field dropped") for unknown_field in unknown]
    else:
        violations = [unknown_field.error for unknown_field in unknown] + violations
    return Fixed(None if violations else fixed, notes, violations)


def convert(crd: Object) -> tuple[Object, list[CompletionNote]]:
    """(a decoded v1beta1 CRD as v1 with completed schemas, the changes)."""
    return complete_schemas(v1beta1.upgrade(crd))


def complete_schemas(crd: Object) -> tuple[Object, list[CompletionNote]]:
    """(a decoded v1 CRD with all schemas completed, the changes). preserveUnknownFields moves into the schemas."""
    notes: list[CompletionNote] = []
    spec = {name: value for name, value in crd["spec"].items() if name != "preserveUnknownFields"}
    preserve = bool(crd["spec"].get("preserveUnknownFields"))
    if preserve:
        notes.append(CompletionNote("spec.preserveUnknownFields", f"true became {PRESERVE}: true in the schemas"))
    versions = []
    for n, version in enumerate(spec["versions"] or []):
        path = f"spec.versions[{n}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            notes.append(CompletionNote(path, "a schema that allows everything added"))
        completed, changes = complete(schema or {"type": "object"}, path, preserve=preserve or schema is None)
        notes += changes
        versions.append(arrange(types.CRD_VERSION, {**version, "schema": {"openAPIV3Schema": completed}}))
    return {**crd, "spec": {**spec, "versions": versions}}, notes


def _type_errors(crd: Json) -> list[FieldError]:
    if not isinstance(crd, dict):
        return []
    expected = {"apiVersion": [types.API_VERSION, v1beta1.API_VERSION], "kind": [types.KIND]}
    return [
        not_supported(name, crd.get(name, ""), values)
        for name, values in expected.items()
        if crd.get(name) not in values
    ]


def _decode(crd: Json) -> DecodedStruct:
    return v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)


EXCEEDS: Final = "exceeds budget by factor"
_RULES: Final = "x-kubernetes-validations"
_SCHEMA: Final = "openAPIV3Schema"
_BOUNDS: Final = {"array": "maxItems", "string": "maxLength", "object": "maxProperties"}
_LARGEST: Final = 2**20
MAX_CANDIDATES: Final = 8
_PLACE: Final = re.compile(rf"(.*\.{_SCHEMA})(.*)\.{_RULES}\[(\d+)\]\.(rule|messageExpression)", re.DOTALL)
_step: Final = re.compile(r"\.properties\[([^\]]*)\]|\.(items|additionalProperties)").match

Bounds = Mapping[Path, int]
Affordable = Callable[[Bounds], bool]


def advice_on_bounds(crd: Object, path: Path, checkers: RuleCheckers) -> str:
    """Which bounds would suffice for the rule at `path` (as written), "" if none are known. `crd` is JSON."""
    place = _PLACE.fullmatch(path)
    root = _at(crd, place[1]) if place else None
    if place is None or root is None:
        return ""
    rule = f"{place[2]}.{_RULES}"
    small = _with_one_rule(root, place[2], int(place[3]))
    candidates = dict(list(_unbounded(small, place[2]))[:MAX_CANDIDATES])

    def affordable(bounds: Bounds) -> bool:
        bounded = _bounded(small, {where: (candidates[where], bound) for where, bound in bounds.items()})
        return not any(
            EXCEEDS in error.detail and rule in error.field for error in lint_crd(_crd_of(bounded), checkers=checkers)
        )

    alone = [(where, bound) for where in candidates if (bound := _largest(affordable, [where]))]
    if alone:
        listed = ", or ".join(_shown(candidates[where], bound, where) for where, bound in alone)
        return f"Write {listed}: that suffices for this rule."
    if bound := _largest(affordable, list(candidates)):
        listed = ", and ".join(_shown(keyword, bound, where) for where, keyword in candidates.items())
        return f"Write {listed}: together they suffice for this rule."
    return "Simplify the rule: bounds alone do not make it affordable." if candidates else ""


def _shown(keyword: str, bound: int, where: Path) -> str:
    return f"`{keyword}: {bound}` at {where.removeprefix('.') or 'the root'}"


def _largest(affordable: Affordable, nodes: list[Path]) -> int:
    """The largest bound of the nodes that suffices, 0 if none does."""
    if not nodes or not affordable(dict.fromkeys(nodes, 1)):
        return 0
    low, high = 1, 2
    while high <= _LARGEST and affordable(dict.fromkeys(nodes, high)):
        low, high = high, high * 2
    while high - low > max(1, low // 16):  # precise enough for advice
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(dict.fromkeys(nodes, middle)) else (low, middle)
    return low


# -- schemas ----------------------------------------------------------------------------------------------------------


def _at(crd: Object, path: Path) -> Object | None:
    """The schema at a path such as `spec.versions[0].schema.openAPIV3Schema`."""
    value: Json = crd
    for name, position in re.findall(r"([A-Za-z0-9]+)|\[(\d+)\]", path):
        try:
            value = value[name] if name else value[int(position)]
        except (LookupError, TypeError):
            return None
    return value if isinstance(value, dict) else None


def _steps(path: Path) -> Iterator[tuple[str, str]]:
    """`.properties[a].items` → (properties, a), (items, "")."""
    while path and (match := _step(path)):
        yield ("properties", match[1]) if match[1] is not None else (match[2], "")
        path = path[match.end() :]


def _with_one_rule(schema: Object, path: Path, rule: int) -> Object:
    """The schema with one rule only: of the nodes around it, with the properties on the way and the required ones."""
    steps = list(_steps(path))
    return _copy(schema, steps, rule)


def _copy(node: Object, steps: list[tuple[str, str]], rule: int) -> Object:
    copy = {name: value for name, value in node.items() if name not in (_RULES, "default")}
    if not steps:
        return {**_without_rules(copy), _RULES: [node[_RULES][rule]]}
    (keyword, name), *rest = steps
    if keyword == "properties":
        wanted = {name, *(node.get("required") or ())}
        copy["properties"] = {
            field: _copy(inner, rest, rule) if field == name else _without_rules(inner)
            for field, inner in node["properties"].items()
            if field in wanted
        }
    else:
        copy[keyword] = _copy(node[keyword], rest, rule)
    return copy


def _without_rules(node: Json) -> Json:
    if isinstance(node, list):
        return [_without_rules(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {name: _without_rules(value) for name, value in node.items() if name not in (_RULES, "default")}


def _unbounded(schema: Object, path: Path) -> Iterator[tuple[Path, str]]:
    """The nodes without a bound, with its keyword: those around the rule, and those that it names, in this order."""
    node, where = schema, ""
    for keyword, name in _steps(path):
        if bound := _missing(node, around=True):
            yield where, bound
        node = node[keyword][name] if keyword == "properties" else node[keyword]
        where = key(child(where, keyword), name) if keyword == "properties" else child(where, keyword)
    words = set(re.findall(r"\w+", str(node[_RULES][0].get("rule"))))
    if bound := _missing(node):
        yield where, bound
    yield from _below(node, where, words)


def _below(node: Object, where: Path, words: set[str]) -> Iterator[tuple[Path, str]]:
    for name, inner in (node.get("properties") or {}).items():
        if name in words:
            below = key(child(where, "properties"), name)
            if bound := _missing(inner):
                yield below, bound
            yield from _below(inner, below, words)
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := node.get(keyword), dict):
            if bound := _missing(inner):
                yield child(where, keyword), bound
            yield from _below(inner, child(where, keyword), words)


def _missing(node: Object, *, around: bool = False) -> str:
    """The keyword that would bound a node, "" if it has a bound or needs none."""
    type_ = str(node.get("type"))
    keyword = _BOUNDS.get(type_, "")
    if type_ == "object" and not isinstance(node.get("additionalProperties"), dict):
        return ""
    if type_ == "string" and (around or node.get("enum") or node.get("format")):
        return ""
    return keyword if keyword and node.get(keyword) is None else ""


def _bounded(schema: Object, bounds: Mapping[Path, tuple[str, int]], where: Path = "") -> Object:
    """A copy of a schema with bounds at some nodes."""
    copy = dict(schema)
    if where in bounds:
        keyword, bound = bounds[where]
        copy[keyword] = bound
    if isinstance(properties := schema.get("properties"), dict):
        below = child(where, "properties")
        copy["properties"] = {name: _bounded(inner, bounds, key(below, name)) for name, inner in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), dict):
            copy[keyword] = _bounded(inner, bounds, child(where, keyword))
    return copy


def _crd_of(schema: Object) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": {_SCHEMA: schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "xs.bounds.example"},
        "spec": {
            "group": "bounds.example",
            "scope": "Cluster",
            "names": {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"},
            "versions": [version],
        },
    }
