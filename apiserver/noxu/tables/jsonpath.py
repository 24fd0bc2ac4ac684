"""kubectl's JSONPath dialect, as printer columns use it (upstream's k8s.io/client-go/util/jsonpath).

A path is the text between the braces of kubectl's `-o jsonpath={…}`: `.spec.replicas`, `.items[0].name`,
`.a['b\\.c']`, `.list[-1:]`, `..name`, `.items[?(@.type=="Ready")].status`, `.list[0,2]`. A missing field is not an error,
but gives no result. `parse` refuses what upstream's parser refuses; `Path.find` returns nothing if upstream's evaluation
fails, because the cell is empty in both cases.

Evaluation goes step by step, from a list of values to the next list. On {"l": [{"t": "a", "v": 1}, {"t": "b", "v": 2}]}:

    .l[?(@.t=="b")].v       values before               values after
    FieldStep("l")          [the object]                [[{…}, {…}]]
    FilterStep(.t == "b")   [[{…}, {…}]]                [{"t": "b", "v": 2}]
    FieldStep("v")          [{"t": "b", "v": 2}]        [2]

The dialect has no written specification, and several peculiarities, which are kept:

- in `['a.b']` the dot separates fields, as outside of the brackets; only `\\.` is a dot in a name;
- `[]` is `[0]`, an index out of range is an error, and `[1:1]` ends the evaluation with the results so far;
- `$` and `@` are ignored: `.a$.b` is `.a.b`;
- `[?(@.x)]` is true if evaluating `@.x` leaves values, even if it fails on the way (`[?(@.x[9])]`);
- `==` and `<` compare values of one kind only: integers and floats are different kinds;
- numbers, strings and booleans may occur in a path, and are results;
- braces may be closed and opened within the path: `.a}, {.b` has three parts, of which only the first one is used here.

Where Go walks a map in random order, keys are sorted here.

Upstream has no limits: `..a..a` takes quadratic time, and a hundred columns that print the whole object a hundred times its
size. A `CellBudget` limits how much the paths may look at and print. When the budget of a row is spent, the cells of its
other columns are empty, as if their paths had failed. The same holds for the rows after the one with which the budget of a
request is spent.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from noxu.cpu_budget import spend
from noxu.tables import jsonpath_parser
from noxu.tables.jsonpath_parser import (
    Bare,
    Descent,
    FieldStep,
    FilterStep,
    LiteralStep,
    PathError,
    Slice,
    Step,
    Steps,
    TextStep,
    UnionStep,
    Wildcard,
    Word,
    field_names,
)
from noxu.values import Json

MAX_OF_ROW: Final = 100_000
"""Values that the paths of one row may look at; 8 characters of a cell count as one."""
MAX_OF_REQUEST: Final = 2_000_000
"""The same for all rows of a request."""

_SHORT: Final = 256  # characters of a cell that does not count
_CHARACTERS: Final = 8  # that count as a value
_VALUES_PER_CHECK: Final = 1000  # of the CPU budget


class Spent(Exception):
    """The budget of the row, or of the request, does not suffice."""


class CellBudget:
    """What the rows of one request may still look at. `cut_short`: the budget of the request left cells empty."""

    __slots__ = ("_of_request", "_of_row", "_unchecked", "cut_short")

    def __init__(self) -> None:
        self._of_request = MAX_OF_REQUEST
        self._of_row = MAX_OF_ROW
        self._unchecked = 0
        self.cut_short = False

    def begin_row(self) -> None:
        self._of_row = MAX_OF_ROW

    def take(self, values: int) -> None:
        """Raises Spent, and the errors of the CPU budget."""
        self._of_row -= values
        self._of_request -= values
        self._unchecked += values
        if self._of_request < 0:
            self.cut_short = True
            raise Spent
        if self._of_row < 0:
            raise Spent
        if self._unchecked > _VALUES_PER_CHECK:
            spend(self._unchecked)
            self._unchecked = 0

    def take_cell(self, text: str) -> None:
        """Account for a cell. Raises Spent."""
        if len(text) > _SHORT:
            self.take(len(text) // _CHARACTERS)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be looked at in this row."""
        if self._of_request < 0:
            self.cut_short = True
        return self._of_request < 0 or self._of_row < 0


CURRENT: Final[ContextVar[CellBudget | None]] = ContextVar("cell_budget", default=None)
"""The budget of the request whose rows are made; without one, each row has one of its own."""


@contextmanager
def limited_by(budget: CellBudget) -> Iterator[None]:
    """Inside, `budget` is the current one."""
    token = CURRENT.set(budget)
    try:
        yield
    finally:
        CURRENT.reset(token)


__all__ = ["MAX_RANGES", "Bare", "Path", "PathError", "parse"]

MAX_RANGES: Final = 20
"""The maximum depth of nested ranges; upstream has no limit."""


def parse(text: str) -> Path:
    """Parse the path of a printer column, without the outer braces. Raises PathError."""
    return Path(text, jsonpath_parser.parse(text))


