"""What is covered of schemas: counts beside the nodes of a schema, and the points that they make.

    {"name": "size", "path": "spec.size", "type": "integer", "set": 3, "covered": 2, "points": 3, "below": [],
     "default": {"value": 1, "used": 0}, "enum": [{"value": "red", "seen": 2}],
     "rules": [{"rule": "self < 4", "message": "…", "true": 3, "false": 0}]}

A *point* is something that a test can show: a field that is set, an enum value, a default that is taken, a rule that is true,
and a rule that is false. Coverage is the part of them that was seen. Schemas are those of definitions, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.field import Path, child
from noxu.coverage.counting import OF_SERVER, merged
from noxu.values import Json, Object

KINDS: Final = ("fields", "enum values", "defaults", "rules")
EMPTY: Final[Object] = {}


class Point(NamedTuple):
    """`kind` is one of KINDS. `missing` says what was not seen."""

    kind: str
    path: Path
    is_covered: bool
    missing: str


def merged_collections(several: Iterable[Object]) -> Object:
    """What several collectors have collected, as one: the newest schema of each version, and the sum of the counts."""
    schemas: dict[str, dict[str, Object]] = {}
    listed = list(several)
    for each in listed:
        for name, versions in each["schemas"].items():
            schemas[name] = schemas.get(name, {}) | versions
    return {"schemas": schemas, "counts": merged(each["counts"] for each in listed)}


def tree(definition: Object, counts: Object) -> list[Object]:
    """The trees of the versions of a CustomResourceDefinition (v1), with the `counts` of its objects by version.

    A version without a schema is left out.
    """
    schemas = {
        version["name"]: version["schema"]["openAPIV3Schema"]
        for version in definition["spec"]["versions"]
        if (version.get("schema") or {}).get("openAPIV3Schema")
    }
    return version_trees(definition["metadata"]["name"], schemas, counts)


def trees(collected: Object) -> list[Object]:
    """The trees of all versions that were collected, by name."""
    return [
        each
        for name, schemas in sorted(collected["schemas"].items())
        for each in version_trees(name, schemas, collected["counts"].get(name, EMPTY))
    ]


def version_trees(name: str, schemas: Mapping[str, Object], counts: Object) -> list[Object]:
    """The trees of a definition: of the versions with these schemas."""
    made = []
    for version, schema in schemas.items():
        of_version = counts.get(version, EMPTY)
        root = _node("", "", schema, of_version, left_out=OF_SERVER)
        made.append({**root, "name": f"{name}/{version}", "writes": of_version.get("writes", 0)})
    return made


def _node(name: str, path: Path, schema: Object, counts: Object, left_out: Iterable[str] = ()) -> Object:
    seen = counts.get("fields", EMPTY).get(path, EMPTY)
    below = [_node(*each, counts) for each in _below(path, schema) if each[0] not in left_out]
    node: Object = {"name": name, "path": path, "type": _type(schema), "set": seen.get("set", 0)}
    if schema.get("default") is not None and path:
        node["default"] = {"value": schema["default"], "used": seen.get("defaulted", 0)}
    if schema.get("enum"):
        values = seen.get("values", EMPTY)
        node["enum"] = [{"value": value, "seen": values.get(_text(value), 0)} for value in schema["enum"]]
    if schema.get("x-kubernetes-validations"):
        said = counts.get("rules", EMPTY).get(path, EMPTY)
        node["rules"] = [_rule(rule, said.get(rule["rule"], EMPTY)) for rule in schema["x-kubernetes-validations"]]
    own = list(_own_points(node))
    node["covered"] = sum(point.is_covered for point in own) + sum(each["covered"] for each in below)
    node["points"] = len(own) + sum(each["points"] for each in below)
    node["below"] = below
    return node


def _rule(rule: Object, said: Object) -> Object:
    return {
        "rule": rule["rule"],
        "message": rule.get("message") or "",
        "true": said.get("true", 0),
        "false": said.get("false", 0),
    }


def _below(path: Path, schema: Object) -> Iterator[tuple[str, Path, Object]]:
    for name, inner in sorted((schema.get("properties") or {}).items()):
        yield name, child(path, name), inner
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield "[*]", f"{path}[*]", schema[keyword]


def _type(schema: Object) -> str:
    return "int or string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type") or "any")


def _text(value: Json) -> str:
    return codec.encode(value, sort_keys=True).decode()


# -- points ------------------------------------------------------------------------------------------------------------


def points(node: Object) -> Iterator[Point]:
    """The points of a node and of those below it."""
    yield from _own_points(node)
    for below in node["below"]:
        yield from points(below)


def _own_points(node: Object) -> Iterator[Point]:
    path, default = node["path"], node.get("default")
    if path:
        yield Point("fields", path, node["set"] > 0, "never set")
    if default is not None:
        yield Point("defaults", path, default["used"] > 0, f"default {_text(default['value'])} never taken")
    for value in node.get("enum", ()):
        yield Point("enum values", path, value["seen"] > 0, f"{_text(value['value'])} never seen")
    for rule in node.get("rules", ()):
        for outcome in ("true", "false"):
            yield Point("rules", path, rule[outcome] > 0, f"rule {rule['rule']!r} never {outcome}")


def missing(node: Object) -> Iterator[tuple[Path, str]]:
    """What was not seen, by path. What is below a field that was never set is counted with it."""
    unseen = [point for point in _own_points(node) if not point.is_covered]
    never = bool(node["path"]) and not node["set"] and not node["covered"]
    if never:
        more = node["points"] - 1
        yield node["path"], f"never set{f' (with {more} further points)' if more else ''}"
        return
    for point in unseen:
        yield point.path, point.missing
    for below in node["below"]:
        yield from missing(below)


def percentage(made: Iterable[Object]) -> float:
    """How much of the points is covered, in percent; 100 if there is none."""
    listed = list(made)
    total = sum(each["points"] for each in listed)
    return 100 * sum(each["covered"] for each in listed) / total if total else 100.0
