"""Type checking (cel-go's checker): sets the type of every node, and the possible overloads of every call.

Problems are collected, not raised; their texts and positions are cel-go's. After a problem the checker continues with
the error type, which is assignable to and from every other type.
"""

from __future__ import annotations

from noxu.cel.checking.environment import Environment, Resolution
from noxu.cel.library.declarations import Function
from noxu.cel.syntax.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Missing,
    Select,
    SourceProblem,
)
from noxu.cel.types import types
from noxu.cel.types.types import Substitution, Type, TypeKind, display, is_dyn_or_error, is_optional, most_general
from noxu.cel.values.values import type_of


class CheckedExpr:
    """A checked expression. `names` are all identifiers it uses, the variables of macros included."""

    __slots__ = ("names", "tree")

    def __init__(self, tree: Expr, names: set[str]) -> None:
        self.tree = tree
        self.names = names


def check(tree: Expr, environment: Environment) -> tuple[CheckedExpr, list[SourceProblem]]:
    """The checked expression, and its problems. Changes the nodes of `tree`."""
    checker = _Checker(environment)
    tree = checker.check(tree)
    for node in checker.generic:
        node.type = checker.substitution.resolve(node.type, unbound_as_dyn=True)
    return CheckedExpr(tree, checker.names), checker.problems


