"""The rules of a schema, run on a value (apiextensions-apiserver's schema/cel/validation.go).

Rules of a node run before those below it, and only on values: null has no rules. A rule that uses `oldSelf` is a
transition rule and needs an old value, correlated along the schema: properties and values of maps by name, items of
lists of type map by their keys. What rules cost is taken from a budget; when it is used up, nothing runs any more.

A rule that fails on a value that did not change is a warning, unless it is a transition rule: what is stored already
may stay (ratcheting).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.field import (
    OMIT,
    FieldError,
    Path,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    required,
)
from apiserver.api.gotext import quote
from apiserver.api.types import Json
from apiserver.cel.codegen import UNDECIDED, Compiled
from apiserver.cel.errors import NO_SUCH_OVERLOAD, PATIENCE, PATIENCE_STEP, CostExceeded, Interrupted, Patience, rest
from apiserver.cel.escaping import escape
from apiserver.cel.rules import OLD_SELF, SELF, CompiledRule, spaceless
from apiserver.cel.schema_types import DeclType, decl_type, with_type_and_object_meta
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.values import NONE, Optional, Value, from_json_or_failed
from apiserver.cel.witness import witness
from apiserver.schema.ratcheting import Correlated
from apiserver.schema.structural import Rule, Structural, has_rules

BUDGET: Final = 10_000_000
"""What all rules of an object may cost together."""

_TRIAL: Final = 5_000
"""What a rule may cost before it is generated."""

_MAX_MESSAGE: Final = 5 * 1024  # bytes
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_NO_BUDGET_FOR_MESSAGE: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)


class FailedRule(NamedTuple):
    """A rule that said no, the error that it is told as, and what it saw."""

    error: FieldError
    rule: CompiledRule
    variables: Mapping[str, Value]

    def witness(self) -> dict[str, str]:
        """The values of the attributes in the rule, by their texts."""
        program = self.rule.condition.program
        return witness(program, self.variables) if program is not None else {}


class Verdict(NamedTuple):
    """`remaining` is what is left of the budget, negative if it did not suffice."""

    errors: list[FieldError]
    warnings: list[str]
    remaining: int
    failed: list[FailedRule]


class Validator:
    """Validates values of a schema by its rules. Rules are compiled when they are first needed."""

    def __init__(self, schema: Structural, *, root: bool = True) -> None:
        """`root`: is it the schema of a resource, or of an embedded one? Then apiVersion, kind and metadata are there."""
        self._schema = schema
        self._root = root

    @cached_property
    def _node(self) -> _Node | None:
        schema, root = self._schema, self._root
        return _Node(schema, decl_type(schema, is_root=root), root=root) if has_rules(schema) else None

    def validate(
        self,
        new: Json,
        old: Json = None,
        *,
        path: Path = "",
        correlation: Correlated | None = None,
        budget: int = BUDGET,
        patience: Patience | None = None,
    ) -> Verdict:
        """`old` is None where there is nothing to compare with; with a `correlation` of the two, unchanged values
        are excused. A rule that tries the `patience` too long is the last one: it is an error."""
        run = _Run(budget, patience)
        if self._node is not None:
            before = PATIENCE.set(patience)
            try:
                run.node(self._node, (path,), new, old, _Ratchet(correlation, None))
            except _Exhausted:
                run.budget = -1
            finally:
                PATIENCE.reset(before)
        return Verdict(run.errors, run.warnings, run.budget, run.failed)


_NOT_TYPED: Final = "rule compiler initialization error: failed to convert to declType for CEL validation rules"


class _Node:
    """A node of the schema with rules, or with such nodes below."""

    def __init__(self, schema: Structural, declared: DeclType | None, *, root: bool) -> None:
        self.type = schema.type
        self.schema = schema
        self.seen = with_type_and_object_meta(schema) if root else schema  # as rules see it
        self.declared = declared
        self.has_rules = bool(schema.rules)
        element = declared.element if declared else None
        self.items = _node_below(schema.items, element)
        self.values = _node_below(schema.values, element)
        self.properties: dict[str, _Node] = {}
        for name, one in schema.properties.items():
            if has_rules(one) and (node := _property(name, one, declared)):
                self.properties[name] = node
        self.correlated = schema.map_type in (None, "granular", "atomic")

    @cached_property
    def rules(self) -> list[CompiledRule]:
        if self.declared is None:
            return []
        compiled = []
        for rule in self.schema.rules:
            compiled.append(CompiledRule(rule, self.schema, self.declared, stored=True, stored_message=True))
            rest()
        return compiled

    @cached_property
    def uses_old_self(self) -> bool:
        return any(rule.condition.uses_old_self for rule in self.rules)


def _node_below(schema: Structural | None, declared: DeclType | None) -> _Node | None:
    if schema is None or not has_rules(schema):
        return None
    return _Node(schema, declared, root=schema.embedded_resource)


def _property(name: str, schema: Structural, parent: DeclType | None) -> _Node | None:
    """What cannot be typed is not validated either."""
    identifier = escape(name)
    if identifier is None:
        declared = decl_type(schema, is_root=schema.embedded_resource)
    else:
        declared = (parent.fields or {}).get(identifier) if parent else None
    return _Node(schema, declared, root=schema.embedded_resource) if declared else None


_Trail: TypeAlias = tuple[object, ...]  # (path,) or (trail above, name or position, is it the name of a field?)


def _path(trail: _Trail) -> Path:
    steps = []
    while len(trail) == 3:
        steps.append(trail)
        trail = trail[0]  # type: ignore[assignment]
    path = str(trail[0])
    for _, step, is_field in reversed(steps):
        if isinstance(step, int):
            path = index(path, step)
        else:
            path = child(path, str(step)) if is_field else key(path, str(step))
    return path


class _Ratchet(NamedTuple):
    """What a value is compared with: None where it cannot be correlated; then the nearest node above counts."""

    here: Correlated | None
    above: Correlated | None

    def excuses(self) -> bool:
        nearest = self.here if self.here is not None else self.above
        return nearest is not None and nearest.equal()

    def at_key(self, name: str) -> _Ratchet:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):  # they always agree: the versions are converted
            return _UNCORRELATED
        return _Ratchet(self.here.key(name), self.here)

    def at_index(self, position: int) -> _Ratchet:
        return self if self.here is None else _Ratchet(self.here.index(position), self.here)


_UNCORRELATED: Final = _Ratchet(None, None)


class _Exhausted(Exception):
    """Nothing more is run."""


class _Run:
    """One validation."""

    def __init__(self, budget: int, patience: Patience | None) -> None:
        self.budget = budget
        self.patience = patience
        self.limit = PER_CALL_LIMIT if patience is None else PATIENCE_STEP
        self.allowed = self.limit
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.failed: list[FailedRule] = []

    def node(self, node: _Node, trail: _Trail, new: Json, old: Json, ratchet: _Ratchet) -> None:
        if new is None:
            return
        if node.has_rules:
            self.rules(node, trail, new, old, ratchet)
        if isinstance(new, list):
            if node.items is not None:
                self.items(node, node.items, trail, new, old, ratchet)
        elif isinstance(new, dict):
            known = old if isinstance(old, dict) and node.correlated else {}
            if node.values is not None:
                for name, value in new.items():
                    self.node(node.values, (trail, name, False), value, known.get(name), ratchet.at_key(name))
            for name, inner in node.properties.items():
                value = new.get(name)
                if value is not None:
                    self.node(inner, (trail, name, True), value, known.get(name), ratchet.at_key(name))

    def items(self, node: _Node, inner: _Node, trail: _Trail, new: list[Json], old: Json, ratchet: _Ratchet) -> None:
        pairs = Correlated(new, old, node.schema) if old else None
        for n, value in enumerate(new):
            pair = pairs.index(n) if pairs else None
            self.node(inner, (trail, n, False), value, pair.old if pair else None, ratchet.at_index(n))

    def rules(self, node: _Node, trail: _Trail, new: Json, old: Json, ratchet: _Ratchet) -> None:
        if node.declared is None:
            self.errors.append(invalid(_path(trail), node.type, _NOT_TYPED))
            return
        if self.budget <= 0:
            self.afford(1, trail, node)
        run: _NodeRun | None = None
        for rule in node.rules:
            if rule.needs_old and old is None:
                continue
            if self.patience is not None:
                self.patience.begin()
            outcome: int | Exception | None = None
            if rule.run is not None:
                outcome = self.attempt(rule.run, new, old)
                if isinstance(outcome, int) and 0 <= outcome <= self.budget and outcome <= PER_CALL_LIMIT:
                    self.budget -= outcome
                    continue
            run = run or _NodeRun(self, node, trail, new, old, ratchet)
            run.rule(rule, outcome)

    def attempt(self, run: Compiled, new: Json, old: Json) -> int | Exception:
        self.allowed = self.limit
        try:
            return run(new, old, self.limit, self.more)
        except UNDECIDED as error:
            return error

    def more(self, cost: int) -> int:
        """How much a generated rule may cost until it asks again."""
        if cost > PER_CALL_LIMIT:
            raise CostExceeded
        if self.patience is None:
            return PER_CALL_LIMIT
        self.patience.check(cost - self.allowed)
        self.allowed = min(cost + PATIENCE_STEP, PER_CALL_LIMIT)
        return self.allowed

    def afford(self, cost: int, trail: _Trail, node: _Node) -> None:
        if cost > self.budget:
            self.errors.append(invalid(_path(trail), node.type, _NO_BUDGET))
            raise _Exhausted
        self.budget -= cost


class _NodeRun:
    """The rules of one node on one value."""

    def __init__(self, run: _Run, node: _Node, trail: _Trail, new: Json, old: Json, ratchet: _Ratchet) -> None:
        self.run = run
        self.node = node
        self.trail = trail
        self.new = new
        self.old = old
        self.ratchet = ratchet

    @cached_property
    def variables(self) -> dict[str, Value]:
        known = {SELF: from_json_or_failed(self.new, self.node.seen)}
        if self.old is not None and self.node.uses_old_self:
            known[OLD_SELF] = from_json_or_failed(self.old, self.node.seen)
        return known

    @cached_property
    def variables_with_optional(self) -> dict[str, Value]:
        known = self.variables.get(OLD_SELF)
        return {**self.variables, OLD_SELF: NONE if known is None else Optional(known)}

    def rule(self, rule: CompiledRule, outcome: int | Exception | None) -> None:
        """`outcome` is what the generated rule gave or raised; None if there is none."""
        match outcome:
            case int():
                self.settle(rule, outcome)
            case CostExceeded():
                self.exceeded(rule)
            case Interrupted():
                self.failed_to_run(rule.rule, outcome.message)
            case _:
                self.walk(rule)

    def settle(self, rule: CompiledRule, cost: int) -> None:
        """A generated rule cost that much and holds, or cost ~cost and does not."""
        spent = cost if cost >= 0 else ~cost
        if spent > PER_CALL_LIMIT:
            self.exceeded(rule)
        self.run.afford(spent, self.trail, self.node)
        if cost < 0:
            self.failed(rule, self.variables)

    def exceeded(self, rule: CompiledRule) -> None:
        self.run.afford(PER_CALL_LIMIT + 1, self.trail, self.node)
        self.failed_to_run(rule.rule, CostExceeded.MESSAGE)

    def walk(self, rule: CompiledRule) -> None:
        """Run it exactly. What turns out to be long is better generated."""
        if rule.error:
            why = f"rule compile error: {rule.error}"
            self.run.errors.append(invalid(_path(self.trail), self.node.type, why))
            return
        program = rule.condition.program
        assert program is not None
        variables = self.variables_with_optional if rule.rule.optional_old_self else self.variables
        limit = _TRIAL if rule.is_cold else PER_CALL_LIMIT
        outcome = program.evaluate(variables, limit, self.run.patience)
        far = limit == _TRIAL and outcome.error == CostExceeded.MESSAGE
        rule.walked(self.node.seen, far=far)
        if far:
            self.rule(rule, rule.run and self.run.attempt(rule.run, self.new, self.old))
            return
        self.run.afford(outcome.cost, self.trail, self.node)
        if outcome.error is not None:
            self.failed_to_run(rule.rule, outcome.error)
        elif outcome.value is not True:
            self.failed(rule, variables)

    def failed_to_run(self, rule: Rule, error: str) -> None:
        told = _told(rule)
        exceeded = error == CostExceeded.MESSAGE
        if exceeded:
            why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {told}"
        elif error.startswith(NO_SUCH_OVERLOAD):
            why = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {told}"
        else:
            why = f"{error} evaluating rule: {told}"
        self.run.errors.append(invalid(_path(self.trail), self.node.type, why))
        if exceeded or error == Interrupted.MESSAGE:
            raise _Exhausted

    def failed(self, rule: CompiledRule, variables: Mapping[str, Value]) -> None:
        path = _path(self.trail)
        if rule.field_path:
            path = child(path, rule.field_path)
        detail = self.message(rule, path) or (
            spaceless(rule.rule.message) if rule.rule.message else _default(rule.rule)
        )
        value = OMIT if self.node.type in ("object", "array") else self.new
        error = _field_error(rule.rule.reason, path, value, detail)
        self.run.failed.append(FailedRule(error, rule, variables))
        self.report(rule, error)

    def report(self, rule: CompiledRule, error: FieldError) -> None:
        if not rule.condition.uses_old_self and self.ratchet.excuses():
            self.run.warnings.append(str(error))
        else:
            self.run.errors.append(error)

    def message(self, rule: CompiledRule, path: Path) -> str:
        """What the messageExpression says, if there is one and it says something usable."""
        if rule.message is None or rule.message.program is None:
            return ""
        outcome = rule.message.program.evaluate(self.variables, patience=self.run.patience)
        complaint = ""
        if outcome.cost > self.run.budget:
            complaint = _NO_BUDGET_FOR_MESSAGE
        elif outcome.error == CostExceeded.MESSAGE:
            expression = quote(rule.rule.message_expression)
            complaint = f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
        if complaint:
            self.report(rule, invalid(path, self.node.type, complaint))
            raise _Exhausted
        self.run.budget -= outcome.cost
        if outcome.error is not None or not isinstance(outcome.value, str):
            return ""
        told = spaceless(outcome.value)
        return "" if "\n" in told or len(told.encode()) > _MAX_MESSAGE else told


def _told(rule: Rule) -> str:
    return spaceless(rule.message or rule.rule)


def _default(rule: Rule) -> str:
    return f"failed rule: {_told(rule)}"


def _field_error(reason: str, path: Path, value: Json, detail: str) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, detail)
