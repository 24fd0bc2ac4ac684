"""Expressions of admission: match conditions of webhooks, and what policies consist of.

What they may name is what upstream declares (apiserver/pkg/admission/plugin/cel): `object`, `oldObject` and `params`
are dyn, `request` and `namespaceObject` have fields, `variables` those that the policy composes, `authorizer` asks.
What does not compile is told when it is evaluated: an expression may have been stored by a server that knew more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from apiserver.cel import types
from apiserver.cel.environment import STORED, Environment
from apiserver.cel.library import patches
from apiserver.cel.program import InstantiationError, Program
from apiserver.cel.schema_types import DeclType
from apiserver.cel.source import CompileError
from apiserver.cel.types import Kind, Type

_STRINGS: Final = types.list_of(types.STRING)
_LABELS: Final = types.map_of(types.STRING, types.STRING)


def _struct(name: str, fields: Mapping[str, Type | DeclType]) -> DeclType:
    declared = {field: DeclType(one) if isinstance(one, Type) else one for field, one in fields.items()}
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


class Declared(NamedTuple):
    """Which names there are beside those that always are. `patches`: may patches be written?"""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


@lru_cache(32)
def environment(declared: Declared, base: Environment = STORED) -> Environment:
    """`base` is KUBERNETES for expressions that are new, STORED for those that are evaluated."""
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
    if declared.patches:
        base = base.with_messages(patches.find_message, patches.FUNCTIONS)
    return base.extend(names)


ANY: Final[tuple[Type, ...]] = ()
"""Whatever it evaluates to."""
CONDITION: Final = (types.BOOL,)
MESSAGE: Final = (types.STRING,)
AUDIT_VALUE: Final = (types.STRING, types.NULL)
APPLY_CONFIGURATION: Final = (patches.OBJECT,)
JSON_PATCH: Final = (types.list_of(patches.JSON_PATCH),)


class Expression:
    """A compiled expression, or `error`: what keeps it from being one.

    `type` is None if it does not compile.
    """

    __slots__ = ("error", "program", "text", "type")

    def __init__(self, text: str, within: Environment, wanted: tuple[Type, ...] = ANY) -> None:
        """`wanted` are the types it may have."""
        self.text = text
        self.program: Program | None = None
        self.error = ""
        self.type: Type | None = None
        try:
            program = Program(text, within)
            if wanted and program.type not in wanted:
                self.error = _other_type(wanted, program.type)
                return
            program.instantiate()
        except CompileError as error:
            self.error = f"compilation failed: {error}"
        except InstantiationError as error:
            self.error = f"program instantiation failed: {error}"
        else:
            self.program, self.type = program, program.type


def _other_type(wanted: tuple[Type, ...], given: Type) -> str:
    if len(wanted) == 1:
        return f"must evaluate to {name_of(wanted[0])} but got {name_of(given)}"
    return f"must evaluate to one of [{' '.join(map(name_of, wanted))}] but got {name_of(given)}"


def name_of(one: Type) -> str:
    """cel-go's Type.String: runtime names throughout."""
    if not one.params or one.kind is Kind.TYPE:
        return one.name
    return f"{one.name}({', '.join(map(name_of, one.params))})"


class Composition:
    """The variables of a policy. Each may use those before it; other expressions all of them."""

    def __init__(
        self, variables: Iterable[tuple[str, str]] = (), *, params: bool, within: Environment | None = None
    ) -> None:
        """`variables` are names and expressions. `within`: what else all of them may name, if not the usual."""
        self.params = params
        self._within = within
        self.compiled: dict[str, Expression] = {}
        self._fields: dict[str, DeclType] = {}
        for name, text in variables:
            self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        one = self.compiled[name] = self.expression(text)
        self._fields[name] = DeclType(_remembered(one.type))

    def extended(self, name: str, text: str) -> Composition:
        """With one more variable."""
        more = Composition(params=self.params, within=self._within)
        more.compiled, more._fields = {**self.compiled}, {**self._fields}
        more._add(name, text)
        return more

    def expression(
        self,
        text: str,
        wanted: tuple[Type, ...] = ANY,
        *,
        authorizer: bool = True,
        patches: bool = False,
        base: Environment = STORED,
    ) -> Expression:
        """An expression that may use the variables."""
        return Expression(text, self.environment(Declared(self.params, authorizer, patches), base), wanted)

    def environment(self, declared: Declared, base: Environment = STORED) -> Environment:
        """What expressions may name."""
        known = DeclType(fields={**self._fields}, own_name=_VARIABLES_TYPE)
        within = environment(declared, base) if self._within is None else self._within
        return within.extend({VARIABLES: known.named("")})


_KEPT: Final = frozenset({
    Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.NULL, Kind.STRING, Kind.TIMESTAMP, Kind.UINT,
})  # fmt: skip


def _remembered(one: Type | None) -> Type:
    """What is known of a variable's type where it is used: objects, optionals and the types of libraries are dyn."""
    if one is None:
        return types.DYN
    if one.kind in _KEPT:
        return one
    if one.kind in (Kind.LIST, Kind.MAP):
        return Type(one.kind, one.name, tuple(map(_remembered, one.params)))
    return types.DYN


def match_condition(text: str) -> Expression:
    """A match condition of a webhook."""
    return Expression(text, environment(Declared()), CONDITION)
