"""Field sets in the form of fieldsV1 (structured-merge-diff's package fieldpath).

A set of fields is the JSON object in `managedFields[].fieldsV1`, as a dict. Its keys are path elements:

    f:NAME              a struct field or a map key
    k:{"name":"x"}      the item of a list-map with these keys (sorted by name, compact JSON)
    v:"x"               the item of a set with this value
    i:0                 the item at this index (read, but never produced: such lists are atomic)

An empty dict under an element means that the field is a member of the set. A dict with children means that some of them
are; `"."` in it means that the field itself is, too:

    {"f:spec": {".": {}, "f:a": {}}}    .spec and .spec.a
    {"f:spec": {"f:a": {}}}             .spec.a

`parse` establishes a canonical form, which every function keeps: values written as jsoniter does, key fields sorted, no
`"."` without siblings and none at the root, no element of a kind that upstream does not know. So equal elements are equal
strings, and operations on sets are operations on dicts. The order of keys has no meaning; `ordered` gives upstream's.

Sets are immutable by convention, and results share parts with their operands. Clients choose the depth of a set, so
nothing here recurses: a loop reads a list of frames to which it appends the children of each, so that parents come before
their children; where a result depends on the children, a second loop goes over the list backwards. `difference` of
{f:a: {f:x, f:y}} and {f:a: {f:x, f:y: {f:z}}} (leaves abbreviated):

    frame 0     left {f:a: …}        result {}         appends frame 1, because both sides have children under f:a
    frame 1     left {f:x, f:y}      result {f:y}      f:x is a member of both; f:y is one of the left side only
    backwards   frame 1 is not empty: result of frame 0 = {f:a: {f:y}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from noxu.expressions import expression
from noxu.go.text import Notation, compact_json, float_json, plain, quote, render
from noxu.values import MAX_INT64, MIN_INT64, Json

Element: TypeAlias = str
FieldSet: TypeAlias = dict[Element, Any]  # of FieldSets again, which a type alias cannot say
Path: TypeAlias = tuple[Element, ...]

SELF: Final = "."
ANY: Final = "*"  # in patterns: every element
MEMBER: Final[FieldSet] = {}  # shared by all leaves
EMPTY: Final[FieldSet] = {}


class MalformedFields(ValueError):
    """Not a fieldsV1 document."""


def field(name: str) -> Element:
    """The element of a struct field or map key: `f:spec`."""
    return "f:" + name


def item(keys: Iterable[tuple[str, Json]]) -> Element:
    """The element of a list-map's item. `keys` are sorted by name: `k:{"name":"x"}`."""
    return "k:{" + ",".join([f"{_name(name)}:{text(value)}" for name, value in keys]) + "}"


def value(scalar: Json) -> Element:
    """The element of a set's item: `v:"x"`."""
    return "v:" + text(scalar)


_PLAIN: Final = expression(r"[ !#-%'-;=?-\[\]-~]*")  # ASCII without controls, quote, backslash and < > &
_ESCAPE: Final = expression("\\\\.|[<>&\u2028\u2029]")
_ESCAPES: Final = {
    "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029",
    "\\b": "\\u0008", "\\f": "\\u000c",
}  # fmt: skip


def text(value: Json) -> str:
    """A JSON value as jsoniter writes it into a path element: HTML characters escaped, exponents of two digits."""
    if type(value) is str:
        if _PLAIN.fullmatch(value):
            return f'"{value}"'
        return _ESCAPE.sub(lambda match: _ESCAPES.get(match[0], match[0]), json.dumps(value, ensure_ascii=False))
    if type(value) is float:
        number, exponent, digits = float_json(value).partition("e")
        return f"{number}e{digits[0]}{digits[1:]:0>2}" if exponent else number
    if value is None:
        return "null"
    return compact_json(value) if isinstance(value, (dict, list)) else plain(value)


