"""Costs of calls, from their arguments and results."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.cost.runtime import CHECKED_BEFORE_CALL, call_cost
from noxu.cel.errors import Cancelled, CelError
from noxu.cel.library.network import parse_address, parse_network
from noxu.cel.library.strings import NAMED
from noxu.cel.values.values import MapValue, UntypedList
from tests.rows import rows

TEN, TWELVE = "x" * 10, "x" * 12
ERROR = CelError("no")
ROWS: list[tuple[str, str, str, list[Any], Any, int]] = [
    ("a call without a formula", "_+_", "add_int64", [1, 2], 3, 1),
    ("a tenth of a text, rounded up", "lowerAscii", "string_lower_ascii", [TWELVE], TWELVE, 2),
    ("of no text", "trim", "string_trim", [""], "", 0),
    ("twice for a split", "split", "string_split_string", [TEN, ","], [TEN], 2),
    ("of the prefix", "startsWith", "starts_with_string", [TEN, TWELVE], False, 2),
    ("of both sides, multiplied", "contains", "contains_string", [TWELVE, TWELVE], True, 4),
    ("of the shorter side", "_<_", "less_string", [TWELVE, "x"], True, 1),
    ("of both sides, added", "_+_", "add_string", [TWELVE, TEN], TWELVE + TEN, 3),
    ("an equality", "_==_", "equals", [TWELVE, TWELVE], True, 2),
    ("an equality of scalars", "_==_", "equals", [1, 2], False, 1),
    ("an equality with nothing", "_==_", "equals", [[], []], True, 0),
    ("an equality of a library's values", "_==_", "equals", [parse_address("::1"), parse_address("::1")], True, 1),
    ("a difference has no formula of Kubernetes", "_!=_", "not_equals", [TWELVE, TWELVE], False, 2),
    ("a pattern", "matches", "matches_string", [TEN, "abcde"], True, 2 * 2),
    ("a list that is searched", "@in", "in_list", [1, [1, 2, 3]], True, 3),
    ("a map that is searched", "@in", "in_map", [1, MapValue([(1, 1), (2, 2)])], True, 1),
    ("every element", "sum", "list_int_sum_int", [[1, 2, 3]], 6, 3),
    ("every text", "max", "list_string_max_string", [["a" * 25, "b"]], "b", 2),
    ("nested elements", "indexOf", "list_a_index_of_int", [UntypedList([1, [2, 3]]), 1], 0, 3),
    ("entries of maps", "indexOf", "list_a_index_of_int", [[MapValue([("k" * 10, 1)])], 1], -1, 2),
    ("a joined text", "join", "list_join", [[TEN, TWELVE]], TEN + TWELVE, 5),
    ("a list that is made", "slice", "list_slice", [[1, 2, 3], 0, 2], [1, 2], 2 + 11),
    ("a flattened list by its depth", "flatten", "list_flatten_int", [[[1], [2]], 3], [1, 2], 6 + 11),
    ("each element with each", "distinct", "list_distinct", [[1, 2, 3]], [1, 2, 3], 18 + 11),
    ("sorted texts", "sort", "list_string_sort", [["a", "b", "c"]], ["a", "b", "c"], 18 + 11),
    ("nothing to sort", "sort", "list_int_sort", [[]], [], 11),
    ("sets", "sets.contains", "list_sets_contains_list", [[1, 2], [1, 2, 3]], False, 7),
    ("sets, both ways", "sets.equivalent", "list_sets_equivalent_list", [[1, 2], [1, 2, 3]], False, 13),
    ("an address in a network", "containsIP", "cidr_contains_ip_ip", [parse_network("10.0.0.0/8"), parse_address("10.0.0.1")], True, 1),
    ("and as a text", "containsIP", "cidr_contains_ip_string", [parse_network("10.0.0.0/8"), "10.0.0.1"], True, 2),
    ("a network in a network", "containsCIDR", "cidr_contains_cidr", [parse_network("::/128"), parse_network("::/128")], True, 4 + 2 + 1),
    ("the address of a network, not the function", "ip", "cidr_ip", [parse_network("::/128")], parse_address("::"), 1),
    ("a format", "validate", "format-validate", [NAMED["dns1123Label"], TEN], None, 2 * 8),
    ("a check of an authorizer", "check", "resourcecheck_check", [None, "get"], None, 350_000),
    ("an argument that is an error", "lowerAscii", "string_lower_ascii", [ERROR], ERROR, 1),
    ("a result that is an error", "join", "list_join", [[TEN]], ERROR, 1),
]  # fmt: skip


@rows(("function", "overload", "args", "result", "cost"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_call_costs(function: str, overload: str, args: list[Any], result: Any, cost: int) -> None:
    assert call_cost(function, (overload,))(args, result) == cost


ADDRESSES = [parse_address("::1"), parse_address("::1")]
OLDER: list[tuple[str, str, str, list[Any], dict[int, int]]] = [
    ("a quantity", "quantity", "string_to_quantity", ["1" * 25], {29: 1, 30: 3, 37: 3}),
    ("a text that may be one", "isQuantity", "is_quantity_string", ["1" * 25], {29: 1, 30: 3, 37: 3}),
    ("a comparison of addresses", "_==_", "equals", ADDRESSES, {30: 2, 31: 2, 32: 1, 37: 1}),
    ("a comparison of texts", "_==_", "equals", [TWELVE, TWELVE], {29: 2, 31: 2, 32: 2, 37: 2}),
    ("a call that always had a cost", "lowerAscii", "string_lower_ascii", [TWELVE], {29: 2, 37: 2}),
]


@rows(("function", "overload", "args", "costs"), [row[1:] for row in OLDER], ids=[row[0] for row in OLDER])
def test_an_older_release_does_not_know_all_costs(
    function: str, overload: str, args: list[Any], costs: dict[int, int]
) -> None:
    assert {release: call_cost(function, (overload,), release)(args, True) for release in costs} == costs


def test_of_several_overloads_only_the_function_counts() -> None:
    assert call_cost("_<_", ("less_string", "less_int64"))([TWELVE, TWELVE], False) == 1
    assert call_cost("trim", ("a", "b"))([TWELVE], "") == 2


@pytest.mark.parametrize(
    ("overload", "checked"),
    [
        ("list_distinct", True),
        ("list_int_sort", True),
        ("list_sets_contains_list", True),
        ("matches_string", True),
        ("contains_string", True),
        ("starts_with_string", False),
        ("list_join", False),
    ],
)
def test_costs_that_grow_with_a_product_are_checked_before_the_call(overload: str, checked: bool) -> None:
    assert (call_cost("", (overload,)) in CHECKED_BEFORE_CALL) is checked


def test_upstream_panics_at_a_sort_of_what_is_no_list() -> None:
    with pytest.raises(Cancelled) as caught:
        call_cost("sort", ("list_int_sort",))([1], ERROR)
    assert caught.value.message == (
        "internal error: interface conversion: types.Int is not traits.Lister: missing method Contains"
    )
