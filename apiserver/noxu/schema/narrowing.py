"""Narrowings of a schema: the values that it refuses, drops or fills in, unlike its former version.

Both versions are structural schemas, as JSON. The promise is one-sided: without a narrowing, an object that the former
schema accepts is kept and accepted as it is. So keywords that cannot be compared, such as two patterns, count as
narrower. Wider keywords, and texts for people, are not mentioned. Objects are compared as they are after pruning and
defaulting by the former schema, without the former versions of rules: a rule that has not changed is assumed to say the
same.

    old  {type: integer, maximum: 10}      new  {type: integer, maximum: 5}
         maximum: the maximum was 10, and is 5 now
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from noxu.api.field import Path, child, index, key
from noxu.go.text import compact_json
from noxu.schema import formats
from noxu.values import Json, Object, equal


class Narrowing(NamedTuple):
    """`rule` is the kind of finding; `path` is in the new schema, even if the field is not in it any more.

    `is_new`: there was nothing of the kind before, such as a pattern where none was. `subject`: the text of a rule, or the name
    of a version, that the message is about.
    """

    rule: str
    path: Path
    message: str
    is_new: bool = False
    subject: str = ""


PRUNED: Final = "the former schema keeps this field; now it is pruned"
_ANYTHING: Final = "anything"
_INT_OR_STRING: Final = "integer or string"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_RULES: Final = "x-kubernetes-validations"
_TEXTS: Final = frozenset({"title", "description", "example", "externalDocs", "id", "$schema"})
_OF_RESOURCES: Final = frozenset({"apiVersion", "kind", "metadata"})
_WIDER: Final = {("integer", "number"), ("integer", _INT_OR_STRING), ("string", _INT_OR_STRING)}
_JUDGES: Final = ("allOf", "anyOf", "oneOf", "not", "enum", "maxProperties")
"""Keywords that may refuse an object because of a field that is filled in below them."""


def narrowings(old: Object, new: Object, path: Path = "") -> list[Narrowing]:
    """The findings in the new schema, whose path is given."""
    return list(_walk(old, new, path))


def _is_text(*types: str) -> Callable[[str], bool]:
    applies = frozenset({*types, _ANYTHING, *([_INT_OR_STRING] if {"string", "integer"} & set(types) else ())})
    return lambda type_: type_ in applies


_STRINGS, _NUMBERS = _is_text("string"), _is_text("integer", "number")
_LISTS, _OBJECTS = _is_text("array"), _is_text("object")
_LEAST: Final = (("minLength", _STRINGS), ("minItems", _LISTS), ("minProperties", _OBJECTS))
_MOST: Final = (("maxLength", _STRINGS), ("maxItems", _LISTS), ("maxProperties", _OBJECTS))


def _walk(old: Object, new: Object, path: Path, *, judged: bool = False, root: bool = True) -> Iterator[Narrowing]:
    """Along both schemas, whose depth is limited. `judged`: whether a node around has one of `_JUDGES`."""
    before, now = _type(old), _type(new)
    yield from _nullable(old, new, path)
    yield from _default(old, new, path)
    if before != now and now != _ANYTHING and (before, now) not in _WIDER:
        yield Narrowing("narrower-type", child(path, "type"), f"the type was {before}, and is {now} now")
        return
    yield from _values(old, new, before, path)
    yield from _bounds(old, new, before, path)
    yield from _junctors(old, new, path)
    yield from _rules(old, new, path)
    yield from _list_types(old, new, path)
    yield from _required(old, new, path, is_resource=root or bool(new.get(_EMBEDDED)))
    yield from _embedded(old, new, path)
    judged = judged or any(new.get(name) not in (None, []) for name in _JUDGES)
    yield from _fields(old, new, path, judged=judged)
    if isinstance(old.get("items"), dict):
        if isinstance(new.get("items"), dict):
            yield from _walk(old["items"], new["items"], child(path, "items"), judged=judged, root=False)
        elif now != _ANYTHING:
            yield Narrowing("no-longer-kept", path, PRUNED)
    elif isinstance(new.get("items"), dict) and not _accepts_all(new["items"]):
        yield _anything(child(path, "items"))


def _fields(old: Object, new: Object, path: Path, *, judged: bool) -> Iterator[Narrowing]:
    """Fields and values of maps: which are pruned now, and which have another schema."""
    olds, news = old.get("properties") or {}, new.get("properties") or {}
    kept, keeps = old.get("additionalProperties"), new.get("additionalProperties")
    preserves = bool(new.get(_PRESERVE)) or keeps is True
    for name, schema in olds.items():
        below = key(child(path, "properties"), name)
        if name in news:
            yield from _walk(schema, news[name], below, judged=judged, root=False)
        elif isinstance(keeps, dict):
            yield from _walk(schema, keeps, child(path, "additionalProperties"), judged=judged, root=False)
        elif not preserves:
            yield Narrowing("no-longer-kept", below, PRUNED)
    for name, schema in news.items():
        if name in olds:
            continue
        below = key(child(path, "properties"), name)
        if isinstance(kept, dict):
            yield from _walk(kept, schema, below, judged=judged, root=False)
        elif (kept is True or old.get(_PRESERVE)) and not _accepts_all(schema):
            yield _anything(below)
        if "default" in schema and judged:
            filled_in = _FILLED_IN.format(compact_json(schema["default"]))
            yield Narrowing("default-changed", child(below, "default"), filled_in, is_new=True)
    yield from _others(old, new, path, judged=judged, preserves=preserves)


def _others(old: Object, new: Object, path: Path, *, judged: bool, preserves: bool) -> Iterator[Narrowing]:
    """Fields that are not in `properties`."""
    kept, keeps = old.get("additionalProperties"), new.get("additionalProperties")
    if isinstance(kept, dict) and isinstance(keeps, dict):
        yield from _walk(kept, keeps, child(path, "additionalProperties"), judged=judged, root=False)
    elif kept and not keeps and not preserves:
        yield Narrowing("no-longer-kept", path, "the former schema keeps all fields of this map; now those that it does not name are pruned")  # fmt: skip
    elif (kept is True or old.get(_PRESERVE)) and isinstance(keeps, dict) and not _accepts_all(keeps):
        yield _anything(child(path, "additionalProperties"))
    if old.get(_PRESERVE) and not preserves and keeps is None:
        yield Narrowing("no-longer-kept", path, "the former schema keeps unknown fields; now they are pruned")


_FILLED_IN: Final = "it is filled in with {} now, where other keywords may refuse that"


def _anything(path: Path) -> Narrowing:
    return Narrowing("narrower-type", path, "it may be anything in the former schema; now it must satisfy a schema")


def _type(schema: Object) -> str:
    if schema.get("type"):
        return str(schema["type"])
    return _INT_OR_STRING if schema.get("x-kubernetes-int-or-string") else _ANYTHING


def _accepts_all(schema: Object) -> bool:
    said = {name for name, value in schema.items() if name not in _TEXTS and value not in (None, False)}
    return schema.get(_PRESERVE) is True and said <= {_PRESERVE, "nullable"}


def _nullable(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    if old.get("nullable") and not new.get("nullable"):
        yield Narrowing("narrower-nullable", path, "null is no longer accepted")


def _default(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    if "default" not in old and "default" not in new:
        return
    at = child(path, "default")
    if "default" not in new:
        yield Narrowing("default-changed", at, f"the default was {compact_json(old['default'])}, and there is none now")
    elif "default" not in old:
        said = f"there is a default now: {compact_json(new['default'])}"
        yield Narrowing("default-changed", at, said, is_new=True)
    elif not equal(old["default"], new["default"]):
        texts = compact_json(old["default"]), compact_json(new["default"])
        yield Narrowing("default-changed", at, f"the default was {texts[0]}, and is {texts[1]} now")


def _values(old: Object, new: Object, type_: str, path: Path) -> Iterator[Narrowing]:
    """Enums, patterns, formats and multiples."""
    if (members := new.get("enum")) is not None:
        before = old.get("enum")
        if before is None:
            yield Narrowing(
                "narrower-enum", child(path, "enum"), f"only {_listed(members)} {_is(members)} accepted now"
            )
        elif gone := [value for value in before if not any(equal(value, member) for member in members)]:
            yield Narrowing("narrower-enum", child(path, "enum"), f"{_listed(gone)} {_is(gone)} no longer accepted")
    if new.get("pattern") and new["pattern"] != old.get("pattern") and _STRINGS(type_):
        yield _changed("pattern", old, new, path)
    if _is_narrower_format(old.get("format") or "", new.get("format") or "", type_, _type(new)):
        yield _changed("format", old, new, path)
    multiple = new.get("multipleOf")
    if multiple is not None and _NUMBERS(type_) and not _is_multiple(old.get("multipleOf"), multiple):
        yield _changed("multipleOf", old, new, path)


def _listed(values: list[Json]) -> str:
    return ", ".join(map(compact_json, values))


def _is(values: list[Json]) -> str:
    return "is" if len(values) == 1 else "are"


_FORMATTED: Final = {_ANYTHING: ("string", "integer", "number"), _INT_OR_STRING: ("", "integer")}
"""The types whose formats apply to a node that has none."""


def _is_narrower_format(old: str, new: str, old_type: str, new_type: str) -> bool:
    if not new or (old == new and old_type == new_type) or (old, new) == ("int32", "int64"):
        return False
    return any(formats.is_recognized(new, type_) for type_ in _FORMATTED.get(new_type, (new_type,)))


def _is_multiple(old: Json, new: Json) -> bool:
    """Whether all multiples of a number are multiples of another one; for certain only if both are whole."""
    whole = isinstance(old, int) and isinstance(new, int) and not isinstance(old, bool)
    return old is not None and (equal(old, new) or (whole and new != 0 and old % new == 0))


def _changed(keyword: str, old: Object, new: Object, path: Path) -> Narrowing:
    before, now = old.get(keyword), compact_json(new[keyword])
    is_new = before in (None, "")
    said = (
        f"there is a {keyword} now: {now}" if is_new else f"the {keyword} was {compact_json(before)}, and is {now} now"
    )
    return Narrowing(f"narrower-{_kebab(keyword)}", child(path, keyword), said, is_new)


def _kebab(keyword: str) -> str:
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in keyword)


def _bounds(old: Object, new: Object, type_: str, path: Path) -> Iterator[Narrowing]:
    for keyword, applies in _LEAST:
        if applies(type_) and (new.get(keyword) or 0) > (old.get(keyword) or 0):
            yield _changed(keyword, old, new, path)
    for keyword, applies in _MOST:
        most = new.get(keyword)
        if applies(type_) and most is not None and (old.get(keyword) is None or most < old[keyword]):
            yield _changed(keyword, old, new, path)
    if not _NUMBERS(type_):
        return
    for keyword, sign in (("minimum", 1), ("maximum", -1)):
        limit, before = new.get(keyword), old.get(keyword)
        if limit is None:
            continue
        exclusive = f"exclusive{keyword.capitalize()}"
        if before is None or sign * limit > sign * before:
            yield _changed(keyword, old, new, path)
        elif limit == before and new.get(exclusive) and not old.get(exclusive):
            yield Narrowing(f"narrower-{keyword}", child(path, exclusive), f"{compact_json(limit)} itself is no longer accepted")  # fmt: skip


# -- keywords that are compared as a whole ----------------------------------------------------------------------------


def _junctors(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    old, new = _without_types(old), _without_types(new)
    for n, part in enumerate(new.get("allOf") or ()):
        if not _has(old.get("allOf"), part):
            yield Narrowing("narrower-all-of", index(child(path, "allOf"), n), "this condition is new or has changed")
    if alternatives := new.get("anyOf"):
        before = old.get("anyOf")
        if not before or not all(_has(alternatives, alternative) for alternative in before):
            yield Narrowing("narrower-any-of", child(path, "anyOf"), "an alternative is missing or has changed")
    for keyword, message in (("oneOf", "the alternatives have changed"), ("not", "what is excluded has changed")):
        if new.get(keyword) not in (None, []) and not equal(_bare(old.get(keyword)), _bare(new[keyword])):
            yield Narrowing(f"narrower-{_kebab(keyword)}", child(path, keyword), message)


def _without_types(schema: Object) -> Object:
    """An int-or-string without the alternatives that only repeat that."""
    both = [{"type": "integer"}, {"type": "string"}]
    if not schema.get("x-kubernetes-int-or-string"):
        return schema
    if equal(_bare(schema.get("anyOf")), both):
        return {name: value for name, value in schema.items() if name != "anyOf"}
    first, *rest = schema.get("allOf") or [None]
    if isinstance(first, dict) and equal(_bare(first), {"anyOf": both}):
        return {**schema, "allOf": rest}
    return schema


def _has(parts: Json, part: Json) -> bool:
    return isinstance(parts, list) and any(equal(_bare(candidate), _bare(part)) for candidate in parts)


def _bare(value: Json) -> Json:
    """A schema, or a list of them, without texts. Its depth is limited."""
    if isinstance(value, list):
        return [_bare(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {member: _bare(schema) for member, schema in inner.items()}
        if name == "properties" and isinstance(inner, dict)
        else inner if name in ("enum", "default") else _bare(inner)
        for name, inner in value.items()
        if name not in _TEXTS
    }  # fmt: skip


def _rules(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    before = {_identity(rule) for rule in old.get(_RULES) or ()}
    now = {_identity(rule) for rule in new.get(_RULES) or ()}
    is_new = not before - now  # otherwise it may be another version of one that is gone
    change = "new" if is_new else "new or has changed"
    for n, rule in enumerate(new.get(_RULES) or ()):
        if _identity(rule) not in before:
            at = child(index(child(path, _RULES), n), "rule")
            text = str(rule.get("rule", ""))
            yield Narrowing("narrower-rule", at, f"this rule is {change}: {text}", is_new, text)


def _identity(rule: Object) -> tuple[str, bool]:
    return str(rule.get("rule", "")).strip(), bool(rule.get("optionalOldSelf"))


def _list_types(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    before, now = old.get(_LIST_TYPE) or "atomic", new.get(_LIST_TYPE) or "atomic"
    if now != before:
        why = {"set": "no item may occur twice", "map": "no two items may have the same keys"}.get(now)
        why = why or "with server-side apply it has one owner as a whole"
        yield Narrowing(
            "list-type-changed", child(path, _LIST_TYPE), f"the list type was {before}, and is {now} now: {why}"
        )
    elif now == "map" and (old.get(_LIST_KEYS) or []) != (new.get(_LIST_KEYS) or []):
        keys = ", ".join(old.get(_LIST_KEYS) or []), ", ".join(new.get(_LIST_KEYS) or [])
        yield Narrowing("list-type-changed", child(path, _LIST_KEYS), f"the keys of the items were {keys[0]}, and are {keys[1]} now")  # fmt: skip
    before, now = old.get(_MAP_TYPE) or "granular", new.get(_MAP_TYPE) or "granular"
    if (before, now) == ("granular", "atomic"):
        yield Narrowing("list-type-changed", child(path, _MAP_TYPE), "the map was granular, and is atomic now: with server-side apply it has one owner as a whole")  # fmt: skip


def _required(old: Object, new: Object, path: Path, *, is_resource: bool) -> Iterator[Narrowing]:
    before = set(old.get("required") or ())
    fields = new.get("properties") or {}
    for n, name in enumerate(new.get("required") or ()):
        has_default = isinstance(fields.get(name), dict) and fields[name].get("default") is not None
        if name not in before and not has_default and not (is_resource and name in _OF_RESOURCES):
            yield Narrowing("narrower-required", index(child(path, "required"), n), f"{name} is required now")


def _embedded(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    if new.get(_EMBEDDED) and not old.get(_EMBEDDED):
        yield Narrowing("narrower-type", child(path, _EMBEDDED), "it must be a whole object now, with apiVersion, kind and metadata")  # fmt: skip
    elif old.get(_EMBEDDED) and not new.get(_EMBEDDED) and not new.get(_PRESERVE):
        missing = sorted(_OF_RESOURCES - set(new.get("properties") or {}))
        if missing:
            yield Narrowing(
                "no-longer-kept", path, f"the former schema keeps {', '.join(missing)}; now they are pruned"
            )