def _name(name: str) -> str:
    return f'"{name}"' if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def describe(path: Iterable[Element], *, stored: bool = True) -> str:
    """A path in messages: `.spec.list[k="a"].v`. In `stored` elements all numbers are printed as floats."""
    return "".join([_described(element, stored) for element in path])


def _described(element: Element, stored: bool) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return "." + rest
    if kind == "i":
        return f"[{rest}]"
    if kind == "v":
        return f"[={_shown(orjson.loads(rest), stored)}]"
    return "[" + ",".join(f"{name}={_shown(value, stored)}" for name, value in orjson.loads(rest).items()) + "]"


def _shown_scalar(value: Json) -> str:
    if isinstance(value, str):
        return quote(value)
    return "null" if value is None else plain(value)


_VALUE: Final = Notation(map=("", "", ""), list=("[", ",", "]"), key=lambda name: f"{name}=", scalar=_shown_scalar)
_STORED_VALUE: Final = _VALUE._replace(
    scalar=lambda value: _shown_scalar(float(value) if type(value) is int else value)
)


def _shown(value: Json, stored: bool) -> str:
    """structured-merge-diff's value.ToString, in which maps have no brackets."""
    return render(value, _STORED_VALUE if stored else _VALUE)


def parse(fields: Json) -> FieldSet:
    """fieldsV1 as a canonical set, which is the given dict itself if that is canonical. Raises MalformedFields.

    As upstream: null is the empty set, elements of unknown kinds are dropped with everything in them, the value of `"."`
    is ignored, and a field without remaining children is a member.
    """
    if fields is None:
        return EMPTY
    if type(fields) is not dict:
        raise MalformedFields("fields must be an object")
    canonical = SELF not in fields
    nodes = [fields]
    for node in nodes:
        if len(node) == 1 and SELF in node:
            canonical = False
        for element, child in node.items():
            if element == SELF:
                canonical = canonical and child == MEMBER
                continue
            if element[:2] != "f:":
                rewritten = _canonical(element)
                canonical = canonical and rewritten == element
                if rewritten is None:
                    continue
            if type(child) is dict:
                if child:
                    nodes.append(child)
            elif child is None:
                canonical = False
            else:
                raise MalformedFields(f"the fields under {quote(element)} must be an object")
    return fields if canonical else _rebuilt(fields)


def _rebuilt(fields: FieldSet) -> FieldSet:
    """Well-formed fieldsV1 in canonical form."""
    root: FieldSet = {}
    frames: list[tuple[FieldSet, FieldSet, FieldSet, Element]] = [(fields, root, root, "")]
    for source, out, _, _ in frames:
        for element, child in source.items():
            rewritten = SELF if element == SELF else _canonical(element)
            if rewritten == SELF:
                out[SELF] = MEMBER
            elif rewritten is not None:
                frames.append((child or MEMBER, {}, out, rewritten))
    for _, out, parent, element in reversed(frames[1:]):
        existing = parent.get(element)
        node = MEMBER if out.keys() <= {SELF} else out
        parent[element] = node if existing is None else union({element: existing}, {element: node})[element]
    root.pop(SELF, None)
    return root


MAX_CACHED: Final = 256
"""Characters of an element that `_canonical` caches; longer ones are parsed each time, to save memory."""


def _canonical(element: Element) -> Element | None:
    """The element in canonical form, None if its kind is unknown: `i:007` is `i:7`. Raises MalformedFields."""
    return _read_cached(element) if len(element) <= MAX_CACHED else _read(element)


def _read(element: str) -> Element | None:
    if len(element) < 2 or element[1] != ":" or element[0] > "\x7f":
        raise MalformedFields(f"{quote(element)} is not a path element")
    kind, rest = element[0], element[2:]
    if kind == "f":
        return element
    if kind == "i":
        if not re.fullmatch(r"[+-]?0*[0-9]{1,19}", rest) or not MIN_INT64 <= int(rest) <= MAX_INT64:
            raise MalformedFields(f"{quote(rest)} is not an index")
        return f"i:{int(rest)}"
    if kind not in "kv":
        return None
    try:
        read = orjson.loads(rest)
    except ValueError:
        raise MalformedFields(f"{quote(rest)} is not JSON") from None
    if kind == "v":
        return value(read)
    if not isinstance(read, (dict, type(None))):
        raise MalformedFields(f"{quote(rest)} is not an object of keys")
    return item(sorted((read or {}).items()))


