"""Types of expressions, the overloads of their calls, and the errors of those that have no type."""

from __future__ import annotations

import pytest

from noxu.cel.checking.environment import KUBERNETES, STORED
from noxu.cel.program import Program
from noxu.cel.syntax.ast import Call, Ident
from noxu.cel.types import types
from noxu.cel.types.schema_types import DeclType
from tests.cel.evaluate import compile_errors, program
from tests.rows import rows

TYPES = [
    ("a literal", "1u", "uint"),
    ("null", "null", "null"),
    ("a list", "[1, 2]", "list(int)"),
    ("an empty list", "[]", "list(dyn)"),
    ("an empty list next to another", "[[], [1]]", "list(list(int))"),
    ("a list of anything", "[dyn(1), dyn('a')]", "list(dyn)"),
    ("a map", "{'a': 1}", "map(string, int)"),
    ("an empty map", "{}", "map(dyn, dyn)"),
    ("optional elements", "[?optional.of(1)]", "list(int)"),
    ("an element", "l[0]", "int"),
    ("a value", "m['a']", "int"),
    ("a selection of a map", "m.a", "int"),
    ("a selection of a dyn", "d.a.b", "dyn"),
    ("an optional selection", "m.?a", "optional_type(int)"),
    ("a selection of an optional", "d.?a.b", "optional_type(dyn)"),
    ("an element of an optional", "optional.of(l)[0]", "optional_type(int)"),
    ("an optional index", "l[?0]", "optional_type(int)"),
    ("the value of an optional", "l[?0].orValue(1)", "int"),
    ("an empty optional", "optional.none()", "optional_type(dyn)"),
    ("an empty optional next to another", "[optional.none(), optional.of(1)]", "list(optional_type(int))"),
    ("has", "has(d.a)", "bool"),
    ("a comparison across types", "1 < 2.0", "bool"),
    ("an addition", "1 + 2", "int"),
    ("an addition to a dyn", "d + 1", "int"),
    ("an addition of two dyn", "d + d", "dyn"),
    ("a function whose results are all alike", "d.size()", "int"),
    ("a conditional", "d ? 1 : 2", "int"),
    ("a conditional of dyn", "true ? dyn(1) : 'a'", "dyn"),
    ("map", "l.map(x, string(x))", "list(string)"),
    ("filter", "l.filter(x, x > 1)", "list(int)"),
    ("map over a map runs over keys", "m.map(k, k)", "list(string)"),
    ("map over a dyn", "d.map(x, x)", "list(dyn)"),
    ("transformList", "m.transformList(k, v, v)", "list(int)"),
    ("transformMap", "l.transformMap(i, x, string(x))", "map(int, string)"),
    ("sortBy", "l.sortBy(x, -x)", "list(int)"),
    ("optMap", "m.?a.optMap(x, string(x))", "optional_type(string)"),
    ("flatten", "[l, l].flatten()", "list(int)"),
    ("a type", "type(1)", "type(int)"),
    ("the name of a type", "string", "type(string)"),
    ("a type of a library", "ip('1.2.3.4')", "net.IP"),
    ("dyn", "dyn(1)", "dyn"),
    ("the parameter of a function", "l.distinct()", "list(int)"),
    ("a parameter bound by two arguments", "sets.contains([dyn(1)], [1])", "bool"),
]


@rows(
    ("text", "expected"),
    [row[1:] for row in TYPES],
    ids=[row[0] for row in TYPES],
)
def test_an_expression_has_a_type(text: str, expected: str) -> None:
    assert str(program(text).type) == expected


OVERLOADS = [
    ("known types", "1 + 2", ("add_int64",)),
    ("another type", "'a' + 'b'", ("add_string",)),
    ("one dyn operand leaves those of the other", "d + 1", ("add_int64",)),
    ("or several", "d + timestamp(0)", ("add_duration_timestamp",)),
    ("an operand of which there are two", "duration('1s') + d", ("add_duration_duration", "add_duration_timestamp")),
    ("a list of a parameter", "l + []", ("add_list",)),
    ("of a member", "s.size()", ("string_size",)),
    ("not of a member", "size(s)", ("size_string",)),
    ("with all kinds of sizes", "size(d)", ("size_bytes", "size_list", "size_map", "size_string")),
    ("a comparison across types", "1 < 2u", ("less_int64_uint64",)),
    ("equality has one", "d == 1", ("equals",)),
    ("a number of arguments", "s.split(',', 2)", ("string_split_string_int",)),
    ("a namespace", "lists.range(3)", ("lists_range",)),
    ("functions of the same name join", "s.indexOf('b')", ("string_index_of_string",)),
    ("and are tried in the order of upstream", "d.indexOf('b')", ("list_a_index_of_int", "string_index_of_string")),
]


@rows(("text", "overloads"), [row[1:] for row in OVERLOADS], ids=[row[0] for row in OVERLOADS])
def test_a_call_has_overloads(text: str, overloads: tuple[str, ...]) -> None:
    tree = program(text).tree
    assert isinstance(tree, Call)
    assert tree.overloads == overloads


