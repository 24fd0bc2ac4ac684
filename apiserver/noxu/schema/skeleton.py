"""The skeleton of a schema: the part without value validations, by which objects are pruned.

The provisional pruning KEP (2018) derives it from any OpenAPI schema:

    skel(s) := merge(drop(s), skel(s_1), …, skel(s_n))     for s_i in allOf, anyOf, oneOf and not

`drop` keeps `type` and the keywords that lead to other schemas, with the skeletons of those. `merge` unites: a type is
kept if all agree on it, fields and items at the same location are merged. So a field is known if any branch knows it
(the KEP's pruning option 1). The structural schemas of today require authors to write that skeleton themselves (option
4); for them `strip` suffices.

    s        {anyOf: [{properties: {a: {type: string}}}, {required: [b]}], properties: {b: {minLength: 1}}}
    skel(s)  {properties: {b: {}, a: {type: string}}}

The KEP's sixth example prints the skeletons of sub-schemas as `{}`, against its own definition, which is followed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from noxu.api.field import ROOT, Path, child, index, key
from noxu.schema.structural import NO_VALIDATION, Structural
from noxu.values import Json, Object

JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties")
_ADDITIONAL: Final = ("additionalItems", "additionalProperties")


def skeleton(schema: Object) -> Object:
    """skel(s) of an OpenAPI v3 schema as JSON."""
    branches = [branch for junctor in JUNCTORS for branch in schema.get(junctor) or []]
    if schema.get("not") is not None:
        branches.append(schema["not"])
    return merge(drop(schema), *map(skeleton, branches))


def drop(schema: Object) -> Object:
    """The keywords of a skeleton, with the skeletons of the schemas in them. `true` is the same as `{}`."""
    dropped: Object = {}
    if schema.get("type"):
        dropped["type"] = schema["type"]
    items = schema.get("items")
    if items is not None:
        dropped["items"] = list(map(skeleton, items)) if isinstance(items, list) else skeleton(items)
    for keyword in _ADDITIONAL:
        if (value := schema.get(keyword)) is not None:
            dropped[keyword] = skeleton({} if value is True else value) if value is not False else False
    for keyword in _MAPS:
        if schema.get(keyword) is not None:
            dropped[keyword] = {name: skeleton(inner) for name, inner in schema[keyword].items()}
    return dropped


def merge(*skeletons: Object) -> Object:
    """One skeleton with the fields of all, and with a type if it is the same in all."""
    if len(skeletons) == 1:
        return skeletons[0]
    merged: Object = {}
    types = {skel.get("type") for skel in skeletons}
    if len(types) == 1 and (type_ := types.pop()) is not None:
        merged["type"] = type_
    if items := [skel["items"] for skel in skeletons if "items" in skel]:
        merged["items"] = _merge_items(items)
    for keyword in _ADDITIONAL:
        if members := [skel[keyword] for skel in skeletons if keyword in skel]:
            merged[keyword] = _merge_additional(members)
    for keyword in _MAPS:
        if members := [skel[keyword] for skel in skeletons if keyword in skel]:
            names = dict.fromkeys(name for schemas in members for name in schemas)
            merged[keyword] = {
                name: merge(*(schemas[name] for schemas in members if name in schemas)) for name in names
            }
    return merged


def _merge_items(items: list[Json]) -> Json:
    """Merge schemas for all items and lists of schemas for one item each; the n-th item may be described by both."""
    lists = [schema for schema in items if isinstance(schema, list)]
    for_all = [schema for schema in items if isinstance(schema, dict)]
    if not lists:
        return merge(*for_all)
    return [
        merge(*for_all, *(schemas[n] for schemas in lists if n < len(schemas))) for n in range(max(map(len, lists)))
    ]


def _merge_additional(values: list[Json]) -> Json:
    """Merge values of additionalProperties or additionalItems; any schema overrules `false`."""
    schemas = [schema for schema in values if schema is not False]
    return merge(*schemas) if schemas else False


def restriction_1_violations(schema: Object) -> list[Path]:
    """The paths where a value would be a struct and a map at once, so that it is unclear what to prune.

    The KEP's Restriction 1 on object polymorphism: properties together with additionalProperties (other than `false`) or
    patternProperties in the skeleton.
    """
    return list(_polymorphic(skeleton(schema), ROOT))


def _polymorphic(s: Object, path: Path) -> Iterator[Path]:
    if "properties" in s and (s.get("additionalProperties", False) is not False or "patternProperties" in s):
        yield path
    for keyword in _MAPS:
        for name, inner in s.get(keyword, {}).items():
            yield from _polymorphic(inner, key(child(path, keyword), name))
    for keyword in (*_ADDITIONAL, "items"):
        inner = s.get(keyword)
        if isinstance(inner, dict):
            yield from _polymorphic(inner, child(path, keyword))
        elif isinstance(inner, list):
            for n, branch in enumerate(inner):
                yield from _polymorphic(branch, index(child(path, keyword), n))


def strip(schema: Structural) -> Structural:
    """A structural schema without value validations and rules. It prunes and defaults like the original."""
    additional = schema.additional_properties
    return replace(
        schema,
        items=_stripped(schema.items),
        properties={name: strip(inner) for name, inner in schema.properties.items()},
        additional_properties=strip(additional) if isinstance(additional, Structural) else additional,
        rules=(),
        validation=NO_VALIDATION,
    )


def _stripped(schema: Structural | None) -> Structural | None:
    return None if schema is None else strip(schema)
