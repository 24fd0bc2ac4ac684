"""The rules of a schema that a CRD brings: do they compile, and can they be afforded?

apiextensions-apiserver's validation of x-kubernetes-validations (apis/apiextensions/validation). `SchemaRules` is asked
node by node; it adds up what the rules cost at worst, for all of them together have a limit too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from apiserver.api.field import FieldError, Path, Verbatim, child, forbidden, index, internal, invalid
from apiserver.api.types import Json
from apiserver.cel.errors import Patience
from apiserver.cel.numbers import MAX_UINT64
from apiserver.cel.rules import CompiledRule, Declarations
from apiserver.cel.validation import BUDGET, Validator
from apiserver.schema.structural import Structural

LIMIT_OF_RULE: Final = 10_000_000
LIMIT_OF_SCHEMA: Final = 100_000_000
_MOST_EXPENSIVE: Final = 4  # so many rules are told when all together cost too much
_RULES: Final = "x-kubernetes-validations"


class Site(Protocol):
    """A node with rules, and where it stands."""

    @property
    def schema(self) -> Structural: ...
    @property
    def path(self) -> Path: ...
    @property
    def cardinality(self) -> int | None:
        """How many values of this kind an object may hold; None if that is not limited."""

    @property
    def uncorrelatable(self) -> Path | None:
        """The node above (or here) below which old and new values cannot be matched, if there is one."""

    @property
    def echo(self) -> Callable[[int], Verbatim]:
        """The n-th rule as messages tell it."""


class _Price(NamedTuple):
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
        patience: Patience | None = None,
    ) -> None:
        """Stored expressions were there before. `limit_each`: is there a limit to what a single rule may cost?
        `patience` is with rules that are run on defaults."""
        self._declarations = Declarations(root)
        self._stored_rules = stored_rules
        self._stored_messages = stored_messages
        self._limit_each = limit_each
        self._total = 0
        self._expensive: list[_Price] = []
        self._budget_of_defaults = BUDGET
        self._patience = patience

    def check(self, site: Site) -> list[FieldError]:
        """What is wrong with the rules of a node."""
        rules = child(site.path, _RULES)
        declared = self._declarations.of(site.schema)
        if declared is None:
            why = "unable to convert structural schema to CEL declarations"
            what = "internal error: failed to construct type information for x-kubernetes-validations rules"
            return [internal(rules, f"{what}: {why}")]
        cardinality = declared.max_cardinality if site.cardinality is None else site.cardinality
        errors: list[FieldError] = []
        for n, rule in enumerate(site.schema.rules):
            compiled = CompiledRule(
                rule,
                site.schema,
                declared,
                stored=rule.rule in self._stored_rules,
                stored_message=rule.message_expression in self._stored_messages,
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

    def _too_expensive(self, what: str, path: Path, cost: int) -> Iterator[FieldError]:
        self._total = min(self._total + cost, MAX_UINT64)
        if cost * 100 >= LIMIT_OF_SCHEMA:
            self._expensive.append(_Price(path, cost))
            self._expensive.sort(key=lambda price: -price.cost)
            del self._expensive[_MOST_EXPENSIVE:]
        if self._limit_each and cost > LIMIT_OF_RULE:
            yield forbidden(path, _exceeds(f"estimated {what} cost", cost, LIMIT_OF_RULE))

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        """What the rules say to a default, unchanged, and newly set. All defaults of a schema share one budget."""
        if self._budget_of_defaults < 0:
            return []
        validator = Validator(schema, root=root)
        left, patience = self._budget_of_defaults, self._patience
        verdict = validator.validate(default, default, path=path, budget=left, patience=patience)
        remaining = verdict.remaining
        if not verdict.errors:
            verdict = validator.validate(default, None, path=path, budget=left, patience=patience)
        self._budget_of_defaults = min(remaining, verdict.remaining)
        return verdict.errors

    def totals(self, path: Path) -> list[FieldError]:
        """The most expensive rules, if all rules together cost too much. `path` is the schema's."""
        if self._total <= LIMIT_OF_SCHEMA:
            return []
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        return [
            *(forbidden(price.path, contributed) for price in self._expensive),
            forbidden(path, _exceeds(what, self._total, LIMIT_OF_SCHEMA)),
        ]


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = float(cost) / limit
    if factor > 100:
        told = "more than 100x"
    elif factor < 1.5:
        told = f"{factor:f}x"  # 1.0x would be confusing
    else:
        told = f"{factor:.1f}x"
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{what} exceeds budget by factor of {told} ({advice})"