_read_cached: Final = lru_cache(maxsize=4096)(_read)


def ordered(fields: FieldSet) -> FieldSet:
    """The set with its keys in upstream's order: `"."`, fields, items by key, items by value, indices."""
    root: FieldSet = {}
    frames = [(fields, root)]
    for node, out in frames:
        for element in _sorted(node):
            child = node[element]
            if child:
                inner: FieldSet = {}
                out[element] = inner
                frames.append((child, inner))
            else:
                out[element] = MEMBER
    return root


def _sorted(node: FieldSet) -> list[Element]:
    """The elements in the order of Go's PathElement.Compare. The common case, fields only, needs no ranks."""
    elements = sorted(node)
    return elements if not elements or elements[-1] < "g" else sorted(node, key=_rank)


def _rank(element: Element) -> tuple[Any, ...]:
    kind, _, rest = element.partition(":")
    if kind == "k":
        return (2, *((name, _value_rank(value)) for name, value in orjson.loads(rest).items()))
    if kind == "v":
        return 3, _value_rank(orjson.loads(rest))
    if kind == "i":
        return 4, int(rest)
    return 0 if element == SELF else 1, rest


def _value_rank(value: Json) -> tuple[int, Any]:
    """A sort key for the order of structured-merge-diff's value.Compare: numbers, strings, booleans, lists, maps, null."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return (5, 0) if value is None else (3 if isinstance(value, list) else 4, text(value))


def is_member(node: FieldSet) -> bool:
    """Whether the field of this node is itself a member of the set."""
    return not node or SELF in node


def of(*paths: Path) -> FieldSet:
    """The set of these fields."""
    root: FieldSet = {}
    for path in paths:
        node = root
        for element in path[:-1]:
            existing = node.get(element)
            if not existing:
                existing = node[element] = {} if existing is None else {SELF: MEMBER}
            node = existing
        last = node.get(path[-1])
        if last is None:
            node[path[-1]] = MEMBER
        elif last:
            last[SELF] = MEMBER
    return root


def contains(fields: FieldSet, path: Path) -> bool:
    """Whether a field is a member of the set."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and node is not None and is_member(node)


def paths(fields: FieldSet) -> Iterator[Path]:
    """All members of the set: first the members in a node, then those below each of them."""
    stack: list[tuple[Path, FieldSet]] = [((), fields)]
    while stack:
        path, node = stack.pop()
        below = []
        for element in _sorted(node):
            child = node[element]
            if element != SELF:
                if is_member(child):
                    yield (*path, element)
                if child:
                    below.append(((*path, element), child))
        stack += reversed(below)


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of either set."""
    if not left or not right or left is right:
        return left or right
    root = dict(left)
    frames = [(root, right)]
    for out, addition in frames:
        for element, theirs in addition.items():
            ours = out.get(element)
            if ours is None:
                out[element] = theirs
            elif ours is theirs:
                pass
            elif not ours or not theirs:  # a leaf on one side: the children of the other side, and the field itself
                node = ours or theirs
                out[element] = node if is_member(node) else {SELF: MEMBER, **node}
            else:
                out[element] = inner = dict(ours)
                frames.append((inner, theirs))
    return root


def united(sets: Sequence[FieldSet]) -> FieldSet:
    """The members of any of the sets, united in pairs, so that the time is nearly linear in their total size."""
    while len(sets) > 1:
        pairs = zip(sets[::2], sets[1::2], strict=False)
        sets = [union(left, right) for left, right in pairs] + ([sets[-1]] if len(sets) % 2 else [])
    return sets[0]


_Frame: TypeAlias = tuple[FieldSet, FieldSet, FieldSet, FieldSet, Element]
"""(left node, right node, result, result of the parent, element in the parent)"""


def _attached(frames: list[_Frame]) -> FieldSet:
    """Put the results of all frames into those of their parents, children first, without the empty ones."""
    for _, _, out, parent, element in reversed(frames[1:]):
        if out:
            parent[element] = MEMBER if len(out) == 1 and SELF in out else out
    return frames[0][2]


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of both sets."""
    if not left or not right:
        return EMPTY
    if left is right:
        return left
    frames: list[_Frame] = [(left, right, {}, {}, "")]
    for ours, theirs, out, _, _ in frames:
        if len(ours) > len(theirs):
            ours, theirs = theirs, ours
        for element, left_node in ours.items():
            right_node = theirs.get(element)
            if right_node is None:
                continue
            if left_node is right_node:
                out[element] = left_node
            elif left_node and right_node:
                frames.append((left_node, right_node, {}, out, element))
            elif is_member(left_node) and is_member(right_node):
                out[element] = MEMBER
    return _attached(frames)