class Path:
    """A parsed path. `parts` are the steps in each pair of braces, and the texts between them."""

    __slots__ = ("_names", "degree", "parts", "text")

    def __init__(self, text: str, parts: Sequence[Steps | TextStep]) -> None:
        self.text = text
        self.parts = tuple(parts)
        first = self.parts[0]
        self._names = field_names(first) if len(self.parts) == 1 and not isinstance(first, TextStep) else None
        self.degree = 0 if self._names is not None else _degree(self.parts)
        """The number of values that are looked at is at most the size of the object to this power; 0: they are few."""

    def find(self, value: Json, budget: CellBudget | None = None) -> list[Json]:
        """The results of the first part of the path, in order; none if the evaluation fails or the budget is spent."""
        if self._names is not None:
            return _follow(self._names, value)
        try:
            results = _Evaluation(self.parts, budget or CellBudget()).run(0, value)
        except (_Failed, _LimitExceeded, Spent):
            return []
        return results[0] if results else []


def _degree(parts: Sequence[Steps | TextStep]) -> int:
    """One descent finds each value once, and a second one each value below each of them."""
    steps = list(_all_steps(parts))
    descents = sum(isinstance(step, Descent) or (isinstance(step, FilterStep) and step.names is None) for step in steps)
    return max(1, descents) + sum(isinstance(step, (UnionStep, Word)) for step in steps)


def _all_steps(parts: Iterable[Steps | TextStep]) -> Iterator[Step]:
    """The steps of a path, those in its filters and unions included."""
    todo: list[Steps | TextStep] = list(parts)
    while todo:
        part = todo.pop()
        for step in () if isinstance(part, TextStep) else part:
            yield step
            match step:
                case FilterStep():
                    todo += step.left, step.right
                case UnionStep():
                    todo += step.branches


class _Failed(Exception):
    """An evaluation failed; `values` are those of the failing step, which make `[?(…)]` true."""

    def __init__(self, values: list[Json]) -> None:
        super().__init__()
        self.values = values


class _LimitExceeded(Exception):
    """An evaluation exceeded MAX_RANGES."""


class _Evaluation:
    """One evaluation of a path.

    (Upstream's `range` consumes the parsed path, so that its results differ from the second object on. Here they are those
    of the first object for every object.)
    """

    __slots__ = ("begun", "count", "ended", "inside", "last_end", "parts")

    def __init__(self, parts: Sequence[Steps | TextStep], budget: CellBudget) -> None:
        self.parts = parts
        self.count = budget.take
        self.begun = self.inside = self.ended = 0  # ranges: to begin, running, to end
        self.last_end = -1

    def run(self, start: int, value: Json) -> list[list[Json]]:
        """The results of each part from `start` on, to the last part or to the `end` of the innermost range.

        `{range .l}{.a}{end}{.b}` has the parts 0 to 3. Part 0 asks for a range: `loop` runs part 1 for each item, until `end`
        in part 2 sets `last_end`; then the outer `run` goes on with part 3.
        """
        groups: list[list[Json]] = []
        at = start
        while at < len(self.parts):
            self.count(1)
            part = self.parts[at]
            results = [part.text] if isinstance(part, TextStep) else self.walk(part, [value])
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
            raise _LimitExceeded
        groups = [group for value in values for group in self.run(start, value)]
        if not values:
            self.run(start, None)  # to find the end of the range
        self.inside -= 1
        return groups

    def walk(self, steps: Steps, values: list[Json]) -> list[Json]:
        for step in steps:
            match step:
                case FieldStep(name):
                    values = [value[name] for value in values if type(value) is dict and name in value]
                case Slice():
                    values = _slice_all(step, values)
                case FilterStep():
                    values = self.filter(step, values)
                case UnionStep(branches):
                    values = self.union(branches, values)
                case Wildcard():
                    self.count(sum(len(value) for value in values if isinstance(value, (dict, list, str))))
                    values = [child for value in values for child in _children(value)]
                case Descent():
                    values = self.descendants(values)
                case TextStep(text):
                    values = [text]
                case LiteralStep(literal):
                    values = [literal] * len(values)
                case Word(word):
                    values = self.word(word, values)
            self.count(len(values) + 1)
        return values

    def descendants(self, values: list[Json]) -> list[Json]:
        """The values and all in them, parents first; only non-empty containers and strings (which contain bytes)."""
        results: list[Json] = []
        todo = values[::-1]
        while todo:
            value = todo.pop()
            if isinstance(value, (dict, list, str)) and value:
                results.append(value)
                if not isinstance(value, str):
                    self.count(len(value))
                    todo += _children(value)[::-1]
        return results

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
            return [value for branch in branches for value in self.walk(branch, values)]
        except _Failed:
            raise _Failed(values) from None

    def filter(self, step: FilterStep, values: list[Json]) -> list[Json]:
        results: list[Json] = []
        for value in values:
            if type(value) is not list:
                raise _Failed(values)
            self.count(len(value))
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

    def sides(self, step: FilterStep, item: Json, values: list[Json]) -> tuple[list[Json], list[Json]]:
        """The values to compare, at most one on each side. Raises _Failed."""
        if step.names is not None:
            constant = step.right[0]
            assert isinstance(constant, (TextStep, LiteralStep))
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


def _kind(value: Json) -> str:
    """The kind of a value in Go's comparisons, "" if they do not support it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "string" if isinstance(value, str) else ""


def _compare(left: Json, symbol: str, right: Json, results: list[Json]) -> bool:
    test = _COMPARE.get(symbol)
    if type(left) is type(right) is str and test is not None:
        return test(left, right)
    kind = _kind(left)
    if test is None or not kind or kind != _kind(right) or (kind == "bool" and symbol not in ("==", "!=")):
        raise _Failed(results)
    return test(left, right)


_COMPARE: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
