"""The interpreter: evaluates a checked expression exactly as cel-go's does, with its errors, costs and peculiarities.

An error is an exception here and a value in cel-go: `||`, `&&` and the comprehensions of macros absorb it. Costs are charged
where cel-go's observer sees a value. So the order of the charges matters as well: it decides at which point an expression
exceeds its limit.

    self.a.b <= 3            3 for the attribute self.a.b, 1 for the comparison: 4
    self.l.all(x, x > 0)     2 for self.l, then for each element 1 for @result, 1 for @not_strictly_false(…) and 2 for
                             x > 0 and 1 for @result in the step, and at the end 1 for @result
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

from noxu.cel import memory
from noxu.cel.checking.environment import Environment
from noxu.cel.cost.runtime import CHECKED_BEFORE_CALL, LIST_COST, MAP_COST, MESSAGE_COST, CallCost, call_cost
from noxu.cel.errors import Cancelled, CelError, CostExceeded, no_such_overload, shortened
from noxu.cel.evaluation.constants import PATTERN_FUNCTIONS, Constants, check_qualifier, is_member
from noxu.cel.evaluation.selection import AttributePlan, Qualifier, entries, is_attribute, plan_attribute, select
from noxu.cel.memory import ELEMENT, ENTRY, LIST, MAP, Memory
from noxu.cel.syntax.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Select,
)
from noxu.cel.values import equality
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import ABSENT, LISTS, MAPS, NONE, Accumulating, FailedConversion, MapValue, Optional, Value
from noxu.cpu_budget import CHECK_INTERVAL, CURRENT, CpuBudget


class EvaluationResult(NamedTuple):
    """The value of an evaluation, or the message of its error; and its cost."""

    value: Value
    error: str | None
    cost: int


def evaluate(
    tree: Expr,
    environment: Environment,
    constants: Constants,
    variables: Mapping[str, Value],
    limit: int,
    cpu_budget: CpuBudget | None = None,
    allowed: Memory | None = None,
) -> EvaluationResult:
    """Evaluate an expression at a cost of at most `limit`. `variables` may contain `Failed` values.

    `allowed` is the memory that it shares with others. Raises what `cpu_budget` raises, unless that is a Cancelled.
    """
    allowed = allowed or Memory(cpu_budget)
    interpreter = _Interpreter(environment, constants, variables, limit, cpu_budget, allowed)
    token, memory_token = CURRENT.set(cpu_budget), memory.CURRENT.set(allowed)
    try:
        value = interpreter.evaluate(tree, None)
    except (CelError, Cancelled) as error:
        return EvaluationResult(None, shortened(_untraced(error).message), interpreter.cost)
    finally:
        CURRENT.reset(token)
        memory.CURRENT.reset(memory_token)
    return EvaluationResult(value, None, interpreter.cost)


class _Scope:
    """The variables of a comprehension. The accumulator's initial value is evaluated when it is first used."""

    __slots__ = ("accumulator", "node", "parent", "started", "variables")

    def __init__(self, node: Comprehension, parent: _Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.variables: dict[str, Value] = {}
        self.accumulator: Value = None
        self.started = False


class CallPlan(NamedTuple):
    """How a call is evaluated. `in_turn`: an error in one argument keeps the next from being evaluated."""

    run: Callable[..., Value]
    cost: CallCost
    in_turn: bool


E = TypeVar("E", bound=Exception)
_Handler: TypeAlias = Callable[["_Interpreter", Expr, "_Scope | None"], Value]


_NO_CONSTANT: Final = object()


class _Interpreter:
    """One evaluation. `cost` is its cost so far, `next_check` the cost at which limits are checked again."""

    def __init__(
        self,
        environment: Environment,
        constants: Constants,
        variables: Mapping[str, Value],
        limit: int,
        cpu_budget: CpuBudget | None,
        allowed: Memory,
    ) -> None:
        self.allocate = allowed.allocate
        self.environment = environment
        self.constants = constants.values
        self.members = constants.members
        self.call_plans = constants.call_plans
        self.attribute_plans = constants.attribute_plans
        self.variables = variables
        self.limit = limit
        self.cpu_budget = cpu_budget
        self.next_check = limit if cpu_budget is None else min(limit, CHECK_INTERVAL)
        self.cost = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.next_check:
            self.check_limits()

    def check_limits(self) -> None:
        if self.cost > self.limit or self.cpu_budget is None:
            raise CostExceeded
        self.cpu_budget.check()
        self.next_check = min(self.limit, self.cost + CHECK_INTERVAL)

    def check_upcoming(self, cost: int) -> None:
        """Refuse an operation of that cost before it begins if it would exceed a limit."""
        if self.cost + cost > self.limit:
            self.charge(cost)
        if self.cpu_budget is not None:
            self.cpu_budget.check(cost)

    def evaluate(self, node: Expr, scope: _Scope | None) -> Value:
        constant = self.constants.get(node, _NO_CONSTANT)
        return _HANDLERS[type(node)](self, node, scope) if constant is _NO_CONSTANT else constant

    def attempt(self, node: Expr, scope: _Scope | None) -> tuple[Value, CelError | None]:
        """A value or an error."""
        try:
            return self.evaluate(node, scope), None
        except CelError as error:
            return None, _untraced(error)

    # Attributes

    def attribute(self, node: Expr, scope: _Scope | None) -> Value:
        plan = self.attribute_plans.get(node) or self.planned_attribute(node)
        try:
            value = self.resolve(node, [], scope)
        except CelError:
            self.charge(plan.cost)
            raise
        self.charge(plan.cost)
        return value

    def planned_attribute(self, node: Expr) -> AttributePlan:
        plan = self.attribute_plans[node] = plan_attribute(node, self.constants)
        return plan

    def resolve(self, node: Expr, qualifiers: list[Qualifier], scope: _Scope | None) -> Value:
        """The value of an attribute to which more `qualifiers` apply, the last one first.

        A conditional passes its qualifiers on to the branch that it chooses, if that is an attribute as well:

            (c ? self.a : 'x').b   with c true   →   resolve self with b, a; with c false   →   select b of 'x'
        """
        while True:
            plan = self.attribute_plans.get(node) or self.planned_attribute(node)
            qualifiers += plan.qualifiers
            node = plan.base
            if plan.name:
                return self.qualify(self.look_up(plan.name, scope), qualifiers, scope, plan.qualifier_cost)
            if not isinstance(node, Call) or node.function != "_?_:_" or node in self.constants:
                return self.qualify(self.evaluate(node, scope), qualifiers, scope)
            chosen = node.args[1] if self.condition(node.args[0], scope) else node.args[2]
            if chosen in self.constants or not is_attribute(chosen):
                return self.qualify(self.evaluate(chosen, scope), qualifiers, scope)
            node = chosen

    def condition(self, node: Expr, scope: _Scope | None) -> bool:
        value = self.evaluate(node, scope)
        if type(value) is not bool:
            raise no_such_overload()
        return value

    def qualify(self, value: Value, qualifiers: list[Qualifier], scope: _Scope | None, cost: int = 1) -> Value:
        """Apply qualifiers, the last one first. Once a value or a qualifier is optional, the result is."""
        optional = isinstance(value, Optional)
        if optional:
            if value.value is ABSENT:
                return value if not qualifiers or not qualifiers[0].test else False
            value = value.value
        while qualifiers:
            qualifier = qualifiers.pop()
            optional = optional or qualifier.optional
            key = qualifier.key
            if qualifier.key_node is not None:
                try:
                    key = self.key(qualifier.key_node, scope)
                except CelError:
                    if not optional:
                        self.charge(cost)
                    raise
            if not optional:
                self.charge(cost)
                selected = select(value, key, presence=qualifier.test)
                if qualifier.test:
                    return selected is not ABSENT
            else:
                selected = select(value, key, presence=True)
                if selected is ABSENT:
                    return False if qualifier.test or (qualifiers and qualifiers[0].test) else NONE
                self.charge(cost)
                if qualifier.test:
                    return True
            value = selected
        return Optional(value) if optional else value

    def key(self, node: Expr, scope: _Scope | None) -> Value:
        key = self.resolve(node, [], scope) if is_attribute(node) else self.evaluate(node, scope)
        check_qualifier(key)
        return key

    def look_up(self, name: str, scope: _Scope | None) -> Value:
        while scope is not None:
            if name == scope.node.accumulator:
                value = self.accumulator(scope)
                break
            if name in scope.variables:
                value = scope.variables[name]
                break
            scope = scope.parent
        else:
            value = self.variables.get(name.removeprefix("."), ABSENT)
            if value is ABSENT:
                raise CelError(f"no such attribute(s): {name.removeprefix('.')}")
        if isinstance(value, FailedConversion):
            raise CelError(value.message)
        return value

    def accumulator(self, scope: _Scope) -> Value:
        if not scope.started:
            scope.started = True
            value, error = self.attempt(scope.node.initial, scope.parent)
            if error is not None:
                value = FailedConversion(error.message)
            elif isinstance(value, LISTS) and not len(value):
                value = Accumulating()
            elif isinstance(value, MAPS) and not len(value):
                value = MapValue()
            scope.accumulator = value
        return scope.accumulator

    # Calls

    def call(self, node: Call, scope: _Scope | None) -> Value:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node, scope)
        if self.members and node in self.members:
            return is_member(self.evaluate(node.args[0], scope), self.members[node])
        plan = self.call_plans.get(node)
        if plan is None:
            plan = self.call_plans[node] = self.plan_call(node)
        run, cost, in_turn = plan
        operands = node.operands
        args: list[Value] = []
        failed: CelError | None = None
        for operand in operands:
            try:
                args.append(self.evaluate(operand, scope))
            except CelError as error:
                args.append(_untraced(error))
                failed = failed or error
                if in_turn:
                    break
        if failed is not None:
            if len(args) == len(operands):
                self.charge(cost(args, failed))
            raise failed
        upcoming_cost: int | None = None
        if cost in CHECKED_BEFORE_CALL:
            upcoming_cost = cost(args, None)
            self.check_upcoming(upcoming_cost)
        try:
            if node.function == "_+_" and type(args[0]) is Accumulating and isinstance(args[1], LISTS):
                args[0].extend(args[1])
                result: Value = args[0]
            else:
                result = run(*args)
        except CelError as error:
            self.charge(cost(args, error) if upcoming_cost is None else upcoming_cost)
            raise
        self.charge(cost(args, result) if upcoming_cost is None else upcoming_cost)
        return result

    def plan_call(self, node: Call) -> CallPlan:
        """cel-go evaluates up to two arguments before it looks for errors; those of some functions, and more than two, in turn."""
        function = self.environment.functions[node.function]
        operands = node.operands
        dispatched = function.singleton is None and len(node.overloads) != 1 and len(function.overloads) > 1
        constant_pattern = node.function in PATTERN_FUNCTIONS and operands[1] in self.constants
        in_turn = len(operands) > 2 or node.function == "format" or dispatched or constant_pattern
        run = function.implementation(node.overloads)
        if constant_pattern:
            run = _on_text(run)
        return CallPlan(run, call_cost(node.function, node.overloads, self.environment.release), in_turn)

    def logic(self, node: Call, scope: _Scope | None) -> Value:
        decisive = node.function == "_||_"
        failed: CelError | None = None
        for term in node.args:
            value, error = self.attempt(term, scope)
            if value is decisive:
                return decisive
            if type(value) is not bool:
                failed = failed or error or no_such_overload()
        if failed is not None:
            raise failed
        return not decisive

    def equality(self, node: Call, scope: _Scope | None) -> Value:
        left, left_error = self.attempt(node.args[0], scope)
        right, right_error = self.attempt(node.args[1], scope)
        error = left_error or right_error
        result = False
        if error is None:
            try:
                result = equality.equal(left, right)
            except CelError as incomparable:
                if node.function == "_==_":
                    error = _untraced(incomparable)
        cost = call_cost(node.function, node.overloads, self.environment.release)
        self.charge(cost([left_error or left, right_error or right], None))
        if error is not None:
            raise error
        return result is (node.function == "_==_")

    def not_strictly_false(self, node: Call, scope: _Scope | None) -> Value:
        value, _ = self.attempt(node.args[0], scope)
        self.charge(1)
        return value is not False

    def optional_or(self, node: Call, scope: _Scope | None) -> Value:
        assert node.target is not None
        value = self.evaluate(node.target, scope)
        if not isinstance(value, Optional):
            raise no_such_overload()
        if value.value is ABSENT:
            return self.evaluate(node.args[0], scope)
        return value if node.function == "or" else value.value

    # Literals and comprehensions

    def list_literal(self, node: ListLiteral, scope: _Scope | None) -> Value:
        self.allocate(LIST + ELEMENT * len(node.elements))
        out: list[Value] = []
        try:
            for n, element in enumerate(node.elements):
                value = self.evaluate(element, scope)
                if n in node.optional:
                    value = _unwrap(value, "list element")
                if value is not ABSENT:
                    out.append(value)
        except CelError:
            self.charge(LIST_COST)
            raise
        self.charge(LIST_COST)
        return out

    def map_literal(self, node: MapLiteral, scope: _Scope | None) -> Value:
        self.allocate(MAP + ENTRY * len(node.entries))
        out = MapValue()
        try:
            for entry in node.entries:
                key = self.evaluate(entry.key, scope)
                value = self.evaluate(entry.value, scope)
                if entry.optional:
                    value = _unwrap(value, f"entry '{go_value(key)}'")
                if value is ABSENT:
                    out.remove(key)
                else:
                    out.set(key, value)
        except CelError:
            self.charge(MAP_COST)
            raise
        self.charge(MAP_COST)
        return out

    def message(self, node: Message, scope: _Scope | None) -> Value:
        self.allocate(MAP + ENTRY * len(node.entries))
        fields: dict[str, Value] = {}
        try:
            for entry in node.entries:
                assert isinstance(entry.key, Literal)
                name = str(entry.key.value)
                value = self.evaluate(entry.value, scope)
                if entry.optional:
                    value = _unwrap(value, f"entry '{name}'")
                fields[name] = value
                if value is ABSENT:
                    del fields[name]
            message_type = self.environment.messages(node.name)
            assert message_type is not None
            result = message_type.make(fields)
        except CelError:
            self.charge(MESSAGE_COST)
            raise
        self.charge(MESSAGE_COST)
        return result

    def comprehension(self, node: Comprehension, scope: _Scope | None) -> Value:
        items = self.evaluate(node.range, scope)
        inner = _Scope(node, scope)
        for first, second in entries(items, two=bool(node.variable2)):
            inner.variables[node.variable] = first
            if node.variable2:
                inner.variables[node.variable2] = second
            proceed, _ = self.attempt(node.condition, inner)
            if proceed is False:
                break
            value, error = self.attempt(node.step, inner)
            inner.accumulator = value if error is None else FailedConversion(error.message)
            inner.started = True
        inner.variables.clear()
        result = self.evaluate(node.result, inner)
        return list(result) if type(result) is Accumulating else result