def meets(left: FieldSet, right: FieldSet) -> bool:
    """Whether the sets have a member in common. It takes the time of the smaller set."""
    pairs = [(left, right)]
    for ours, theirs in pairs:
        for element in ours.keys() & theirs.keys():
            left_node, right_node = ours[element], theirs[element]
            if is_member(left_node) and is_member(right_node):
                return True
            if left_node and right_node:
                pairs.append((left_node, right_node))
    return False


def covers(fields: FieldSet, part: FieldSet) -> bool:
    """Whether all members of `part` are members of the set. It takes the time of `part`."""
    pairs = [(fields, part)]
    for ours, theirs in pairs:
        for element, right_node in theirs.items():
            left_node = ours.get(element)
            if left_node is None or (is_member(right_node) and not is_member(left_node)):
                return False
            if right_node:
                pairs.append((left_node, right_node))
    return True


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of the left set only: the set itself, if these are all.

    Membership of a field and of its children are independent.
    """
    if not left or not right or not meets(left, right):
        return left
    frames: list[_Frame] = [(left, right, {}, {}, "")]
    for ours, theirs, out, _, _ in frames:
        for element, left_node in ours.items():
            right_node = theirs.get(element)
            if right_node is None:
                out[element] = left_node
            elif element == SELF or left_node is right_node:
                pass
            elif not right_node:  # a leaf on the right: the field is removed, its children are kept
                if left_node:
                    frames.append((left_node, {SELF: MEMBER}, {}, out, element))
            elif left_node:
                frames.append((left_node, right_node, {}, out, element))
            elif SELF not in right_node:
                out[element] = MEMBER
    return _attached(frames)


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of the left set, without the members of the right one and all fields below them."""
    if not left or not right:
        return left
    frames: list[_Frame] = [(left, right, {}, {}, "")]
    for ours, theirs, out, _, _ in frames:
        for element, left_node in ours.items():
            right_node = theirs.get(element)
            if right_node is None:
                out[element] = left_node
            elif not is_member(right_node):
                if left_node:
                    frames.append((left_node, right_node, {}, out, element))
                else:
                    out[element] = MEMBER
    return _attached(frames)


def matching(fields: FieldSet, pattern: FieldSet) -> FieldSet:
    """The members along the paths of a pattern and below them (FilterIncludeMatches).

    ANY in a pattern stands for every element. Fields below a path of the pattern are kept as they are.
    """
    frames: list[_Frame] = [(fields, pattern, {}, {}, "")]
    for ours, wanted, out, _, _ in frames:
        for element, mine in ours.items():
            below = MEMBER if element == SELF else wanted.get(element, wanted.get(ANY))
            if below is None:
                continue
            if mine and below:
                frames.append((mine, below, {}, out, element))
            else:
                out[element] = mine
    return _attached(frames)
