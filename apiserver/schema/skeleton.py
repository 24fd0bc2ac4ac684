"""The skeleton of a schema: what is left without value validations, and enough to prune by.

The provisional pruning KEP (2018) derives it from any OpenAPI schema:

    skel(s) := merge(drop(s), skel(s_1), …, skel(s_n))     for s_i in allOf, anyOf, oneOf and not

`drop` keeps `type` and what leads to other schemas, with the skeletons of those. `merge` unites: a type stays if all
agree on it, fields and items of the same place are merged. A field is then known if any branch knows it, which is the
KEP's pruning option 1 — the structural schemas of today make authors write that skeleton down themselves (option 4),
and for them `strip` is all there is to do.

The KEP's sixth example prints skeletons of sub-schemas as `{}`; its definition, which is followed here, says more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from apiserver.api.field import ROOT, Path, child, index, key
from apiserver.api.types import Json, Object
from apiserver.schema.structural import NO_VALIDATION, Structural

QUANTORS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties")
_ADDITIONAL: Final = ("additionalItems", "additionalProperties")


def skeleton(schema: Object) -> Object:
    """skel(s) of an OpenAPI v3 schema as JSON."""
    branches = [branch for quantor in QUANTORS for branch in schema.get(quantor) or []]
    if schema.get("not") is not None:
        branches.append(schema["not"])
    return merge(drop(schema), *map(skeleton, branches))


def drop(schema: Object) -> Object:
    """Only what belongs to a skeleton, with the skeletons of what is inside. `true` says as much as `{}`."""
    dropped: Object = {}
    if schema.get("type"):
        dropped["type"] = schema["type"]
    items = schema.get("items")
    if items is not None:
        dropped["items"] = list(map(skeleton, items)) if isinstance(items, list) else skeleton(items)
    for keyword in _ADDITIONAL:
        if (given := schema.get(keyword)) is not None:
            dropped[keyword] = skeleton({} if given is True else given) if given is not False else False
    for keyword in _MAPS:
        if schema.get(keyword) is not None:
            dropped[keyword] = {name: skeleton(inner) for name, inner in schema[keyword].items()}
    return dropped


def merge(*skeletons: Object) -> Object:
    """One skeleton that knows what any of these knows, and types what all of them type alike."""
    if len(skeletons) == 1:
        return skeletons[0]
    merged: Object = {}
    types = {one.get("type") for one in skeletons}
    if len(types) == 1 and (type_ := types.pop()) is not None:
        merged["type"] = type_
    if items := [one["items"] for one in skeletons if "items" in one]:
        merged["items"] = _merge_items(items)
    for keyword in _ADDITIONAL:
        if given := [one[keyword] for one in skeletons if keyword in one]:
            merged[keyword] = _merge_additional(given)
    for keyword in _MAPS:
        if given := [one[keyword] for one in skeletons if keyword in one]:
            names = dict.fromkeys(name for one in given for name in one)
            merged[keyword] = {name: merge(*(one[name] for one in given if name in one)) for name in names}
    return merged


def _merge_items(items: list[Json]) -> Json:
    """Schemas for all items, or lists of schemas for one item each. For the n-th item both may have something to say."""
    lists = [one for one in items if isinstance(one, list)]
    for_all = [one for one in items if isinstance(one, dict)]
    if not lists:
        return merge(*for_all)
    return [merge(*for_all, *(one[n] for one in lists if n < len(one))) for n in range(max(map(len, lists)))]


def _merge_additional(given: list[Json]) -> Json:
    """`false` says nothing that others could not overrule."""
    schemas = [one for one in given if one is not False]
    return merge(*schemas) if schemas else False


def restriction_1_violations(schema: Object) -> list[Path]:
    """Where a value would be a struct and a map at once: there nobody could tell what to prune.

    The KEP's Restriction 1 on object polymorphism: properties together with additionalProperties or patternProperties
    in the skeleton. `false` is no map.
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
            for n, one in enumerate(inner):
                yield from _polymorphic(one, index(child(path, keyword), n))


def strip(schema: Structural) -> Structural:
    """A structural schema without value validations and rules: the same object is pruned and defaulted alike."""
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
