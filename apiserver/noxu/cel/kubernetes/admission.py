"""Expressions of admission: match conditions of webhooks, and the expressions of policies.

Their variables are those that upstream declares (apiserver/pkg/admission/plugin/cel): `object`, `oldObject` and `params` are
dyn, `request` and `namespaceObject` have fields, `variables` has the variables of the policy, `authorizer` asks questions
(their values: `noxu.cel.kubernetes.activation`). An error of compilation is kept with the expression and reported
when it is evaluated, as an expression may have been stored by a newer server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.cel.checking.environment import KUBERNETES, STORED, Environment
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.evaluation.interpreter import Outcome
from noxu.cel.library import patches
from noxu.cel.memory import Memory
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.source import CompileError
from noxu.cel.types import types
from noxu.cel.types.schema_types import DeclType
from noxu.cel.types.types import Kind, Type, runtime_name
from noxu.cel.values.values import Value
from noxu.cpu_budget import CpuBudget

_STRINGS: Final = types.list_of(types.STRING)
_LABELS: Final = types.map_of(types.STRING, types.STRING)


def _struct(name: str, fields: Mapping[str, Type | DeclType]) -> DeclType:
    declared = {field: DeclType(type_) if isinstance(type_, Type) else type_ for field, type_ in fields.items()}
    return DeclType(fields=declared, own_name=name)


_GVK: Final = _struct("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), types.STRING))
_GVR: Final = _struct("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), types.STRING))
_USER: Final = _struct(
    "kubernetes.UserInfo",
    {
        "username": types.STRING,
        "uid": types.STRING,
        "groups": _STRINGS,
        "extra": types.map_of(types.STRING, _STRINGS),
    },
)
_REQUEST: Final = _struct(
    "kubernetes.AdmissionRequest",
    {
        "kind": _GVK,
        "resource": _GVR,
        "subResource": types.STRING,
        "requestKind": _GVK,
        "requestResource": _GVR,
        "requestSubResource": types.STRING,
        "name": types.STRING,
        "namespace": types.STRING,
        "operation": types.STRING,
        "userInfo": _USER,
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
)
_CONDITION: Final = _struct(
    "kubernetes.NamespaceCondition",
    {
        **dict.fromkeys(("status", "type", "message", "reason"), types.STRING),
        "lastTransitionTime": types.TIMESTAMP,
    },
)
_NAMESPACE: Final = _struct(
    "kubernetes.Namespace",
    {
        "metadata": _struct(
            "kubernetes.NamespaceMetadata",
            {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), types.STRING),
                "labels": _LABELS,
                "annotations": _LABELS,
                "creationTimestamp": types.TIMESTAMP,
                "deletionGracePeriodSeconds": types.INT,
                "deletionTimestamp": types.TIMESTAMP,
                "generation": types.INT,
                "finalizers": _STRINGS,
            },
        ),
        "spec": _struct("kubernetes.NamespaceSpec", {"finalizers": _STRINGS}),
        "status": _struct(
            "kubernetes.NamespaceStatus",
            {"conditions": DeclType(element=_CONDITION), "phase": types.STRING},
        ),
    },
)

OBJECT: Final = "object"
OLD_OBJECT: Final = "oldObject"
REQUEST: Final = "request"
PARAMS: Final = "params"
NAMESPACE: Final = "namespaceObject"
VARIABLES: Final = "variables"
AUTHORIZER: Final = "authorizer"
REQUEST_AUTHORIZER: Final = "authorizer.requestResource"
_VARIABLES_TYPE: Final = "kubernetes.variables"


class Purpose(Enum):
    """What an expression is for. The value is the types it may have; () for any type."""

    VARIABLE = ()
    CONDITION = (types.BOOL,)
    MESSAGE = (types.STRING,)
    AUDIT_VALUE = (types.STRING, types.NULL)
    APPLY_CONFIGURATION = (patches.OBJECT,)
    JSON_PATCH = (types.list_of(patches.JSON_PATCH),)

    @property
    def result_types(self) -> tuple[Type, ...]:
        types_: tuple[Type, ...] = self.value
        return types_

    @property
    def is_mutation(self) -> bool:
        return self in (Purpose.APPLY_CONFIGURATION, Purpose.JSON_PATCH)


class Declared(NamedTuple):
    """What an expression may refer to besides the variables that are always declared.

    `mutation`: the types of patches and apply configurations.
    """

    params: bool = False
    authorizer: bool = True
    mutation: bool = False


@lru_cache(32)
def environment(declared: Declared, base: Environment = STORED) -> Environment:
    """`base` is KUBERNETES for expressions that are written, STORED for those that are evaluated."""
    names = {
        OBJECT: types.DYN,
        OLD_OBJECT: types.DYN,
        NAMESPACE: _NAMESPACE.named(""),
        REQUEST: _REQUEST.named(""),
    }
    if declared.params:
        names[PARAMS] = types.DYN
    if declared.authorizer:
        names |= {AUTHORIZER: types.AUTHORIZER, REQUEST_AUTHORIZER: types.RESOURCE_CHECK}
    if declared.mutation:
        base = base.with_messages(patches.find_message, patches.FUNCTIONS)
    return base.extend(names)


_TOO_DEEP: Final = "the value is nested too deeply"


class Expression:
    """An expression that was compiled, or the `error` that keeps it from being compiled. Then `type` is None."""

    __slots__ = ("_program", "error", "text", "type")

    def __init__(self, text: str, environment: Environment, purpose: Purpose = Purpose.VARIABLE) -> None:
        self.text = text
        self._program: Program | None = None
        self.error = ""
        self.type: Type | None = None
        try:
            program = Program(text, environment)
            if purpose.result_types and program.type not in purpose.result_types:
                self.error = _wrong_type(purpose.result_types, program.type)
                return
            program.instantiate()
        except CompileError as error:
            self.error = f"compilation failed: {error}"
        except InstantiationError as error:
            self.error = f"program instantiation failed: {error}"
        else:
            self._program, self.type = program, program.type

    def evaluate(
        self,
        variables: Mapping[str, Value],
        limit: int = PER_CALL_LIMIT,
        cpu_budget: CpuBudget | None = None,
        memory: Memory | None = None,
    ) -> Outcome:
        """Evaluate an expression without an error. `memory` is shared with others. Raises what `cpu_budget` raises."""
        assert self._program is not None, self.error
        try:
            return self._program.evaluate(variables, limit, cpu_budget, memory)
        except RecursionError:  # e.g. at printing a value, which clients may nest as deeply as they like
            return Outcome(None, _TOO_DEEP, PER_CALL_LIMIT)


def _wrong_type(expected: tuple[Type, ...], given: Type) -> str:
    if len(expected) == 1:
        return f"must evaluate to {runtime_name(expected[0])} but got {runtime_name(given)}"
    return f"must evaluate to one of [{' '.join(map(runtime_name, expected))}] but got {runtime_name(given)}"


class Composition:
    """The variables of a policy. Each may refer to those before it, other expressions to all of them."""

    def __init__(
        self, variables: Iterable[tuple[str, str]] = (), *, params: bool, base: Environment | None = None
    ) -> None:
        """`variables` are names and expressions. `base` replaces the usual environment of the expressions."""
        self.params = params
        self._base = base
        self.variables: dict[str, Expression] = {}
        self._fields: dict[str, DeclType] = {}
        for name, text in variables:
            self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        variable = self.variables[name] = self.expression(text)
        self._fields[name] = DeclType(_type_in_other_expressions(variable.type))

    def extended(self, name: str, text: str) -> Composition:
        """A composition with another variable."""
        extended = Composition(params=self.params, base=self._base)
        extended.variables, extended._fields = {**self.variables}, {**self._fields}
        extended._add(name, text)
        return extended

    def expression(
        self, text: str, purpose: Purpose = Purpose.VARIABLE, *, authorizer: bool = True, stored: bool = True
    ) -> Expression:
        """An expression that may refer to the variables. A `stored` one may use functions that new ones may not."""
        declared = Declared(self.params, authorizer, purpose.is_mutation)
        return Expression(text, self.environment(declared, STORED if stored else KUBERNETES), purpose)

    def environment(self, declared: Declared, library: Environment = STORED) -> Environment:
        """What expressions may refer to."""
        fields = DeclType(fields={**self._fields}, own_name=_VARIABLES_TYPE)
        base = environment(declared, library) if self._base is None else self._base
        return base.extend({VARIABLES: fields.named("")})


_KEPT: Final = frozenset({
    Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.NULL, Kind.STRING, Kind.TIMESTAMP, Kind.UINT,
})  # fmt: skip


def _type_in_other_expressions(type_: Type | None) -> Type:
    """The type of a variable where it is used: objects, optionals and the types of libraries become dyn."""
    if type_ is None:
        return types.DYN
    if type_.kind in _KEPT:
        return type_
    if type_.kind in (Kind.LIST, Kind.MAP):
        return Type(type_.kind, type_.name, tuple(map(_type_in_other_expressions, type_.params)))
    return types.DYN


def match_condition(text: str) -> Expression:
    """A match condition of a webhook."""
    return Expression(text, environment(Declared()), Purpose.CONDITION)
