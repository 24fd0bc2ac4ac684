"""Bounds that make a CEL rule affordable: which `maxItems`, `maxLength` or `maxProperties` would suffice.

A rule's estimated cost grows with what is not bounded: the strings, lists and maps that it reads, and the lists and maps
that contain its node. So the estimate is repeated on a small CRD with this rule only, in which one of these nodes has a
bound: the largest bound that suffices is found by bisection. If no node alone suffices, all get the same bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from noxu.api.field import Path, child, key
from noxu.crd.lint import lint_crd
from noxu.crd.schemas import RuleCheckers
from noxu.values import Json, Object

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


def advice(crd: Object, path: Path, checkers: RuleCheckers) -> str:
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
    for name, index in re.findall(r"([A-Za-z0-9]+)|\[(\d+)\]", path):
        try:
            value = value[name] if name else value[int(index)]
        except (LookupError, TypeError):
            return None
    return value if isinstance(value, dict) else None


def _steps(path: Path) -> Iterator[tuple[str, str]]:
    """`.properties[a].items` → (properties, a), (items, "")."""
    while path and (found := _step(path)):
        yield ("properties", found[1]) if found[1] is not None else (found[2], "")
        path = path[found.end() :]


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
            each: _copy(inner, rest, rule) if each == name else _without_rules(inner)
            for each, inner in node["properties"].items()
            if each in wanted
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
