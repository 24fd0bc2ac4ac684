"""Evaluates the rules of a schema on a value (apiextensions-apiserver's schema/cel/validation.go).

The rules of a node are evaluated before those of the nodes below it, and only on values: not on null. A rule that uses
`oldSelf` is a transition rule and needs an old value. Old values are correlated along the schema: properties and the values
of maps by name, the items of lists of type map by their keys. Costs are taken from a budget; when it is exhausted, no more
rules are evaluated.

A rule that fails on an unchanged value gives a warning, unless it is a transition rule: stored objects remain valid
(ratcheting).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from noxu.api.errors import MAX_REPORTED_ERRORS
from noxu.api.field import (
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
from noxu.cel.checking.environment import NEWEST_ENVIRONMENTS, Environments, of_release
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.errors import NO_SUCH_OVERLOAD, CostExceeded, MemoryExceeded, TimeExceeded
from noxu.cel.generation.codegen import FALLBACK_ERRORS, GeneratedRule
from noxu.cel.kubernetes.rules import OLD_SELF, SELF, CompiledRule
from noxu.cel.program import observed_values
from noxu.cel.types.schema_types import DeclType, decl_type, escape, with_type_and_object_meta
from noxu.cel.values.values import NONE, Optional, Value, from_json_or_failed
from noxu.cpu_budget import CHECK_INTERVAL, CURRENT, CpuBudget, checkpoint
from noxu.go.text import quote, trim_space
from noxu.releases import NEWEST
from noxu.releases.libraries import VALUES_SHOWN
from noxu.schema.correlation import Correlated
from noxu.schema.structural import Structural, ValidationRule, has_rules
from noxu.values import Json, cached_property

BUDGET: Final = 10_000_000
"""The limit of the cost of all rules together on one object."""

_MAX_TRIAL_COST: Final = 5_000
"""What interpreting a rule may cost before code is generated for it."""

_MAX_MESSAGE: Final = 5 * 1024  # bytes
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_NO_BUDGET_FOR_MESSAGE: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)


class FailedRule(NamedTuple):
    """A rule that evaluated to false, with its error and the variables that it was evaluated with."""

    error: FieldError
    rule: CompiledRule
    variables: Mapping[str, Value]

    @property
    def text(self) -> str:
        return self.rule.rule.rule

    def observed_values(self) -> dict[str, str]:
        """The values that the rule used, by the text of the attribute: {"self.replicas": "3"}."""
        program = self.rule.condition.program
        return observed_values(program, self.variables) if program is not None else {}


class ValidationResult(NamedTuple):
    """`remaining` is the rest of the budget, negative if it did not suffice."""

    errors: list[FieldError]
    warnings: list[str]
    remaining: int
    failed: list[FailedRule]


class RuleOutcome(NamedTuple):
    """What a rule has said of one value. `place` is its node in the schema, such as `spec.ports[*].name`."""

    place: Path
    rule: str
    holds: bool


class RuleValidator:
    """Validates values by the rules of their schema. Rules are compiled when they are first needed."""

    def __init__(self, schema: Structural, *, root: bool = True) -> None:
        """`root`: the schema is that of a resource or of an embedded resource, with apiVersion, kind and metadata."""
        self._schema = schema
        self._root = root
        self._older: dict[int, _Node | None] = {}

    @cached_property
    def _node(self) -> _Node | None:
        return self._compiled(NEWEST_ENVIRONMENTS)

    def _compiled(self, environments: Environments) -> _Node | None:
        schema, root = self._schema, self._root
        declared = decl_type(schema, is_root=root)
        return _Node(schema, declared, environments, root=root) if has_rules(schema) else None

    def _of_release(self, release: int) -> _Node | None:
        if release == NEWEST:
            return self._node
        if release not in self._older:
            self._older[release] = self._compiled(of_release(release))  # kept: what is compiled is for one release
        return self._older[release]

    def validate(
        self,
        new: Json,
        old: Json = None,
        *,
        path: Path = "",
        correlation: Correlated | None = None,
        budget: int = BUDGET,
        cpu_budget: CpuBudget | None = None,
        release: int = NEWEST,
    ) -> ValidationResult:
        """Evaluate the rules on a value, as a release of Kubernetes does. `old` is None if there is no old value.

        With a `correlation` of the two, errors of unchanged values become warnings. A rule that `cpu_budget` interrupts is
        an error, and no rule after it is evaluated. Raises what `cpu_budget` raises otherwise.
        """
        run = _Run(budget, cpu_budget, release)
        node = self._of_release(release)
        if node is not None:
            token = CURRENT.set(cpu_budget)
            try:
                run.node(node, (path,), new, old, _Ratchet(correlation, None))
            except _Exhausted:
                run.budget = -1
            finally:
                CURRENT.reset(token)
        return ValidationResult(run.errors, run.warnings, run.budget, run.failed)

    def outcomes(self, new: Json, old: Json = None) -> list[RuleOutcome]:
        """What each rule says of each value that it is evaluated on, in their order, without those that fail to run.

        It interprets all rules, also those that hold, which `validate` does not list. The limits of costs are the same.
        """
        run = _OutcomeRun(BUDGET, None)
        if self._node is not None:
            with suppress(_Exhausted):
                run.node(self._node, ("",), new, old, _UNCORRELATED)
        return run.outcomes


_NOT_TYPED: Final = "rule compiler initialization error: failed to convert to declType for CEL validation rules"


class _Node:
    """A node of the schema that has rules, or nodes with rules below it."""

    def __init__(
        self, schema: Structural, declared: DeclType | None, environments: Environments, *, root: bool
    ) -> None:
        self.type = schema.type
        self.schema = schema
        self._environments = environments
        self.schema_in_rules = with_type_and_object_meta(schema) if root else schema
        self.declared = declared
        self.has_rules = bool(schema.rules)
        element = declared.element if declared else None
        self.items = _node_below(schema.items, element, environments)
        self.values = _node_below(schema.values, element, environments)
        self.properties: dict[str, _Node] = {}
        for name, property_ in schema.properties.items():
            if has_rules(property_) and (node := _property(name, property_, declared, environments)):
                self.properties[name] = node
        self.correlated = schema.map_type in (None, "granular", "atomic")

    @cached_property
    def rules(self) -> list[CompiledRule]:
        if self.declared is None:
            return []
        compiled = []
        for rule in self.schema.rules:
            compiled.append(
                CompiledRule(
                    rule,
                    self.schema,
                    self.declared,
                    stored=True,
                    stored_message=True,
                    environments=self._environments,
                )
            )
            checkpoint()
        return compiled

    @cached_property
    def uses_old_self(self) -> bool:
        return any(rule.condition.uses_old_self for rule in self.rules)


def _node_below(schema: Structural | None, declared: DeclType | None, environments: Environments) -> _Node | None:
    if schema is None or not has_rules(schema):
        return None
    return _Node(schema, declared, environments, root=schema.embedded_resource)


def _property(name: str, schema: Structural, parent: DeclType | None, environments: Environments) -> _Node | None:
    """The node of a property; None if it has no type, as upstream does not validate it."""
    identifier = escape(name)
    if identifier is None:
        declared = decl_type(schema, is_root=schema.embedded_resource)
    else:
        declared = (parent.fields or {}).get(identifier) if parent else None
    return _Node(schema, declared, environments, root=schema.embedded_resource) if declared else None


_Location: TypeAlias = tuple[object, ...]
"""The location of a value in the object: a linked list, which is written out as a path for an error only.

