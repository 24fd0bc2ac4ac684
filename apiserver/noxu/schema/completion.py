"""Make a schema structural where there is only one way to do so.

Moving, adding or dropping keywords keeps the meaning, or gives the one of the article "Future of CRDs: Structural
Schemas": keywords in junctors that describe the spine are moved there, fields that occur only in junctors are declared
there (by the skeleton of the branches), missing types are inferred from other keywords, and a value without any
description preserves unknown fields. Ports of a PodSpec or a ServiceSpec get the default of their protocol, which built-in
kinds have, and a server requires of a key. Whatever is ambiguous is kept; `lint` reports it afterwards.

    {properties: {a: {minLength: 1}}, anyOf: [{required: [b], properties: {b: {type: integer}}}]}

    {type: object, properties: {a: {type: string, minLength: 1}, b: {type: integer}},
     anyOf: [{required: [b], properties: {b: {}}}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from noxu.api.field import ROOT, Path, child, key
from noxu.expressions import expression
from noxu.schema.formats import NUMERIC, is_recognized
from noxu.schema.skeleton import JUNCTORS, merge, skeleton
from noxu.schema.structural import NoStructuralForm, parse
from noxu.values import Json, Object, copy

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
RULES: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_SCALARS: Final = ("string", "integer", "number", "boolean")
_EITHER: Final[list[Object]] = [{"type": "integer"}, {"type": "string"}]
_PORTS: Final = (["containerPort", "protocol"], ["port", "protocol"])
"""The keys of the ports of a PodSpec and of a ServiceSpec. Early generators of CRDs copied the keys, and no defaults."""


class CompletionNote(NamedTuple):
    """A change that was made to a schema."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def complete(schema: Object, path: Path = ROOT, *, preserve: bool = False) -> tuple[Object, list[CompletionNote]]:
    """(the schema of a whole resource, completed as far as possible; the changes).

    `preserve`: nothing is to be pruned (v1beta1's `preserveUnknownFields: true`), neither at the root nor in objects
    without declared fields.
    """
    notes: list[CompletionNote] = []
    schema = _References(schema.get("definitions") or {}, notes).inlined(copy(schema), path)
    completion = _Completion(notes, preserve)
    completion.resource(schema, path)
    if preserve and not schema.get(PRESERVE):
        schema[PRESERVE] = True
        notes.append(CompletionNote(path, f"{PRESERVE}: true keeps unknown fields"))
    return schema, notes


# -- references -------------------------------------------------------------------------------------------------------

_LOCAL: Final = "#/definitions/"
_NAMED: Final = ("properties", "patternProperties", "dependencies")
_SINGLE: Final = ("items", "additionalProperties", "additionalItems", "not")
MAX_REFERENCES: Final = 10_000  # definitions that refer to definitions can grow without end


def preserving(schema: Object | None) -> Object:
    """The schema by which objects of a CRD with preserveUnknownFields are served: nothing is pruned anywhere."""
    completed, _ = complete(schema or {}, preserve=True)
    try:
        parse(completed)
    except NoStructuralForm:
        completed = {"type": "object"}
    todo = [completed]
    while todo:
        node = todo.pop()
        if node.get("type") == "object" and node.get("additionalProperties") is None:
            node[PRESERVE] = True
        below = [*(node.get("properties") or {}).values(), node.get("items"), node.get("additionalProperties")]
        todo += [inner for inner in below if isinstance(inner, dict)]
    return completed


