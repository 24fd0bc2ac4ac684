"""The schema of a definition as a tree for people: types, limits, defaults, rules with their costs, and how objects use it.

The tree is made of the JSON of the openAPIV3Schema, as it is written. A node has what is not empty:

    {"name": "size", "path": "spec.size", "type": "integer", "required": True, "default": 1, "limits": ["minimum 0"],
     "rules": [{"rule": "self < 9", "cost": 2, "share": 2e-07}], "used": {"set": 12, "default": 3}, "fields": […]}

Items of a list and values of a map are below a node named `[*]`, as in `noxu.coverage`, whose counts `add_coverage` adds: in how
many writes something was seen. `share` is the part of what all rules of a schema
may cost together; one rule may cost a tenth of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from noxu import cel
from noxu.api.field import Path, child, index, key
from noxu.go.text import compact_json
from noxu.values import Json, Object, equal

EACH: Final = "[*]"
MAX_NODES: Final = 5_000
"""Of a tree; what is below others then is left out, and they are `cut`."""
MAX_ABOUT: Final = 500  # characters of a description
MAX_VALUES: Final = 20  # that are counted at a node
_RULES: Final = "x-kubernetes-validations"
_LIMITS: Final = (
    "format", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf", "not")


def tree(schema: Object, where: Path, costs: Mapping[Path, int]) -> Object:
    """The tree of a schema at the path `where` of a definition; `costs` are those of its rules by their paths."""
    return _Tree(costs).node(schema, where, "", "", required=False)


class _Tree:
    def __init__(self, costs: Mapping[Path, int]) -> None:
        self._costs = costs
        self._left = MAX_NODES

    def node(self, schema: Object, where: Path, name: str, path: str, *, required: bool) -> Object:
        self._left -= 1
        made: Object = {"name": name, "path": path, "type": _type(schema)}
        made |= {
            "about": str(schema.get("description") or "")[:MAX_ABOUT],
            "required": required,
            "nullable": bool(schema.get("nullable")),
            "limits": list(_limits(schema)),
            "enum": list(schema.get("enum") or ()),
            "rules": [
                self._rule(rule, index(child(where, _RULES), n)) for n, rule in enumerate(schema.get(_RULES) or ())
            ],
        }
        made = {word: value for word, value in made.items() if value or word in ("name", "path", "type")}
        if schema.get("default") is not None:
            made["default"] = schema["default"]
        below = list(_below(schema, where, path))
        if below and self._left < len(below):
            made["cut"] = len(below)
        elif below:
            made["fields"] = [self.node(*each[:4], required=each[4]) for each in below]
        return made

    def _rule(self, rule: Object, where: Path) -> Object:
        cost = self._costs.get(child(where, "rule"))
        known = {} if cost is None else {
            "cost": cost, "share": cost / cel.MAX_SCHEMA_ESTIMATE, "expensive": cost > cel.MAX_RULE_ESTIMATE
        }  # fmt: skip
        return {"rule": str(rule.get("rule", "")), "message": str(rule.get("message") or ""), **known}


def _below(schema: Object, where: Path, path: str) -> Iterator[tuple[Object, Path, str, str, bool]]:
    """The nodes directly below one: schema, its place in the definition, name, path in objects, whether it is required."""
    required = schema.get("required") or ()
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, inner in sorted(properties.items()):
            if isinstance(inner, dict):
                yield inner, key(child(where, "properties"), name), name, child(path, name), name in required
    if isinstance(inner := schema.get("items"), dict):
        yield inner, child(where, "items"), EACH, f"{path}{EACH}", False
    if isinstance(inner := schema.get("additionalProperties"), dict):
        yield inner, child(where, "additionalProperties"), EACH, f"{path}{EACH}", False


def _type(schema: Object) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    named = str(schema.get("type") or "anything")
    if named == "array":
        return f"list of {_type_of(schema.get('items'))}"
    values = schema.get("additionalProperties")
    return f"map of {_type_of(values)}" if isinstance(values, dict) else named


def _type_of(schema: Json) -> str:
    return str(schema.get("type") or "anything") if isinstance(schema, dict) else "anything"


def _limits(schema: Object) -> Iterator[str]:
    for word in _LIMITS:
        if (limit := schema.get(word)) not in (None, "") and limit is not False:
            exclusive = f" (exclusive{word.title()})" if schema.get(f"exclusive{word.title()}") is True else ""
            yield f"{word} {limit if isinstance(limit, str) else compact_json(limit)}{exclusive}"
    if schema.get("x-kubernetes-list-type"):
        keys = ", ".join(map(str, schema.get("x-kubernetes-list-map-keys") or ()))
        yield f"list type {schema['x-kubernetes-list-type']}{f' by {keys}' if keys else ''}"
    if schema.get("x-kubernetes-map-type"):
        yield f"map type {schema['x-kubernetes-map-type']}"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "keeps unknown fields"
    if schema.get("x-kubernetes-embedded-resource"):
        yield "an embedded object"
    yield from (f"{word} restricts it further" for word in _JUNCTORS if schema.get(word))


# -- how objects use it ------------------------------------------------------------------------------------------------


def count(node: Object, objects: Iterable[Object]) -> None:
    """Add to the nodes of a tree how many values objects have at them, how many of these are the default, and which of an enum."""
    for value in objects:
        _count(node, value)


def _count(node: Object, value: Json) -> None:
    used = node.setdefault("used", {"set": 0})
    used["set"] += 1  # in place: the tree is made for one answer
    if "default" in node and equal(node["default"], value):
        used["default"] = used.get("default", 0) + 1
    if "enum" in node:
        seen = used.setdefault("values", {})
        shown = compact_json(value)
        if shown in seen or len(seen) < MAX_VALUES:
            seen[shown] = seen.get(shown, 0) + 1
    for field in node.get("fields") or ():
        for inner in _values(field["name"], value):
            _count(field, inner)


def _values(name: str, value: Json) -> Iterable[Json]:
    """The values that a value has at a node of this name below its own."""
    if name == EACH:
        return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return (value[name],) if isinstance(value, dict) and name in value else ()


def add_outcomes(node: Object, outcomes: Mapping[Path, Mapping[str, Object]]) -> None:
    """Add to the rules of a tree for how many objects they are true and false. `outcomes`: by path and rule, of those known."""
    known = outcomes.get(node["path"], {})
    for rule in node.get("rules") or ():
        if rule["rule"] in known:
            rule["stored"] = {"true": 0, "false": 0} | known[rule["rule"]]
    for field in node.get("fields") or ():
        add_outcomes(field, outcomes)


# -- how writes use it -------------------------------------------------------------------------------------------------


def add_coverage(node: Object, covered: Object) -> None:
    """Add to a tree what `noxu.coverage.trees` has found for the same schema."""
    seen: Object = {"set": covered["set"]}
    if "default" in covered:
        seen["defaulted"] = covered["default"]["used"]
    if "enum" in covered:
        seen["values"] = {compact_json(each["value"]): each["seen"] for each in covered["enum"]}
    node["written"] = seen
    outcomes = {each["rule"]: {"true": each["true"], "false": each["false"]} for each in covered.get("rules") or ()}
    for rule in node.get("rules") or ():
        if rule["rule"] in outcomes:
            rule["written"] = outcomes[rule["rule"]]
    below = {each["path"]: each for each in covered["below"]}
    for field in node.get("fields") or ():
        if field["path"] in below:
            add_coverage(field, below[field["path"]])
