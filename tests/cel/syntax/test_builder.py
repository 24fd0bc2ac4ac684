"""What macros expand to, and their errors."""

from __future__ import annotations

import pytest

from noxu.cel.syntax.ast import CompileError
from noxu.cel.syntax.parser import parse
from tests.cel.trees import shown
from tests.rows import rows

TRUE = "@not_strictly_false(@result)"
EXPANSIONS = [
    ("has", "has(a.b.c)", "has(a.b.c)"),
    ("all", "l.all(x, x > 1)", f"fold(x in l; True; {TRUE}; _&&_(@result, _>_(x, 1)); @result)"),
    ("all with two variables", "l.all(i, x, p)", f"fold(i, x in l; True; {TRUE}; _&&_(@result, p); @result)"),
    ("exists", "l.exists(x, p)", "fold(x in l; False; @not_strictly_false(!_(@result)); _||_(@result, p); @result)"),
    (
        "exists_one",
        "l.exists_one(x, p)",
        "fold(x in l; 0; True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
    ),
    (
        "existsOne",
        "l.existsOne(i, x, p)",
        "fold(i, x in l; 0; True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
    ),
    ("map", "l.map(x, f(x))", "fold(x in l; []; True; _+_(@result, [f(x)]); @result)"),
    ("map with a filter", "l.map(x, p, v)", "fold(x in l; []; True; _?_:_(p, _+_(@result, [v]), @result); @result)"),
    ("filter", "l.filter(x, p)", "fold(x in l; []; True; _?_:_(p, _+_(@result, [x]), @result); @result)"),
    ("transformList", "l.transformList(i, x, v)", "fold(i, x in l; []; True; _+_(@result, [v]); @result)"),
    (
        "transformMap with a filter",
        "m.transformMap(k, v, p, w)",
        "fold(k, v in m; {}; True; _?_:_(p, cel.@mapInsert(@result, k, w), @result); @result)",
    ),
    (
        "transformMapEntry",
        "m.transformMapEntry(k, v, {v: k})",
        "fold(k, v in m; {}; True; cel.@mapInsert(@result, {v: k}); @result)",
    ),
    (
        "optMap",
        "o.optMap(v, f(v))",
        "_?_:_(hasValue(o), optional.of(fold(#unused in []; value(o); False; v; f(v))), optional.none())",
    ),
    (
        "optFlatMap",
        "o.optFlatMap(v, f(v))",
        "_?_:_(hasValue(o), fold(#unused in []; value(o); False; v; f(v)), optional.none())",
    ),
    (
        "sortBy",
        "l.sortBy(x, x.k)",
        "fold(#unused in []; l; False; @__sortBy_input__; @sortByAssociatedKeys(@__sortBy_input__, "
        "fold(x in @__sortBy_input__; []; True; _+_(@result, [x.k]); @result)))",
    ),
    ("a macro in a macro", "a.map(x, x.map(y, y))", "fold(x in a; []; True; _+_(@result, [fold(y in x; []; True; _+_(@result, [y]); @result)]); @result)"),
    ("another number of arguments is a call", "l.all(x)", "all(l, x)"),
    ("without a target it is a call", "all(x, y)", "all(x, y)"),
    ("cel.bind is none", "cel.bind(x, 1, x)", "bind(cel, x, 1, x)"),
]  # fmt: skip


@rows(("text", "tree"), [row[1:] for row in EXPANSIONS], ids=[row[0] for row in EXPANSIONS])
def test_a_macro_expands(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


ERRORS = [
    ("has of a name", "has(a)", "1:5: invalid argument to has() macro"),
    ("has of an index", "has(a[0])", "1:6: invalid argument to has() macro"),
    ("a variable that is no name", "l.all(a.b, true)", "1:8: argument must be a simple name"),
    ("a variable that is no name, of map", "l.map(1, 2)", "1:7: argument is not an identifier"),
    ("a variable that is no name, of filter", "l.filter(1, 2)", "1:10: argument is not an identifier"),
    ("the second variable", "l.all(a, 1, true)", "1:10: argument must be a simple name"),
    ("the same variable twice", "l.all(a, a, true)", "1:10: duplicate variable name: a"),
    ("the accumulator", "l.all(__result__, true)", "1:7: iteration variable overwrites accumulator variable"),
    ("a variable of optMap", "o.optMap(a.b, 1)", "1:11: optMap() variable name must be a simple identifier"),
    ("a variable of optFlatMap", "o.optFlatMap(1, 1)", "1:14: optFlatMap() variable name must be a simple identifier"),
    (
        "sortBy of a map",
        "{}.sortBy(x, x)",
        "1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    ),
    ("a chain that doubles", "o" + ".optMap(v, v)" * 20, "optMap() is applied to too large an expression"),
]


@rows(("text", "error"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_an_argument_is_refused(text: str, error: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    assert error in str(caught.value)
