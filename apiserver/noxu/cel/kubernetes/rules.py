"""A compiled rule of x-kubernetes-validations (apiextensions-apiserver's schema/cel/compilation.go).

Compiled expressions are cached by their text and the type of `self`, because the versions of a CRD mostly share their rules.
An error of compilation is a part of the result, not an exception: all errors of a CRD are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

from noxu.cel.checking.environment import NEWEST_ENVIRONMENTS, Environment, Environments
from noxu.cel.generation.codegen import GeneratedRule
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types import types
from noxu.cel.types.schema_types import DeclType, decl_type, escape
from noxu.cpu_budget import checkpoint
from noxu.schema.fieldpath import resolve
from noxu.schema.structural import Structural, ValidationRule, has_rules
from noxu.values import cached_property

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
_SELF_TYPE: Final = "selfType1"  # upstream appends a number, so that no rule can refer to the type by its name
_CACHE_SIZE: Final = 8192


@lru_cache(_CACHE_SIZE)
def _environment(declared: DeclType, base: Environment, optional_old_self: bool) -> Environment:
    self_type = declared.named(_SELF_TYPE)
    old = types.optional_of(self_type) if optional_old_self else self_type
    return base.extend({SELF: self_type, OLD_SELF: old})


class RuleExpression:
    """A rule or a messageExpression: a `program`, or the `error` that keeps it from being compiled.

    `cost` is its estimated cost at most.
    """

    __slots__ = ("cost", "error", "program", "uses_old_self")

    def __init__(self, text: str, environment: Environment, declared: DeclType, result: types.Type) -> None:
        """`declared` is the type of `self`, `result` that of the expression."""
        self.program: Program | None = None
        self.cost = 0
        self.uses_old_self = False
        self.error = ""
        try:
            program = Program(text, environment)
        except CompileError as error:
            self.error = f"compilation failed: {error}"
            return
        if program.type is not result:
            self.error = f"must evaluate to a {result.name}"
            return
        self.uses_old_self = program.uses(OLD_SELF)
        try:
            program.instantiate()
        except InstantiationError as error:
            self.error = f"instantiation failed: {error}"
            return
        self.cost = program.estimate(declared).high
        self.program = program


def expression(
    text: str,
    declared: DeclType,
    *,
    of_message: bool = False,
    optional_old_self: bool = False,
    stored: bool = False,
    environments: Environments = NEWEST_ENVIRONMENTS,
) -> RuleExpression:
    """A rule, or with `of_message` a messageExpression. A `stored` one may use functions that new ones may not."""
    base = environments.of(text, stored=stored)
    return _expression(text, declared, base, of_message, optional_old_self)


@lru_cache(_CACHE_SIZE)
def _expression(
    text: str, declared: DeclType, base: Environment, of_message: bool, optional_old_self: bool
) -> RuleExpression:
    environment = _environment(declared, base, optional_old_self)
    return RuleExpression(text, environment, declared, types.STRING if of_message else types.BOOL)


def clear_cache() -> None:
    """Forget all compiled expressions."""
    _expression.cache_clear()
    _environment.cache_clear()


GENERATE_AFTER: Final = 4  # interpretations


class CompiledRule:
    """A rule of a node of a schema.

    `error` and `message_error` are what keeps it, or its messageExpression, from being compiled. `needs_old`: it is only
    evaluated if there is an old value. `generated` is the rule as a Python function, once it was interpreted often enough.
    """

    def __init__(
        self,
        rule: ValidationRule,
        schema: Structural,
        declared: DeclType,
        *,
        stored: bool,
        stored_message: bool,
        environments: Environments = NEWEST_ENVIRONMENTS,
    ) -> None:
        self.rule = rule
        self._schema = schema
        self._interpretations = 0
        self.generated: GeneratedRule | None = None
        optional = bool(rule.optional_old_self)
        compiled = partial(expression, declared=declared, optional_old_self=optional, environments=environments)
        self.condition = compiled(rule.rule, stored=stored)
        self.error = _full_error(self.condition.error)
        self.needs_old = self.condition.uses_old_self and not optional and not self.error
        self.message: RuleExpression | None = None
        if rule.message_expression and not self.error:
            self.message = compiled(rule.message_expression, of_message=True, stored=stored_message)

    @property
    def message_error(self) -> str:
        return f"messageExpression {self.message.error}" if self.message is not None and self.message.error else ""

    @property
    def may_be_generated(self) -> bool:
        """Whether generating code for it is still to come."""
        return self._interpretations < GENERATE_AFTER

    def interpreted(self, schema: Structural, *, long: bool = False) -> None:
        """Count an interpretation, and generate code after some of them or after a `long` one.

        `schema` is that of the node as rules see it.
        """
        if not self.may_be_generated:
            return
        if long or self._interpretations + 1 == GENERATE_AFTER:
            checkpoint()
            self.generated = self._generate(schema)
        self._interpretations = GENERATE_AFTER if long else self._interpretations + 1

    def _generate(self, schema: Structural) -> GeneratedRule | None:
        program = self.condition.program
        return program.generate(schema, old_self=not self.rule.optional_old_self) if program else None

    @cached_property
    def field_path(self) -> str:
        """The path, below the node, of the field that failures name. Upstream drops it if the messageExpression is wrong."""
        if self.message_error:
            return ""
        try:
            return resolve(self.rule.field_path, self._schema).path
        except ValueError:
            return ""


def _full_error(error: str) -> str:
    if error.startswith("must"):
        return f"cel expression {error}"
    return f"program {error}" if error.startswith("instantiation") else error


class Declarations:
    """The types of the nodes of a schema, for the rules of a CRD that is written.

    Below a node with rules, a node has the type that these rules see. That is not always the type of its own schema: in
    metadata, rules see name and generateName, whatever the schema says.
    """

    def __init__(self, root: Structural) -> None:
        self._types: dict[Structural, DeclType] = {}
        self._walk(root, None, in_scope=False, resource=True)

    def of(self, node: Structural) -> DeclType | None:
        """The type of a node with rules; None if it, or a node above it that has rules, has no type."""
        return self._types.get(node)

    def _walk(self, node: Structural, declared: DeclType | None, *, in_scope: bool, resource: bool = False) -> None:
        """`declared` is the type that nodes above see; `in_scope`: a node above has rules.

        The types of nodes without rules are not used.
        """
        if not has_rules(node):
            return
        if in_scope or node.rules:
            declared = declared or decl_type(node, is_root=resource or node.embedded_resource)
            if declared is None:
                return  # then no node below has a type
            in_scope = True
            self._types[node] = declared
        for child, child_declared in children(node, declared):
            self._walk(child, child_declared, in_scope=in_scope)


def children(node: Structural, declared: DeclType | None) -> Iterator[tuple[Structural, DeclType | None]]:
    """The nodes directly below a node, with their types as seen from it."""
    if node.items is not None:
        yield node.items, declared.element if declared else None
    if node.values is not None:
        yield node.values, declared.element if declared else None
    fields = (declared.fields if declared else None) or {}
    for name, child in node.properties.items():
        identifier = escape(name)
        yield child, None if identifier is None else fields.get(identifier)
