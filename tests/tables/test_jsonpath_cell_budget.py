"""The cells of a row, and the rows of a request, take bounded time and space; what is beyond is empty."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.registry.offload import LOOP_LIMIT
from noxu.tables.jsonpath import MAX_OF_REQUEST, MAX_OF_ROW, CellBudget, Spent, limited_by, parse
from noxu.tables.table import Columns, Conversion, convert_list, custom_columns
from tests.timing import cpu_seconds

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def columns(path: str, count: int = 1) -> Columns:
    return custom_columns([{"name": f"c{n}", "type": "string", "jsonPath": path} for n in range(count)])


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


VALUES: dict[str, Any] = {
    "levels": nested(300),
    "list": [{"n": n, "l": [1] * 10} for n in range(700)],
    "lists": [[[1] * 10] * 10] * 60,
    "map": {f"k{n}": n for n in range(1500)},
    "text": "x" * 16_000,
}
OBJECT = {"metadata": {"name": "x"}, **VALUES}
EXPENSIVE = [
    "..a..a..a",
    "..a..a..",
    "..",
    "..l..n",
    ".list[*].l[*]",
    ".list[0:700].l[0:10]",
    ".list[" + ",".join(["0:700"] * 100) + "].l",
    ".list[?(@.n>=0)].l[?(@>=0)]",
    '.list[?(@..l=="x")].n',
    ".lists[*][*][*]",
    ".lists[0:][0:][0:]",
    ".map.*",
    ".text[*]",
    ".map",
    ".text",
    ".a} {range .list[*]}{range .list[*]}{.n}{end}{end",
]


@pytest.mark.slow(every=9)
@pytest.mark.parametrize("path", EXPENSIVE)
def test_many_columns_take_as_long_as_the_budget_of_a_row(path: str) -> None:
    made = columns(path, 500)
    cells: list[Any] = []
    assert cpu_seconds(lambda: cells.append(made.cells(OBJECT)), tries=2) < 1.5
    assert len(cells[0]) == 501
    assert sum(len(cell) for cell in cells[0] if cell) < 8 * MAX_OF_ROW + 2 * 20_000


def test_cells_are_those_of_the_path_until_the_budget_is_spent() -> None:
    first, *others = columns(".list[?(@.n>690)].n", 500).cells(OBJECT)[1:]
    assert first == "691"
    assert others[:100] == ["691"] * 100
    assert others[-1] is None


def test_normal_columns_of_a_large_object_are_all_filled() -> None:
    conditions = [{"type": f"T{n}", "status": "True"} for n in range(50)]
    value = {"metadata": {"name": "x"}, "status": {"conditions": conditions}}
    made = columns('.status.conditions[?(@.type=="T49")].status', 30)
    assert made.cells(value)[1:] == ["True"] * 30


def rows(made: Columns, count: int) -> list[Any]:
    to = Conversion("Table", "v1")
    with limited_by(CellBudget()):
        found = convert_list([OBJECT] * count, {}, to, made, NOW)
    return [row["cells"] for row in found["rows"]]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["..a..a..a", ".list[*].l[*]", ".map"])
def test_the_rows_of_a_request_share_a_budget(path: str) -> None:
    made = columns(path, 100)
    found: list[Any] = []
    assert cpu_seconds(lambda: found.extend(rows(made, 30)), tries=1) < 15
    assert any(any(cells[1:]) for cells in found) is (path != "..a..a..a")
    assert all(cells == ["x", *[None] * 100] for cells in found[MAX_OF_REQUEST // MAX_OF_ROW + 2 :])


def test_each_row_has_a_budget_of_its_own() -> None:
    budget = CellBudget()
    budget.begin_row()
    with pytest.raises(Spent):
        budget.take(MAX_OF_ROW + 1)
    assert budget.is_spent
    budget.begin_row()
    assert not budget.is_spent
    assert not budget.cut_short


DEGREES = [
    (".spec.replicas", 0),
    ('.status.conditions[?(@.type=="Ready")].status', 1),
    (".list[*].n", 1),
    ("..a", 1),
    ("..a..a..a", 3),
    (".list[0,1].n", 2),
    ('.list[?(@..a=="x")]', 2),
]


@pytest.mark.parametrize(("path", "degree"), DEGREES)
def test_the_degree_of_a_path(path: str, degree: int) -> None:
    assert parse(path).degree == degree


def test_the_weight_of_a_row() -> None:
    assert columns(".spec.replicas", 10).weigh(1000) == 1000
    assert columns('.status.conditions[?(@.type=="Ready")].status', 2).weigh(1000) < 2000
    assert columns("..a..a..a").weigh(1000) > LOOP_LIMIT
