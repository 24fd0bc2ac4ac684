"""Type checking (cel-go's checker): every node gets its type, every call the overloads that may be meant.

Problems are collected, not raised; their texts and places are cel-go's. After a problem the checker goes on with the
error type, which fits everywhere.
"""

from __future__ import annotations

from typing import Final

from apiserver.cel import types
from apiserver.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Missing,
    Select,
)
from apiserver.cel.environment import Environment, Resolution
from apiserver.cel.library.declarations import Function
from apiserver.cel.numbers import Uint
from apiserver.cel.source import Problem
from apiserver.cel.types import Kind, Substitution, Type, display, is_dyn_or_error, is_optional, most_general

_LITERALS: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class Checked:
    """A checked expression. `names` are all identifiers it uses, those of macros too."""

    __slots__ = ("names", "tree")

    def __init__(self, tree: Expr, names: set[str]) -> None:
        self.tree = tree
        self.names = names


def check(tree: Expr, environment: Environment) -> tuple[Checked, list[Problem]]:
    checker = _Checker(environment)
    tree = checker.check(tree)
    for node in checker.generic:
        node.type = checker.known.resolve(node.type, unbound_as_dyn=True)
    return Checked(tree, checker.names), checker.problems


class _Checker:
    """`check` gives back the node that replaces the one checked: qualified names become one identifier."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.known = Substitution()
        self.problems: list[Problem] = []
        self.names: set[str] = set()
        self.generic: list[Expr] = []  # nodes whose type is not settled before the end
        self.scopes: list[dict[str, Type]] = []

    def report(self, pos: int, message: str) -> None:
        self.problems.append(Problem(pos, message))

    def settle(self, node: Expr, one: Type) -> Expr:
        node.type = one
        if one.generic:
            self.generic.append(node)
        return node

    def check(self, node: Expr) -> Expr:
        match node:
            case Literal():
                node.type = _LITERALS[type(node.value)]
                return node
            case Ident():
                return self.identifier(node)
            case Select():
                return self.selection(node)
            case Call():
                return self.call(node)
            case ListLiteral():
                return self.list_literal(node)
            case MapLiteral():
                return self.map_literal(node)
            case Comprehension():
                return self.comprehension(node)
            case Message():
                return self.message(node)
            case Missing():
                self.report(node.pos, "unexpected unspecified type: ")
                return self.settle(node, types.ERROR)

    # Names

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def identifier(self, node: Ident) -> Expr:
        name = node.name
        bare = name.removeprefix(".")
        local = self.local(bare)
        if local is not None and bare is name:
            self.names.add(name)
            return self.settle(node, local)
        if self.global_name(node, bare, shadowed=local is not None):
            return node
        self.undeclared(node.pos, name)
        return self.settle(node, types.ERROR)

    def global_name(self, node: Ident, name: str, *, shadowed: bool) -> bool:
        """Make the node a variable or a type of the environment, if there is one of that name."""
        found = self.environment.variables.get(name)
        node.name = f".{name}" if shadowed else name
        if found is None:
            constant = self.environment.type_names.get(name) or self.environment.unusable_type_names.get(name)
            message = None if constant else self.environment.messages(name)
            node.constant = message.type if message else constant
            if node.constant is None:
                return False
            found = types.type_of(node.constant)
        self.names.add(node.name)
        self.settle(node, found)
        return True

    def undeclared(self, pos: int, name: str) -> None:
        self.report(pos, f"undeclared reference to '{name}' (in container '')")

    def selection(self, node: Select) -> Expr:
        if not node.test:
            name = _qualified(node)
            if name is not None:
                bare = name.removeprefix(".")
                local = self.local(bare.partition(".")[0])
                if local is None or bare is not name:
                    whole = Ident(node.pos, bare)
                    if self.global_name(whole, bare, shadowed=local is not None):
                        return whole
        result = self.field(node, node.field, optional=False)
        return self.settle(node, types.BOOL if node.test else self.known.resolve(result))

    def field(self, node: Select | Call, name: str, *, optional: bool) -> Type:
        """The type of a field of the node's operand, which is checked first."""
        if isinstance(node, Select):
            operand = node.operand = self.check(node.operand)
        else:
            operand = node.args[0] = self.check(node.args[0])
        given = self.known.resolve(operand.type)
        target = given.params[0] if is_optional(given) else given
        match target.kind:
            case Kind.MAP:
                result = target.params[1]
            case Kind.STRUCT:
                result = self.struct_field(node.pos, target, name)
            case Kind.PARAM:
                self.known.assignable(types.DYN, target)
                result = types.DYN
            case _:
                if not is_dyn_or_error(target):
                    self.report(node.pos, f"type '{display(target)}' does not support field selection")
                result = types.DYN
        return types.optional_of(result) if optional or target is not given else result

    def struct_field(self, pos: int, struct: Type, name: str) -> Type:
        message = self.environment.messages(struct.name)
        if message is not None and (field := message.field(name)) is not None:
            return field
        declaration = struct.declaration
        if declaration is None:
            self.report(pos, f"unexpected failed resolution of '{struct.name}'")
            return types.ERROR
        found = declaration.find(name)
        if found is None:
            self.report(pos, f"undefined field '{name}'")
            return types.ERROR
        identifier, inner = found
        return inner.named(f"{struct.name}.{identifier}")

    # Calls

    def call(self, node: Call) -> Expr:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            assert isinstance(field.value, str)
            field.type = types.STRING
            node.overloads = ("select_optional_field",)
            return self.settle(node, self.known.resolve(self.field(node, field.value, optional=True)))
        node.args = [self.check(arg) for arg in node.args]
        if node.target is not None:
            prefix = _qualified(node.target)
            name = f"{prefix}.{node.function}".removeprefix(".") if prefix else ""
            if name in self.environment.functions:  # a namespace, not a target
                node.target, node.function = None, name
            else:
                node.target = self.check(node.target)
        function = self.environment.functions.get(node.function.removeprefix("."))
        if function is None:
            self.undeclared(node.pos, node.function)
            return self.settle(node, types.ERROR)
        node.function = function.name
        return self.settle(node, self.overload(node, function))

    def overload(self, node: Call, function: Function) -> Type:
        """The type of a call; sets the overloads it may mean."""
        given = tuple(one.type for one in node.operands)
        if function.name in ("_&&_", "_||_"):
            node.overloads = (function.overloads[0].id,)
            fits = [self.expect(arg, types.BOOL) for arg in node.args]
            return types.BOOL if all(fits) else types.ERROR
        member = node.target is not None
        settled = not any(one.generic or one.wraps for one in given)
        if settled:  # then nothing else can change the answer
            key = (function.name, member, given)
            remembered = self.environment.resolved.get(key)
            if remembered is not None:
                node.overloads = remembered.overloads
                return remembered.result
        chosen, result = self.resolve(function, member, given)
        if result is None:
            self.no_overload(node, function.name, given)
            return types.ERROR
        node.overloads = chosen
        if settled and not result.generic and not _has_struct(given):
            self.environment.resolved[key] = Resolution(chosen, result)
        return result

    def resolve(self, function: Function, member: bool, given: tuple[Type, ...]) -> tuple[tuple[str, ...], Type | None]:
        chosen: list[str] = []
        result: Type | None = None
        known = self.known
        for one in function.overloads:
            if one.member is not member or len(one.args) != len(given):
                continue
            wanted, returned = one.args, one.result
            if one.params:
                fresh = Substitution()
                fresh.bound = {name: known.new_param() for name in one.params}
                wanted, returned = tuple(map(fresh.resolve, wanted)), fresh.resolve(returned)
            if not known.all_assignable(given, wanted):
                continue
            chosen.append(one.id)
            returned = known.resolve(returned)
            if result is None:
                result = returned
            elif result.kind is not Kind.DYN and returned != result:
                result = types.DYN
        return tuple(chosen), result

    def no_overload(self, node: Call, name: str, given: tuple[Type, ...]) -> None:
        shown = [display(self.known.resolve(one, unbound_as_dyn=True)) for one in given]
        target = f"{shown.pop(0)}." if node.target is not None else ""
        self.report(node.pos, f"found no matching overload for '{name}' applied to '{target}({', '.join(shown)})'")

    def expect(self, node: Expr, wanted: Type) -> bool:
        if self.known.assignable(wanted, node.type):
            return True
        self.report(node.pos, f"expected type '{display(wanted)}' but found '{display(node.type)}'")
        return False

    # Literals

    def join(self, known: Type | None, more: Type) -> Type:
        """The type of elements of which some are `known`. Different ones make it dyn."""
        if known is None:
            return more
        return most_general(known, more) if self.known.assignable(known, more) else types.DYN

    def unwrapped(self, node: Expr) -> Type:
        """What a `?element` contributes."""
        if is_optional(node.type):
            return node.type.params[0]
        if node.type.kind is not Kind.DYN:
            wanted = display(types.optional_of(node.type))
            self.report(node.pos, f"expected type '{wanted}' but found '{display(node.type)}'")
        return node.type

    def list_literal(self, node: ListLiteral) -> Expr:
        element: Type | None = None
        for n, one in enumerate(node.elements):
            one = node.elements[n] = self.check(one)
            element = self.join(element, self.unwrapped(one) if n in node.optional else one.type)
        return self.settle(node, types.list_of(element or self.known.new_param()))

    def map_literal(self, node: MapLiteral) -> Expr:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            key = self.join(key, entry.key.type)
            value = self.join(value, self.entry_value(entry))
        if key is None or value is None:
            key, value = self.known.new_param(), self.known.new_param()
        return self.settle(node, types.map_of(key, value))

    def entry_value(self, entry: Entry) -> Type:
        entry.value = self.check(entry.value)
        return self.unwrapped(entry.value) if entry.optional else entry.value.type

    def message(self, node: Message) -> Expr:
        name = node.name.removeprefix(".")
        found = self.environment.messages(name)
        if found is None:
            if name in self.environment.type_names:
                self.report(node.pos, f"'{name}' is not a message type")
                for entry in node.entries:
                    assert isinstance(entry.key, Literal)
                    self.report(entry.pos, f"undefined field '{entry.key.value}'")
            else:
                self.undeclared(node.pos, node.name)
            return self.settle(node, types.ERROR)
        node.name = name
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            field = str(entry.key.value)
            wanted, given = found.field(field), self.entry_value(entry)
            if wanted is None:
                self.report(entry.pos, f"undefined field '{field}'")
            elif not self.known.assignable(wanted, given):
                shown = display(self.known.resolve(given, unbound_as_dyn=True))
                told = f"expected type of field '{field}' is '{display(wanted)}' but provided type is '{shown}'"
                self.report(entry.pos, told)
        return self.settle(node, found.type)

    # Macros

    def comprehension(self, node: Comprehension) -> Expr:
        node.range = self.check(node.range)
        node.initial = self.check(node.initial)
        first, second = self.variables(node)
        accumulator = node.initial.type
        self.scopes.append({node.accumulator: accumulator})
        self.scopes.append({node.variable: first, node.variable2: second} if node.variable2 else {node.variable: first})
        node.condition = self.check(node.condition)
        self.expect(node.condition, types.BOOL)
        node.step = self.check(node.step)
        self.expect(node.step, accumulator)
        self.scopes.pop()
        node.result = self.check(node.result)
        self.scopes.pop()
        return self.settle(node, self.known.resolve(node.result.type))

    def variables(self, node: Comprehension) -> tuple[Type, Type]:
        """The types of the iteration variables."""
        given = self.known.resolve(node.range.type)
        match given.kind:
            case Kind.LIST:
                return (types.INT, given.params[0]) if node.variable2 else (given.params[0], types.ERROR)
            case Kind.MAP:
                key, value = given.params
                return key, value
            case Kind.DYN | Kind.ERROR | Kind.PARAM:
                self.known.assignable(types.DYN, given)
                return types.DYN, types.DYN
        self.report(
            node.range.pos,
            f"expression of type '{display(given)}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return types.ERROR, types.ERROR


def _qualified(node: Expr) -> str | None:
    """`a.b.c` if that is all it is."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    return ".".join(reversed(names))


def _has_struct(given: tuple[Type, ...]) -> bool:
    """Types of objects come and go: nothing is remembered about them."""
    return any((one.kind is Kind.STRUCT and one.declaration is not None) or _has_struct(one.params) for one in given)
