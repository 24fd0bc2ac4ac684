"""What one JSON value has that another has not, as a JSON patch (RFC 6902) for people to read.

Items of lists are compared by position, after the equal ones at both ends are set aside. Values may be as deep as
clients like.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.api.types import Json, Object
from apiserver.api.values import equal


def pointer(above: str, step: str | int) -> str:
    """The JSON pointer (RFC 6901) of a member or an item."""
    return f"{above}/{step}" if isinstance(step, int) else f"{above}/{step.replace('~', '~0').replace('/', '~1')}"


def steps(path: str) -> list[str]:
    """The member names and positions of a JSON pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def field_path(place: Sequence[str]) -> str:
    """The same place as messages about fields write it: `spec.ports[0].name`."""
    path = ""
    for step in place:
        path += f"[{step}]" if step.isdigit() else f".{step}" if path else step
    return path


def difference(old: Json, new: Json, path: str = "") -> list[Object]:
    """A JSON patch of add, remove and replace that makes `new` of `old`."""
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
    """The members that both have; what one of them lacks is added to the patch."""
    patch += [{"op": "remove", "path": pointer(where, name)} for name in before if name not in after]
    both = []
    for name, value in after.items():
        if name in before:
            both.append((pointer(where, name), before[name], value))
        else:
            patch.append({"op": "add", "path": pointer(where, name), "value": value})
    return both[::-1]


def _items(where: str, before: list[Json], after: list[Json], patch: list[Object]) -> list[tuple[str, Json, Json]]:
    """The items that stand at the same place but may differ; items that came or went are added to the patch."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and equal(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and equal(before[-1 - end], after[-1 - end]):
        end += 1
    middle = shorter - end
    gone, come = reversed(range(middle, len(before) - end)), range(middle, len(after) - end)
    patch += [{"op": "remove", "path": pointer(where, n)} for n in gone]
    patch += [{"op": "add", "path": pointer(where, n), "value": after[n]} for n in come]
    return [(pointer(where, n), before[n], after[n]) for n in reversed(range(start, middle))]
