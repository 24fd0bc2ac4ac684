"""The exact walker: evaluates a checked expression as cel-go's interpreter does, errors, costs and corners included.

An error is an exception here, a value there; `||`, `&&` and what macros build of them absorb it. Costs are counted
where cel-go's observer counts them: 1 for an identifier with all its selections, 1 for each selection — so that a
chain `self.a.b` is one attribute with two qualifiers, and costs 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from apiserver.cel import equality
from apiserver.cel.ast import (
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
from apiserver.cel.constants import PATTERN_FUNCTIONS, Constants, check_qualifier, is_member
from apiserver.cel.conversions import go_type, go_value
from apiserver.cel.environment import Environment
from apiserver.cel.errors import PATIENCE, PATIENCE_STEP, Cancelled, CelError, CostExceeded, Patience, no_such_overload
from apiserver.cel.numbers import Uint
from apiserver.cel.spending import FORESEEN, LIST_COST, MAP_COST, MESSAGE_COST, CallCost, call_cost
from apiserver.cel.values import (
    ABSENT,
    LISTS,
    MAPS,
    NONE,
    Accumulating,
    Failed,
    JsonList,
    JsonObject,
    LazyMap,
    MapValue,
    Opaque,
    Optional,
    UntypedMap,
    Value,
    from_json_or_failed,
    type_of,
)


class Outcome(NamedTuple):
    """What an evaluation gave: a value, or the message of an error; and what it cost."""

    value: Value
    error: str | None
    cost: int


def evaluate(
    tree: Expr,
    environment: Environment,
    constants: Constants,
    variables: Mapping[str, Value],
    limit: int,
    patience: Patience | None = None,
) -> Outcome:
    """`variables` may hold `Failed` for values that cannot be converted."""
    walker = _Walker(environment, constants, variables, limit, patience)
    before = PATIENCE.set(patience)
    try:
        value = walker.evaluate(tree, None)
    except CelError as error:
        return Outcome(None, error.message, walker.cost)
    except Cancelled as cancelled:
        return Outcome(None, cancelled.message, walker.cost)
    finally:
        PATIENCE.reset(before)
    return Outcome(value, None, walker.cost)


class _Scope:
    """The names of one comprehension. Its accumulator is evaluated when it is first looked at."""

    __slots__ = ("accumulator", "node", "parent", "started", "variables")

    def __init__(self, node: Comprehension, parent: _Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.variables: dict[str, Value] = {}
        self.accumulator: Value = None
        self.started = False


class _Qualifier(NamedTuple):
    """A step of an attribute: a field (constant) or an index (an expression); `test` is has()."""

    key: Value
    place: Expr | None
    optional: bool
    test: bool = False


class _Chain(NamedTuple):
    """An attribute: what it begins with (`name` if that is an identifier), and its qualifiers, last one first.

    `cost` is that of the attribute itself, `price` that of each qualifier.
    """

    base: Expr
    name: str
    qualifiers: tuple[_Qualifier, ...]
    cost: int
    price: int


CallPlan: TypeAlias = tuple[Callable[..., Value], CallCost, bool]
_Handler: TypeAlias = Callable[["_Walker", Expr, "_Scope | None"], Value]


_NO_CONSTANT: Final = object()


class _Walker:
    def __init__(
        self,
        environment: Environment,
        constants: Constants,
        variables: Mapping[str, Value],
        limit: int,
        patience: Patience | None,
    ) -> None:
        self.environment = environment
        self.constants = constants.values
        self.members = constants.members
        self.calls = constants.calls
        self.chains = constants.chains
        self.variables = variables
        self.limit = limit
        self.patience = patience
        self.pause = limit if patience is None else min(limit, PATIENCE_STEP)
        self.cost = 0

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.pause:
            self.breathe()

    def foresee(self, cost: int) -> None:
        """What costs that much is not even begun if it may not."""
        if self.cost + cost > self.limit:
            self.spend(cost)
        if self.patience is not None:
            self.patience.check(cost)

    def breathe(self) -> None:
        if self.cost > self.limit or self.patience is None:
            raise CostExceeded
        self.patience.check()
        self.pause = min(self.limit, self.cost + PATIENCE_STEP)

    def evaluate(self, node: Expr, scope: _Scope | None) -> Value:
        constant = self.constants.get(node, _NO_CONSTANT)
        return _HANDLERS[type(node)](self, node, scope) if constant is _NO_CONSTANT else constant

    def attempt(self, node: Expr, scope: _Scope | None) -> tuple[Value, CelError | None]:
        """A value or an error."""
        try:
            return self.evaluate(node, scope), None
        except CelError as error:
            return None, error

    # Attributes

    def attribute(self, node: Expr, scope: _Scope | None) -> Value:
        chain = self.chains.get(node) or self.chained(node)
        try:
            value = self.resolve(node, [], scope)
        except CelError:
            self.spend(chain.cost)
            raise
        self.spend(chain.cost)
        return value

    def resolve(self, node: Expr, qualifiers: list[_Qualifier], scope: _Scope | None) -> Value:
        """The value of an attribute with `qualifiers` behind it (last one first)."""
        while True:
            chain = self.chains.get(node) or self.chained(node)
            qualifiers += chain.qualifiers
            node = chain.base
            if chain.name:
                return self.qualify(self.look_up(chain.name, scope), qualifiers, scope, chain.price)
            if not isinstance(node, Call) or node.function != "_?_:_" or node in self.constants:
                return self.qualify(self.evaluate(node, scope), qualifiers, scope)
            chosen = node.args[1] if self.condition(node.args[0], scope) else node.args[2]
            if chosen in self.constants or not is_attribute(chosen):
                return self.qualify(self.evaluate(chosen, scope), qualifiers, scope)
            node = chosen

    def chained(self, node: Expr) -> _Chain:
        cost = (0 if _is_conditional(node) else 1) - (1 if isinstance(node, Select) and node.test else 0)
        base, qualifiers = node, []
        while base not in self.constants:
            match base:
                case Select():
                    qualifiers.append(_Qualifier(base.field, None, False, base.test))
                    base = base.operand
                    continue
                case Call(function="_[_]" | "_[?_]" | "_?._"):
                    index, optional = base.args[1], base.function != "_[_]"
                    constant = index in self.constants
                    key, place = (self.constants[index], None) if constant else (None, index)
                    qualifiers.append(_Qualifier(key, place, optional))
                    base = base.args[0]
                    continue
            break
        name = base.name if isinstance(base, Ident) and base not in self.constants else ""
        price = 0 if name.startswith(".") else 1  # cel-go loses count of disambiguated names
        chain = self.chains[node] = _Chain(base, name, tuple(qualifiers), cost, price)
        return chain

    def condition(self, node: Expr, scope: _Scope | None) -> bool:
        value = self.evaluate(node, scope)
        if type(value) is not bool:
            raise no_such_overload()
        return value

    def qualify(self, value: Value, qualifiers: list[_Qualifier], scope: _Scope | None, price: int = 1) -> Value:
        optional = isinstance(value, Optional)
        if optional:
            if value.value is ABSENT:
                return value if not qualifiers or not qualifiers[0].test else False
            value = value.value
        while qualifiers:
            one = qualifiers.pop()
            optional = optional or one.optional
            key = one.key
            if one.place is not None:
                try:
                    key = self.index(one.place, scope)
                except CelError:
                    if not optional:
                        self.spend(price)
                    raise
            if not optional:
                self.spend(price)
                found = select(value, key, presence=one.test)
                if one.test:
                    return found is not ABSENT
            else:
                found = select(value, key, presence=True)
                if found is ABSENT:
                    return False if one.test or (qualifiers and qualifiers[0].test) else NONE
                self.spend(price)
                if one.test:
                    return True
            value = found
        return Optional(value) if optional else value

    def index(self, node: Expr, scope: _Scope | None) -> Value:
        key = self.resolve(node, [], scope) if is_attribute(node) else self.evaluate(node, scope)
        check_qualifier(key)
        return key

    def look_up(self, name: str, scope: _Scope | None) -> Value:
        while scope is not None:
            if name == scope.node.accumulator:
                value = self.accumulated(scope)
                break
            if name in scope.variables:
                value = scope.variables[name]
                break
            scope = scope.parent
        else:
            value = self.variables.get(name.removeprefix("."), ABSENT)
            if value is ABSENT:
                raise CelError(f"no such attribute(s): {name.removeprefix('.')}")
        if isinstance(value, Failed):
            raise CelError(value.message)
        return value

    def accumulated(self, scope: _Scope) -> Value:
        if not scope.started:
            scope.started = True
            value, error = self.attempt(scope.node.initial, scope.parent)
            if error is not None:
                value = Failed(error.message)
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
        plan = self.calls.get(node)
        if plan is None:
            plan = self.calls[node] = self.planned(node)
        run, price, in_turn = plan
        operands = node.operands
        args: list[Value] = []
        failed: CelError | None = None
        for operand in operands:
            try:
                args.append(self.evaluate(operand, scope))
            except CelError as error:
                args.append(error)
                failed = failed or error
                if in_turn:
                    break
        if failed is not None:
            if len(args) == len(operands):
                self.pay(price, args, failed)
            raise failed
        if price in FORESEEN:
            self.foresee(price(args, None))
        try:
            if node.function == "_+_" and type(args[0]) is Accumulating and isinstance(args[1], LISTS):
                args[0].extend(args[1])
                result: Value = args[0]
            else:
                result = run(*args)
        except CelError as error:
            self.pay(price, args, error)
            raise
        self.pay(price, args, result)
        return result

    def planned(self, node: Call) -> CallPlan:
        """cel-go evaluates up to two arguments before it looks for errors, more of them (and some) in turn."""
        function = self.environment.functions[node.function]
        operands = node.operands
        dispatched = function.singleton is None and len(node.overloads) != 1 and len(function.overloads) > 1
        constant_pattern = node.function in PATTERN_FUNCTIONS and operands[1] in self.constants
        in_turn = len(operands) > 2 or node.function == "format" or dispatched or constant_pattern
        run = function.implementation(node.overloads)
        if constant_pattern:
            run = on_text(run)
        return run, call_cost(node.function, node.overloads), in_turn

    def pay(self, price: CallCost, args: list[Value], result: Value) -> None:
        self.spend(price(args, result))

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
                    error = incomparable
        self.pay(call_cost(node.function, node.overloads), [left_error or left, right_error or right], None)
        if error is not None:
            raise error
        return result is (node.function == "_==_")

    def not_strictly_false(self, node: Call, scope: _Scope | None) -> Value:
        value, _ = self.attempt(node.args[0], scope)
        self.spend(1)
        return value is not False

    def optional_or(self, node: Call, scope: _Scope | None) -> Value:
        assert node.target is not None
        value = self.evaluate(node.target, scope)
        if not isinstance(value, Optional):
            raise no_such_overload()
        if value.value is ABSENT:
            return self.evaluate(node.args[0], scope)
        return value if node.function == "or" else value.value

    # Literals and macros

    def list_literal(self, node: ListLiteral, scope: _Scope | None) -> Value:
        out: list[Value] = []
        try:
            for n, element in enumerate(node.elements):
                value = self.evaluate(element, scope)
                if n in node.optional:
                    value = _held(value, "list element")
                if value is not ABSENT:
                    out.append(value)
        except CelError:
            self.spend(LIST_COST)
            raise
        self.spend(LIST_COST)
        return out

    def map_literal(self, node: MapLiteral, scope: _Scope | None) -> Value:
        out = MapValue()
        try:
            for entry in node.entries:
                key = self.evaluate(entry.key, scope)
                value = self.evaluate(entry.value, scope)
                if entry.optional:
                    value = _held(value, f"entry '{go_value(key)}'")
                if value is ABSENT:
                    out.remove(key)
                else:
                    out.set(key, value)
        except CelError:
            self.spend(MAP_COST)
            raise
        self.spend(MAP_COST)
        return out

    def message(self, node: Message, scope: _Scope | None) -> Value:
        fields: dict[str, Value] = {}
        try:
            for entry in node.entries:
                assert isinstance(entry.key, Literal)
                name = str(entry.key.value)
                value = self.evaluate(entry.value, scope)
                if entry.optional:
                    value = _held(value, f"entry '{name}'")
                fields[name] = value
                if value is ABSENT:
                    del fields[name]
            known = self.environment.messages(node.name)
            assert known is not None
            made = known.make(fields)
        except CelError:
            self.spend(MESSAGE_COST)
            raise
        self.spend(MESSAGE_COST)
        return made

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
            inner.accumulator = value if error is None else Failed(error.message)
            inner.started = True
        inner.variables.clear()
        result = self.evaluate(node.result, inner)
        return list(result) if type(result) is Accumulating else result


def _held(value: Value, what: str) -> Value:
    """What a `?element` adds: ABSENT for nothing."""
    if not isinstance(value, Optional):
        raise CelError(f"cannot initialize optional {what} from non-optional value {go_value(value)}")
    return value.value


def on_text(run: Callable[..., Value]) -> Callable[..., Value]:
    """A function with a pattern known beforehand: it is asked for nothing but texts."""

    def call(*args: Value) -> Value:
        if type(args[0]) is not str:
            raise no_such_overload()
        return run(*args)

    return call


def is_attribute(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]", "_?._", "_?_:_")
    return isinstance(node, (Ident, Select))


def _is_conditional(node: Expr) -> bool:
    """Attributes that begin with a conditional are not counted themselves."""
    while True:
        match node:
            case Select():
                node = node.operand
            case Call(function="_[_]" | "_[?_]" | "_?._"):
                node = node.args[0]
            case Call(function="_?_:_"):
                return True
            case _:
                return False


def select(value: Value, key: Value, *, presence: bool) -> Value:
    """`value[key]`; ABSENT instead of an error if it is only looked for."""
    if isinstance(value, MAPS):
        found = value.find(key)
        if found is ABSENT and not presence:
            raise CelError(f"no such key: {go_value(key)}")
        return found
    if isinstance(value, LISTS):
        return _element(value, key, presence=presence)
    found = value.field(key) if isinstance(value, Opaque) else ABSENT
    if presence or found is not ABSENT:
        return found
    raise CelError(f"no such key: {go_value(key)}")


def _element(items: Value, key: Value, *, presence: bool) -> Value:
    position = _position(key)
    if not 0 <= position < len(items):
        if presence:
            return ABSENT
        raise CelError(f"index out of bounds: {go_value(key)}")
    if isinstance(items, JsonList) and type(key) is not int:
        raise CelError(f"unsupported index: {go_value(key)}")
    return items[position]


def _position(key: Value) -> int:
    if type(key) is int:
        return key
    if type(key) is Uint and key < 2**63:
        return int(key)
    if type(key) is float and key.is_integer() and -(2.0**63) < key < 2.0**63:
        return int(key)
    if type(key) in (float, Uint):
        raise CelError(f"unsupported index value {go_value(key)} in list")
    raise CelError(f"unsupported index type '{type_of(key).name}' in list")


def entries(items: Value, *, two: bool) -> Iterator[tuple[Value, Value]]:
    """What a comprehension runs over: elements or keys; with two variables indices or keys, and values."""
    if isinstance(items, JsonList):
        schema = items.items
        elements: Iterator[Value] = (from_json_or_failed(raw, schema) for raw in items.raw)
        return enumerate(elements) if two else ((one, None) for one in elements)
    if isinstance(items, LISTS):
        return enumerate(items) if two else ((one, None) for one in items)
    if isinstance(items, MAPS):
        if not two:
            return ((key, None) for key in items)
        return ((key, _found(items, key)) for key in items)
    name = go_type(items)
    if two:
        raise CelError(f"unsupported comprehension range type: {name}")
    raise CelError(f"got '{name}', expected iterable type")


def _found(items: MapValue | JsonObject | UntypedMap | LazyMap, key: Value) -> Value:
    try:
        return items.find(key)
    except CelError as error:
        return Failed(error.message)


_SPECIAL: Final[dict[str, _Handler]] = {
    "_&&_": _Walker.logic,  # type: ignore[dict-item]
    "_||_": _Walker.logic,  # type: ignore[dict-item]
    "_==_": _Walker.equality,  # type: ignore[dict-item]
    "_!=_": _Walker.equality,  # type: ignore[dict-item]
    "@not_strictly_false": _Walker.not_strictly_false,  # type: ignore[dict-item]
    "or": _Walker.optional_or,  # type: ignore[dict-item]
    "orValue": _Walker.optional_or,  # type: ignore[dict-item]
    "_?_:_": _Walker.attribute,
    "_[_]": _Walker.attribute,
    "_[?_]": _Walker.attribute,
    "_?._": _Walker.attribute,
}
_HANDLERS: Final[dict[type, _Handler]] = {
    Ident: _Walker.attribute,
    Select: _Walker.attribute,
    Call: _Walker.call,  # type: ignore[dict-item]
    ListLiteral: _Walker.list_literal,  # type: ignore[dict-item]
    MapLiteral: _Walker.map_literal,  # type: ignore[dict-item]
    Message: _Walker.message,  # type: ignore[dict-item]
    Comprehension: _Walker.comprehension,  # type: ignore[dict-item]
}
