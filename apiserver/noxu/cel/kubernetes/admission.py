"""Expressions of admission: match conditions of webhooks, and the expressions of policies.

Their variables are those that upstream declares (apiserver/pkg/admission/plugin/cel): `object`, `oldObject` and
`params` are dyn, `request` and `namespaceObject` have fields, `variables` has the variables of the policy, `authorizer`
asks questions (their values: `activation`). An error of compilation is kept with the expression and reported when it is
evaluated, as an expression may have been stored by a newer server.

A `TypeChecker` checks expressions of a policy with the types of the objects that it applies to (upstream's
policy/validating/typechecking.go): `object`, `oldObject` and `params`, which are dyn in an evaluation, have the types
of their schemas.

An `AwaitedCondition` is an expression that a client waits for: `self.status.readyReplicas == self.spec.replicas`.
`self` is the object, without types. A field that does not exist yet is an error of the evaluation, as everywhere in
CEL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.api.meta import OBJECT_META
from noxu.cel.checking.environment import KUBERNETES, STORED, Environment, of_release
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.evaluation.interpreter import EvaluationResult
from noxu.cel.library import patches
from noxu.cel.library.kubernetes import Authorize, Authorizer, resource_check
from noxu.cel.memory import Memory
from noxu.cel.program import InstantiationError, Program, observed_values
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types import types
from noxu.cel.types.schema_types import DeclType, decl_type
from noxu.cel.types.types import Type, TypeKind, runtime_name
from noxu.cel.values.values import LazyMap, Value, untyped
from noxu.cpu_budget import CpuBudget
from noxu.go.structs import List, Map, Scalar, Struct, Union, Wire
from noxu.go.structs import Type as StructType
from noxu.releases import NEWEST
from noxu.schema.structural import Structural
from noxu.values import Object

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
    """The purpose of an expression. The value is the types it may have; () for any type."""

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


class DeclaredVariables(NamedTuple):
    """The variables of an expression besides those that are always declared.

    `mutation`: the types of patches and apply configurations.
    """

    params: bool = False
    authorizer: bool = True
    mutation: bool = False


@lru_cache(32)
def environment(declared: DeclaredVariables, base: Environment = STORED) -> Environment:
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
    ) -> EvaluationResult:
        """Evaluate an expression without an error. `memory` is shared with others. Raises what `cpu_budget` raises."""
        assert self._program is not None, self.error
        try:
            return self._program.evaluate(variables, limit, cpu_budget, memory)
        except RecursionError:  # e.g. at printing a value, which clients may nest as deeply as they like
            return EvaluationResult(None, _TOO_DEEP, PER_CALL_LIMIT)

    def observed_values(self, variables: Mapping[str, Value]) -> dict[str, str]:
        """The values that it uses, by the text of the attribute: {"object.spec.replicas": "3"}. Authorizers have none."""
        if self._program is None:
            return {}
        try:
            observed = observed_values(self._program, variables)
        except RecursionError:
            return {}
        return {text: value for text, value in observed.items() if not text.startswith(AUTHORIZER)}


def _wrong_type(expected: tuple[Type, ...], actual: Type) -> str:
    if len(expected) == 1:
        return f"must evaluate to {runtime_name(expected[0])} but got {runtime_name(actual)}"
    return f"must evaluate to one of [{' '.join(map(runtime_name, expected))}] but got {runtime_name(actual)}"


class Composition:
    """The variables of a policy. Each may refer to those before it, other expressions to all of them."""

    def __init__(
        self,
        variables: Iterable[tuple[str, str]] = (),
        *,
        params: bool,
        base: Environment | None = None,
        release: int = NEWEST,
    ) -> None:
        """`variables` are names and expressions. `base` replaces the usual environment of the expressions.

        `release`: of Kubernetes, which decides what new expressions may use.
        """
        self.params = params
        self.release = release
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
        extended = Composition(params=self.params, base=self._base, release=self.release)
        extended.variables, extended._fields = {**self.variables}, {**self._fields}
        extended._add(name, text)
        return extended

    def expression(
        self, text: str, purpose: Purpose = Purpose.VARIABLE, *, authorizer: bool = True, stored: bool = True
    ) -> Expression:
        """An expression that may refer to the variables. A `stored` one may use functions that new ones may not."""
        declared = DeclaredVariables(self.params, authorizer, purpose.is_mutation)
        return Expression(text, self.environment(declared, of_release(self.release).of(text, stored=stored)), purpose)

    def environment(self, declared: DeclaredVariables, library: Environment = STORED) -> Environment:
        """What expressions may refer to."""
        fields = DeclType(fields={**self._fields}, own_name=_VARIABLES_TYPE)
        base = environment(declared, library) if self._base is None else self._base
        return base.extend({VARIABLES: fields.named("")})


_KEPT: Final = frozenset({
    TypeKind.BOOL, TypeKind.BYTES, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.NULL, TypeKind.STRING, TypeKind.TIMESTAMP, TypeKind.UINT,
})  # fmt: skip


def _type_in_other_expressions(type_: Type | None) -> Type:
    """The type of a variable where it is used: objects, optionals and the types of libraries become dyn."""
    if type_ is None:
        return types.DYN
    if type_.kind in _KEPT:
        return type_
    if type_.kind in (TypeKind.LIST, TypeKind.MAP):
        return Type(type_.kind, type_.name, tuple(map(_type_in_other_expressions, type_.params)))
    return types.DYN


def match_condition(text: str) -> Expression:
    """A match condition of a webhook."""
    return Expression(text, environment(DeclaredVariables()), Purpose.CONDITION)


def activation(
    *,
    object_: Object | None,
    old_object: Object | None,
    request: Object,
    namespace: Object | None,
    params: Object | None,
    authorize: Authorize | None,
    resource: tuple[str, str, str, str, str] = ("", "", "", "", ""),
    variables: Mapping[str, Callable[[], Value]] | None = None,
) -> dict[str, Value]:
    """The variables of an expression, by name.

    Objects are JSON. `authorize` answers questions of the `authorizer`, which does not exist without it. `resource` is what
    `authorizer.requestResource` asks about: group, resource, subresource, namespace and name. `variables` compute those of
    the policy when they are first used; they may raise CelError.
    """
    values: dict[str, Value] = {
        OBJECT: untyped(object_),
        OLD_OBJECT: untyped(old_object),
        REQUEST: untyped(request),
        NAMESPACE: untyped(namespace),
        PARAMS: untyped(params),
    }
    if authorize is not None:
        values[AUTHORIZER] = Authorizer(authorize)
        values[REQUEST_AUTHORIZER] = resource_check(authorize, *resource)
    if variables is not None:
        values[VARIABLES] = LazyMap(variables)
    return values


_MAX_DEPTH: Final = 64  # of a struct's type: a type that contains itself has no schema


class TypeChecker:
    """Checks the expressions of a policy for one type of objects."""

    def __init__(
        self,
        object_type: Type,
        variables: Iterable[tuple[str, str]],
        *,
        has_params: bool = False,
        params_type: Type | None = None,
    ) -> None:
        """`variables` are the names and expressions of the policy's. `params_type` is None if it is not known."""
        declared = DeclaredVariables(has_params)
        names = {OBJECT: object_type, OLD_OBJECT: object_type}
        if has_params:
            names[PARAMS] = params_type or types.DYN
        base = environment(declared).extend(names)
        self._environment = Composition(variables, params=has_params, base=base).environment(declared)

    def error(self, text: str) -> str:
        """What keeps an expression from being compiled, "" if nothing does."""
        try:
            Program(text, self._environment)
        except CompileError as error:
            return str(error)
        return ""


