"""The difference of two JSON values as a JSON patch (RFC 6902), for people to read.

Items of lists are compared by position, after equal ones at both ends have been set aside. Nothing recurses: clients
choose the depth of values.

    old    {"a": [1, 2, 3], "b": "x"}
    new    {"a": [1, 3], "c": "y"}
    patch  remove /b, add /c "y", remove /a/1
"""

from __future__ import annotations

from collections.abc import Sequence

from noxu.values import Json, Object, equal


def pointer(above: str, step: str | int) -> str:
    """The JSON pointer (RFC 6901) of a member or an item."""
    return f"{above}/{step}" if isinstance(step, int) else f"{above}/{step.replace('~', '~0').replace('/', '~1')}"


def steps(path: str) -> list[str]:
    """The member names and positions of a JSON pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def field_path(steps: Sequence[str]) -> str:
    """The steps of a JSON pointer as a field path: `spec.ports[0].name`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if step.isdigit() else f".{step}" if path else step
    return path


def difference(old: Json, new: Json, path: str = "") -> list[Object]:
    """A JSON patch of add, remove and replace operations that changes `old` to `new`."""
    patch: list[Object] = []
    todo = [(path, old, new)]
    while todo:
        where, before, after = todo.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            todo += _members(where, before, after, patch)
        elif isinstance(before, list) and isinstance(after, list):
            todo += _items(where, before, after, patch)
        elif not equal(before, after):
            patch.append({"op": "replace", "path": where, "value": after})
    return patch


def _members(where: str, before: Object, after: Object, patch: list[Object]) -> list[tuple[str, Json, Json]]:
    """The members of both; those of one side only are added to the patch."""
    patch += [{"op": "remove", "path": pointer(where, name)} for name in before if name not in after]
    both = []
    for name, value in after.items():
        if name in before:
            both.append((pointer(where, name), before[name], value))
        else:
            patch.append({"op": "add", "path": pointer(where, name), "value": value})
    return both[::-1]


def _items(where: str, before: list[Json], after: list[Json], patch: list[Object]) -> list[tuple[str, Json, Json]]:
    """The items at equal positions that may differ; surplus items of one side are added to the patch.

    [1, 2, 3] and [1, 3]: one equal item at the start, one at the end; of the middles [2] and [] nothing is common, so 2
    is removed. Removals go backwards, so that they do not move the positions of those that follow.
    """
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and equal(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and equal(before[-1 - end], after[-1 - end]):
        end += 1
    middle = shorter - end
    removed, added = reversed(range(middle, len(before) - end)), range(middle, len(after) - end)
    patch += [{"op": "remove", "path": pointer(where, n)} for n in removed]
    patch += [{"op": "add", "path": pointer(where, n), "value": after[n]} for n in added]
    return [(pointer(where, n), before[n], after[n]) for n in reversed(range(start, middle))]
