"""Which fields of an object a write has changed: paths, for people.

    old                                         new                                         paths
    {"spec": {"size": 1}}                       {"spec": {"size": 2}}                       spec.size
    {"spec": {}}                                {"spec": {"a": {"b": 1, "c": 2}}}           spec.a
    {"metadata": {"labels": {"a/b": "1"}}}      {"metadata": {}}                            metadata.labels
    {"metadata": {"labels": {"x": "1"}}}        {"metadata": {"labels": {"x": "1", "a/b": "2"}}}  metadata.labels["a/b"]
    {"items": [{"name": "a", "v": 1}]}          {"items": [{"name": "a", "v": 2}]}          items[name=a].v
    {"items": [1, 2]}                           {"items": [1, 3]}                           items[1]
    None                                        {…}                                         (none: the object is new)

A value that is added or removed is one path, whatever is in it. Items of a list are told apart by a key, where all items of
both lists have the same one of KEYS and no two of them the same value; else by their index. A list whose items have another
order is a path itself. What every write changes is left
out: IGNORED.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from noxu.expressions import expression
from noxu.values import Json, Object

KEYS: Final = (
    "name",
    "type",
    "key",
    "id",
    "ip",
    "uid",
    "containerPort",
    "port",
    "topologyKey",
    "mountPath",
    "devicePath",
)
"""The usual keys of lists of type map in upstream's kinds, and in those of others."""
IGNORED: Final = (("metadata", "managedFields"), ("metadata", "resourceVersion"), ("metadata", "generation"))
MAX_PATHS: Final = 100
_PLAIN: Final = expression(r"[A-Za-z_][A-Za-z0-9_-]*")
_PLAIN_KEY: Final = expression(r"[A-Za-z0-9_./:-]{1,64}")

_Path = tuple[str, ...]
"""Texts that are joined: ".spec", ".size", "[name=a]"."""


def changed_paths(old: Object | None, new: Object | None, most: int = MAX_PATHS) -> list[str]:
    """The paths that differ, the metadata first, at most `most` and then `… and N more`. None: it does not exist."""
    if old is None or new is None:
        return []
    found = sorted({"".join(path).removeprefix(".") for path in _differences(old, new)}, key=_order)
    if len(found) > most:
        return [*found[:most], f"… and {len(found) - most} more"]
    return found


def _order(path: str) -> tuple[int, str]:
    first = path.split(".")[0].split("[")[0]
    return (0 if first == "metadata" else 2 if first == "status" else 1, path)


def _differences(old: Object, new: Object) -> Iterator[_Path]:
    waiting: list[tuple[_Path, tuple[str, ...], Json, Json]] = [((), (), old, new)]
    while waiting:  # without recursion: objects may be deep
        path, keys, before, after = waiting.pop()
        if keys in IGNORED or before is after:
            continue
        parts = _parts(before, after)
        if parts is None:
            if not _same(before, after):
                yield path
            continue
        if isinstance(before, list) and _is_moved(before, after):
            yield path
        for shown, key, old_part, new_part in parts:
            waiting.append(((*path, shown), (*keys, key), old_part, new_part))


def _parts(before: Json, after: Json) -> Iterator[tuple[str, str, Json, Json]] | None:
    """Of two objects or two lists: the text, the key, and both values of each part. None: they are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _fields(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _items(before, after)
    return None


def _fields(before: Object, after: Object) -> Iterator[tuple[str, str, Json, Json]]:
    for name in {**before, **after}:
        yield _step(name), name, before.get(name, _ABSENT), after.get(name, _ABSENT)


def _items(before: Sequence[Json], after: Sequence[Json]) -> Iterator[tuple[str, str, Json, Json]]:
    key = _key_of(before, after)
    if key is None:
        for index in range(max(len(before), len(after))):
            yield (
                f"[{index}]",
                "",
                before[index] if index < len(before) else _ABSENT,
                after[index] if index < len(after) else _ABSENT,
            )
        return
    old, new = ({item[key]: item for item in items} for items in (before, after))
    for value in {**old, **new}:
        yield _selector(key, value), "", old.get(value, _ABSENT), new.get(value, _ABSENT)


def _key_of(before: Sequence[Json], after: Sequence[Json]) -> str | None:
    """The field that tells the items of both lists apart."""
    for key in KEYS:
        if (before or after) and all(_are_distinct(items, key) for items in (before, after)):
            return key
    return None


def _is_moved(before: Sequence[Json], after: Sequence[Json]) -> bool:
    """Whether items that both lists have are in another order."""
    key = _key_of(before, after)
    if key is None:
        return False
    old, new = ([item[key] for item in items] for items in (before, after))
    return [value for value in old if value in new] != [value for value in new if value in old]


def _are_distinct(items: Sequence[Json], key: str) -> bool:
    values = [item.get(key) if isinstance(item, dict) else None for item in items]
    return all(isinstance(value, str | int) for value in values) and len({*values}) == len(values)


def _same(before: Json, after: Json) -> bool:
    """Python calls 1, 1.0 and True equal, JSON does not."""
    return type(before) is type(after) and bool(before == after)


def _step(name: str) -> str:
    return f".{name}" if _PLAIN.fullmatch(name) else f'["{name}"]'


def _selector(key: str, value: str | int) -> str:
    return f"[{key}={value}]" if _PLAIN_KEY.fullmatch(str(value)) else f'[{key}="{value}"]'


class _Absent:
    """No value."""


_ABSENT: Final[Any] = _Absent()