class _References:
    """Inlines referenced definitions, except recursive ones."""

    def __init__(self, definitions: Object, notes: list[CompletionNote]) -> None:
        self.definitions = definitions
        self.notes = notes
        self.followed = 0

    def inlined(self, node: Object, path: Path, inside: tuple[str, ...] = ()) -> Object:
        """`inside`: the definitions that contain the node."""
        name = self.name(node)
        if name in self.definitions and name not in inside and self.followed < MAX_REFERENCES:
            self.followed += 1
            self.notes.append(CompletionNote(path, f"definition {name} inlined"))
            siblings = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            return self.inlined({**copy(self.definitions[name]), **siblings}, path, (*inside, name))
        for keyword in _SINGLE:
            if isinstance(node.get(keyword), dict):
                node[keyword] = self.inlined(node[keyword], child(path, keyword), inside)
        for keyword in (*JUNCTORS, "items"):
            if isinstance(node.get(keyword), list):
                below = child(path, keyword)
                node[keyword] = [
                    self.inlined(member, f"{below}[{n}]", inside) for n, member in enumerate(node[keyword])
                ]
        for keyword in _NAMED:
            for name, inner in (node.get(keyword) or {}).items():
                if isinstance(inner, dict):
                    node[keyword][name] = self.inlined(inner, key(child(path, keyword), name), inside)
        return node

    @staticmethod
    def name(node: Object) -> str:
        reference = node.get("$ref") or ""
        return reference.removeprefix(_LOCAL) if reference.startswith(_LOCAL) else ""


# -- the spine --------------------------------------------------------------------------------------------------------