def object_type(kind: str, *, struct: Struct | None = None, schema: Structural | None = None) -> Type | None:
    """The type of the objects of a kind, built-in (`struct`) or custom (`schema`); None if there is no schema for them."""
    if struct is not None:
        declared = _struct_type(struct)
    else:
        declared = None if schema is None else decl_type(schema, is_root=True)
        if declared is not None and declared.fields is not None:
            metadata = _struct_type(OBJECT_META)
            assert metadata is not None
            declared = DeclType(fields={**declared.fields, "metadata": metadata})
    return None if declared is None else declared.named(f"{kind}1")  # upstream appends a number


_SCALARS: Final = {
    Wire.STRING: types.STRING,
    Wire.BOOL: types.BOOL,
    Wire.INT32: types.INT,
    Wire.INT64: types.INT,
    Wire.DOUBLE: types.DOUBLE,
    Wire.BYTES: types.BYTES,
    Wire.TIME: types.TIMESTAMP,
    Wire.MICRO_TIME: types.TIMESTAMP,
    Wire.INT_OR_STRING: types.DYN,
    Wire.QUANTITY: types.DYN,
    Wire.DURATION: types.STRING,
}


@lru_cache(64)
def _struct_type(struct: Struct) -> DeclType | None:
    try:
        return _declare(struct, 0)
    except RecursionError:
        return None


def _declare(type_: StructType, depth: int) -> DeclType | None:
    """The type as OpenAPI describes it, None if it does not. Raises RecursionError for a type that contains itself."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(type_, Scalar):
        if type_.wire is Wire.JSON:
            return DeclType(fields={})
        return DeclType(_SCALARS[type_.wire])
    if isinstance(type_, Union):
        return None
    if isinstance(type_, (List, Map)):
        element = _declare(type_.element, depth + 1)
        return None if element is None else DeclType(element=element, is_map=isinstance(type_, Map))
    fields = {name: _declare(field.type, depth + 1) for name, field in type_.fields.items()}
    return DeclType(fields={name: declared for name, declared in fields.items() if declared is not None})


SELF: Final = "self"


class AwaitedCondition:
    """A compiled condition on an object, `self`, or on several, which have these names.

    Raises ValueError with the compiler's message.
    """

    def __init__(self, text: str, names: tuple[str, ...] = (SELF,)) -> None:
        self.text = text
        self._expression = _compiled(text, names)
        if self._expression.error:
            raise ValueError(self._expression.error)
        type_ = self._expression.type
        if type_ not in (types.BOOL, types.DYN):
            raise ValueError(f"must evaluate to bool but got {runtime_name(type_)}" if type_ else "has no type")

    def evaluate(self, value: Object) -> EvaluationResult:
        """True, false, or an error; the value of a field may have another type."""
        return self.evaluate_together({SELF: value})

    def evaluate_together(self, values: Mapping[str, Object]) -> EvaluationResult:
        """`evaluate` with each of the objects by its name."""
        return self._expression.evaluate({name: untyped(value) for name, value in values.items()})


@lru_cache(64)
def _compiled(text: str, names: tuple[str, ...]) -> Expression:
    return Expression(text, KUBERNETES.extend(dict.fromkeys(names, types.DYN)))


def compilation_error(text: str, type_: Type) -> str:
    """The compiler's error for a condition on an object of a type, "" if it compiles."""
    return Expression(text, KUBERNETES.extend({SELF: type_})).error