class _Checker:
    """Every method that checks a node returns the node that replaces it: a qualified name becomes one identifier."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.substitution = Substitution()
        self.problems: list[SourceProblem] = []
        self.names: set[str] = set()
        self.generic: list[Expr] = []  # nodes whose type contains parameters until the whole tree is checked
        self.scopes: list[dict[str, Type]] = []

    def report(self, pos: int, message: str) -> None:
        self.problems.append(SourceProblem(pos, message))

    def set_type(self, node: Expr, type_: Type) -> Expr:
        node.type = type_
        if type_.generic:
            self.generic.append(node)
        return node

    def check(self, node: Expr) -> Expr:
        match node:
            case Literal():
                node.type = type_of(node.value)
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
                return self.set_type(node, types.ERROR)

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
            return self.set_type(node, local)
        if self.global_name(node, bare, shadowed=local is not None):
            return node
        self.undeclared(node.pos, name)
        return self.set_type(node, types.ERROR)

    def global_name(self, node: Ident, name: str, *, shadowed: bool) -> bool:
        """Whether the environment has a variable or a type of that name. If so, the node becomes a reference to it."""
        type_ = self.environment.variables.get(name)
        node.name = f".{name}" if shadowed else name
        if type_ is None:
            constant = self.environment.type_names.get(name) or self.environment.unusable_type_names.get(name)
            message = None if constant else self.environment.messages(name)
            node.constant = message.type if message else constant
            if node.constant is None:
                return False
            type_ = types.type_of(node.constant)
        self.names.add(node.name)
        self.set_type(node, type_)
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
        return self.set_type(node, types.BOOL if node.test else self.substitution.resolve(result))

    def field(self, node: Select | Call, name: str, *, optional: bool) -> Type:
        """The type of a field of the node's operand. Checks the operand first."""
        if isinstance(node, Select):
            operand = node.operand = self.check(node.operand)
        else:
            operand = node.args[0] = self.check(node.args[0])
        operand_type = self.substitution.resolve(operand.type)
        target = operand_type.params[0] if is_optional(operand_type) else operand_type
        match target.kind:
            case TypeKind.MAP:
                result = target.params[1]
            case TypeKind.STRUCT:
                result = self.struct_field(node.pos, target, name)
            case TypeKind.PARAM:
                self.substitution.assignable(types.DYN, target)
                result = types.DYN
            case _:
                if not is_dyn_or_error(target):
                    self.report(node.pos, f"type '{display(target)}' does not support field selection")
                result = types.DYN
        return types.optional_of(result) if optional or target is not operand_type else result

    def struct_field(self, pos: int, struct: Type, name: str) -> Type:
        message = self.environment.messages(struct.name)
        if message is not None and (field := message.field(name)) is not None:
            return field
        declaration = struct.declaration
        if declaration is None:
            self.report(pos, f"unexpected failed resolution of '{struct.name}'")
            return types.ERROR
        declared = declaration.find(name)
        if declared is None:
            self.report(pos, f"undefined field '{name}'")
            return types.ERROR
        identifier, inner = declared
        return inner.named(f"{struct.name}.{identifier}")

    # Calls

    def call(self, node: Call) -> Expr:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            assert isinstance(field.value, str)
            field.type = types.STRING
            node.overloads = ("select_optional_field",)
            return self.set_type(node, self.substitution.resolve(self.field(node, field.value, optional=True)))
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
            return self.set_type(node, types.ERROR)
        node.function = function.name
        return self.set_type(node, self.overload(node, function))

    def overload(self, node: Call, function: Function) -> Type:
        """The type of a call. Sets the overloads it may use."""
        arg_types = tuple(operand.type for operand in node.operands)
        if function.name in ("_&&_", "_||_"):
            node.overloads = (function.overloads[0].id,)
            fits = [self.expect(arg, types.BOOL) for arg in node.args]
            return types.BOOL if all(fits) else types.ERROR
        member = node.target is not None
        cacheable = not any(type_.generic or type_.nullable_wrapper for type_ in arg_types)
        if cacheable:  # the result depends on nothing but these types
            key = (function.name, member, arg_types)
            cached = self.environment.resolved.get(key)
            if cached is not None:
                node.overloads = cached.overloads
                return cached.result
        chosen, result = self.resolve(function, member, arg_types)
        if result is None:
            self.no_overload(node, function.name, arg_types)
            return types.ERROR
        node.overloads = chosen
        if cacheable and not result.generic and not _has_struct(arg_types):
            self.environment.resolved[key] = Resolution(chosen, result)
        return result

    def resolve(
        self, function: Function, member: bool, arg_types: tuple[Type, ...]
    ) -> tuple[tuple[str, ...], Type | None]:
        """The ids of the overloads that fit, and the type of their results: dyn if they differ, None if none fits."""
        chosen: list[str] = []
        result: Type | None = None
        substitution = self.substitution
        for overload in function.overloads:
            if overload.member is not member or len(overload.args) != len(arg_types):
                continue
            expected, returned = overload.args, overload.result
            if overload.params:
                fresh = Substitution()  # the overload's parameters get names of their own for this call
                fresh.bound = {name: substitution.new_param() for name in overload.params}
                expected, returned = tuple(map(fresh.resolve, expected)), fresh.resolve(returned)
            if not substitution.all_assignable(arg_types, expected):
                continue
            chosen.append(overload.id)
            returned = substitution.resolve(returned)
            if result is None:
                result = returned
            elif result.kind is not TypeKind.DYN and returned != result:
                result = types.DYN
        return tuple(chosen), result

    def no_overload(self, node: Call, name: str, arg_types: tuple[Type, ...]) -> None:
        shown = [display(self.substitution.resolve(type_, unbound_as_dyn=True)) for type_ in arg_types]
        target = f"{shown.pop(0)}." if node.target is not None else ""
        self.report(node.pos, f"found no matching overload for '{name}' applied to '{target}({', '.join(shown)})'")

    def expect(self, node: Expr, expected: Type) -> bool:
        if self.substitution.assignable(expected, node.type):
            return True
        self.report(node.pos, f"expected type '{display(expected)}' but found '{display(node.type)}'")
        return False

    # Literals

    def join(self, joined: Type | None, added: Type) -> Type:
        """The element type of a literal whose elements so far are `joined`; dyn if the types do not fit together."""
        if joined is None:
            return added
        return most_general(joined, added) if self.substitution.assignable(joined, added) else types.DYN

    def unwrapped(self, node: Expr) -> Type:
        """The type that a `?element` contributes: that of the value in the optional."""
        if is_optional(node.type):
            return node.type.params[0]
        if node.type.kind is not TypeKind.DYN:
            expected = display(types.optional_of(node.type))
            self.report(node.pos, f"expected type '{expected}' but found '{display(node.type)}'")
        return node.type

    def list_literal(self, node: ListLiteral) -> Expr:
        element: Type | None = None
        for n, child in enumerate(node.elements):
            child = node.elements[n] = self.check(child)
            element = self.join(element, self.unwrapped(child) if n in node.optional else child.type)
        return self.set_type(node, types.list_of(element or self.substitution.new_param()))

    def map_literal(self, node: MapLiteral) -> Expr:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            key = self.join(key, entry.key.type)
            value = self.join(value, self.entry_value(entry))
        if key is None or value is None:
            key, value = self.substitution.new_param(), self.substitution.new_param()
        return self.set_type(node, types.map_of(key, value))

    def entry_value(self, entry: MapEntry) -> Type:
        entry.value = self.check(entry.value)
        return self.unwrapped(entry.value) if entry.optional else entry.value.type

    def message(self, node: Message) -> Expr:
        name = node.name.removeprefix(".")
        message_type = self.environment.messages(name)
        if message_type is None:
            if name in self.environment.type_names:
                self.report(node.pos, f"'{name}' is not a message type")
                for entry in node.entries:
                    assert isinstance(entry.key, Literal)
                    self.report(entry.pos, f"undefined field '{entry.key.value}'")
            else:
                self.undeclared(node.pos, node.name)
            return self.set_type(node, types.ERROR)
        node.name = name
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            field = str(entry.key.value)
            expected, value_type = message_type.field(field), self.entry_value(entry)
            if expected is None:
                self.report(entry.pos, f"undefined field '{field}'")
            elif not self.substitution.assignable(expected, value_type):
                shown = display(self.substitution.resolve(value_type, unbound_as_dyn=True))
                message = f"expected type of field '{field}' is '{display(expected)}' but provided type is '{shown}'"
                self.report(entry.pos, message)
        return self.set_type(node, message_type.type)

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
        return self.set_type(node, self.substitution.resolve(node.result.type))

    def variables(self, node: Comprehension) -> tuple[Type, Type]:
        """The types of the iteration variables."""
        range_type = self.substitution.resolve(node.range.type)
        match range_type.kind:
            case TypeKind.LIST:
                return (types.INT, range_type.params[0]) if node.variable2 else (range_type.params[0], types.ERROR)
            case TypeKind.MAP:
                key, value = range_type.params
                return key, value
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAM:
                self.substitution.assignable(types.DYN, range_type)
                return types.DYN, types.DYN
        self.report(
            node.range.pos,
            f"expression of type '{display(range_type)}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return types.ERROR, types.ERROR


def _qualified(node: Expr) -> str | None:
    """The name `a.b.c` if the node consists of identifiers only, else None."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    return ".".join(reversed(names))


def _has_struct(arg_types: tuple[Type, ...]) -> bool:
    """Whether a type was made from a schema. Such types come and go with their CRDs, so they are not cached."""
    return any(
        (type_.kind is TypeKind.STRUCT and type_.declaration is not None) or _has_struct(type_.params)
        for type_ in arg_types
    )