(path,), or (location of the parent, name or index, whether it is the name of a field):

    ((("spec",), "ports", True), 0, False)   →   spec.ports[0]
"""


def _steps(location: _Location) -> tuple[Path, list[tuple[object, object]]]:
    """The path that a location begins at, and (name or index, whether it is the name of a field) for each step from there."""
    steps = []
    while len(location) == 3:
        location, step, is_field = location  # type: ignore[assignment]
        steps.append((step, is_field))
    return str(location[0]), steps[::-1]


def _path(location: _Location) -> Path:
    path, steps = _steps(location)
    for step, is_field in steps:
        if isinstance(step, int):
            path = index(path, step)
        else:
            path = child(path, str(step)) if is_field else key(path, str(step))
    return path


class _Ratchet(NamedTuple):
    """The correlation of a value with its old value, None if it has none: then the nearest value above counts."""

    here: Correlated | None
    above: Correlated | None

    def is_unchanged(self) -> bool:
        nearest = self.here if self.here is not None else self.above
        return nearest is not None and nearest.equal()

    def at_key(self, name: str) -> _Ratchet:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):  # always equal: old objects are converted
            return _UNCORRELATED
        return _Ratchet(self.here.key(name), self.here)

    def at_index(self, position: int) -> _Ratchet:
        return self if self.here is None else _Ratchet(self.here.index(position), self.here)


_UNCORRELATED: Final = _Ratchet(None, None)


MAX_FAILURES: Final = MAX_REPORTED_ERRORS
"""Errors of rules for one object: no more rules are evaluated then. Warnings beyond it are left out."""
MAX_FAILURES_TEXT: Final = 1024 * 1024
"""Characters of the errors."""


class _Exhausted(Exception):
    """No more rules are evaluated."""


class _Run:
    """One validation. `budget` is what remains; a generated rule may cost `allowed` until it calls `next_limit` again."""

    def __init__(self, budget: int, cpu_budget: CpuBudget | None, release: int = NEWEST) -> None:
        self.budget = budget
        self.cpu_budget = cpu_budget
        self.release = release
        self.first_limit = PER_CALL_LIMIT if cpu_budget is None else CHECK_INTERVAL
        self.allowed = self.first_limit
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.failed: list[FailedRule] = []
        self.text = 0  # characters of the errors

    def node(self, node: _Node, location: _Location, new: Json, old: Json, ratchet: _Ratchet) -> None:
        if new is None:
            return
        if node.has_rules:
            self.rules(node, location, new, old, ratchet)
        if isinstance(new, list):
            if node.items is not None:
                self.items(node, node.items, location, new, old, ratchet)
        elif isinstance(new, dict):
            stored = old if isinstance(old, dict) and node.correlated else {}
            if node.values is not None:
                for name, value in new.items():
                    self.node(node.values, (location, name, False), value, stored.get(name), ratchet.at_key(name))
            for name, property_ in node.properties.items():
                value = new.get(name)
                if value is not None:
                    self.node(property_, (location, name, True), value, stored.get(name), ratchet.at_key(name))

    def items(
        self, node: _Node, items: _Node, location: _Location, new: list[Json], old: Json, ratchet: _Ratchet
    ) -> None:
        correlation = Correlated(new, old, node.schema) if old else None
        for n, value in enumerate(new):
            item = correlation.index(n) if correlation else None
            self.node(items, (location, n, False), value, item.old if item else None, ratchet.at_index(n))

    def rules(self, node: _Node, location: _Location, new: Json, old: Json, ratchet: _Ratchet) -> None:
        if node.declared is None:
            self.errors.append(invalid(_path(location), node.type, _NOT_TYPED))
            return
        if self.budget <= 0:
            self.take(1, location, node)
        run: _NodeRun | None = None
        for rule in node.rules:
            if rule.needs_old and old is None:
                continue
            if self.cpu_budget is not None:
                self.cpu_budget.begin()
            outcome: int | Exception | None = None
            if rule.generated is not None:
                outcome = self.call(rule.generated, new, old)
                if isinstance(outcome, int) and 0 <= outcome <= self.budget and outcome <= PER_CALL_LIMIT:
                    self.budget -= outcome
                    continue
            run = run or _NodeRun(self, node, location, new, old, ratchet)
            run.rule(rule, outcome)

    def call(self, generated: GeneratedRule, new: Json, old: Json) -> int | Exception:
        self.allowed = self.first_limit
        try:
            return generated(new, old, self.first_limit, self.next_limit)
        except FALLBACK_ERRORS as error:
            return error

    def next_limit(self, cost: int) -> int:
        """The cost at which a generated rule, which has cost this much, calls this again."""
        if cost > PER_CALL_LIMIT:
            raise CostExceeded
        if self.cpu_budget is None:
            return PER_CALL_LIMIT
        self.cpu_budget.check(cost - self.allowed)
        self.allowed = min(cost + CHECK_INTERVAL, PER_CALL_LIMIT)
        return self.allowed

    def take(self, cost: int, location: _Location, node: _Node) -> None:
        """Take a cost from the budget. If it does not suffice, this is an error of the node, and the end."""
        if cost > self.budget:
            self.errors.append(invalid(_path(location), node.type, _NO_BUDGET))
            raise _Exhausted
        self.budget -= cost


@dataclass(eq=False)
class _NodeRun:
    """The rules of one node on one value."""

    run: _Run
    node: _Node
    location: _Location
    new: Json
    old: Json
    ratchet: _Ratchet

    @cached_property
    def variables(self) -> dict[str, Value]:
        variables = {SELF: from_json_or_failed(self.new, self.node.schema_in_rules)}
        if self.old is not None and self.node.uses_old_self:
            variables[OLD_SELF] = from_json_or_failed(self.old, self.node.schema_in_rules)
        return variables

    @cached_property
    def variables_with_optional(self) -> dict[str, Value]:
        old_self = self.variables.get(OLD_SELF)
        return {**self.variables, OLD_SELF: NONE if old_self is None else Optional(old_self)}

    def rule(self, rule: CompiledRule, outcome: int | Exception | None) -> None:
        """Handle a rule: `outcome` is the result or the error of its generated function, None if there is none."""
        match outcome:
            case int():
                self.settle(rule, outcome)
            case CostExceeded():
                self.exceeded(rule)
            case TimeExceeded() | MemoryExceeded():
                self.failed_to_run(rule.rule, outcome.message)
            case _:
                self.interpret(rule)

    def settle(self, rule: CompiledRule, outcome: int) -> None:
        """A generated rule returned its cost if it holds, or ~cost if it does not."""
        cost = outcome if outcome >= 0 else ~outcome
        if cost > PER_CALL_LIMIT:
            self.exceeded(rule)
        self.run.take(cost, self.location, self.node)
        if outcome < 0:
            self.failed(rule, self.variables)

    def exceeded(self, rule: CompiledRule) -> None:
        self.run.take(PER_CALL_LIMIT + 1, self.location, self.node)
        self.failed_to_run(rule.rule, CostExceeded.MESSAGE)

    def interpret(self, rule: CompiledRule) -> None:
        """Interpret a rule. If this takes long and code can be generated, start over with the generated function."""
        if rule.error:
            why = f"rule compile error: {rule.error}"
            self.run.errors.append(invalid(_path(self.location), self.node.type, why))
            return
        program = rule.condition.program
        assert program is not None
        variables = self.variables_with_optional if rule.rule.optional_old_self else self.variables
        limit = _MAX_TRIAL_COST if rule.may_be_generated else PER_CALL_LIMIT
        outcome = program.evaluate(variables, limit, self.run.cpu_budget)
        long = limit == _MAX_TRIAL_COST and outcome.error == CostExceeded.MESSAGE
        rule.interpreted(self.node.schema_in_rules, long=long)
        if long:
            self.rule(rule, rule.generated and self.run.call(rule.generated, self.new, self.old))
            return
        self.run.take(outcome.cost, self.location, self.node)
        if outcome.error is not None:
            self.failed_to_run(rule.rule, outcome.error)
        elif outcome.value is not True:
            self.failed(rule, variables)

    def failed_to_run(self, rule: ValidationRule, error: str) -> None:
        shown = _message_or_rule(rule)
        exceeded = error == CostExceeded.MESSAGE
        if exceeded:
            why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
        elif error.startswith(NO_SUCH_OVERLOAD):
            why = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
        else:
            why = f"{error} evaluating rule: {shown}"
        self.run.errors.append(invalid(_path(self.location), self.node.type, why))
        if exceeded or error == TimeExceeded.MESSAGE or error.startswith(MemoryExceeded.PREFIX):
            raise _Exhausted

    def failed(self, rule: CompiledRule, variables: Mapping[str, Value]) -> None:
        path = _path(self.location)
        if rule.field_path:
            path = child(path, rule.field_path)
        detail = self.message(rule, path) or (
            trim_space(rule.rule.message) if rule.rule.message else f"failed rule: {_message_or_rule(rule.rule)}"
        )
        value = OMIT if self.node.type in ("object", "array") else self.new
        if self.run.release < VALUES_SHOWN:
            value = self.node.type
        error = _field_error(rule.rule.reason, path, value, detail)
        if len(self.run.failed) < MAX_FAILURES:
            self.run.failed.append(FailedRule(error, rule, variables))
        self.report(rule, error)

    def report(self, rule: CompiledRule, error: FieldError) -> None:
        if not rule.condition.uses_old_self and self.ratchet.is_unchanged():
            if len(self.run.warnings) < MAX_FAILURES:
                self.run.warnings.append(str(error))
            return
        self.run.errors.append(error)
        self.run.text += len(error.field) + len(error.detail)
        if len(self.run.errors) >= MAX_FAILURES or self.run.text > MAX_FAILURES_TEXT:
            raise _Exhausted

    def message(self, rule: CompiledRule, path: Path) -> str:
        """The message of the messageExpression; "" if there is none, or if its value cannot be used."""
        if rule.message is None or rule.message.program is None:
            return ""
        outcome = rule.message.program.evaluate(self.variables, cpu_budget=self.run.cpu_budget)
        why = ""
        if outcome.cost > self.run.budget:
            why = _NO_BUDGET_FOR_MESSAGE
        elif outcome.error == CostExceeded.MESSAGE:
            expression = quote(rule.rule.message_expression)
            why = f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
        if why:
            self.report(rule, invalid(path, self.node.type, why))
            raise _Exhausted
        self.run.budget -= outcome.cost
        if outcome.error is not None or not isinstance(outcome.value, str):
            return ""
        message = trim_space(outcome.value)
        return "" if "\n" in message or len(message.encode()) > _MAX_MESSAGE else message


class _OutcomeRun(_Run):
    """A run that evaluates every rule, and keeps what it says."""

    def __init__(self, budget: int, cpu_budget: CpuBudget | None) -> None:
        super().__init__(budget, cpu_budget)
        self.outcomes: list[RuleOutcome] = []

    def rules(self, node: _Node, location: _Location, new: Json, old: Json, ratchet: _Ratchet) -> None:
        place, node_run = _schema_place(location), _NodeRun(self, node, location, new, old, ratchet)
        for rule in node.rules:
            program = rule.condition.program
            if program is None or (rule.needs_old and old is None):
                continue
            variables = node_run.variables_with_optional if rule.rule.optional_old_self else node_run.variables
            outcome = program.evaluate(variables, PER_CALL_LIMIT, None)
            self.take(outcome.cost, location, node)
            if outcome.error is None:
                self.outcomes.append(RuleOutcome(place, rule.rule.rule, outcome.value is True))


def _schema_place(location: _Location) -> Path:
    """The node of the schema at a location: items and values of maps are `[*]`."""
    place, steps = _steps(location)
    for step, is_field in steps:
        place = child(place, str(step)) if is_field else f"{place}[*]"
    return place


def _message_or_rule(rule: ValidationRule) -> str:
    return trim_space(rule.message or rule.rule)


def _field_error(reason: str, path: Path, value: Json, detail: str) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, detail)
