"""Rules as Python functions, made for one schema.

A generated function takes the raw JSON of `self` and `oldSelf` and gives back what the rule cost: as it is if the rule
holds, inverted (`~cost`) if it does not. When it has cost more than `limit`, it asks `more(cost)` for the next limit; that
may raise. Where anything is unusual — a missing key, a null, a value of another type
than its schema says, an overflow — it raises one of `UNDECIDED`, and the walker (`slow`) finds out exactly what happens
and in which words. So this covers the everyday part of the language, and only what is the same in both.

Costs that are known beforehand are added up while generating; `c` counts the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from apiserver.api.types import Json
from apiserver.cel.ast import Call, Comprehension, Expr, Ident, ListLiteral, MapLiteral, Select
from apiserver.cel.constants import Constants, is_member
from apiserver.cel.environment import Environment
from apiserver.cel.equality import equal
from apiserver.cel.errors import Cancelled, CelError
from apiserver.cel.escaping import unescape
from apiserver.cel.inlining import INLINED, equality
from apiserver.cel.slow import entries, is_attribute, select
from apiserver.cel.spending import FORESEEN, LIST_COST, MAP_COST, call_cost, nominal
from apiserver.cel.types import BOOL, INT, STRING, is_optional
from apiserver.cel.values import FORMATS, Failed, MapValue
from apiserver.cel.writer import Atom, Declined, Kind, Trail, Undecided, Writer
from apiserver.schema.structural import Structural

More: TypeAlias = Callable[[int], int]
Compiled: TypeAlias = Callable[[Json, Json, int, More], int]
UNDECIDED: Final = (
    Undecided, CelError, Cancelled, LookupError, TypeError, ArithmeticError, AttributeError, ValueError, RecursionError,
)  # fmt: skip
__all__ = ["UNDECIDED", "Compiled", "Declined", "generate"]

_STATIC_KINDS: Final[dict[object, Kind]] = {BOOL: "bool", INT: "int", STRING: "str"}
_VARIABLES: Final = {"self": "s", "oldSelf": "o"}
_LAZY: Final = frozenset({"_[?_]", "_?._", "or", "orValue", "@not_strictly_false"})


def generate(
    tree: Expr, environment: Environment, constants: Constants, schema: Structural, *, old_self: bool
) -> Compiled:
    """A function for a checked rule whose `self` is as `schema` says, and `oldSelf` too if `old_self`.

    Raises Declined.
    """
    generator = _Generator(environment, constants, {"self", "oldSelf"} if old_self else {"self"}, schema)
    result = generator.truth(tree)
    writer = generator.writer
    if writer.counts:
        writer.flush()
        writer.emit(f"return c if {result} else ~c")
    else:
        writer.emit(f"return {writer.pending} if {result} else {~writer.pending}")
    source = writer.function("def rule(s, o, limit, more):")
    scope: dict[str, Any] = dict(writer.names)
    exec(compile(source, "<rule>", "exec"), scope)  # noqa: S102 - written here, with literals of the rule as repr()
    return scope["rule"]  # type: ignore[no-any-return]


class _Generator:
    def __init__(self, environment: Environment, constants: Constants, variables: set[str], schema: Structural) -> None:
        self.environment = environment
        self.constants = constants
        self.variables = variables
        self.schema = schema
        self.scopes: list[dict[str, Atom]] = []
        self.writer = Writer()

    # Expressions

    def truth(self, node: Expr) -> str:
        return self.writer.certain(self.expression(node), "bool")

    def expression(self, node: Expr) -> Atom:
        if node in self.constants.values:
            return self.writer.literal(self.constants.values[node])
        match node:
            case Call(function="_?_:_"):
                return self.conditional(node)
            case Ident() | Select() | Call(function="_[_]"):
                self.writer.spend(0 if isinstance(node, Select) and node.test else 1)
                return self.attribute(node)
            case Call():
                return self.call(node)
            case ListLiteral() if not node.optional:
                elements = [self.boxed(one) for one in node.elements]
                self.writer.spend(LIST_COST)
                return Atom(self.writer.temp(f"[{', '.join(elements)}]"), "value")
            case MapLiteral():
                return self.map_literal(node)
            case Comprehension():
                return self.comprehension(node)
        raise Declined

    def boxed(self, node: Expr) -> str:
        return self.writer.boxed(self.expression(node))

    def map_literal(self, node: MapLiteral) -> Atom:
        pairs = []
        for entry in node.entries:
            if entry.optional:
                raise Declined
            pairs.append(f"({self.boxed(entry.key)}, {self.boxed(entry.value)})")
        self.writer.spend(MAP_COST)
        made = self.writer.name(MapValue)
        return Atom(self.writer.temp(f"{made}([{', '.join(pairs)}])"), "value")

    # Attributes

    def attribute(self, node: Expr) -> Atom:
        """An identifier and what is selected from it. What the identifier costs is not counted here."""
        match node:
            case Ident():
                return self.look_up(node.name)
            case Select() if node not in self.constants.values:
                return self.selected(self.attribute(node.operand), node)
            case Call(function="_[_]") if node not in self.constants.values:
                return self.element(self.attribute(node.args[0]), node)
            case Call(function="_?_:_"):
                raise Declined
        return self.expression(node)

    def look_up(self, name: str) -> Atom:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name not in self.variables:
            raise Declined
        return self.writer.load(_VARIABLES[name], self.schema, (name,))

    def selected(self, holder: Atom, node: Select) -> Atom:
        writer = self.writer
        writer.spend(1)
        if holder.kind != "raw":
            if node.test or is_optional(node.operand.type):
                raise Declined
            return self.picked(writer.boxed(holder), repr(node.field))
        schema = holder.schema
        assert schema is not None
        name = unescape(node.field) if schema.properties else node.field
        inner = schema.properties.get(name) if schema.properties and name is not None else schema.values
        if inner is None or schema.type != "object":
            raise Declined
        if node.test:
            return self.present(holder, repr(name), inner, _below(holder, name))
        return writer.load(f"{holder.code}[{name!r}]", inner, _below(holder, name))

    def present(self, holder: Atom, key: str, inner: Structural, trail: Trail) -> Atom:
        assert holder.schema is not None
        hard = "" if holder.schema.properties else f"{key} in {holder.code}"  # null is a value of a map
        return Atom(self.writer.load_if_present(f"{holder.code}.get({key})", inner, trail, hard), "bool")

    def element(self, holder: Atom, node: Call) -> Atom:
        index = node.args[1]
        if is_attribute(index) and index not in self.constants.values:
            at = self.attribute(index)
        else:
            at = self.expression(index)
        writer = self.writer
        writer.spend(1)
        if holder.kind == "value":
            if is_optional(node.args[0].type):
                raise Declined
            return self.picked(holder.code, writer.boxed(at))
        inner = holder.schema
        assert inner is not None
        if holder.kind == "raw":
            inner = inner.items if inner.type == "array" else None if inner.properties else inner.values
        if inner is None:
            raise Declined
        if holder.schema is not None and holder.kind == "raw" and holder.schema.type == "object":
            key = writer.certain(at, "str")
        else:
            key = writer.certain(at, "int")
            writer.refuse(f"{key} < 0")
        step = at.constant if at.constant is not None else (at.code, *at.trail)
        return writer.load(f"{holder.code}[{key}]", inner, _below(holder, step))

    def picked(self, holder: str, key: str) -> Atom:
        return Atom(self.writer.temp(f"{self.writer.name(select)}({holder}, {key}, presence=False)"), "value")

    # Calls

    def call(self, node: Call) -> Atom:
        match node.function:
            case "_&&_" | "_||_":
                return self.logic(node)
            case "_==_" | "_!=_":
                return self.equality(node)
            case "@in":
                return self.membership(node)
        if node.function in _LAZY or any(is_optional(arg.type) for arg in node.operands):
            raise Declined
        args = [self.expression(arg) for arg in node.operands]
        inline = INLINED.get(node.overloads[0]) if len(node.overloads) == 1 else None
        result = inline(self.writer, args) if inline else None
        return result or self.called(node, args)

    def called(self, node: Call, args: list[Atom]) -> Atom:
        """The function itself."""
        writer = self.writer
        function = self.environment.functions[node.function]
        run = writer.name(function.implementation(node.overloads))
        return self.priced(node, run, [writer.boxed(arg) for arg in args])

    def priced(self, node: Call, run: str, args: list[str]) -> Atom:
        writer = self.writer
        price = call_cost(node.function, node.overloads)
        if price is nominal:
            writer.spend(1)
            return Atom(writer.temp(f"{run}({', '.join(args)})"), "value")
        args = [writer.temp(arg) for arg in args]
        if price in FORESEEN:
            writer.spend(f"{writer.name(price)}([{', '.join(args)}], None)")
            writer.ask()
            return Atom(writer.temp(f"{run}({', '.join(args)})"), "value")
        result = writer.temp(f"{run}({', '.join(args)})")
        writer.spend(f"{writer.name(price)}([{', '.join(args)}], {result})")
        return Atom(result, "value")

    def logic(self, node: Call) -> Atom:
        writer = self.writer
        result = writer.temp(self.truth(node.args[0]))
        with writer.block(f"if {result}:" if node.function == "_&&_" else f"if not {result}:"):
            writer.emit(f"{result} = {self.truth(node.args[1])}")
        return Atom(result, "bool")

    def conditional(self, node: Call) -> Atom:
        writer = self.writer
        kind = _STATIC_KINDS.get(node.type, "value")
        condition, result = self.truth(node.args[0]), writer.temp()
        for head, branch in ((f"if {condition}:", node.args[1]), ("else:", node.args[2])):
            with writer.block(head):
                atom = self.branch(branch)
                writer.emit(f"{result} = {writer.boxed(atom) if kind == 'value' else writer.certain(atom, kind)}")
        return Atom(result, kind)

    def branch(self, node: Expr) -> Atom:
        """A chosen attribute goes on with the attribute that the conditional is: its identifier is not counted."""
        if node in self.constants.values or not is_attribute(node):
            return self.expression(node)
        if isinstance(node, Call) and node.function == "_?_:_":
            return self.conditional(node)
        return self.attribute(node)

    def equality(self, node: Call) -> Atom:
        writer = self.writer
        args = [self.expression(arg) for arg in node.args]
        sign = "==" if node.function == "_==_" else "!="
        found = equality(writer, args, sign)
        if found is None:
            found = self.priced(node, writer.name(equal), [writer.boxed(arg) for arg in args])
            found = Atom(found.code if sign == "==" else f"(not {found.code})", "bool")
        return found

    def membership(self, node: Call) -> Atom:
        writer = self.writer
        value = self.expression(node.args[0])
        if node in self.constants.members:  # then nothing but the value costs
            members = self.constants.members[node]
            if value.kind in ("str", "int") and {type(one).__name__ for one in members} == {value.kind}:
                return Atom(f"({value.code} in {writer.name(frozenset(members))})", "bool")
            return Atom(f"{writer.name(is_member)}({writer.boxed(value)}, {writer.name(members)})", "bool")
        holder = self.expression(node.args[1])
        if holder.kind == "raw" and holder.schema is not None and value.kind in ("str", "int"):
            items, values = holder.schema.items, holder.schema.values
            if values is not None and not holder.schema.properties and value.kind == "str":
                writer.spend(1)
                return self.present(holder, value.code, values, _below(holder, (value.code, *value.trail)))
            if items is not None and _plain_kind(items) == value.kind:
                writer.spend(f"len({holder.code})")
                only = writer.name(frozenset({str if value.kind == "str" else int}))
                writer.refuse(f"not {only}.issuperset(map(type, {holder.code}))")
                return Atom(f"({value.code} in {holder.code})", "bool")
        return self.called(node, [value, holder])

    # Macros

    def comprehension(self, node: Comprehension) -> Atom:
        macro = _MACROS.get(node.macro)
        if macro is None:
            raise Declined
        items = self.expression(node.range)
        result = macro(self, node, items)
        self.writer.spend(1)  # the accumulator is looked at for the result
        return result

    def head(self, node: Comprehension, items: Atom) -> tuple[str, list[tuple[str, str, Structural | None]]]:
        """How a loop begins; its variables: (name, code, how it is described)."""
        writer = self.writer
        first, second = writer.temp(), writer.temp()
        two = bool(node.variable2)
        if items.kind == "value":
            run = f"{writer.name(entries)}({items.code}, two={two})"
            return f"for {first}, {second} in {run}:", [(node.variable, first, None), (node.variable2, second, None)]
        schema = items.schema
        assert schema is not None
        is_map = items.kind == "raw" and schema.type == "object"
        inner = schema if items.kind == "items" else schema.values if is_map else schema.items
        if inner is None or (is_map and schema.properties):
            raise Declined
        if two:
            run = f"{items.code}.items()" if is_map else f"enumerate({items.code})"
            return f"for {first}, {second} in {run}:", [(node.variable, first, None), (node.variable2, second, inner)]
        return f"for {first} in {items.code}:", [(node.variable, first, None if is_map else inner)]

    def enter(self, variables: list[tuple[str, str, Structural | None]], items: Atom) -> None:
        scope: dict[str, Atom] = {}
        writer = self.writer
        for name, code, schema in variables:
            if not name:
                continue
            if schema is not None:
                scope[name] = writer.check(code, schema, (code,))
            else:
                keys = items.kind == "raw" and items.schema.type == "object"  # type: ignore[union-attr]
                position = items.kind != "value" and not keys
                if items.kind == "value":
                    writer.refuse(f"{code}.__class__ is {writer.name(Failed)}")
                scope[name] = Atom(code, "int" if position else "str" if keys else "value", trail=(code,))
        self.scopes.append(scope)

    def all_or_any(self, node: Comprehension, items: Atom) -> Atom:
        """all and exists. The accumulator is looked at before each turn, and that costs; the first turn is certain."""
        writer = self.writer
        is_all = node.macro == "all"
        price = 2 if is_all else 3
        assert isinstance(node.step, Call)
        result = writer.temp(str(is_all))
        head, variables = self.head(node, items)
        with writer.loop(head):
            with writer.block(f"if not {result}:" if is_all else f"if {result}:"):
                writer.counts = True
                writer.emit(f"c += {price}; break")
            writer.spend(price + 1)
            self.enter(variables, items)
            writer.emit(f"{result} = {self.truth(node.step.args[1])}")
            self.scopes.pop()
        return Atom(result, "bool")

    def one(self, node: Comprehension, items: Atom) -> Atom:
        writer = self.writer
        assert isinstance(node.step, Call)
        count = writer.temp("0")
        head, variables = self.head(node, items)
        with writer.loop(head):
            self.enter(variables, items)
            with writer.block(f"if {self.truth(node.step.args[0])}:"):
                writer.spend(2)
                writer.emit(f"{count} += 1")
            self.scopes.pop()
        writer.spend(1)
        return Atom(f"({count} == 1)", "bool")

    def collected(self, node: Comprehension, items: Atom) -> Atom:
        """map, filter and transformList."""
        writer = self.writer
        step = node.step
        assert isinstance(step, Call)
        where = step.args[0] if step.function == "_?_:_" else None
        addition = step.args[1] if where is not None else step
        assert isinstance(addition, Call)
        added = addition.args[1]
        assert isinstance(added, ListLiteral)
        result = writer.temp("[]")
        head, variables = self.head(node, items)
        with writer.loop(head):
            self.enter(variables, items)
            if where is not None:
                with writer.block(f"if {self.truth(where)}:"):
                    kept = self.collect(added, result)
            else:
                kept = self.collect(added, result)
            self.scopes.pop()
        return Atom(result, "items", kept.schema) if kept.kind == "raw" else Atom(result, "value")

    def collect(self, added: ListLiteral, result: str) -> Atom:
        """The accumulator, a list of one, the addition of both."""
        atom = self.expression(added.elements[0])
        self.writer.spend(1 + (0 if added in self.constants.values else LIST_COST) + 1)
        self.writer.emit(f"{result}.append({atom.code})")
        return atom


_MACROS: Final[dict[str, Callable[[_Generator, Comprehension, Atom], Atom]]] = {
    "all": _Generator.all_or_any,
    "exists": _Generator.all_or_any,
    "exists_one": _Generator.one,
    "map": _Generator.collected,
    "filter": _Generator.collected,
    "transformList": _Generator.collected,
}


def _below(holder: Atom, step: object) -> Trail:
    return (*(holder.trail or (holder.code,)), step)


def _plain_kind(schema: Structural) -> Kind | None:
    """str or int, if values of that schema are that and nothing is read from them."""
    if schema.int_or_string:
        return None
    if schema.type == "integer":
        return "int"
    return "str" if schema.type == "string" and schema.validation.format not in FORMATS else None
