"""Compiles a rule to a Python function for one schema.

A generated function takes the raw JSON of `self` and `oldSelf` and returns the cost of the rule: `cost` if the rule holds,
`~cost` if it does not. When the cost exceeds `limit`, it calls `more(cost)` for a new limit, which may raise.

It raises one of `FALLBACK_ERRORS` at anything unusual: a missing key, a null, a value of another type than the schema
says, an overflow. Then the interpreter evaluates the rule, and finds the exact error. So code is generated only for
expressions in everyday use, if they have the same meaning in CEL and in Python.

    self.items.all(i, i.weight >= 0)   →   def rule(s, o, limit, more):      (the comments are not generated)
                                            c = 0
                                            t1 = s
                                            if t1.__class__ is not dict: raise Fallback
                                            t2 = t1['items']
                                            if t2.__class__ is not list: raise Fallback
                                            t3 = True                        # @result
                                            c += 2                           # self.items
                                            for t4 in t2:
                                             if not t3:
                                              c += 2; break                  # @not_strictly_false(@result)
                                             if t4.__class__ is not dict: raise Fallback
                                             t6 = t4['weight']
                                             if t6.__class__ is not int: raise Fallback
                                             t3 = (t6 >= (0))
                                             c += 6                          # 2 for the condition, 4 for the step
                                             if c > limit: limit = more(c)
                                            c += 1                           # @result
                                            return c if t3 else ~c
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from noxu.cel import memory
from noxu.cel.checking.environment import Environment
from noxu.cel.cost.runtime import CHECKED_BEFORE_CALL, LIST_COST, MAP_COST, call_cost, nominal
from noxu.cel.errors import Cancelled, CelError
from noxu.cel.evaluation.constants import Constants, is_member
from noxu.cel.evaluation.selection import entries, is_attribute, select
from noxu.cel.generation.writer import (
    INLINED,
    SCALARS,
    Fallback,
    Kind,
    Operand,
    Path,
    SourceWriter,
    Unsupported,
    equality,
)
from noxu.cel.memory import ELEMENT, ENTRY, LIST, MAP, Memory
from noxu.cel.syntax.ast import Call, Comprehension, Expr, Ident, ListLiteral, MapLiteral, Select
from noxu.cel.types.schema_types import unescape
from noxu.cel.types.types import BOOL, INT, STRING, is_optional
from noxu.cel.values.equality import equal
from noxu.cel.values.values import FORMAT_READERS, FailedConversion, MapValue
from noxu.cpu_budget import CURRENT as CPU_BUDGET
from noxu.schema.structural import Structural
from noxu.values import Json

NextLimit: TypeAlias = Callable[[int], int]
"""Called with the cost so far: returns the cost at which the function calls it again, or raises."""
GeneratedRule: TypeAlias = Callable[[Json, Json, int, NextLimit], int]
FALLBACK_ERRORS: Final = (
    Fallback, CelError, Cancelled, LookupError, TypeError, ArithmeticError, AttributeError, ValueError, RecursionError,
)  # fmt: skip
__all__ = ["FALLBACK_ERRORS", "GeneratedRule", "Unsupported", "generate"]

_STATIC_KINDS: Final[dict[object, Kind]] = {BOOL: "bool", INT: "int", STRING: "str"}
_VARIABLES: Final = {"self": "s", "oldSelf": "o"}
_SMALL: Final = 8  # elements of a literal
_UNSUPPORTED: Final = frozenset({"_[?_]", "_?._", "or", "orValue", "@not_strictly_false"})


def generate(
    tree: Expr, environment: Environment, constants: Constants, schema: Structural, *, old_self: bool
) -> GeneratedRule:
    """A function for a checked rule whose `self` the schema describes. `old_self`: it describes `oldSelf` as well.

    Raises Unsupported.
    """
    generator = _Generator(environment, constants, {"self", "oldSelf"} if old_self else {"self"}, schema)
    result = generator.truth(tree)
    writer = generator.writer
    if writer.counts_cost:
        writer.write_pending()
        writer.emit(f"return c if {result} else ~c")
    else:
        writer.emit(f"return {writer.pending} if {result} else {~writer.pending}")
    source = writer.function("def rule(s, o, limit, more):")
    scope: dict[str, Any] = dict(writer.names)
    exec(compile(source, "<rule>", "exec"), scope)  # noqa: S102 - generated here; literals of the rule are repr()s
    rule: GeneratedRule = scope["rule"]
    return _with_memory(rule) if writer.allocates else rule


def _with_memory(rule: GeneratedRule) -> GeneratedRule:
    """A rule that may make values, each time with the memory of an evaluation."""

    def run(new: Json, old: Json, limit: int, more: NextLimit) -> int:
        token = memory.CURRENT.set(Memory(CPU_BUDGET.get()))
        try:
            return rule(new, old, limit, more)
        finally:
            memory.CURRENT.reset(token)

    return run


class _Generator:
    """Generates the code of one rule: each method writes the lines for a node and returns the operand of its value.

    `scopes` are the variables of the comprehensions around the node.
    """

    def __init__(self, environment: Environment, constants: Constants, variables: set[str], schema: Structural) -> None:
        self.environment = environment
        self.constants = constants
        self.variables = variables
        self.schema = schema
        self.scopes: list[dict[str, Operand]] = []
        self.writer = SourceWriter()

    # Expressions

    def truth(self, node: Expr) -> str:
        return self.writer.as_kind(self.expression(node), "bool")

    def expression(self, node: Expr) -> Operand:
        if node in self.constants.values:
            return self.writer.literal(self.constants.values[node])
        match node:
            case Call(function="_?_:_"):
                return self.conditional(node)
            case Ident() | Select() | Call(function="_[_]"):
                self.writer.charge(0 if isinstance(node, Select) and node.test else 1)
                return self.attribute(node)
            case Call():
                return self.call(node)
            case ListLiteral() if not node.optional:
                self.announce(LIST, ELEMENT, len(node.elements))
                elements = [self.value(element) for element in node.elements]
                self.writer.charge(LIST_COST)
                return Operand(self.writer.temp(f"[{', '.join(elements)}]"), "value")
            case MapLiteral():
                return self.map_literal(node)
            case Comprehension():
                return self.comprehension(node)
        raise Unsupported

    def value(self, node: Expr) -> str:
        return self.writer.as_value(self.expression(node))

    def announce(self, size: int, element_size: int, count: int) -> None:
        """Announce a literal of many elements. The number of small ones is limited by their cost."""
        if count > _SMALL:
            self.writer.allocate(str(size + element_size * count))

    def map_literal(self, node: MapLiteral) -> Operand:
        self.announce(MAP, ENTRY, len(node.entries))
        pairs = []
        for entry in node.entries:
            if entry.optional:
                raise Unsupported
            pairs.append(f"({self.value(entry.key)}, {self.value(entry.value)})")
        self.writer.charge(MAP_COST)
        map_class = self.writer.name(MapValue)
        return Operand(self.writer.temp(f"{map_class}([{', '.join(pairs)}])"), "value")

    # Attributes

    def attribute(self, node: Expr) -> Operand:
        """An identifier with its selections and indices. Charges for the latter, but not for the attribute itself."""
        match node:
            case Ident():
                return self.look_up(node.name)
            case Select() if node not in self.constants.values:
                return self.selected(self.attribute(node.operand), node)
            case Call(function="_[_]") if node not in self.constants.values:
                return self.element(self.attribute(node.args[0]), node)
            case Call(function="_?_:_"):
                raise Unsupported
        return self.expression(node)

    def look_up(self, name: str) -> Operand:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name not in self.variables:
            raise Unsupported
        return self.writer.load(_VARIABLES[name], self.schema, (name,))

    def selected(self, container: Operand, node: Select) -> Operand:
        writer = self.writer
        writer.charge(1)
        if container.kind != "raw":
            if node.test or is_optional(node.operand.type):
                raise Unsupported
            return self.selected_value(writer.as_value(container), repr(node.field))
        schema = container.schema
        assert schema is not None
        name = unescape(node.field) if schema.properties else node.field
        inner = schema.properties.get(name) if schema.properties and name is not None else schema.values
        if inner is None or schema.type != "object":
            raise Unsupported
        if node.test:
            return self.present(container, repr(name), inner, _step_into(container, name))
        return writer.load(f"{container.code}[{name!r}]", inner, _step_into(container, name))

    def present(self, container: Operand, key: str, inner: Structural, path: Path) -> Operand:
        assert container.schema is not None
        ambiguous = "" if container.schema.properties else f"{key} in {container.code}"  # null is a value of a map
        return Operand(self.writer.load_if_present(f"{container.code}.get({key})", inner, path, ambiguous), "bool")

    def element(self, container: Operand, node: Call) -> Operand:
        index_node = node.args[1]
        if is_attribute(index_node) and index_node not in self.constants.values:
            index = self.attribute(index_node)
        else:
            index = self.expression(index_node)
        writer = self.writer
        writer.charge(1)
        if container.kind == "value":
            if is_optional(node.args[0].type):
                raise Unsupported
            return self.selected_value(container.code, writer.as_value(index))
        inner = container.schema
        assert inner is not None
        if container.kind == "raw":
            inner = inner.items if inner.type == "array" else None if inner.properties else inner.values
        if inner is None:
            raise Unsupported
        if container.schema is not None and container.kind == "raw" and container.schema.type == "object":
            key = writer.as_kind(index, "str")
        else:
            key = writer.as_kind(index, "int")
            writer.fall_back_if(f"{key} < 0")
        step = index.constant if index.constant is not None else (index.code, *index.path)
        return writer.load(f"{container.code}[{key}]", inner, _step_into(container, step))

    def selected_value(self, container: str, key: str) -> Operand:
        self.writer.allocates = True
        return Operand(self.writer.temp(f"{self.writer.name(select)}({container}, {key}, presence=False)"), "value")

    # Calls

    def call(self, node: Call) -> Operand:
        match node.function:
            case "_&&_" | "_||_":
                return self.logic(node)
            case "_==_" | "_!=_":
                return self.equality(node)
            case "@in":
                return self.membership(node)
        if node.function in _UNSUPPORTED or any(is_optional(arg.type) for arg in node.operands):
            raise Unsupported
        args = [self.expression(arg) for arg in node.operands]
        inline = INLINED.get(node.overloads[0]) if len(node.overloads) == 1 else None
        result = inline(self.writer, args) if inline else None
        return result or self.function_call(node, args)

    def function_call(self, node: Call, args: list[Operand]) -> Operand:
        """A call of the function's implementation."""
        writer = self.writer
        function = self.environment.functions[node.function]
        run = writer.name(function.implementation(node.overloads))
        return self.charged_call(node, run, [writer.as_value(arg) for arg in args])

    def charged_call(self, node: Call, run: str, args: list[str]) -> Operand:
        """A call of the Python function that `run` names, and of the function that computes its cost."""
        writer = self.writer
        writer.allocates = True
        cost = call_cost(node.function, node.overloads, self.environment.release)
        if cost is nominal:
            writer.charge(1)
            return Operand(writer.temp(f"{run}({', '.join(args)})"), "value")
        args = [writer.temp(arg) for arg in args]
        if cost in CHECKED_BEFORE_CALL:
            writer.charge(f"{writer.name(cost)}([{', '.join(args)}], None)")
            writer.check_limit()
            return Operand(writer.temp(f"{run}({', '.join(args)})"), "value")
        result = writer.temp(f"{run}({', '.join(args)})")
        writer.charge(f"{writer.name(cost)}([{', '.join(args)}], {result})")
        return Operand(result, "value")

    def logic(self, node: Call) -> Operand:
        writer = self.writer
        result = writer.temp(self.truth(node.args[0]))
        with writer.block(f"if {result}:" if node.function == "_&&_" else f"if not {result}:"):
            writer.emit(f"{result} = {self.truth(node.args[1])}")
        return Operand(result, "bool")

    def conditional(self, node: Call) -> Operand:
        writer = self.writer
        kind = _STATIC_KINDS.get(node.type, "value")
        condition, result = self.truth(node.args[0]), writer.temp()
        for header, branch in ((f"if {condition}:", node.args[1]), ("else:", node.args[2])):
            with writer.block(header):
                operand = self.branch(branch)
                writer.emit(
                    f"{result} = {writer.as_value(operand) if kind == 'value' else writer.as_kind(operand, kind)}"
                )
        return Operand(result, kind)

    def branch(self, node: Expr) -> Operand:
        """A branch of a conditional. If it is an attribute, it is part of the conditional's, and not charged itself."""
        if node in self.constants.values or not is_attribute(node):
            return self.expression(node)
        if isinstance(node, Call) and node.function == "_?_:_":
            return self.conditional(node)
        return self.attribute(node)

    def equality(self, node: Call) -> Operand:
        writer = self.writer
        args = [self.expression(arg) for arg in node.args]
        sign = "==" if node.function == "_==_" else "!="
        operand = equality(writer, args, sign)
        if operand is None:
            allocates = writer.allocates
            operand = self.charged_call(node, writer.name(equal), [writer.as_value(arg) for arg in args])
            if any(
                arg.kind in SCALARS for arg in args
            ):  # then nothing but texts is compared, which costs what it takes
                writer.allocates = allocates
            operand = Operand(operand.code if sign == "==" else f"(not {operand.code})", "bool")
        return operand

    def membership(self, node: Call) -> Operand:
        writer = self.writer
        value = self.expression(node.args[0])
        if node in self.constants.members:  # only the value is charged
            members = self.constants.members[node]
            if value.kind in ("str", "int") and {type(member).__name__ for member in members} == {value.kind}:
                return Operand(f"({value.code} in {writer.name(frozenset(members))})", "bool")
            return Operand(f"{writer.name(is_member)}({writer.as_value(value)}, {writer.name(members)})", "bool")
        container = self.expression(node.args[1])
        if container.kind == "raw" and container.schema is not None and value.kind in ("str", "int"):
            items, values = container.schema.items, container.schema.values
            if values is not None and not container.schema.properties and value.kind == "str":
                writer.charge(1)
                return self.present(container, value.code, values, _step_into(container, (value.code, *value.path)))
            if items is not None and _scalar_kind(items) == value.kind:
                writer.charge(f"len({container.code})")
                only = writer.name(frozenset({str if value.kind == "str" else int}))
                writer.fall_back_if(f"not {only}.issuperset(map(type, {container.code}))")
                return Operand(f"({value.code} in {container.code})", "bool")
        return self.function_call(node, [value, container])

    # Macros

    def comprehension(self, node: Comprehension) -> Operand:
        macro = _MACROS.get(node.macro)
        if macro is None:
            raise Unsupported
        items = self.expression(node.range)
        result = macro(self, node, items)
        self.writer.charge(1)  # @result
        return result

    def loop_header(self, node: Comprehension, items: Operand) -> tuple[str, list[tuple[str, str, Structural | None]]]:
        """The line that begins a loop, and its variables: (name, code, schema)."""
        writer = self.writer
        first, second = writer.temp(), writer.temp()
        two = bool(node.variable2)
        if items.kind == "value":
            writer.allocates = True
            run = f"{writer.name(entries)}({items.code}, two={two})"
            return f"for {first}, {second} in {run}:", [(node.variable, first, None), (node.variable2, second, None)]
        schema = items.schema
        assert schema is not None
        is_map = items.kind == "raw" and schema.type == "object"
        inner = schema if items.kind == "items" else schema.values if is_map else schema.items
        if inner is None or (is_map and schema.properties):
            raise Unsupported
        if two:
            run = f"{items.code}.items()" if is_map else f"enumerate({items.code})"
            return f"for {first}, {second} in {run}:", [(node.variable, first, None), (node.variable2, second, inner)]
        return f"for {first} in {items.code}:", [(node.variable, first, None if is_map else inner)]

    def enter_scope(self, variables: list[tuple[str, str, Structural | None]], items: Operand) -> None:
        """Check the values of a loop's variables and make them known."""
        scope: dict[str, Operand] = {}
        writer = self.writer
        for name, code, schema in variables:
            if not name:
                continue
            if schema is not None:
                scope[name] = writer.check(code, schema, (code,))
            else:
                is_key = items.kind == "raw" and items.schema.type == "object"  # type: ignore[union-attr]
                is_index = items.kind != "value" and not is_key
                if items.kind == "value":
                    writer.fall_back_if(f"{code}.__class__ is {writer.name(FailedConversion)}")
                scope[name] = Operand(code, "int" if is_index else "str" if is_key else "value", path=(code,))
        self.scopes.append(scope)

    def quantifier(self, node: Comprehension, items: Operand) -> Operand:
        """all and exists. Every iteration evaluates the condition first, @not_strictly_false(@result)."""
        writer = self.writer
        is_all = node.macro == "all"
        condition_cost = 2 if is_all else 3  # exists negates @result
        assert isinstance(node.step, Call)
        result = writer.temp(str(is_all))
        header, variables = self.loop_header(node, items)
        with writer.loop(header):
            with writer.block(f"if not {result}:" if is_all else f"if {result}:"):
                writer.counts_cost = True
                writer.emit(f"c += {condition_cost}; break")
            writer.charge(condition_cost + 1)  # 1 for @result in the step
            self.enter_scope(variables, items)
            writer.emit(f"{result} = {self.truth(node.step.args[1])}")
            self.scopes.pop()
        return Operand(result, "bool")

    def exists_one(self, node: Comprehension, items: Operand) -> Operand:
        writer = self.writer
        assert isinstance(node.step, Call)
        count = writer.temp("0")
        header, variables = self.loop_header(node, items)
        with writer.loop(header):
            self.enter_scope(variables, items)
            with writer.block(f"if {self.truth(node.step.args[0])}:"):
                writer.charge(2)
                writer.emit(f"{count} += 1")
            self.scopes.pop()
        writer.charge(1)
        return Operand(f"({count} == 1)", "bool")

    def list_macro(self, node: Comprehension, items: Operand) -> Operand:
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
        header, variables = self.loop_header(node, items)
        with writer.loop(header):
            self.enter_scope(variables, items)
            if where is not None:
                with writer.block(f"if {self.truth(where)}:"):
                    element = self.append(added, result)
            else:
                element = self.append(added, result)
            self.scopes.pop()
        return Operand(result, "items", element.schema) if element.kind == "raw" else Operand(result, "value")

    def append(self, added: ListLiteral, result: str) -> Operand:
        """`@result + [element]`, where `added` is the list; returns the element."""
        operand = self.expression(added.elements[0])
        self.writer.charge(1 + (0 if added in self.constants.values else LIST_COST) + 1)  # @result, the list, "+"
        self.writer.emit(f"{result}.append({operand.code})")
        return operand


_MACROS: Final[dict[str, Callable[[_Generator, Comprehension, Operand], Operand]]] = {
    "all": _Generator.quantifier,
    "exists": _Generator.quantifier,
    "exists_one": _Generator.exists_one,
    "map": _Generator.list_macro,
    "filter": _Generator.list_macro,
    "transformList": _Generator.list_macro,
}


def _step_into(container: Operand, step: object) -> Path:
    """The path to which a step leads."""
    return (*(container.path or (container.code,)), step)


def _scalar_kind(schema: Structural) -> Kind | None:
    """str or int, if the interpreter's values of that schema are those of the JSON."""
    if schema.int_or_string:
        return None
    if schema.type == "integer":
        return "int"
    return "str" if schema.type == "string" and schema.validation.format not in FORMAT_READERS else None