class _Completion:
    """Rewrites nodes in place. `mentions` are the nodes in junctors that describe the same location as a node of the spine."""

    def __init__(self, notes: list[CompletionNote], preserve: bool) -> None:
        self.notes = notes
        self.preserve = preserve
        self.metadata: Path | None = None
        """Where the metadata of the resource is described, which may only restrict names: servers preserve the rest."""

    def note(self, path: Path, text: str) -> None:
        self.notes.append(CompletionNote(path, text))

    def resource(self, root: Object, path: Path) -> None:
        if root.pop("nullable", False):
            self.note(path, "nullable dropped, no resource is null")
        additional = root.get("additionalProperties")
        if additional in (True, {}, False):
            del root["additionalProperties"]
            if additional is not False:
                root[PRESERVE] = True
            self.note(path, f"additionalProperties became {PRESERVE}" if additional is not False else _PRUNED)
        if not root.get("type"):
            root["type"] = "object"
            self.note(path, "type: object added")
        self.implied(root, path)
        self.only_names(root, path)
        self.metadata = key(child(path, "properties"), "metadata")
        self.node(root, [], path)

    def implied(self, resource: Object, path: Path) -> None:
        """The types of apiVersion, kind and metadata, if the resource declares them."""
        for name, type_ in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
            declared = (resource.get("properties") or {}).get(name)
            if declared is not None and not declared.get("type"):
                declared["type"] = type_
                self.note(key(child(path, "properties"), name), f"type: {type_} added")

    def only_names(self, root: Object, path: Path) -> None:
        """The root's metadata may restrict names; declarations of other fields are implied, and dropped if they say no more."""
        metadata = (root.get("properties") or {}).get("metadata")
        if metadata is None:
            return
        fields = metadata.get("properties") or {}
        restricted = {name: inner for name, inner in fields.items() if name in _RESTRICTABLE}
        if _is_plain({**metadata, "properties": {name: fields[name] for name in fields.keys() - restricted.keys()}}):
            root["properties"]["metadata"] = {"type": "object", **({"properties": restricted} if restricted else {})}
            if root["properties"]["metadata"] != metadata:
                self.note(key(child(path, "properties"), "metadata"), "implied fields dropped")

    def node(self, node: Object, mentions: list[Object], path: Path) -> None:
        for branch in (node, *_branches(node)):
            self.keywords(branch, path)
        self.unmention_metadata(node, path)
        self.lift(node, path)
        for junctor in JUNCTORS:
            self.settle(node, junctor, path)
        branches = [*_branches(node), *(inner for mention in mentions for inner in (mention, *_branches(mention)))]
        self.type(node, branches, path)
        for name, inner in (node.get("properties") or {}).items():
            same_place = [branch["properties"][name] for branch in branches if name in (branch.get("properties") or {})]
            self.node(inner, same_place, key(child(path, "properties"), name))
        for keyword in ("items", "additionalProperties"):
            if isinstance(node.get(keyword), dict):
                same_place = [branch[keyword] for branch in branches if isinstance(branch.get(keyword), dict)]
                self.node(node[keyword], same_place, child(path, keyword))
        self.branches(node, path)

    def unmention_metadata(self, node: Object, path: Path) -> None:
        for branch in _branches(node):
            metadata = (branch.get("properties") or {}).get("metadata")
            if metadata is not None and _is_plain(metadata):
                del branch["properties"]["metadata"]
                self.note(path, "metadata dropped from anyOf, allOf, oneOf or not")

    # keywords that are not allowed, expressed by others

    def keywords(self, node: Object, path: Path) -> None:
        for keyword in ("id", "$schema", "definitions"):
            if node.pop(keyword, None) is not None:
                self.note(path, f"{keyword} dropped, it has no effect")
        items = node.get("items")
        if items == []:
            del node["items"]
        if not isinstance(items, list) and node.pop("additionalItems", None) is not None:
            self.note(path, "additionalItems dropped, it only applies to lists of item schemas")
        if (
            isinstance(items, list)
            and items
            and all(item == items[0] for item in items)
            and not node.get("additionalItems")
        ):
            node["items"] = items[0]
            self.note(child(path, "items"), "equal schemas became one")
        if node.get(PRESERVE) is False:
            del node[PRESERVE]
            self.note(path, f"{PRESERVE}: false dropped, pruning starts again by itself")
        patterns = node.get("patternProperties") or {}
        if len(patterns) == 1 and _ANYTHING.fullmatch(next(iter(patterns))) and "additionalProperties" not in node:
            node["additionalProperties"] = next(iter(node.pop("patternProperties").values()))
            self.note(path, "patternProperties for all names became additionalProperties")
        if node.get("properties") and node.get("additionalProperties") is False:
            del node["additionalProperties"]
            self.note(path, _PRUNED)
        if node.get("dependencies"):
            node.setdefault("allOf", []).extend(
                _dependency(*dependency) for dependency in node.pop("dependencies").items()
            )
            self.note(path, "dependencies became anyOf: the field is absent, or the dependency holds")
        if node.get("uniqueItems") and isinstance(items, dict) and items.get("type") in _SCALARS:
            del node["uniqueItems"]
            node.setdefault(LIST_TYPE, "set")
            self.note(path, f"uniqueItems became {LIST_TYPE}: set")
        if node.get(LIST_KEYS) in _PORTS and isinstance(items, dict):
            protocol = (items.get("properties") or {}).get("protocol")
            if protocol and protocol.get("default") is None and "protocol" not in (items.get("required") or ()):
                protocol["default"] = "TCP"
                self.note(
                    key(child(path, "items", "properties"), "protocol"),
                    "default: TCP added, as the ports of built-in kinds have it",
                )

    # keywords that belong to the spine

    def lift(self, node: Object, path: Path) -> None:
        """Declare fields and items that occur only in junctors."""
        branches = [skeleton(branch) for branch in _branches(node)]
        if not branches:
            return
        merged = merge(*branches) if len(branches) > 1 else branches[0]
        below = child(path, "properties")
        for name, inner in (merged.get("properties") or {}).items():
            if name in (node.get("properties") or {}) or isinstance(node.get("additionalProperties"), dict):
                continue
            node.setdefault("properties", {})[name] = copy(inner)
            self.note(key(below, name), "also declared outside of anyOf, allOf, oneOf and not")
        if "items" in merged and node.get("items") is None and isinstance(merged["items"], dict):
            node["items"] = copy(merged["items"])
            self.note(child(path, "items"), "also written outside of anyOf, allOf, oneOf and not")
        additional = merged.get("additionalProperties")
        if isinstance(additional, dict) and not node.get("properties") and node.get("additionalProperties") is None:
            node["additionalProperties"] = copy(additional)
            self.note(child(path, "additionalProperties"), "also written outside of anyOf, allOf, oneOf and not")

    def settle(self, node: Object, junctor: str, path: Path) -> None:
        """Move keywords that describe the node out of a junctor, if its branches agree."""
        branches = node.get(junctor) or []
        if junctor != "allOf" and _is_int_or_string(branches):
            settled = node.get(INT_OR_STRING) and node.get("anyOf") == _EITHER
            if not settled and not node.get("type") and (junctor == "anyOf" or not node.get("anyOf")):
                del node[junctor]
                node.update({INT_OR_STRING: True, "anyOf": copy(_EITHER)})
                self.note(path, f"{INT_OR_STRING}: true, with the anyOf that upstream requires")
            return
        if junctor != "allOf" and {"type": "null"} in branches:
            branches[:] = [branch for branch in branches if branch != {"type": "null"}]
            node["nullable"] = True
            self.note(path, f"type: null moved out of {junctor} as nullable: true")
            if not branches:
                del node[junctor]
        for keyword in _MOVABLE:
            values = [branch[keyword] for branch in branches if branch.get(keyword) is not None]
            agreed = bool(values) and all(value == values[0] for value in values)
            if agreed and (junctor == "allOf" or len(values) == len(branches)) and not node.get(keyword):
                node[keyword] = values[0]
                for branch in branches:
                    branch.pop(keyword, None)
                self.note(path, f"{keyword} moved out of {junctor}")
        if junctor == "allOf":
            for branch in branches:
                if rules := branch.pop(RULES, None):
                    node.setdefault(RULES, []).extend(rules)
                    self.note(path, f"{RULES} moved out of allOf")

    def type(self, node: Object, mentions: list[Object], path: Path) -> None:
        if node.get(EMBEDDED):
            self.implied(node, path)
            if not node.get("type"):
                node["type"] = "object"
                self.note(path, "type: object added")
            if not node.get("properties") and not node.get(PRESERVE):
                node[PRESERVE] = True
                self.note(path, f"{PRESERVE}: true added, any resource is allowed here")
        if not (node.get("type") or node.get(INT_OR_STRING) or node.get(PRESERVE)):
            implied = _implied_types([node, *mentions])
            if len(implied) == 1:
                node["type"] = implied.pop()
                self.note(path, f"type: {node['type']} added")
            elif not implied:
                node[PRESERVE] = True
                self.note(path, f"{PRESERVE}: true added, anything is allowed here")
        if node.get("type") == "array" and node.get("items") is None:
            node["items"] = {PRESERVE: True}
            self.note(child(path, "items"), f"{PRESERVE}: true added, anything is allowed here")
        opaque = not node.get("properties") and node.get("additionalProperties") is None and not node.get(PRESERVE)
        if self.preserve and node.get("type") == "object" and opaque and path != self.metadata:
            node[PRESERVE] = True
            self.note(path, f"{PRESERVE}: true keeps unknown fields")

    # keywords that are left in junctors

    def branches(self, node: Object, path: Path) -> None:
        if node.get(INT_OR_STRING) and _is_int_or_string(node.get("anyOf") or []):
            return
        for junctor in JUNCTORS:
            for n, branch in enumerate(node.get(junctor) or []):
                self.branch(branch, node, f"{child(path, junctor)}[{n}]", conjunction=junctor == "allOf")
        if node.get("not") is not None:
            self.branch(node["not"], node, child(path, "not"), conjunction=False)

    def branch(self, branch: Object, spine: Object, path: Path, *, conjunction: bool) -> None:
        """Drop the keywords of a branch that the spine has, too."""
        for keyword in (*_MOVABLE, "default"):
            value = branch.get(keyword)
            if value is not None and (value == spine.get(keyword) or keyword in ("description", "title")):
                del branch[keyword]
                self.note(path, f"{keyword} dropped")
        if conjunction and "default" in branch and "default" not in spine:
            spine["default"] = branch.pop("default")
            self.note(path, "default moved out of allOf")
        self.additional(branch, spine, path, conjunction=conjunction)
        if isinstance(branch.get("items"), dict) and isinstance(spine.get("items"), dict):
            self.branch(branch["items"], spine["items"], child(path, "items"), conjunction=conjunction)
        for name, inner in (branch.get("properties") or {}).items():
            if (declared := (spine.get("properties") or {}).get(name)) is not None:
                below = key(child(path, "properties"), name)
                self.branch(inner, declared, below, conjunction=conjunction)
        for junctor in JUNCTORS:
            for n, inner in enumerate(branch.get(junctor) or []):
                both = conjunction and junctor == "allOf"
                self.branch(inner, spine, f"{child(path, junctor)}[{n}]", conjunction=both)
        if branch.get("not") is not None:
            self.branch(branch["not"], spine, child(path, "not"), conjunction=False)

    def additional(self, branch: Object, spine: Object, path: Path, *, conjunction: bool) -> None:
        additional, values = branch.get("additionalProperties"), spine.get("additionalProperties")
        if additional is True or additional == {}:
            del branch["additionalProperties"]
            self.note(path, "additionalProperties dropped, it allowed everything")
        elif isinstance(additional, dict) and isinstance(values, dict):
            self.branch(additional, values, child(path, "additionalProperties"), conjunction=conjunction)
            if additional and conjunction:  # what holds for all values may be written at the values
                values.setdefault("allOf", []).append(additional)
                self.note(path, "additionalProperties moved out of allOf")
            if not additional or conjunction:
                del branch["additionalProperties"]