UNDECLARED = "undeclared reference to '{}' (in container '')"
NO_OVERLOAD = "found no matching overload for '{}' applied to '{}'"
ERRORS = [
    ("an undeclared name", "nope", [f"1:1: {UNDECLARED.format('nope')}"]),
    ("only its beginning is undeclared", "nope.a.b", [f"1:1: {UNDECLARED.format('nope')}"]),
    ("an undeclared function", "nope(1)", [f"1:5: {UNDECLARED.format('nope')}"]),
    ("an undeclared function of a member", "s.nope()", [f"1:7: {UNDECLARED.format('nope')}"]),
    ("every error is reported", "nope + nada", [f"1:1: {UNDECLARED.format('nope')}", f"1:8: {UNDECLARED.format('nada')}"]),
    ("an argument of the wrong type", "s + 1", [f"1:3: {NO_OVERLOAD.format('_+_', '(string, int)')}"]),
    ("a target of the wrong type", "i.size()", [f"1:7: {NO_OVERLOAD.format('size', 'int.()')}"]),
    ("too many arguments", "size(s, s)", [f"1:5: {NO_OVERLOAD.format('size', '(string, string)')}"]),
    ("lists of different types", "l + ['a']", [f"1:3: {NO_OVERLOAD.format('_+_', '(list(int), list(string))')}"]),
    ("an element of another type", "'a' in l", [f"1:5: {NO_OVERLOAD.format('@in', '(string, list(int))')}"]),
    ("equality of different types", "s == 1", [f"1:3: {NO_OVERLOAD.format('_==_', '(string, int)')}"]),
    ("equality with null", "i == null", [f"1:3: {NO_OVERLOAD.format('_==_', '(int, null)')}"]),
    ("logic of no booleans", "i && s", ["1:1: expected type 'bool' but found 'int'", "1:6: expected type 'bool' but found 'string'"]),
    ("a conditional of no boolean", "i ? 1 : 2", [f"1:3: {NO_OVERLOAD.format('_?_:_', '(int, int, int)')}"]),
    ("branches of different types", "true ? 1 : 'a'", [f"1:6: {NO_OVERLOAD.format('_?_:_', '(bool, int, string)')}"]),
    ("a selection of a scalar", "i.a", ["1:2: type 'int' does not support field selection"]),
    ("a selection of a list", "l.a", ["1:2: type 'list(int)' does not support field selection"]),
    ("a selection of a value that is no map", "m.?a.b", ["1:5: type 'int' does not support field selection"]),
    ("a key of another type", "m[1]", [f"1:2: {NO_OVERLOAD.format('_[_]', '(map(string, int), int)')}"]),
    ("a macro over a scalar", "i.all(x, true)", ["1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"]),
    ("a predicate that is no boolean", "l.all(x, x)", ["1:10: expected type 'bool' but found 'int'"]),
    ("an optional element that is none", "[?1]", ["1:3: expected type 'optional_type(int)' but found 'int'"]),
    ("a message that is none", "Nope{a: 1}", [f"1:5: {UNDECLARED.format('Nope')}"]),
    ("elements of different types", "[1, 'a']", ["1:5: expected type 'int' but found 'string'"]),
    ("values of different types", "{'a': 1, 'b': 'c'}", ["1:15: expected type 'int' but found 'string'"]),
]  # fmt: skip


@rows(("text", "errors"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_an_expression_has_no_type(text: str, errors: list[str]) -> None:
    assert compile_errors(text) == errors


def test_a_qualified_name_becomes_one_identifier() -> None:
    environment = KUBERNETES.extend({"a.b": types.INT, "a": types.map_of(types.STRING, types.STRING)})
    tree = Program("a.b", environment).tree
    assert isinstance(tree, Ident)
    assert (tree.name, str(tree.type)) == ("a.b", "int")
    assert str(Program("a.c", environment).type) == "string"


NAMES = [
    ("the variable of a macro", "l.all(x, x > 0)", {"l", "x", "@result"}),
    ("a variable after a dot", "l.all(x, x > .i)", {"l", "x", "i", "@result"}),
    ("one that the macro hides", "l.all(i, i > .i)", {"l", "i", ".i", "@result"}),
]


@pytest.mark.parametrize(("text", "names"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_the_names_that_an_expression_uses(text: str, names: set[str]) -> None:
    assert program(text).names == names


def test_fields_of_objects_are_typed_and_checked() -> None:
    widget = DeclType(fields={"size": DeclType(types.INT), "__for__": DeclType(types.STRING)})
    environment = KUBERNETES.extend({"self": widget.named("Widget")})
    assert str(Program("self.size", environment).type) == "int"
    assert str(Program("self.__for__", environment).type) == "string"
    with pytest.raises(Exception, match="undefined field 'nope'"):
        Program("self.nope", environment)
    with pytest.raises(Exception, match=r"'_==_' applied to '\(Widget, int\)'"):
        Program("self == 1", environment)


def test_resolutions_are_remembered_except_of_types_from_schemas() -> None:
    environment = KUBERNETES.extend({})
    environment.resolved = {}
    Program("1 + 2 + 3", environment)
    assert list(environment.resolved) == [("_+_", False, (types.INT, types.INT))]
    widget = DeclType(fields={}).named("Widget")
    Program("w == w", environment.extend({"w": widget}))
    assert len(environment.resolved) == 1


def test_includes_is_for_stored_expressions_only() -> None:
    assert str(Program("[1].includes(1)", STORED).type) == "bool"
    assert compile_errors("[1].includes(1)") == [f"1:13: {UNDECLARED.format('includes')}"]


@pytest.mark.parametrize("name", ["math.abs(1)", "base64.encode(b'')", "'a'.reverse()", "cel.bind(x, 1, x)"])
def test_functions_that_upstream_does_not_have_are_undeclared(name: str) -> None:
    assert any("undeclared reference" in error or "no matching overload" in error for error in compile_errors(name))
