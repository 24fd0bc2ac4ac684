"""Checks the rules of a CRD's schema: whether they compile, and whether their estimated costs are within the limits.

apiextensions-apiserver's validation of x-kubernetes-validations (apis/apiextensions/validation). The validation of a schema
calls `SchemaRules` for each node with rules. It adds up the estimates, as all rules of a schema together have a limit, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, Protocol

from noxu.api.field import FieldError, Path, Verbatim, child, forbidden, index, internal, invalid
from noxu.cel.checking.environment import of_release
from noxu.cel.kubernetes.rules import CompiledRule, Declarations
from noxu.cel.kubernetes.validation import BUDGET, RuleValidator
from noxu.cel.values.numbers import MAX_UINT64
from noxu.cpu_budget import CpuBudget
from noxu.releases import NEWEST
from noxu.schema.structural import Structural
from noxu.values import Json

MAX_RULE_ESTIMATE: Final = 10_000_000
MAX_SCHEMA_ESTIMATE: Final = 100_000_000
_MAX_REPORTED: Final = 4  # of the most expensive rules, if all rules together cost too much
_RULES: Final = "x-kubernetes-validations"


class Site(Protocol):
    """A node with rules, and its place in the schema."""

    @property
    def schema(self) -> Structural: ...
    @property
    def path(self) -> Path: ...
    @property
    def cardinality(self) -> int | None:
        """How many values of the node an object may contain; None if their number is not limited."""

    @property
    def uncorrelatable(self) -> Path | None:
        """The path of the node, this one or one above, below which old and new values cannot be correlated."""

    @property
    def echo(self) -> Callable[[int], Verbatim]:
        """The n-th rule as messages print it."""


class _RuleCost(NamedTuple):
    path: Path
    cost: int


class SchemaRules:
    """The rules of one schema."""

    def __init__(
        self,
        root: Structural,
        *,
        stored_rules: frozenset[str],
        stored_messages: frozenset[str],
        limit_each: bool,
        cpu_budget: CpuBudget | None = None,
        release: int = NEWEST,
    ) -> None:
        """`stored_rules` and `stored_messages` are the expressions of the stored CRD. `limit_each`: limit the estimate of
        each rule, not only their sum. `cpu_budget` applies to the evaluation of rules on defaults. `release`: of
        Kubernetes, which decides what rules may use.
        """
        self._declarations = Declarations(root)
        self._release = release
        self._environments = of_release(release)
        self._stored_rules = stored_rules
        self._stored_messages = stored_messages
        self._limit_each = limit_each
        self._total = 0
        self._expensive: list[_RuleCost] = []
        self.costs: dict[Path, int] = {}
        """The estimates of all rules and expressions that were checked, by their paths in the schema."""
        self._budget_of_defaults = BUDGET
        self._cpu_budget = cpu_budget

    def check(self, site: Site) -> list[FieldError]:
        """The errors of the rules of a node."""
        rules = child(site.path, _RULES)
        declared = self._declarations.of(site.schema)
        if declared is None:
            why = "unable to convert structural schema to CEL declarations"
            failed = "internal error: failed to construct type information for x-kubernetes-validations rules"
            return [internal(rules, f"{failed}: {why}")]
        cardinality = declared.max_cardinality if site.cardinality is None else site.cardinality
        errors: list[FieldError] = []
        for n, rule in enumerate(site.schema.rules):
            compiled = CompiledRule(
                rule,
                site.schema,
                declared,
                stored=rule.rule in self._stored_rules,
                stored_message=rule.message_expression in self._stored_messages,
                environments=self._environments,
            )
            errors += self._rule_errors(compiled, site, n, index(rules, n), cardinality)
        return errors

    def _rule_errors(
        self, compiled: CompiledRule, site: Site, n: int, path: Path, cardinality: int
    ) -> Iterator[FieldError]:
        rule, where = compiled.rule, child(path, "rule")
        cost = min(compiled.condition.cost * cardinality, MAX_UINT64)
        yield from self._too_expensive("rule", where, cost)
        if compiled.error:
            yield invalid(where, site.echo(n), compiled.error)
        where_message = child(path, "messageExpression")
        if compiled.message_error:
            yield invalid(where_message, site.echo(n), compiled.message_error)
        elif compiled.message is not None:
            yield from self._too_expensive("messageExpression", where_message, compiled.message.cost)
        if compiled.condition.uses_old_self:
            if site.uncorrelatable is not None:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {site.uncorrelatable}"
                yield invalid(where, rule.rule, why)
        elif rule.optional_old_self is not None:
            why = "may not be set if oldSelf is not used in rule"
            yield invalid(child(path, "optionalOldSelf"), rule.optional_old_self, why)

    def _too_expensive(self, field: str, path: Path, cost: int) -> Iterator[FieldError]:
        self._total = min(self._total + cost, MAX_UINT64)
        self.costs[path] = cost
        if cost * 100 >= MAX_SCHEMA_ESTIMATE:
            self._expensive.append(_RuleCost(path, cost))
            self._expensive.sort(key=lambda rule: -rule.cost)
            del self._expensive[_MAX_REPORTED:]
        if self._limit_each and cost > MAX_RULE_ESTIMATE:
            yield forbidden(path, _exceeds(f"estimated {field} cost", cost, MAX_RULE_ESTIMATE))

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        """The errors of the rules on a default: if it stays unchanged, or else if it is newly set.

        All defaults of a schema share one budget.
        """
        if self._budget_of_defaults < 0:
            return []
        validator = RuleValidator(schema, root=root)
        validate = partial(
            validator.validate,
            default,
            path=path,
            budget=self._budget_of_defaults,
            cpu_budget=self._cpu_budget,
            release=self._release,
        )
        result = validate(default)
        remaining = result.remaining
        if not result.errors:
            result = validate(None)
        self._budget_of_defaults = min(remaining, result.remaining)
        return result.errors

    def totals(self, path: Path) -> list[FieldError]:
        """The errors of all rules together, once every node was checked. `path` is the schema's."""
        if self._total <= MAX_SCHEMA_ESTIMATE:
            return []
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        return [
            *(forbidden(rule.path, contributed) for rule in self._expensive),
            forbidden(path, _exceeds(subject, self._total, MAX_SCHEMA_ESTIMATE)),
        ]


def _exceeds(subject: str, cost: int, limit: int) -> str:
    factor = float(cost) / limit
    if factor > 100:
        times = "more than 100x"
    elif factor < 1.5:
        times = f"{factor:f}x"  # 1.0x would be confusing
    else:
        times = f"{factor:.1f}x"
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{subject} exceeds budget by factor of {times} ({advice})"
