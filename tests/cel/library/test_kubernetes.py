"""Quantities in expressions; how they are parsed and printed is tested in tests/go/test_quantity.py."""

from __future__ import annotations

from typing import Any

from tests.cel.evaluate import Error, evaluate
from tests.rows import rows

ROWS: list[tuple[str, Any]] = [
    ("quantity('1Ki') == quantity('1024')", True),
    (
        "quantity('x')",
        Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ),
    ("isQuantity('1i')", False),
    ("isQuantity('1Gi')", True),
    ("sign(quantity('-1'))", -1),
    ("quantity('1G').isLessThan(quantity('1Gi'))", True),
    ("quantity('1G').isGreaterThan(quantity('1Gi'))", False),
    ("quantity('1000m').compareTo(quantity('1'))", 0),
    ("quantity('50k').asInteger()", 50_000),
    ("quantity('1.5').asInteger()", Error("cannot convert value to integer")),
    ("quantity('1.5').isInteger()", False),
    ("quantity('1.5').asApproximateFloat()", 1.5),
    ("quantity('1').add(quantity('1m')).compareTo(quantity('1001m'))", 0),
    ("quantity('1').add(2) == quantity('3')", True),
    ("quantity('1').sub(2).sub(quantity('1')).compareTo(quantity('-2'))", 0),
    ("quantity('3') == quantity('1').add(2)", Error("no such overload")),  # as upstream has it
    ("quantity('1e200000').add(1)", Error("quantity out of range")),
    ("quantity('1e99999').add(1).isGreaterThan(quantity('1e99999'))", True),
    ("dyn(quantity('1')) == dyn(1)", Error("no such overload")),
]


@rows(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_quantities(text: str, expected: Any) -> None:
    found = evaluate(text)
    assert (type(found), found) == (type(expected), expected)
