"""One rule of x-kubernetes-validations, compiled (apiextensions-apiserver's schema/cel/compilation.go).

Compiled expressions are remembered, keyed by their text and the type of `self`: the versions of a CRD mostly share
their rules. What does not compile is no exception here but part of the result: a CRD tells all its mistakes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final

from apiserver.cel import types
from apiserver.cel.codegen import Compiled
from apiserver.cel.environment import KUBERNETES, ONLY_STORED, STORED, Environment
from apiserver.cel.errors import rest
from apiserver.cel.escaping import escape
from apiserver.cel.program import InstantiationError, Program
from apiserver.cel.schema_types import DeclType, decl_type
from apiserver.cel.source import CompileError
from apiserver.schema.fieldpath import resolve
from apiserver.schema.structural import Rule, Structural

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
_SELF_TYPE: Final = "selfType1"  # upstream makes up a number, so that nobody writes the name into a rule
_MEMORY: Final = 8192


@lru_cache(_MEMORY)
def _environment(declared: DeclType, base: Environment, optional_old_self: bool) -> Environment:
    self_type = declared.named(_SELF_TYPE)
    old = types.optional_of(self_type) if optional_old_self else self_type
    return base.extend({SELF: self_type, OLD_SELF: old})


class Expression:
    """A rule or a messageExpression: a program, or what keeps it from being one."""

    __slots__ = ("cost", "error", "program", "uses_old_self")

    def __init__(self, text: str, environment: Environment, declared: DeclType, wanted: types.Type) -> None:
        """`cost` is the most it may cost."""
        self.program: Program | None = None
        self.cost = 0
        self.uses_old_self = False
        self.error = ""
        try:
            program = Program(text, environment)
        except CompileError as error:
            self.error = f"compilation failed: {error}"
            return
        if program.type is not wanted:
            self.error = f"must evaluate to a {wanted.name}"
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
    text: str, declared: DeclType, *, of_message: bool = False, optional_old_self: bool = False, stored: bool = False
) -> Expression:
    """`stored`: expressions that are stored already may use more functions than new ones."""
    base = STORED if stored and any(name in text for name in ONLY_STORED) else KUBERNETES
    return _expression(text, declared, base, of_message, optional_old_self)


@lru_cache(_MEMORY)
def _expression(
    text: str, declared: DeclType, base: Environment, of_message: bool, optional_old_self: bool
) -> Expression:
    environment = _environment(declared, base, optional_old_self)
    return Expression(text, environment, declared, types.STRING if of_message else types.BOOL)


def forget() -> None:
    """Forget all compiled expressions."""
    _expression.cache_clear()
    _environment.cache_clear()


_WARM: Final = 4  # runs after which code is generated


class CompiledRule:
    """A rule of a node.

    `error` and `message_error` are what keeps it, or its messageExpression, from compiling. `needs_old`: it runs only if
    there is an old value. `run` is the rule as a function (see `codegen`), once it has been walked often enough.
    """

    def __init__(
        self, rule: Rule, schema: Structural, declared: DeclType, *, stored: bool, stored_message: bool
    ) -> None:
        self.rule = rule
        self._schema = schema
        self._walks = 0
        self.run: Compiled | None = None
        optional = bool(rule.optional_old_self)
        self.condition = expression(rule.rule, declared, optional_old_self=optional, stored=stored)
        self.error = _told(self.condition.error)
        self.needs_old = self.condition.uses_old_self and not optional and not self.error
        self.message: Expression | None = None
        if rule.message_expression and not self.error:
            self.message = expression(
                rule.message_expression, declared, of_message=True, optional_old_self=optional, stored=stored_message
            )

    @property
    def message_error(self) -> str:
        return f"messageExpression {self.message.error}" if self.message is not None and self.message.error else ""

    @property
    def is_cold(self) -> bool:
        """It is not known yet whether it can be generated."""
        return self._walks < _WARM

    def walked(self, schema: Structural, *, far: bool = False) -> None:
        """It has been walked once more, or so far that this once was too much. `schema` is how it sees its node."""
        if not self.is_cold:
            return
        if far or self._walks + 1 == _WARM:
            rest()
            self.run = self.generate(schema)
        self._walks = _WARM if far else self._walks + 1

    def generate(self, schema: Structural) -> Compiled | None:
        program = self.condition.program
        return program.generate(schema, old_self=not self.rule.optional_old_self) if program else None

    @cached_property
    def field_path(self) -> str:
        """Where failures are told to be, below the node. Upstream forgets it if the messageExpression is wrong."""
        if self.message_error:
            return ""
        try:
            return resolve(self.rule.field_path, self._schema).path
        except ValueError:
            return ""


def _told(error: str) -> str:
    if error.startswith("must"):
        return f"cel expression {error}"
    return f"program {error}" if error.startswith("instantiation") else error


def spaceless(text: str) -> str:
    """Go's strings.TrimSpace."""
    return text.strip(_SPACE)


_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


class Declarations:
    """The types of the nodes of a schema, for rules being admitted.

    Below a node with rules the type of a node is what the rules above see, and that is not what the node says itself:
    in metadata there are name and generateName, whatever the schema says.
    """

    def __init__(self, root: Structural) -> None:
        self._types: dict[Structural, DeclType] = {}
        self._walk(root, None, in_scope=False, resource=True)

    def of(self, node: Structural) -> DeclType | None:
        """None if the node, or one above it that has rules, cannot be typed."""
        return self._types.get(node)

    def _walk(self, node: Structural, declared: DeclType | None, *, in_scope: bool, resource: bool = False) -> None:
        """`declared` as seen from a node above; `in_scope`: does a node above have rules?"""
        if in_scope or node.rules:
            declared = declared or decl_type(node, is_root=resource or node.embedded_resource)
            if declared is None:
                return  # nothing below is typed either
            in_scope = True
            self._types[node] = declared
        for inner, seen in children(node, declared):
            self._walk(inner, seen, in_scope=in_scope)


def children(node: Structural, declared: DeclType | None) -> Iterator[tuple[Structural, DeclType | None]]:
    """The nodes directly below one, with their types as seen from it."""
    if node.items is not None:
        yield node.items, declared.element if declared else None
    if node.values is not None:
        yield node.values, declared.element if declared else None
    fields = (declared.fields if declared else None) or {}
    for name, one in node.properties.items():
        identifier = escape(name)
        yield one, None if identifier is None else fields.get(identifier)
