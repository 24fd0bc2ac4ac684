"""kubectl's JSONPath dialect, as printer columns use it (upstream's k8s.io/client-go/util/jsonpath).

A path is what stands between the braces of kubectl's `-o jsonpath={…}`: `.spec.replicas`, `.items[0].name`,
`.a['b\\.c']`, `.list[-1:]`, `..name`, `.items[?(@.type=="Ready")].status`, `.list[0,2]`. Missing fields are no error,
they give no result. `parse` refuses what upstream's parser refuses; `Path.find` gives nothing where upstream's
evaluation fails, because a cell is empty in either case.

The dialect has no written specification and several surprises, which are kept:

- in `['a.b']` the dot separates fields, as outside of the brackets; only `\\.` is a dot of the name;
- `[]` is `[0]`, an index outside of the list is an error, and `[1:1]` ends the search with what has been found so far;
- `$` and `@` stand for nothing at all: `.a$.b` is `.a.b`;
- `[?(@.x)]` is true wherever evaluating `@.x` left values over, even if it failed on the way (`[?(@.x[9])]`);
- `==` and `<` compare values of one kind only: an integer and a float are two kinds;
- numbers, texts and booleans may stand in a path, and are results;
- braces may be closed and opened within the path: `.a}, {.b` has three parts, of which the first one counts here.

Where Go walks a map in random order, this walks it in the order of its keys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

from apiserver.api.types import Json
from apiserver.http import jsonpath_parser
from apiserver.http.jsonpath_parser import (
    Bare,
    Descent,
    Field,
    Filter,
    Literal,
    PathError,
    Slice,
    Steps,
    Text,
    Union,
    Wildcard,
    Word,
    field_names,
)

__all__ = ["MAX_RANGES", "MAX_VALUES", "Bare", "Path", "PathError", "parse"]

MAX_VALUES: Final = 100_000
"""What one evaluation may look at. Upstream has no limit: there `..a..a` on a deep object runs for the square of it."""

MAX_RANGES: Final = 20
"""How deep ranges may be nested; upstream has no limit."""


def parse(text: str) -> Path:
    """A path as it stands in a printer column, without the outer braces. Raises PathError."""
    return Path(text, jsonpath_parser.parse(text))


class Path:
    """A parsed path. `parts` are what stood in braces, and the texts between them."""

    __slots__ = ("_names", "parts", "text")

    def __init__(self, text: str, parts: Sequence[Steps | Text]) -> None:
        self.text = text
        self.parts = tuple(parts)
        first = self.parts[0]
        self._names = field_names(first) if len(self.parts) == 1 and not isinstance(first, Text) else None

    def find(self, value: Json) -> list[Json]:
        """The results of the first part of the path, in order; none where the evaluation fails."""
        if self._names is not None:
            return _follow(self._names, value)
        try:
            found = _Evaluation(self.parts).run(0, value)
        except (_Failed, _TooMuch):
            return []
        return found[0] if found else []


class _Failed(Exception):
    """An evaluation went wrong; `values` are what it had in hand then, which `[?(…)]` takes for a sign of life."""

    def __init__(self, values: list[Json]) -> None:
        super().__init__()
        self.values = values


class _TooMuch(Exception):
    """An evaluation went beyond MAX_VALUES or MAX_RANGES."""


class _Evaluation:
    """One evaluation of a path. (Upstream's `range` consumes the parsed path: from the second object on such a path
    gives something else there. Here every object is as good as the first.)"""

    __slots__ = ("begun", "budget", "ended", "inside", "last_end", "parts")

    def __init__(self, parts: Sequence[Steps | Text]) -> None:
        self.parts = parts
        self.budget = MAX_VALUES
        self.begun = self.inside = self.ended = 0  # ranges: asked for, running, asked to end
        self.last_end = -1

    def run(self, start: int, value: Json) -> list[list[Json]]:
        """The results of each part from `start` on, to the last one or to the `end` of the range we are in."""
        groups: list[list[Json]] = []
        at = start
        while at < len(self.parts):
            self.spend(1)
            part = self.parts[at]
            results = [part.text] if isinstance(part, Text) else self.walk(part, [value])
            if 0 < self.ended <= self.inside:
                self.ended -= 1
                self.last_end = at
                break
            if self.begun:
                groups += self.loop(at + 1, results)
                at = max(at, self.last_end)
            else:
                groups.append(results)
            at += 1
        return groups

    def loop(self, start: int, values: list[Json]) -> list[list[Json]]:
        self.begun -= 1
        self.inside += 1
        if self.inside > MAX_RANGES:
            raise _TooMuch
        groups = [group for value in values for group in self.run(start, value)]
        if not values:
            self.run(start, None)  # to find its end
        self.inside -= 1
        return groups

    def walk(self, steps: Steps, values: list[Json]) -> list[Json]:
        for step in steps:
            match step:
                case Field(name):
                    values = [value[name] for value in values if type(value) is dict and name in value]
                case Slice():
                    values = _slice_all(step, values)
                case Filter():
                    values = self.filter(step, values)
                case Union(branches):
                    values = self.union(branches, values)
                case Wildcard():
                    values = [child for value in values for child in _children(value)]
                case Descent():
                    values = _descendants(values)
                case Text(text):
                    values = [text]
                case Literal(literal):
                    values = [literal] * len(values)
                case Word(word):
                    values = self.word(word, values)
            self.spend(len(values) + 1)
        return values

    def spend(self, values: int) -> None:
        self.budget -= values
        if self.budget < 0:
            raise _TooMuch

    def word(self, word: str, values: list[Json]) -> list[Json]:
        if word == "range":
            self.begun += 1
            return values
        if word == "end" and self.inside:
            self.ended += 1
            return []
        raise _Failed([] if word == "end" else values)

    def union(self, branches: tuple[Steps, ...], values: list[Json]) -> list[Json]:
        try:
            return [one for branch in branches for one in self.walk(branch, values)]
        except _Failed:
            raise _Failed(values) from None

    def filter(self, step: Filter, values: list[Json]) -> list[Json]:
        results: list[Json] = []
        for value in values:
            if type(value) is not list:
                raise _Failed(values)
            self.spend(len(value))
            for item in value:
                if step.operator == "exists":
                    passes = self.exists(step.left, item)
                else:
                    left, right = self.sides(step, item, values)
                    passes = bool(left and right) and _compare(left[0], step.operator, right[0], results)
                if passes:
                    results.append(item)
        return results

    def exists(self, steps: Steps, item: Json) -> bool:
        try:
            return bool(self.walk(steps, [item]))
        except _Failed as failed:
            return bool(failed.values)

    def sides(self, step: Filter, item: Json, values: list[Json]) -> tuple[list[Json], list[Json]]:
        """What is to be compared: at most one value on each side."""
        if step.names is not None:
            constant = step.right[0]
            assert isinstance(constant, (Text, Literal))
            return _follow(step.names, item), [constant[0]]
        try:
            left = self.walk(step.left, [item])
            right = self.walk(step.right, [item]) if left else []
        except _Failed:
            raise _Failed(values) from None
        if len(left) > 1 or len(right) > 1:
            raise _Failed(values)
        return left, right


def _follow(names: tuple[str, ...], value: Json) -> list[Json]:
    for name in names:
        if type(value) is not dict or name not in value:
            return []
        value = value[name]
    return [value]


def _slice_all(step: Slice, values: list[Json]) -> list[Json]:
    results: list[Json] = []
    for value in values:
        if value is None:
            continue
        if type(value) is not list:
            raise _Failed(values)
        size = len(value)
        start = step.start or 0
        stop = size if step.stop is None else step.stop
        if start < 0:
            start += size
        if stop < 0 or (stop == 0 and step.single):
            stop += size
        if start == stop:
            return results
        if not 0 <= start < stop <= size or (step.step is not None and step.step <= 0):
            raise _Failed(values)
        results += value[start : stop : step.step]
    return results


def _children(value: Json) -> list[Json]:
    if type(value) is dict:
        return [value[name] for name in sorted(value)]
    if type(value) is list:
        return value
    return [Bare(byte) for byte in value.encode()] if type(value) is str else []


def _descendants(values: list[Json]) -> list[Json]:
    """The values and all that is in them, parents first; only what contains something (a text contains its bytes)."""
    results: list[Json] = []
    todo = values[::-1]
    while todo:
        value = todo.pop()
        if isinstance(value, (dict, list, str)) and value:
            results.append(value)
            if len(results) > MAX_VALUES:
                raise _TooMuch
            if not isinstance(value, str):
                todo += _children(value)[::-1]
    return results


def _kind(value: Json) -> str:
    """What Go's comparisons go by; "" if they refuse it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "string" if isinstance(value, str) else ""


def _compare(left: Json, symbol: str, right: Json, found: list[Json]) -> bool:
    test = _COMPARE.get(symbol)
    if type(left) is type(right) is str and test is not None:
        return test(left, right)
    kind = _kind(left)
    if test is None or not kind or kind != _kind(right) or (kind == "bool" and symbol not in ("==", "!=")):
        raise _Failed(found)
    return test(left, right)


_COMPARE: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
