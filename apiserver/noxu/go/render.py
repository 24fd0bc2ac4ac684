"""One loop that prints JSON values as text, in whatever notation a `Notation` describes.

encoding/json, `%v`, `%#v` and structured-merge-diff differ in brackets, separators, the order of keys and the spelling
of scalars, and in nothing else. The value may be 10,000 levels deep, so the loop keeps a stack of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from noxu.values import Json

Brackets: TypeAlias = tuple[str, str, str]
"""What opens a container, separates its members, and closes it."""


class Notation(NamedTuple):
    """How values are spelled.

    `key` gives the name of a map's member together with what separates it from the value, such as `"a":`. `scalar`
    gives everything that is neither a map nor a list.
    """

    map: Brackets
    list: Brackets
    key: Callable[[str], str]
    scalar: Callable[[Json], str]
    sort_keys: bool = True


def render(value: Json, notation: Notation) -> str:
    """The text of a value.

    In JSON's notation `{"a": [1, 2], "b": {}}` is printed in this order, with the containers that are open meanwhile:

        {           map             `{` opens the map
        "a":        map             its first key; the value is a container, so the map waits on the stack
        [ 1 , 2 ]   map, list       `]` closes the list, and the loop goes on with the map
        , "b":      map             a separator precedes every member but the first
        { }         map, map
        }                           the stack is empty: done
    """
    if not isinstance(value, (dict, list)):
        return notation.scalar(value)
    (map_open, map_separator, map_close), (list_open, list_separator, list_close), key, scalar, sort_keys = notation
    out: list[str] = []
    write = out.append
    stack: list[tuple[Json, Iterator[Json]]] = []  # open containers with their members still to be printed
    container: Json = value
    while True:
        # Open `container`.
        if isinstance(container, dict):
            write(map_open)
            members: Iterator[Json] = iter(sorted(container) if sort_keys else container)
        else:
            write(list_open)
            members = iter(container)
        separator = ""
        while True:
            # Print members up to the next container, or to the end of this one.
            inner: Json = None
            if isinstance(container, dict):
                for name in members:
                    write(separator)
                    write(key(name))
                    separator = map_separator
                    item = container[name]
                    if isinstance(item, (dict, list)):
                        inner = item
                        break
                    write(scalar(item))
            else:
                for item in members:
                    write(separator)
                    separator = list_separator
                    if isinstance(item, (dict, list)):
                        inner = item
                        break
                    write(scalar(item))
            if inner is not None:
                stack.append((container, members))
                container = inner
                break
            write(map_close if isinstance(container, dict) else list_close)
            if not stack:
                return "".join(out)
            container, members = stack.pop()
            separator = map_separator if isinstance(container, dict) else list_separator