_PRUNED: Final = "additionalProperties: false dropped, unknown fields are pruned"
_RESTRICTABLE: Final = ("name", "generateName")
_ANYTHING: Final = expression(r"\^?(\.\*)?\$?")
_MOVABLE: Final = (
    "type", "nullable", "description", "title", PRESERVE, EMBEDDED, INT_OR_STRING, LIST_TYPE,
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip
_DESCRIPTIVE: Final = frozenset(
    {"type", "description", "title", "properties", "items", "additionalProperties", "format"}
)


def _is_plain(node: Object) -> bool:
    """Whether a node only describes the structure of a value."""
    below = [*(node.get("properties") or {}).values(), node.get("items"), node.get("additionalProperties")]
    return node.keys() <= _DESCRIPTIVE and all(_is_plain(inner) for inner in below if isinstance(inner, dict))


def _branches(node: Object) -> Iterator[Object]:
    for junctor in JUNCTORS:
        for branch in node.get(junctor) or []:
            yield branch
            yield from _branches(branch)
    if node.get("not") is not None:
        yield node["not"]
        yield from _branches(node["not"])


def _is_int_or_string(branches: list[Object]) -> bool:
    return len(branches) == 2 and all(type_ in branches for type_ in _EITHER)


def _dependency(name: str, on: Json) -> Object:
    return {"anyOf": [{"not": {"required": [name]}}, on if isinstance(on, dict) else {"required": on}]}


_IMPLIED: Final = {
    "object": ("properties", "additionalProperties", "patternProperties", "required", "minProperties", "maxProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", LIST_TYPE),
    "string": ("pattern", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "multipleOf"),
}
_JSON_TYPES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def _implied_types(nodes: Iterable[Object]) -> set[str]:
    """The types to which the keywords apply. Empty: there are no such keywords; several: they contradict each other."""
    types: set[str] = set()
    defaults: set[str] = set()
    for node in nodes:
        types |= {type_ for type_, keywords in _IMPLIED.items() if any(node.get(name) is not None for name in keywords)}
        types |= {_JSON_TYPES[type(member)] for member in node.get("enum") or [] if member is not None}
        types |= {type_ for type_, formats in NUMERIC.items() if node.get("format") in formats}
        if node.get("type"):
            types.add(node["type"])
        elif node.get("format") and is_recognized(node["format"], "string"):
            types.add("string")
        if node.get("default") is not None:
            defaults.add(_JSON_TYPES[type(node["default"])])
    if types == {"integer", "number"}:  # a limit, and a hint that it is for integers
        return {"integer"}
    return types or defaults
