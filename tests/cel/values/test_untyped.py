"""Values of objects without a schema, as in expressions of admission."""

from __future__ import annotations

from typing import Any

from noxu.admission.expressions import Evaluation, Inputs
from noxu.cel.kubernetes.admission import Composition
from noxu.values import Object
from tests.rows import rows

OBJECT: Object = {
    "n": 5, "f": 2.5, "s": "hello", "b": True, "nothing": None, "list": ["x", "y", "z"], "numbers": [3, 1.0, 2], "empty": [],
    "mixed": [1, "x", None, {"q": 1}, [1, [2]]], "map": {"k": "v", "l": "w"}, "items": [{"name": "b"}, {"name": "a"}],
    "quantity": "10Mi", "when": "2024-01-01T00:00:00Z",
}  # fmt: skip
OTHER: Object = {
    "n": 5.0, "list": ["x", "y", "z"], "map": {"l": "w", "k": "v"}, "mixed": [1.0, "x", None, {"q": 1}, [1, [2]]],
    "items": [{"name": "b"}, {"name": "c"}], "numbers": [3, 1.0, True],
}  # fmt: skip


def outcome(text: str, new: Any = OBJECT, old: Any = OTHER) -> object:
    composition = Composition(params=False)
    result = Evaluation(Inputs(new, old, {}), composition).run(composition.expression(text))
    return result.error.partition("resulted in error: ")[2] or result.error or result.value


@rows(
    "expression",
    [
        # equality
        "object.list == oldObject.list",
        "object.map == oldObject.map",
        "object.n == oldObject.n",
        "object.mixed == oldObject.mixed",
        "object.items != oldObject.items",
        "object.numbers != oldObject.numbers",
        "object.list == ['x', 'y', 'z'] && ['x', 'y', 'z'] == object.list",
        "object.map == {'k': 'v', 'l': 'w'} && {'k': 'v', 'l': 'w'} == object.map",
        "object.map != {'k': 'v'} && object.list != ['x'] && object.map != object.list",
        "object.items == [{'name': 'b'}, {'name': 'a'}]",
        "object.nothing == null && object.n != null",
        "object == object && object != oldObject",
        # membership, keys and indices
        "'x' in object.list && !('q' in object.list) && 1.0 in object.mixed && null in object.mixed",
        "'k' in object.map && !('q' in object.map)",
        "object.list[0] == 'x' && object.list[1.0] == 'y' && object.list[2u] == 'z'",
        "object[?'map'][?'k'].value() == 'v' && !object.list[?9].hasValue()",
        "object.list.indexOf('y') == 1 && object.list.first().value() == 'x' && object.list.last().value() == 'z'",
        # functions that make other values of them
        "object.list + ['q'] == ['x', 'y', 'z', 'q'] && object.list + object.empty == object.list",
        "object.list.map(x, x + '1') == ['x1', 'y1', 'z1'] && object.list.filter(x, x > 'x').size() == 2",
        "object.list.join('-') == 'x-y-z' && object.list.slice(1, 3) == ['y', 'z'] && object.list.reverse()[0] == 'z'",
        "object.mixed[4].flatten() == [1, 2] && object.list.distinct() == object.list && object.list.sort() == object.list",
        "object.items.sortBy(i, i.name)[0].name == 'a' && object.list.isSorted()",
        "object.map.transformMap(k, v, v + '1') == {'k': 'v1', 'l': 'w1'}",
        "object.map.transformList(k, v, k + v).size() == 2 && object.map.all(k, v, k < v)",
        "sets.contains(object.list, ['x']) && sets.intersects(object.list, ['z', 'q'])",
        # sizes, types and conversions
        "size(object.list) == 3 && size(object.map) == 2 && object.s.size() == 5 && size(object.empty) == 0",
        "type(object.list) == list && type(object.map) == map && type(object.nothing) == null_type && type(object) == map",
        "!optional.ofNonZeroValue(object.empty).hasValue() && optional.ofNonZeroValue(object.map).hasValue()",
        "string(object.n) == '5' && double(object.n) == 5.0 && int(object.f) == 2",
        "'%s %s'.format([object.list, object.nothing]) == '[\"x\", \"y\", \"z\"] null'",
        "quantity(object.quantity).isLessThan(quantity('1Gi')) && timestamp(object.when).getFullYear() == 2024",
        "object.b && (object.b ? object.n : 0) == 5",
    ],
)  # fmt: skip
def test_holds(expression: str) -> None:
    assert outcome(expression) is True


@rows(
    ("expression", "error"),
    [
        ("object.list['x'] == 'x'", "unsupported index type 'string' in list"),
        ("object.list[1.5] == 'x'", "unsupported index value 1.5 in list"),
        ("object.list[-1] == 'x'", "index out of bounds: -1"),
        ("object.map[1] == 'x'", "no such key: 1"),
        ("object.n.x == 1", "no such key: x"),
        ("object.list.x == 1", "unsupported index type 'string' in list"),
        ("object.n == 5 && object.list", "no such overload"),
        ("object.n.all(x, x)", "got 'types.Int', expected iterable type"),
        ("object.list + object.n == []", "no such overload"),
        ("'x' in object.n", "no such overload"),
        ("size(object.n) == 1", "no such overload: size"),
        ("object.mixed.sort() == []", "list elements must have the same type"),
        ("string(object.list) == ''", "no such overload: string(list)"),
        ("object.s.matches(object.s + '(')", "error parsing regexp: missing closing ): `hello(`"),
    ],
)  # fmt: skip
def test_fails(expression: str, error: str) -> None:
    assert outcome(expression) == error


def nested(depth: int, inner: object) -> Any:
    for n in range(depth):
        inner = {"d": inner} if n % 2 else [inner]
    return inner


def test_values_may_be_deeper_than_the_stack() -> None:
    new, old = {"v": nested(10_000, 1)}, {"v": nested(10_000, 1.0)}
    assert outcome("object == oldObject && object.v == oldObject.v", new, old) is True
    assert outcome("object.v != oldObject.v", new, {"v": nested(10_000, 2)}) is True
    assert outcome("[object.v] == [oldObject.v] && {'a': object.v} == {'a': oldObject.v}", new, old) is True
    assert outcome("object.v in [oldObject.v]", new, old) is True


def test_values_that_are_too_deep_cannot_be_printed() -> None:
    assert outcome("'%s'.format([object.v]) == ''", {"v": nested(10_000, 1)}) == "the value is nested too deeply"
