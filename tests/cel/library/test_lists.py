"""Functions on lists."""

from __future__ import annotations

from typing import Any

from tests.cel.evaluate import Error, evaluate
from tests.rows import rows

ROWS: list[tuple[str, Any]] = [
    ("[1, 1, 2].isSorted()", True),
    ("[2, 1].isSorted()", False),
    ("['a', 'B'].isSorted()", False),
    ("[1.0, double('NaN'), 0.5].isSorted()", True),  # NaN has no order with its neighbours
    ("[duration('1s'), duration('1m')].isSorted()", True),
    ("[1, 2].sum()", 3),
    ("[duration('1s'), duration('1m')].sum() == duration('61s')", True),
    ("[9223372036854775807, 1].sum()", Error("integer overflow")),
    ("[3, 1, 2].min()", 1),
    ("[3, 1, 2].max()", 3),
    ("[1].slice(1, 1).min()", Error("min called on empty list")),
    ("['a', 'b', 'a'].indexOf('a')", 0),
    ("['a', 'b', 'a'].lastIndexOf('a')", 2),
    ("['a'].indexOf('b')", -1),
    ("[1, 2, 3].slice(1, 3) == [2, 3]", True),
    ("[1].slice(0, 2)", Error("cannot slice(0, 2), list is length 1")),
    ("[1].slice(1, 0)", Error("cannot slice(1, 0), start index must be less than or equal to end index")),
    ("[1].slice(-1, 0)", Error("cannot slice(-1, 0), negative indexes not supported")),
    ("[[1], [2, 3]].flatten() == [1, 2, 3]", True),
    ("[[[1]], [[2]]].flatten(2) == [1, 2]", True),
    ("[[1]].flatten(-1)", Error("level must be non-negative")),
    ("lists.range(3) == [0, 1, 2]", True),
    ("lists.range(0) == []", True),
    ("lists.range(-1)", Error("lists.range: size must be non-negative, got -1")),
    ("lists.range(1000001)", Error("lists.range: size 1000001 exceeds maximum allowed (1000000)")),
    ("[1, 2].reverse() == [2, 1]", True),
    ("[1, 2, 1].distinct() == [1, 2]", True),
    ("[dyn(1), dyn(1.0), dyn('1')].distinct().size()", 2),
    ("['b', 'a'].sort() == ['a', 'b']", True),
    ("dyn([dyn(1), dyn('a')]).sort()", Error("list elements must have the same type")),
    ("dyn([dyn([1])]).sort()", Error("list elements must be comparable")),
    ("[3, 1, 2].sortBy(x, -x) == [3, 2, 1]", True),
    ("['aa', 'b', 'cc'].sortBy(x, x.size()) == ['b', 'aa', 'cc']", True),
    ("[1, 2].first().value()", 1),
    ("[1, 2].last().value()", 2),
    ("[].first().hasValue()", False),
    ("sets.contains([1, 2], [2, 2])", True),
    ("sets.contains([1], [])", True),
    ("sets.equivalent([1, 1, 2], [2, 1])", True),
    ("sets.intersects([1], [2, 1])", True),
    ("sets.intersects([1], [])", False),
]


@rows(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_function_on_lists(text: str, expected: Any) -> None:
    found = evaluate(text)
    assert (type(found), found) == (type(expected), expected)