def _untraced(error: E) -> E:
    """An error without the frames that raised it, or the one before it: they refer to it, and to what they made."""
    error.__traceback__ = error.__context__ = None
    return error


def _unwrap(value: Value, place: str) -> Value:
    """The value that a `?element` adds to a literal: that of the optional, ABSENT if it is empty."""
    if not isinstance(value, Optional):
        raise CelError(f"cannot initialize optional {place} from non-optional value {go_value(value)}")
    return value.value


def _on_text(run: Callable[..., Value]) -> Callable[..., Value]:
    """A function with a constant pattern: cel-go checks only that its first argument is a string."""

    def call(*args: Value) -> Value:
        if type(args[0]) is not str:
            raise no_such_overload()
        return run(*args)

    return call


_SPECIAL: Final[dict[str, _Handler]] = {
    "_&&_": _Interpreter.logic,  # type: ignore[dict-item]
    "_||_": _Interpreter.logic,  # type: ignore[dict-item]
    "_==_": _Interpreter.equality,  # type: ignore[dict-item]
    "_!=_": _Interpreter.equality,  # type: ignore[dict-item]
    "@not_strictly_false": _Interpreter.not_strictly_false,  # type: ignore[dict-item]
    "or": _Interpreter.optional_or,  # type: ignore[dict-item]
    "orValue": _Interpreter.optional_or,  # type: ignore[dict-item]
    "_?_:_": _Interpreter.attribute,
    "_[_]": _Interpreter.attribute,
    "_[?_]": _Interpreter.attribute,
    "_?._": _Interpreter.attribute,
}
_HANDLERS: Final[dict[type, _Handler]] = {
    Ident: _Interpreter.attribute,
    Select: _Interpreter.attribute,
    Call: _Interpreter.call,  # type: ignore[dict-item]
    ListLiteral: _Interpreter.list_literal,  # type: ignore[dict-item]
    MapLiteral: _Interpreter.map_literal,  # type: ignore[dict-item]
    Message: _Interpreter.message,  # type: ignore[dict-item]
    Comprehension: _Interpreter.comprehension,  # type: ignore[dict-item]
}
